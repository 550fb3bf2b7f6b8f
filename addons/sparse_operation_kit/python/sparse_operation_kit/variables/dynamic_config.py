# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The configuration of a DynamicVariable: backend, initializer, keyword arguments."""

import collections
import numbers

import numpy as np

from embedding_variable.ops import handle_ops
from embedding_variable.tf_names import dtypes
from embedding_variable.tf_names import init_ops
from embedding_variable.tf_names import tf_logging as logging
from embedding_variable.variables import cache_strategies
from embedding_variable.variables import number_checks
from embedding_variable.variables import storages

HBM = "hbm"
HYBRID = "hybrid"
# GPU memory if the process can use a GPU, else host memory; otherwise like "hbm".
AUTO = "auto"

_BACKENDS = (HBM, HYBRID, AUTO)
_KEY_TYPES = (dtypes.int64, dtypes.int32)
_STORAGE = {HBM: storages.HBM, HYBRID: storages.DRAM, AUTO: storages.AUTO}
_GB = 2**30

# A check of a keyword argument: a predicate, and a description of the accepted values.
_Check = collections.namedtuple("_Check", ["accepts", "words"])


_POSITIVE = _Check(lambda v: number_checks.is_int(v, 1), "a positive integer")

_KEYWORDS = {
    "init_capacity": _POSITIVE,
    "max_capacity": _POSITIVE,
    "max_hbm_for_vectors": _Check(lambda v: number_checks.is_number(v) and 0 <= v < 2**30,
                                  "a number of gigabytes"),
    "max_load_factor": _Check(lambda v: number_checks.is_number(v) and 0 < v <= 1,
                              "a number in (0, 1]"),
    "max_bucket_size": _POSITIVE,
    "block_size": _POSITIVE,
    "device_id": _Check(number_checks.is_int, "an integer"),
    "io_by_cpu": _Check(lambda v: isinstance(v, (bool, np.bool_, numbers.Integral)),
                        "a bool"),
    "evict_strategy": _Check(
        lambda v: isinstance(v, str) and v in cache_strategies.NAMES_BY_SOK_NAME,
        "one of " + ", ".join(sorted(cache_strategies.NAMES_BY_SOK_NAME))),
    "filter_ratio": _Check(lambda v: number_checks.is_number(v) and 0 <= v <= 1,
                           "a number in [0, 1]"),
}

# Keywords for the layout of upstream's GPU table, which tables of this package do not
# have.
_LAYOUT = frozenset(["max_load_factor", "max_bucket_size", "block_size", "device_id",
                     "io_by_cpu"])


def check_backend(name, var_type, key_type, dtype):
  """Returns (backend, key type) of a DynamicVariable.

  Args:
    name: the variable's name, for error messages.
    var_type: "hbm", "hybrid" or "auto"; None: "hybrid".
    key_type: `tf.int64` or `tf.int32`; None: `tf.int64`.
    dtype: `tf.float32` or None.

  Raises:
    ValueError: var_type or key_type is another value.
    NotImplementedError: dtype is not float32.
  """
  backend = HYBRID if var_type is None else var_type
  if backend not in _BACKENDS:
    raise ValueError("sok.DynamicVariable '%s': var_type: expected 'hbm', 'hybrid' or "
                     "'auto', got %r" % (name, var_type))
  key_type = dtypes.as_dtype(dtypes.int64 if key_type is None else key_type)
  if key_type not in _KEY_TYPES:
    raise ValueError("sok.DynamicVariable '%s': key_type: expected int64 or int32, got %s"
                     % (name, key_type.name))
  dtype = dtypes.as_dtype(dtypes.float32 if dtype is None else dtype)
  if dtype != dtypes.float32:
    raise NotImplementedError("sok.DynamicVariable '%s': dtype: expected float32, got %s" %
                              (name, dtype.name))
  return backend, key_type


