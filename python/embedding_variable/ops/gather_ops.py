# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Lookups of rows by key, and their gradient."""

from embedding_variable import _lib
from embedding_variable.eager import taped
from embedding_variable.ops import handle_ops
from embedding_variable.ops import table_gradients
from embedding_variable.tf_names import array_ops
from embedding_variable.tf_names import dtypes
from embedding_variable.tf_names import math_ops
from embedding_variable.tf_names import ops

_gen = _lib.load()


# Key by which occurrence counts are attached to the indices of a lookup's gradient.
_COUNTS = "_embedding_variable_gather_counts"


def gather(resource, ids, counts=None, name=None):
  """Looks up rows; an absent key reads its default row.

  Inserts nothing. Differentiable: the gradient of `resource` is an IndexedSlices with
  one slice per id (duplicates included) and no dense shape.

  Args:
    resource: resource scalar from `handle`.
    ids: int64 or int32 of any shape; any value is a valid key.
    counts: int64 of the shape of `ids`: the number of occurrences that each id adds to
      the table's frequencies (at most 2^31 - 1); None: 1 each.
    name: name of the op.

  Returns:
    float32 `ids.shape + [D]`.
  """
  if counts is not None:
    # The engine counts the occurrences of one batch in 31 bits.
    counts = math_ops.minimum(
        math_ops.cast(counts, dtypes.int64), dtypes.int32.max)
    counts = array_ops.reshape(counts, [-1])
  ids = ops.convert_to_tensor(ids)
  return taped.run(_gen.ev_gather, resource, ids, beside=counts, dtype=dtypes.float32,
                   name=name)


def counts_of(indices):
  """Returns the counts passed to a lookup, int64 `[N]`, or None.

  Args:
    indices: tensor `[N]`, the indices of the gradient of one lookup.
  """
  return taped.attached(indices, _COUNTS)


def get_meta(resource, ids, name=None):
  """Returns the frequencies and versions of the rows of `ids`.

  Args:
    resource: resource scalar from `handle`.
    ids: int64 or int32 of any shape.
    name: name of the op.

  Returns:
    (frequencies, versions): int64 of the shape of `ids`. Frequency 0 and version -1 for
      an absent key, and for a table that does not record them.
  """
  return _gen.ev_get_meta(resource, ids, name=name)


@ops.RegisterGradient("EvGather")
def _ev_gather_grad(op, grad):
  """Returns IndexedSlices over all ids, formed after the lookup has read its rows.

  A loss that is linear in the rows has a gradient that does not depend on them, so
  without this control dependency the update could run before the lookup. There is no
  dense shape, since a hash table has no last row.
  """
  handle_ops.check_not_spread(op.inputs[0], "tf.nn.embedding_lookup")
  grad = ops.convert_to_tensor(grad)
  dim = op.outputs[0].shape[-1:]
  if dim.is_fully_defined():
    row_shape = [-1] + dim.as_list()
  else:
    row_shape = array_ops.concat([[-1], array_ops.shape(grad)[-1:]], axis=0)
  # No control dependency on a lookup in another graph (a tf.function).
  wait_for = [] if taped.is_elsewhere(op) else [op]
  with ops.control_dependencies(wait_for):
    values = array_ops.reshape(grad, row_shape)
  keys = math_ops.cast(array_ops.reshape(op.inputs[1], [-1]), dtypes.int64)
  counts = taped.beside(op)
  if counts is not None:
    keys = array_ops.identity(keys)  # in eager execution the ids may be a script's own
    taped.attach(keys, _COUNTS, counts)
    if taped.is_elsewhere(op) and handle_ops.records_frequency(op.inputs[0]):
      keys, values = table_gradients.repeated(keys, values, math_ops.maximum(counts, 1))
  return table_gradients.record(ops.IndexedSlices(values, keys), op.inputs[0]), None


ops.NotDifferentiable("EvGetMeta")
