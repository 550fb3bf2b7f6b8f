# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Whole rows (value and slots) by key, for the generic optimizer path."""

from tensorflow.python.framework import constant_op
from tensorflow.python.framework import dtypes
from tensorflow.python.framework import ops
from tensorflow.python.ops import array_ops

from embedding_variable import _lib
from embedding_variable.ops import table_gradients

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
  """Tells which keys may be trained; the table's filter counts the others.

  Args:
    resource: resource scalar from `handle`.
    keys: int64 `[M]`, unique.
    counts: int64 `[M]`, occurrences of each.
    step: int64 scalar, becomes the version of keys that are counted.
    name: name of the op.

  Returns:
    int32 `[A]`, ascending positions in `keys`; all of them without a filter. A key
    that this op admits has its default row afterwards.
  """
  return _gen.ev_admit(resource, keys, counts, step, name=name)


def read_rows(resource, keys, slot_names, slot_inits, name=None):
  """Reads value and slots of rows; an absent key as a new row would be.

  Args:
    resource: resource scalar from `handle`.
    keys: int64 `[M]`.
    slot_names: list of S strings; a slot that the table lacks is created.
    slot_inits: list of S floats: what a new row's slots start with.
    name: name of the op.

  Returns:
    (values, slots): float32 `[M, D]` and a list of S float32 `[M, D]`.
  """
  return _gen.ev_read_rows(
      resource, keys, slot_names=slot_names, slot_inits=slot_inits,
      num_slots=len(slot_names), name=name)


def ensure_slots(resource, slot_names, slot_inits):
  """Returns the op that creates the slots that no update has used yet.

  Without it, an export of the table does not know them.

  Args:
    resource: resource scalar from `handle`.
    slot_names: list of S strings.
    slot_inits: list of S floats: what a row's slots start with.
  """
  no_keys = constant_op.constant([], dtypes.int64)
  return read_rows(resource, no_keys, slot_names, slot_inits)[0].op


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
  """Reads rows, inserting absent keys; evicts what the capacity has no room for.

  Differentiable: the gradient of `resource` is an IndexedSlices with one slice per key
  (duplicates included) and no dense shape; none comes from the evicted values.

  Args:
    resource: resource scalar from `handle`.
    keys: int64 `[M]`.
    step: int64 scalar, becomes the rows' version.
    name: name of the op.

  Returns:
    (values, evicted_keys, evicted_values): float32 `[M, D]` as they are before the
    eviction, int64 `[E]` and float32 `[E, D]`: what this op evicted.
  """
  return _gen.ev_read_and_evict(resource, keys, step, name=name)


def erase(resource, keys, name=None):
  """Removes keys and their rows; returns int64 scalar, how many were there.

  Args:
    resource: resource scalar from `handle`.
    keys: int64 or int32 of any shape; absent keys and duplicates are fine.
    name: name of the op.
  """
  return _gen.ev_erase(resource, keys, name=name)


@ops.RegisterGradient("EvReadAndEvict")
def _ev_read_and_evict_grad(op, grad, *unused_grads):
  """IndexedSlices over every key, formed after the op has read and evicted."""
  # A lookup in another graph (a tf.function) cannot be waited for by its operation.
  wait_for = [op] if op.graph is ops.get_default_graph() else []
  with ops.control_dependencies(wait_for):
    values = array_ops.identity(ops.convert_to_tensor(grad))
  slices = ops.IndexedSlices(values, op.inputs[1])
  return table_gradients.record(slices, op.inputs[0]), None, None


for _op_type in ("EvUnique", "EvAdmit", "EvReadRows", "EvWriteRows", "EvErase"):
  ops.NotDifferentiable(_op_type)
