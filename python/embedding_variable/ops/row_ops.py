# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Whole rows (value and slots) by key, for optimizers/generic.py."""

from embedding_variable import _lib
from embedding_variable.eager import taped
from embedding_variable.ops import table_gradients
from embedding_variable.tf_names import array_ops
from embedding_variable.tf_names import constant_op
from embedding_variable.tf_names import dtypes
from embedding_variable.tf_names import ops

_gen = _lib.load()


def unique(keys, name=None):
  """Removes duplicates, keeping the order of first occurrence.

  Args:
    keys: int64 `[M]`.
    name: name of the op.

  Returns:
    (unique, inverse, counts): int64 `[U]`, int32 `[M]` with
    `keys[i] == unique[inverse[i]]`, int64 `[U]`.
  """
  return _gen.ev_unique(keys, name=name)


def admit(resource, keys, counts, step, name=None):
  """Returns which keys may be trained; the table's filter counts the others.

  Args:
    resource: resource scalar from `handle`.
    keys: int64 `[M]`, unique.
    counts: int64 `[M]`, occurrences of each.
    step: int64 scalar, becomes the version of keys that are counted.
    name: name of the op.

  Returns:
    int32 `[A]`, ascending positions in `keys`; all of them without a filter. Keys that
      this op admits have their default row afterwards.
  """
  return _gen.ev_admit(resource, keys, counts, step, name=name)


def read_rows(resource, keys, slot_names, slot_inits, name=None):
  """Reads value and slots of rows; an absent key reads as a new row.

  Args:
    resource: resource scalar from `handle`.
    keys: int64 `[M]`.
    slot_names: list of S strings; a slot that the table lacks is created.
    slot_inits: list of S floats: initial values of a new row's slots.
    name: name of the op.

  Returns:
    (values, slots): float32 `[M, D]` and a list of S float32 `[M, D]`.
  """
  return _gen.ev_read_rows(
      resource, keys, slot_names=slot_names, slot_inits=slot_inits,
      num_slots=len(slot_names), name=name)


def ensure_slots(resource, slot_names, slot_inits):
  """Returns the op that creates slots that no update has used yet.

  Without it, an export of the table does not include them.

  Args:
    resource: resource scalar from `handle`.
    slot_names: list of S strings.
    slot_inits: list of S floats: initial values of a row's slots.
  """
  no_keys = constant_op.constant([], dtypes.int64)
  rows = read_rows(resource, no_keys, slot_names, slot_inits)[0]
  return rows if taped.is_eager(rows) else rows.op


def write_rows(resource, keys, counts, step, values, slots, slot_names,
               slot_inits, name=None):
  """Returns the op that inserts or overwrites rows.

  Args:
    resource: resource scalar from `handle`.
    keys: int64 `[M]`, unique.
    counts: int64 `[M]`, added to the rows' frequencies.
    step: int64 scalar, becomes the rows' version.
    values: float32 `[M, D]`.
    slots: list of S float32 `[M, D]`.
    slot_names: list of S strings.
    slot_inits: list of S floats.
    name: name of the op.
  """
  return _gen.ev_write_rows(
      resource, keys, counts, step, values, slots, slot_names=slot_names,
      slot_inits=slot_inits, name=name)


def read_and_evict(resource, keys, step, name=None):
  """Reads rows, inserting absent keys; evicts rows that exceed the capacity.

  Differentiable: the gradient of `resource` is an IndexedSlices with one slice per key
  (duplicates included) and no dense shape. The evicted values get no gradient.

  Args:
    resource: resource scalar from `handle`.
    keys: int64 `[M]`.
    step: int64 scalar, becomes the rows' version.
    name: name of the op.

  Returns:
    (values, evicted_keys, evicted_values): float32 `[M, D]` as read before the
      eviction; int64 `[E]` and float32 `[E, D]`, the rows evicted by this op.
  """
  keys, step = (ops.convert_to_tensor(x, dtypes.int64) for x in (keys, step))
  return taped.run(_gen.ev_read_and_evict, resource, keys, step, name=name)


def erase(resource, keys, name=None):
  """Removes keys and their rows; returns int64 scalar, the number of existing keys.

  Args:
    resource: resource scalar from `handle`.
    keys: int64 or int32 of any shape; absent keys and duplicates are allowed.
    name: name of the op.
  """
  return _gen.ev_erase(resource, keys, name=name)


@ops.RegisterGradient("EvReadAndEvict")
def _ev_read_and_evict_grad(op, grad, *unused_grads):
  """Returns IndexedSlices over all keys, formed after the op has read and evicted."""
  # No control dependency on a lookup in another graph (a tf.function).
  wait_for = [] if taped.is_elsewhere(op) else [op]
  with ops.control_dependencies(wait_for):
    values = array_ops.identity(ops.convert_to_tensor(grad))
    keys = array_ops.identity(op.inputs[1])  # in the default graph, like the values
  slices = ops.IndexedSlices(values, keys)
  return table_gradients.record(slices, op.inputs[0]), None, None


for _op_type in ("EvUnique", "EvAdmit", "EvReadRows", "EvWriteRows", "EvErase"):
  ops.NotDifferentiable(_op_type)
