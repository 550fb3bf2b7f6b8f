# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Maps a gradient to its table.

The gradient of a table is an IndexedSlices without a dense shape. Its tensors do not
lead back to the table's handle, so each gradient function records the handle's name.
"""

from embedding_variable import graph_state
from embedding_variable.eager import taped
from embedding_variable.ops import handle_ops
from embedding_variable.tf_names import array_ops
from embedding_variable.tf_names import dtypes
from embedding_variable.tf_names import math_ops
from embedding_variable.tf_names import ops

# Key by which the name of the table is attached to a gradient's indices.
_TABLES = "_embedding_variable_tables_of_indices"


def record(slices, resource):
  """Records the table of a gradient and returns the gradient.

  Args:
    slices: IndexedSlices, new.
    resource: resource scalar, the table's handle, or an op that passes it on.
  """
  handle_op = handle_ops.handle_op_of(resource)
  if handle_op is not None:
    taped.attach(slices.indices, _TABLES, handle_op.name)
  return slices


def repeated(keys, values, counts):
  """Returns (keys, values) in which each key is repeated as often as it occurred.

  Its first row is its gradient, the other ones are zeros. For code that cannot find the
  counts, and so counts one occurrence per index.

  Args:
    keys: int64 `[U]`.
    values: float32 `[U, D]`.
    counts: int64 `[U]`, at least 1 each.
  """
  total = math_ops.reduce_sum(counts, keepdims=True)
  first = array_ops.expand_dims(math_ops.cumsum(counts, exclusive=True), 1)
  starts = array_ops.scatter_nd(first, array_ops.ones_like(counts), total)
  number = math_ops.cumsum(starts) - 1
  shape = array_ops.concat([total, array_ops.shape(values, out_type=dtypes.int64)[1:]], 0)
  return array_ops.gather(keys, number), array_ops.scatter_nd(first, values, shape)


def table_of(slices):
  """Returns the name of the table that a gradient belongs to, or None.

  Gradients that were scaled, clipped, concatenated or passed through a condition or a
  loop are recognised by their indices.

  Args:
    slices: IndexedSlices.
  """
  # A script's own slices may be arrays or eager tensors.
  graph = getattr(slices.indices, "graph", None)
  tables = None if graph is None else graph_state.of(graph).get(_TABLES)
  if not tables:
    return None
  seen, left = set(), [slices.indices]
  while left:
    tensor = left.pop()
    if tensor.name in tables:
      return tables[tensor.name]
    if tensor.op not in seen:
      seen.add(tensor.op)
      left.extend(tensor.op.inputs)
  return None


def has_no_dense_value(slices):
  """Returns whether `slices` is an IndexedSlices that TensorFlow cannot make dense.

  Args:
    slices: anything.
  """
  return isinstance(slices, ops.IndexedSlices) and slices.dense_shape is None


def refuse_dense(table, what="it cannot be converted to a tensor"):
  """Raises NotImplementedError for code that makes a table's gradient dense.

  Args:
    table: string, name of the table.
    what: string, what cannot be done with the gradient.
  """
  raise NotImplementedError(
      "embedding variable '%s': its gradient g has no dense value, because a hash table "
      "has no last row: %s. Work on g.values and build "
      "tf.IndexedSlices(new_values, g.indices) from the result. tf.clip_by_norm, "
      "tf.clip_by_value and tf.clip_by_global_norm accept g itself" % (table, what))
