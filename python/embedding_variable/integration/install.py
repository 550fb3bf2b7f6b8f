# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Installs every patch, once."""

import threading

from tensorflow.python.platform import tf_logging as logging

from embedding_variable.integration import control_flow
from embedding_variable.integration import device_setter
from embedding_variable.integration import embedding_ops
from embedding_variable.integration import feature_column
from embedding_variable.integration import horovod
from embedding_variable.integration import keras
from embedding_variable.integration import meta_graph
from embedding_variable.integration import namespace
from embedding_variable.integration import optimizer
from embedding_variable.integration import saver
from embedding_variable.integration import slot_creator
from embedding_variable.optimizers import adagrad_decay
from embedding_variable.optimizers import adam_async
from embedding_variable.optimizers import adam_w
from embedding_variable.optimizers import keras_rules
from embedding_variable.optimizers import tf_train_rules

_lock = threading.Lock()
_installed = False


def install():
  """Makes embedding variables part of this process's TensorFlow.

  Puts DeepRec's names on `tf` and `tf.compat.v1` and teaches lookups, optimizers,
  savers and the rest of stock TensorFlow about embedding variables. Calling it again
  does nothing. What it did is logged at level DEBUG.
  """
  global _installed
  with _lock:
    if _installed:
      return
    tf_train_rules.register()
    keras_rules.register()
    for module in (adam_async, adagrad_decay, adam_w):
      module.register()
    for patch in (namespace, embedding_ops, control_flow, optimizer, slot_creator,
                  keras, saver, meta_graph, device_setter, feature_column, horovod):
      patch.install()
    _installed = True
    logging.debug("embedding_variable: installed")
