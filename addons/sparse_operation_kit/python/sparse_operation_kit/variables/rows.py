# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads and writes rows of this rank's share of a table by key."""

from embedding_variable.ops import apply_ops
from embedding_variable.ops import checkpoint_ops
from embedding_variable.ops import row_ops
from embedding_variable.optimizers import generic
from embedding_variable.optimizers import slot_view
from embedding_variable.tf_names import array_ops
from embedding_variable.tf_names import bitwise_ops
from embedding_variable.tf_names import dtypes
from embedding_variable.tf_names import math_ops
from embedding_variable.tf_names import ops
from embedding_variable.tf_names import resource_variable_ops
from embedding_variable.tf_names import sort_ops

from sparse_operation_kit.variables import kinds


def _is_slot(var):
  return isinstance(var, slot_view.SlotView)


def _table(var, what):
  parts = kinds.parts(var)
  if len(parts) != 1:
    raise TypeError("sok.%s: expected a SOK variable, an embedding variable without "
                    "parts or a slot of one, got %r" % (what, var))
  return parts[0]


def _keys(var, indices, what):
  """Returns int64 `[M]`."""
  keys = var.convert_ids(indices)
  if keys.shape.ndims not in (None, 1):
    raise ValueError("%s of '%s': indices: expected one axis, got shape %s" %
                     (what, var.op.name, keys.shape))
  return math_ops.cast(keys, dtypes.int64)


def _values(var, values, keys, what):
  """Returns float32 `[M, dim]`. `var`: an embedding variable or a slot of one."""
  values = ops.convert_to_tensor(values, dtype=dtypes.float32)
  shape = keys.shape.with_rank(1).concatenate([var.dim])
  if not values.shape.is_compatible_with(shape):
    raise ValueError("%s of '%s': values: expected shape %s, got %s" %
                     (what, var.op.name, shape, values.shape))
  return values


def _last_ones(keys):
  """Returns (unique keys int64 `[U]`, last position of each in `keys`, `[U]`)."""
  unique, inverse, _ = row_ops.unique(keys)
  return unique, math_ops.unsorted_segment_max(
      math_ops.range(array_ops.size(keys)), inverse, array_ops.size(unique))


def write(var, indices, values, name=None):
  """Returns the op that inserts or overwrites rows; slots of existing rows stay.

  Args:
    var: an embedding variable.
    indices: integers `[M]`; of equal ones the last is written.
    values: float32 `[M, dim]`.
    name: name of the op.
  """
  with ops.name_scope(name, "write_rows"), \
      ops.colocate_with(None, ignore_existing=True), ops.device(var.device):
    keys = _keys(var, indices, "writing rows")
    values = _values(var, values, keys, "writing rows")
    unique, last = _last_ones(keys)
    return row_ops.write_rows(
        var.handle, unique, array_ops.zeros_like(unique),
        var.version_of_update(ops.convert_to_tensor(-1, dtypes.int64)),
        array_ops.gather(values, last), [], [], [])


def _write_slot(slot, indices, values, name):
  """Returns the op that overwrites one slot of rows, inserting keys without a row."""
  var = slot.primary
  with ops.name_scope(name), ops.colocate_with(None, ignore_existing=True), \
      ops.device(var.device):
    keys = _keys(var, indices, "writing slot '%s'" % slot.column)
    values = _values(slot, values, keys, "writing slot '%s'" % slot.column)
    unique, last = _last_ones(keys)
    values = array_ops.gather(values, last)
    counts = array_ops.zeros_like(unique)
    step = var.version_of_update(ops.convert_to_tensor(-1, dtypes.int64))

    def rewrite():
      present, _ = row_ops.read_rows(var.handle, unique, [], [])
      return row_ops.write_rows(var.handle, unique, counts, step, present, [values],
                                [slot.column], [slot.initial])

    return generic.exclusively(var, [unique, values, counts, step], rewrite)


def subtract(var, indices, values, name=None):
  """Returns the op that subtracts rows; keys without a row are inserted first.

  Args:
    var: an embedding variable.
    indices: integers `[M]`; values of equal ones are summed first.
    values: float32 `[M, dim]`.
    name: name of the op.
  """
  with ops.name_scope(name, "subtract_rows"), \
      ops.colocate_with(None, ignore_existing=True), ops.device(var.device):
    keys = _keys(var, indices, "changing rows")
    values = _values(var, values, keys, "changing rows")
    return apply_ops.apply(
        "SGD", [var.handle], [keys], [values], [1.],
        var.version_of_update(ops.convert_to_tensor(-1, dtypes.int64)),
        slot_names=[[]], slot_inits=[[]])


