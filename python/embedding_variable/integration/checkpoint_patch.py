# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Registers how `tf.train.Checkpoint` saves eager tables.

Why: it saves a variable as one tensor. TensorFlow 2.x has a registry of functions for
other objects, in an internal module.
"""

from embedding_variable import tf_names
from embedding_variable.eager import checkpoint


def install():
  """Registers the functions where TensorFlow has the registry."""
  registration = tf_names.find("tensorflow.python.saved_model.registration")
  if registration is not None and tf_names.has_eager_tables():
    checkpoint.register(registration)
