# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""What sok.init was told; read when a lookup is built."""

from tensorflow.python.framework import dtypes

_WIRES = {
    dtypes.float32: "float32",
    dtypes.float16: "float16",
    dtypes.bfloat16: "bfloat16",
}

_exchange_dtype = "float32"
_exchange_dedup = True


def set_exchange(dtype=None, dedup=True):
  """Sets how rows and gradients travel between ranks, for lookups built from now on.

  Args:
    dtype: `tf.float32`, `tf.float16`, `tf.bfloat16` or one of their names; None:
      float32.
    dedup: bool; False sends every id instead of every distinct one, for measurements.

  Raises:
    ValueError: another dtype.
  """
  global _exchange_dtype, _exchange_dedup
  try:
    wire = _WIRES.get(dtypes.as_dtype(dtypes.float32 if dtype is None else dtype))
  except TypeError:
    wire = None
  if wire is None:
    raise ValueError(
        "sok.init: exchange_dtype must be float32, float16 or bfloat16, got %r" %
        (dtype,))
  _exchange_dtype, _exchange_dedup = wire, bool(dedup)


def exchange_dtype():
  """Returns "float32", "float16" or "bfloat16"."""
  return _exchange_dtype


def exchange_dedup():
  """Returns whether each distinct key of a batch is sent once."""
  return _exchange_dedup
