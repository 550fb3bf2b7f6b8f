# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Patch: `tf.variable_scope(...).keep_weights()`.

Why: DeepRec's scripts enter `with tf.variable_scope(name).keep_weights(): ...`.
"""

from tensorflow.python.ops import variable_scope

from embedding_variable.deeprec import keep_weights
from embedding_variable.integration import patching


def install():
  """Adds the method."""
  patching.add_name(variable_scope.variable_scope, "keep_weights",
                    keep_weights.keep_weights)
