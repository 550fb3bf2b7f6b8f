# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Patch: gradients that a `tf.GradientTape` returns for tables spread over ranks.

Why: `tf.clip_by_global_norm` gets gradients without their variables, and has to add the
squares of all ranks for a table that is spread. The tape gets the variables. Gradients
of two lookups, which the tape concatenates, and those of a whole `tf.function` come from
TensorFlow's ops, so they cannot be recognized otherwise.
"""

from tensorflow.python.eager import backprop
from tensorflow.python.util import nest

from embedding_variable import tf_names
from embedding_variable.integration import patching
from embedding_variable.ops import handle_ops
from embedding_variable.ops import spread_gradients
from embedding_variable.tf_names import ops
from embedding_variable.variables import eager_variable


def install():
  """Replaces `tf.GradientTape.gradient` where tables can be eager."""
  if tf_names.has_eager_tables():
    patching.wrap(backprop.GradientTape, "gradient", _gradient)


def _gradient(stock):

  def gradient(self, target, sources, *args, **kwargs):
    result = stock(self, target, sources, *args, **kwargs)
    for source, grad in zip(nest.flatten(sources), nest.flatten(result)):
      table = eager_variable.table_of(source)
      if (table is not None and isinstance(grad, ops.IndexedSlices) and
          handle_ops.is_spread_over_ranks(table.handle)):
        spread_gradients.mark_spread(grad, table.op.name)
    return result

  return gradient
