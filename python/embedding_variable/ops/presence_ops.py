# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Returns which keys have a row, and lets a caller provide rows for the others."""

from embedding_variable import _lib
from embedding_variable.eager import taped
from embedding_variable.tf_names import array_ops
from embedding_variable.tf_names import dtypes
from embedding_variable.tf_names import math_ops
from embedding_variable.tf_names import ops
from embedding_variable.tf_names import tensor_shape

_gen = _lib.load()

_SELECT_GRADIENT = "EvSelectInitialRows"


def lookup_tier(resource, ids, name=None):
  """Returns which memory holds the rows of ids. Inserts nothing and counts nothing.

  Args:
    resource: resource scalar from `handle`; must be initialised.
    ids: int64 or int32 of any shape.
    name: name of the op.

  Returns:
    int32 of the shape of `ids`. 0: the row is in memory, or in GPU memory for
      "hbm_dram" and "hbm_dram_ssd". 1: it is in a file, or in CPU memory for these two.
      2: it is in a file of "hbm_dram_ssd". -1: the key has no row.
  """
  return _gen.ev_lookup_tier(resource, math_ops.cast(ids, dtypes.int64), name=name)


def prefetch(resource, ids, name=None):
  """Returns the op that moves the rows of ids from a file to memory.

  With "hbm_dram" from CPU memory to GPU memory, unless a step is using the table. It
  changes no row, inserts nothing and counts nothing. No-op if all rows are in one memory.

  Args:
    resource: resource scalar from `handle`; must be initialised.
    ids: int64 or int32 of any shape.
    name: name of the op.
  """
  return _gen.ev_prefetch(resource, math_ops.cast(ids, dtypes.int64), name=name)


def insert_absent(resource, keys, values, name=None):
  """Returns the op that inserts given rows for keys that have none.

  Existing rows are unchanged; frequencies and versions are not recorded.

  Args:
    resource: resource scalar from `handle`; must be initialised.
    keys: int64 `[M]`; if a key repeats, its first row is used.
    values: float32 `[M, D]`.
    name: name of the op.
  """
  return _gen.ev_insert_absent(resource, keys, values, name=name)


def with_initial_rows(resource, ids, rows, initial_rows):
  """Replaces the looked-up rows of absent keys by the caller's rows.

  Absent keys are inserted with these rows when the gradient is formed, right before the
  update; reading inserts nothing. The table gets the gradient, `initial_rows` gets
  none.

  Args:
    resource: resource scalar from `handle`.
    ids: int64 or int32 of any shape.
    rows: float32 `ids.shape + [D]`, the result of `gather` for them.
    initial_rows: float32 `ids.shape + [D]`.

  Returns:
    float32 `ids.shape + [D]`.
  """
  dim = tensor_shape.dimension_value(rows.shape[-1])
  flat = array_ops.reshape(rows, [-1, dim])
  initial = array_ops.reshape(initial_rows, [-1, dim])
  absent = array_ops.reshape(lookup_tier(resource, ids) < 0, [-1])
  keys = array_ops.reshape(math_ops.cast(ids, dtypes.int64), [-1])
  chosen = _select(resource, keys, absent, initial, flat)
  result = array_ops.reshape(chosen, array_ops.shape(rows))
  result.set_shape(rows.shape)
  return result


def _select(resource, keys, absent, initial, rows):
  """Returns `where(absent, initial, rows)`, whose gradient inserts the absent keys."""
  # A tape does not apply the map. It is for tf.gradients, and for the gradient of a whole
  # function, taken by a tape outside of it.
  with ops.get_default_graph().gradient_override_map({"Select": _SELECT_GRADIENT}), \
      taped.unrecorded():
    chosen = array_ops.where(absent, initial, rows)
  # Inputs of the gradient that are not inputs of the op.
  taped.attach(chosen, _SELECT_GRADIENT, (resource, keys))
  return taped.differentiable(
      _SELECT_GRADIENT, [chosen], [rows],
      lambda grads: [_after_insert(resource, keys, initial, grads[0])])[0]


def _after_insert(resource, keys, initial, grad):
  """Returns the gradient, formed after the absent keys are inserted."""
  with ops.control_dependencies([insert_absent(resource, keys, initial)]):
    return array_ops.identity(grad)


@ops.RegisterGradient(_SELECT_GRADIENT)
def _select_grad(op, grad):
  """Inserts the absent keys after the lookup, before anything uses the gradient."""
  resource, keys = taped.attached(op.outputs[0], _SELECT_GRADIENT)
  # No control dependency on an op of another graph (a tf.function).
  wait_for = [] if taped.is_elsewhere(op) else [op]
  with ops.control_dependencies(wait_for):
    return None, None, _after_insert(resource, keys, op.inputs[1], grad)


for _op_type in ("EvLookupTier", "EvPrefetch", "EvInsertAbsent"):
  ops.NotDifferentiable(_op_type)