def check_keywords(name, backend, keywords):
  """Raises an error unless the keyword arguments are valid for a DynamicVariable.

  Args:
    name: the variable's name, for error messages.
    backend: "hbm", "auto" or "hybrid".
    keywords: dict.

  Raises:
    TypeError: an unknown argument.
    ValueError: an invalid value, or capacities that contradict each other.
  """
  for key in sorted(keywords):
    if key not in _KEYWORDS:
      raise TypeError("sok.DynamicVariable '%s': unknown argument %s; valid ones: %s" %
                      (name, key, ", ".join(sorted(_KEYWORDS))))
    check, value = _KEYWORDS[key], keywords[key]
    if not check.accepts(value):
      raise ValueError("sok.DynamicVariable '%s': %s: expected %s, got %r" %
                       (name, key, check.words, value))
  if backend != HYBRID:
    for key in ("filter_ratio", "max_capacity"):
      if key in keywords:
        raise ValueError("sok.DynamicVariable '%s': %s is for var_type 'hybrid', got "
                         "var_type '%s'" % (name, key, backend))
  most = keywords.get("max_capacity")
  if most is not None and keywords.get("init_capacity", 0) > most:
    raise ValueError("sok.DynamicVariable '%s': init_capacity %d is more than "
                     "max_capacity %d" % (name, keywords["init_capacity"], most))
  if most is None and "evict_strategy" in keywords and not keywords.get(
      "max_hbm_for_vectors"):
    logging.info("sok.DynamicVariable '%s': evict_strategy has no effect without "
                 "max_capacity or max_hbm_for_vectors: no row is evicted", name)
  idle = set(_LAYOUT.intersection(keywords))
  if backend != HYBRID and "max_hbm_for_vectors" in keywords:
    idle.add("max_hbm_for_vectors")
  idle = sorted(idle)
  if idle:
    logging.info("sok.DynamicVariable '%s': %s have no effect: they are for "
                 "upstream's table layout", name, ", ".join(idle))


def to_table_options(backend, key_type, keywords):
  """Returns the `handle_ops.TableOptions` for checked arguments.

  Args:
    backend: "hbm", "auto" or "hybrid".
    key_type: `tf.int64` or `tf.int32`.
    keywords: dict of checked arguments.
  """
  hybrid = backend == HYBRID
  memory_bytes = int(keywords.get("max_hbm_for_vectors", 0) * _GB) if hybrid else 0
  storage = storages.HBM_DRAM if memory_bytes > 0 else _STORAGE[backend]
  strategy = cache_strategies.NAMES_BY_SOK_NAME[keywords.get("evict_strategy", "kLru")]
  return handle_ops.TableOptions(
      key_dtype=key_type, storage=storage.name, memory_bytes=memory_bytes,
      record_version=hybrid, versions_are_times=hybrid,
      max_rows=keywords.get("max_capacity", 0), cache_strategy=strategy)


def initializer_of(name, backend, text):
  """Returns the initializer for a string.

  Args:
    name: the variable's name, for error messages.
    backend: "hbm", "auto" or "hybrid"; the distribution of "random" depends on it.
    text: string; None is "".

  Raises:
    ValueError: not the name of an initializer.
  """
  text = text or "random"
  if text == "ones":
    return init_ops.ones_initializer()
  if text == "zeros":
    return init_ops.zeros_initializer()
  if backend != HYBRID and text == "random":
    return init_ops.random_uniform_initializer(-.05, .05)
  if backend == HYBRID and text in ("random", "normal"):
    return init_ops.random_normal_initializer()
  if backend == HYBRID and text == "uniform":
    return init_ops.random_uniform_initializer(0., 1.)
  try:
    return init_ops.constant_initializer(float(text))
  except ValueError:
    words = ["random", "ones", "zeros"]
    words += ["normal", "uniform"] if backend == HYBRID else []
    raise ValueError(
        "sok.DynamicVariable '%s': initializer of var_type '%s': expected one of %s, or "
        "a number, got %r" % (name, backend, ", ".join(words), text))
