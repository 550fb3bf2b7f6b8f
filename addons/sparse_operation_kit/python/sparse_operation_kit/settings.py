# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The settings of sok.init, read when a lookup is built."""

import os
import threading

from embedding_variable.tf_names import dtypes
from embedding_variable.variables import number_checks

# For programs that cannot be changed.
_TIMEOUT_VARIABLE = "SOK_EXCHANGE_TIMEOUT_SECONDS"
_DEFAULT_TIMEOUT = 600.

_WIRES = {
    dtypes.float32: "float32",
    dtypes.float16: "float16",
    dtypes.bfloat16: "bfloat16",
}

# The exchange of lookups, also for programs that cannot be changed.
_EXCHANGE_VARIABLE = "SOK_EXCHANGE"
_DEFAULT_EXCHANGE = "horovod"

_exchange_carrier = _DEFAULT_EXCHANGE
_exchange_dtype = "float32"
_exchange_timeout = None
_intra_op_threads = 0


def set_all(dtype=None, timeout=None, threads=None):
  """Sets the three settings below, or none of them if one is invalid.

  Args:
    dtype, timeout, threads: arguments of `set_exchange`, `set_exchange_timeout` and
      `set_intra_op_threads`.

  Returns:
    A function without arguments that restores the previous settings.

  Raises:
    ValueError: an invalid value.
  """
  global _exchange_dtype, _exchange_timeout, _intra_op_threads
  checked = _wire(dtype), _seconds(timeout), _threads(threads)
  previous = _exchange_dtype, _exchange_timeout, _intra_op_threads
  _exchange_dtype, _exchange_timeout, _intra_op_threads = checked

  def undo():
    global _exchange_dtype, _exchange_timeout, _intra_op_threads
    _exchange_dtype, _exchange_timeout, _intra_op_threads = previous

  return undo


def set_exchange(dtype=None):
  """Sets how lookups built from now on send rows and gradients between ranks.

  Args:
    dtype: `tf.float32`, `tf.float16`, `tf.bfloat16` or one of their names; None:
      float32.

  Raises:
    ValueError: another dtype.
  """
  global _exchange_dtype
  _exchange_dtype = _wire(dtype)


def _wire(dtype):
  """Returns the name of a checked dtype."""
  try:
    wire = _WIRES.get(dtypes.as_dtype(dtypes.float32 if dtype is None else dtype))
  except TypeError:
    wire = None
  if wire is None:
    raise ValueError(
        "sok.init: exchange_dtype: expected float32, float16 or bfloat16, got %r" %
        (dtype,))
  return wire


def wanted_exchange(exchange, kinds):
  """Returns the name of the exchange that the user chose.

  Args:
    exchange: one of `kinds`, or None: the environment variable SOK_EXCHANGE, or
      "horovod" if it is not set.
    kinds: tuple of strings.

  Raises:
    ValueError: another name.
  """
  what = "sok.init: exchange"
  if exchange is None:
    what = _EXCHANGE_VARIABLE
    exchange = os.environ.get(_EXCHANGE_VARIABLE) or _DEFAULT_EXCHANGE
  if exchange not in kinds:
    raise ValueError("%s: expected one of %s, got %r" % (
        what, ", ".join(repr(kind) for kind in kinds), exchange))
  return exchange


def set_exchange_carrier(carrier):
  """Sets the exchange of lookups that are built from now on."""
  global _exchange_carrier
  _exchange_carrier = carrier


def exchange_carrier():
  """Returns "horovod", "memory" or "nccl"."""
  return _exchange_carrier


def exchange_on_device():
  """Returns whether rows and gradients may stay in GPU memory between ops."""
  return _exchange_carrier == "nccl"


def exchange_dtype():
  """Returns "float32", "float16" or "bfloat16"."""
  return _exchange_dtype


def set_exchange_timeout(seconds):
  """Sets how long a lookup may wait for other ranks.

  Args:
    seconds: positive number; 0: forever; None: the environment variable
      SOK_EXCHANGE_TIMEOUT_SECONDS, or 600 if it is not set.

  Raises:
    ValueError: not a number, negative, or above `threading.TIMEOUT_MAX`.
  """
  global _exchange_timeout
  _exchange_timeout = _seconds(seconds)


def _seconds(seconds):
  """Returns a checked number of seconds as a float."""
  what = "sok.init: exchange_timeout"
  if seconds is None:
    what = _TIMEOUT_VARIABLE
    seconds = os.environ.get(_TIMEOUT_VARIABLE, _DEFAULT_TIMEOUT)
  try:
    number = float(seconds)
  except (TypeError, ValueError):
    number = -1.
  # Python's locks cannot wait longer.
  if not 0. <= number <= threading.TIMEOUT_MAX:
    raise ValueError("%s: expected a number of seconds from 0 (wait forever) to %.0f, got "
                     "%r" % (what, threading.TIMEOUT_MAX, seconds))
  return number


def exchange_timeout():
  """Returns how many seconds a lookup may wait for other ranks; 0: forever."""
  if _exchange_timeout is None:
    set_exchange_timeout(None)
  return _exchange_timeout


def set_intra_op_threads(threads):
  """Sets the number of threads per op in the sessions of this package.

  Args:
    threads: int, at least 1; None: TensorFlow's default.

  Raises:
    ValueError: not such a number.
  """
  global _intra_op_threads
  _intra_op_threads = _threads(threads)


def _threads(threads):
  """Returns a checked number of threads; 0 for None."""
  if threads is not None and not number_checks.is_int(threads, 1):
    raise ValueError(
        "sok.init: intra_op_parallelism_threads: expected a number of threads, at least "
        "1, got %r" % (threads,))
  return int(threads or 0)


def intra_op_threads():
  """Returns the number of threads per op; 0: TensorFlow's default."""
  return _intra_op_threads
