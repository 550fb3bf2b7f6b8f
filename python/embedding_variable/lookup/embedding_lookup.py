# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Row lookups over the parts of an embedding variable."""

from tensorflow.python.framework import ops
from tensorflow.python.ops import array_ops
from tensorflow.python.ops import data_flow_ops
from tensorflow.python.ops import embedding_ops
from tensorflow.python.ops import math_ops

from embedding_variable.lookup import partition


def lookup(parts, ids, name=None, max_norm=None, transform_fn=None):
  """Looks ids up in the parts that hold them.

  Args:
    parts: list of embedding variables, the parts of one.
    ids: int32 or int64 of any shape.
    name: name of the result.
    max_norm: rows are clipped to this length, or None.
    transform_fn: function of the rows `[N, dim]` of one part, or None.

  Returns:
    float32 `ids.shape + [dim]` (or what `transform_fn` makes of the last axis).

  Raises:
    ValueError: parts of different dims.
    TypeError: ids that are not integers.
  """
  dims = {part.dim for part in parts}
  if len(dims) > 1:
    raise ValueError("embedding lookup over parts of different dims: %s" %
                     ", ".join("'%s' %d" % (p.op.name, p.dim) for p in parts))
  clip = embedding_ops._clip  # pylint: disable=protected-access
  with ops.name_scope(name, "embedding_lookup", [ids]) as name:
    ids = parts[0].convert_ids(ids)
    if len(parts) == 1 and (not transform_fn or ids.shape.ndims == 1):
      with ops.colocate_with(parts[0]):
        rows = clip(parts[0].sparse_read(ids), ids, max_norm)
        if transform_fn:
          rows = transform_fn(rows)
      return array_ops.identity(rows, name=name)
    flat = array_ops.reshape(ids, [-1])
    assignment = partition.part_of(flat, len(parts))
    part_ids = data_flow_ops.dynamic_partition(flat, assignment, len(parts))
    positions = data_flow_ops.dynamic_partition(
        math_ops.range(array_ops.size(flat)), assignment, len(parts))
    found = []
    for part, wanted in zip(parts, part_ids):
      with ops.colocate_with(part):
        rows = clip(part.sparse_read(wanted), wanted, max_norm)
        found.append(transform_fn(rows) if transform_fn else rows)
    rows = data_flow_ops.parallel_dynamic_stitch(positions, found)
    row_shape = found[0].shape[1:]
    # Without a single id there is nothing to stitch, and so no row length.
    rows = array_ops.reshape(
        rows,
        array_ops.concat([
            array_ops.shape(ids),
            row_shape.as_list()
            if row_shape.is_fully_defined() else array_ops.shape(found[0])[1:]
        ], 0), name=name)
    rows.set_shape(ids.shape.concatenate(row_shape))
    return rows
