# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Patch: gradients that a `tf.GradientTape` returns for tables, and zeros like a table.

Why, for tables spread over ranks: `tf.clip_by_global_norm` gets gradients without their
variables, and has to add the squares of all ranks for a table that is spread. The tape
gets the variables. Gradients of two lookups, which the tape concatenates, and those of a
whole `tf.function` come from TensorFlow's ops, so they cannot be recognized otherwise.

Why, for all tables: with `unconnected_gradients=ZERO` TensorFlow reads a table that the
loss does not use, to make zeros of its shape; its error does not name the table. And
`tf.zeros_like` and `tf.ones_like` of a table, where graphs are built, would return a tensor
of the shape of one row.
"""

from tensorflow.python.eager import backprop
from tensorflow.python.ops import array_ops as stock_array_ops
from tensorflow.python.ops.unconnected_gradients import UnconnectedGradients
from tensorflow.python.util import nest

from embedding_variable import tf_names
from embedding_variable.eager import eager_variable
from embedding_variable.integration import patching
from embedding_variable.ops import handle_ops
from embedding_variable.ops import spread_gradients
from embedding_variable.tf_names import array_ops
from embedding_variable.tf_names import ops
from embedding_variable.variables import variable as variable_lib

_NONE = UnconnectedGradients.NONE


def install():
  """Replaces `tf.GradientTape.gradient` where tables can be eager."""
  if tf_names.has_eager_tables():
    patching.wrap(backprop.GradientTape, "gradient", _gradient)
    patching.wrap(stock_array_ops, patching.first_name(
        stock_array_ops, "array_like_impl", "zeros_like_impl"), _like)  # 2.11: the latter


def _like(stock):

  def like(*args, **kwargs):
    for value in args:
      value = getattr(value, "embedding_variable", value)
      if variable_lib.is_embedding_variable(value):
        ops.convert_to_tensor(value)  # raises an error that names the table
    return stock(*args, **kwargs)

  return like


def _gradient(stock):

  def gradient(self, target, sources, output_gradients=None,
               unconnected_gradients=_NONE, *args, **kwargs):
    tables = [eager_variable.table_of(source) for source in nest.flatten(sources)]
    zero = (any(table is not None for table in tables) and
            getattr(unconnected_gradients, "value", unconnected_gradients) == "zero")
    result = stock(self, target, sources, output_gradients,
                   _NONE if zero else unconnected_gradients, *args, **kwargs)
    if zero:
      result = nest.map_structure(_zeros_if_none, sources, result)
    for table, grad in zip(tables, nest.flatten(result)):
      if (table is not None and isinstance(grad, ops.IndexedSlices) and
          handle_ops.is_spread_over_ranks(table.handle)):
        spread_gradients.mark_spread(grad, table.op.name)
    return result

  return gradient


def _zeros_if_none(source, grad):
  """Returns a gradient; zeros of the shape of its source in place of None."""
  if grad is not None:
    return grad
  table = eager_variable.table_of(source)
  if table is not None:
    raise NotImplementedError(
        "embedding variable '%s': it has no dense value: the loss does not use it, and "
        "unconnected_gradients=ZERO would be zeros for every possible key. Use "
        "tf.UnconnectedGradients.NONE" % table.op.name)
  return array_ops.zeros_like(source)
