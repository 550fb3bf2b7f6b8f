# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Installs every patch, once."""

import threading

from tensorflow.python.platform import tf_logging as logging

from embedding_variable.eager.patches import checkpoint_patch
from embedding_variable.eager.patches import keras_model_patch
from embedding_variable.eager.patches import keras_ranks_patch
from embedding_variable.eager.patches import keras_saving_patch
from embedding_variable.eager.patches import keras_step_patch
from embedding_variable.eager.patches import keras_weights_patch
from embedding_variable.eager.patches import tape_patch
from embedding_variable.integration import device_setter_patch
from embedding_variable.integration import namespace_patch
from embedding_variable.integration import patching
from embedding_variable.integration.lookups import contrib_layers_patch
from embedding_variable.integration.lookups import control_flow_patch
from embedding_variable.integration.lookups import embedding_ops_patch
from embedding_variable.integration.lookups import feature_column_patch
from embedding_variable.integration.lookups import group_columns_patch
from embedding_variable.integration.sessions import checkpoint_utils_patch
from embedding_variable.integration.sessions import estimator_patch
from embedding_variable.integration.sessions import graph_util_patch
from embedding_variable.integration.sessions import incremental_patch
from embedding_variable.integration.sessions import meta_graph_patch
from embedding_variable.integration.sessions import monitored_session_patch
from embedding_variable.integration.sessions import numerics_patch
from embedding_variable.integration.sessions import saver_patch
from embedding_variable.integration.sessions import session_patch
from embedding_variable.integration.training import clip_patch
from embedding_variable.integration.training import dense_gradients_patch
from embedding_variable.integration.training import graph_rewrite_patch
from embedding_variable.integration.training import horovod_patch
from embedding_variable.integration.training import keras_patch
from embedding_variable.integration.training import loss_scale_patch
from embedding_variable.integration.training import optimizer_patch
from embedding_variable.integration.training import slot_creator_patch
from embedding_variable.integration.training import sync_replicas_patch
from embedding_variable.optimizers import keras_rules
from embedding_variable.optimizers import keras_step_rules
from embedding_variable.optimizers import own
from embedding_variable.optimizers import tf_train_rules

_lock = threading.Lock()
_installed = False


def install():
  """Installs support for embedding variables in this process's TensorFlow.

  Adds DeepRec's names to `tf` and `tf.compat.v1`, and patches lookups, optimizers,
  savers and other parts of stock TensorFlow. Repeated calls are no-ops. Logs its
  changes at level DEBUG.
  """
  global _installed
  with _lock:
    if _installed:
      return
    tf_train_rules.register()
    keras_rules.register()
    keras_step_rules.register()
    own.register()
    for patch in (namespace_patch, checkpoint_patch, embedding_ops_patch,
                  control_flow_patch, optimizer_patch, slot_creator_patch, keras_patch,
                  keras_step_patch, keras_saving_patch, keras_weights_patch,
                  keras_model_patch, saver_patch, incremental_patch,
                  checkpoint_utils_patch, meta_graph_patch, device_setter_patch,
                  feature_column_patch, group_columns_patch, contrib_layers_patch,
                  estimator_patch, horovod_patch, keras_ranks_patch,
                  monitored_session_patch, session_patch, sync_replicas_patch,
                  graph_util_patch, numerics_patch, clip_patch, dense_gradients_patch,
                  loss_scale_patch, graph_rewrite_patch, tape_patch):
      patch.install()
    patching.replace_exports()
    _installed = True
    logging.debug("embedding_variable: installed")
