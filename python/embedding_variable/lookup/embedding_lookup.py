# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Row lookups over the parts of an embedding variable."""

from embedding_variable.lookup import partition
from embedding_variable.ops import presence_ops
from embedding_variable.tf_names import array_ops
from embedding_variable.tf_names import data_flow_ops
from embedding_variable.tf_names import embedding_ops
from embedding_variable.tf_names import math_ops
from embedding_variable.tf_names import ops
from embedding_variable.variables import variable as ev


def lookup(parts, ids, name=None, max_norm=None, transform_fn=None,
           ev_init_value=None, counts=None):
  """Looks ids up in the parts that hold them.

  Args:
    parts: list of embedding variables, the parts of one.
    ids: int32 or int64 of any shape.
    name: name of the result.
    max_norm: length to which rows are clipped, or None.
    transform_fn: function of the rows `[N, dim]` of one part, or None.
    ev_init_value: float32 `ids.shape + [dim]`, initial rows of absent keys instead of
      their default rows; or None.
    counts: integers of the shape of `ids`: the number of occurrences that each id adds
      to the frequencies; or None.

  Returns:
    float32 `ids.shape + [dim]` (or the last axis as `transform_fn` returns it).

  Raises:
    ValueError: the parts have different dims.
    TypeError: ids are not integers.
  """
  dims = {part.dim for part in parts}
  if len(dims) > 1:
    raise ValueError("embedding lookup over parts of different dims: %s" %
                     ", ".join("'%s' %d" % (p.op.name, p.dim) for p in parts))
  clip = embedding_ops._clip  # pylint: disable=protected-access

  def read(part, ids, initial, counts):
    rows = part.sparse_read(ids, ev_init_value=initial, counts=counts)
    rows = clip(rows, ids, max_norm)
    return transform_fn(rows) if transform_fn else rows

  with ops.name_scope(name, "embedding_lookup", [ids]) as name:
    ids = parts[0].convert_ids(ids)
    if len(parts) == 1 and (not transform_fn or ids.shape.ndims == 1):
      with ops.colocate_with(parts[0]):
        rows = read(parts[0], ids, ev_init_value, counts)
      return array_ops.identity(rows, name=name)
    extras = [None, None]
    if ev_init_value is not None:
      extras[0] = array_ops.reshape(ev_init_value, [-1, parts[0].dim])
    if counts is not None:
      extras[1] = array_ops.reshape(counts, [-1])
    return over_parts(parts, ids, read, extras, name)


def over_parts(parts, ids, read, extras=(), name=None):
  """Reads each id from its part and returns the results in the order of the ids.

  Args:
    parts: list of embedding variables.
    ids: int32 or int64 of any shape.
    read: function (part, ids `[N]`, *extras of these ids) -> `[N, ...]`.
    extras: tensors `[number of ids, ...]` with a value per id, or Nones.
    name: name of the result.

  Returns:
    `ids.shape + [...]`.
  """
  flat = array_ops.reshape(ids, [-1])
  assignment = partition.part_of(flat, len(parts))

  def split(values):
    if values is None:
      return [None] * len(parts)
    return data_flow_ops.dynamic_partition(values, assignment, len(parts))

  positions = split(math_ops.range(array_ops.size(flat)))
  found = []
  for wanted in zip(parts, split(flat), *[split(e) for e in extras]):
    with ops.colocate_with(wanted[0]):
      found.append(read(*wanted))
  result = data_flow_ops.parallel_dynamic_stitch(positions, found)
  shape = found[0].shape[1:]
  # Without ids the stitch has no input to take the row length from.
  result = array_ops.reshape(
      result,
      array_ops.concat([
          array_ops.shape(ids),
          shape.as_list()
          if shape.is_fully_defined() else array_ops.shape(found[0])[1:]
      ], 0), name=name)
  result.set_shape(ids.shape.concatenate(shape))
  return result


def lookup_tier(params, ids, name=None):
  """Returns which memory holds the rows of ids. Inserts nothing and counts nothing.

  Args:
    params: an embedding variable, or a `PartitionedVariable` of them.
    ids: int32 or int64 of any shape.
    name: name of the result.

  Returns:
    int32 of the shape of `ids`. 0: the row is in memory, or in GPU memory for HBM_DRAM
      and HBM_DRAM_SSDHASH. 1: it is in a file, or in CPU memory for these two. 2: it is
      in a file of HBM_DRAM_SSDHASH. -1: the key is not in the table.

  Raises:
    TypeError: `params` is not an embedding variable, or ids are not integers.
  """
  parts = ev.parts_of(params)
  if parts is None:
    raise TypeError("lookup_tier: params: expected an embedding variable "
                    "(tf.get_embedding_variable), got %r" % (params,))
  with ops.name_scope(name, "lookup_tier") as name:
    ids = parts[0].convert_ids(ids)
    if len(parts) == 1:
      with ops.colocate_with(parts[0]):
        return presence_ops.lookup_tier(parts[0].handle, ids)
    return over_parts(parts, ids,
                      lambda part, some: presence_ops.lookup_tier(part.handle, some),
                      name=name)