def assign(var, indices, values):
  """Inserts or overwrites rows in this rank's share of a table.

  Slots of existing rows stay. For a slot (`optimizer.get_slot(v, "momentum")`) only
  that slot of the rows is written; a training step on these rows at the same time may
  be lost. Keys are not routed: pass each rank the keys that it owns (floormod(key,
  number of ranks) equal to the rank, unless the variable has another placement), since
  lookups over ranks find no others.

  Example:

    op = sok.assign(v, [3, 2 ** 40], [[1., 2.], [3., 4.]])

  Args:
    var: `sok.DynamicVariable`, `sok.Variable`, an embedding variable, or an optimizer's
      slot of one.
    indices: integers `[M]`; of equal ones the last is written.
    values: float32 `[M, dim]`, `[M, 1]` for a slot with one number per row.

  Returns:
    The op.

  Raises:
    TypeError: `var` is of another kind, or indices are not integers.
    ValueError: shapes do not match.
  """
  if _is_slot(var):
    return _write_slot(var, indices, values, "sok_assign")
  return write(_table(var, "assign"), indices, values, "sok_assign")


def export(var):
  """Reads this rank's share of a table.

  Example:

    keys, values = session.run(sok.export(v))

  Args:
    var: `sok.DynamicVariable`, `sok.Variable`, an embedding variable, or an optimizer's
      slot of one, whose values are read.

  Returns:
    (indices, values): `[N]` of the key type in ascending order and float32 `[N, dim]`,
    a consistent snapshot, in host memory.

  Raises:
    TypeError: `var` is of another kind.
  """
  slot = var if _is_slot(var) else None
  table = _table(slot.primary if slot else var, "export")
  columns = [slot.column] if slot else []
  with ops.name_scope("sok_export"), ops.colocate_with(None, ignore_existing=True), \
      ops.device(table.device):
    ensured = [row_ops.ensure_slots(table.handle, columns, [slot.initial])] if slot else []
    with ops.control_dependencies(ensured):
      exported = checkpoint_ops.export_table(table.handle, columns)
    # Sorts the complement in descending order: an ascending argsort negates its input, and
    # the smallest int64 cannot be negated.
    order = sort_ops.argsort(bitwise_ops.invert(exported.keys), direction="DESCENDING")
    keys = math_ops.cast(array_ops.gather(exported.keys, order), table.key_dtype)
    values = exported.slots[0] if slot else exported.values
    return keys, array_ops.gather(values, order)


def sparse_read_and_evict(var, indices):
  """Reads rows, inserting keys without one; also returns the rows evicted for them.

  Differentiable: the gradient of the embeddings is that of the rows of `indices`. The
  gradient inserts a row again if it was evicted meanwhile. The evicted values have no
  gradient.

  Args:
    var: `sok.DynamicVariable` of var_type "hybrid".
    indices: integers `[M]`.

  Returns:
    (embeddings, evicted_keys, evicted_values): float32 `[M, dim]`, `[E]` of the key
    type, float32 `[E, dim]`. Evicted rows are those that this op removed because of the
    table's max_capacity; keys of `indices` are among them only if they alone exceed it.
    Their slots are lost. Without max_capacity, E is 0.

  Raises:
    TypeError: `var` is of another kind.
  """
  if getattr(var, "backend_type", None) != "hybrid":
    raise TypeError("sok.sparse_read_and_evict: expected a sok.DynamicVariable of "
                    "var_type 'hybrid', got %r" % (var,))
  with ops.name_scope("sok_read_and_evict"), \
      ops.colocate_with(None, ignore_existing=True), ops.device(var.device):
    resource_variable_ops.variable_accessed(var)
    keys = _keys(var, indices, "sok.sparse_read_and_evict")
    embeddings, evicted, values = row_ops.read_and_evict(
        var.handle, keys,
        var.version_of_update(ops.convert_to_tensor(-1, dtypes.int64)))
    return embeddings, math_ops.cast(evicted, var.key_dtype), values
