# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Registers how `tf.train.Checkpoint` saves eager tables, and wraps its save.

Why: it saves a variable as one tensor. TensorFlow 2.x has a registry of functions for
other objects, in an internal module. If ranks save a table together, all of them call
`save`, of which only rank 0 writes the rest; the others end it after their rows.
"""

from embedding_variable import tf_names
from embedding_variable.eager import checkpoint
from embedding_variable.eager import saved_together
from embedding_variable.integration import patching
from embedding_variable.tf_names import functional_saver


def install():
  """Registers the functions where TensorFlow has the registry, and replaces `save`."""
  registration = tf_names.find("tensorflow.python.saved_model.registration")
  if registration is not None and tf_names.has_eager_tables():
    checkpoint.register(registration)
    patching.wrap(functional_saver.MultiDeviceSaver, "save", _save)


def _save(stock):

  def save(self, *args, **kwargs):
    return saved_together.whole(lambda: stock(self, *args, **kwargs))

  return save
