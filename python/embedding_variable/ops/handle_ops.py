# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The table itself: its handle, initialisation and size."""

from tensorflow.python.framework import dtypes
from tensorflow.python.framework import ops

from embedding_variable import _lib

_gen = _lib.load()


def handle(shared_name,
           dim,
           key_dtype=dtypes.int64,
           storage="dram",
           record_frequency=False,
           record_version=False,
           container="",
           name=None):
  """Creates the handle of a table; running it creates the (empty) table.

  Two handles with one `container` and `shared_name` name one table in a session;
  every session has its own.

  Args:
    shared_name: string: the variable's name; it appears in every error.
    dim: int >= 1, the length of a row.
    key_dtype: `tf.int64` or `tf.int32`.
    storage: "dram" or "hbm": rows in CPU memory, or in that of the process's GPU.
    record_frequency: keep how often each key was trained.
    record_version: keep the global step of each key's last update.
    container: string, as for a variable.
    name: name of the op.

  Returns:
    A resource scalar whose handle data is (float32, [None, dim]).

  Raises:
    ValueError: `dim` < 1.
    TypeError: another `key_dtype`.
  """
  if dim < 1:
    raise ValueError("embedding variable '%s': dim must be >= 1, got %s" %
                     (shared_name, dim))
  return _gen.ev_handle(
      container=container, shared_name=shared_name, storage=storage, dtype=dtypes.float32,
      shape=[None, dim], key_dtype=key_dtype, record_frequency=record_frequency,
      record_version=record_version, name=name)


def initialize(resource, default_rows, name=None):
  """Returns the op that sets the default rows and empties the table.

  Args:
    resource: resource scalar from `handle`.
    default_rows: float32 `[R, D]`, R >= 1: a new key starts with row
      `floormod(key, R)`.
    name: name of the op.
  """
  return _gen.ev_initialize(resource, default_rows, name=name)


def is_initialized(resource, name=None):
  """Returns a bool scalar; never fails for lack of a table."""
  return _gen.ev_is_initialized(resource, name=name)


def shape(resource, name=None):
  """Returns int64 `[2]`: the number of keys, and D."""
  return _gen.ev_shape(resource, name=name)


def stats(resource, name=None):
  """Returns int64 `[4]`: rows, index bytes, row bytes, rows inserted so far."""
  return _gen.ev_stats(resource, name=name)


for _op_type in ("EvHandle", "EvInitialize", "EvIsInitialized", "EvShape",
                 "EvStats"):
  ops.NotDifferentiable(_op_type)


# Op types that exchange rows of a table with other ranks; their inputs are handles.
_exchange_ops = set()


def add_exchange_op(op_type):
  """Makes `is_spread_over_ranks` recognise an op by which ranks exchange rows."""
  _exchange_ops.add(op_type)


def is_spread_over_ranks(resource):
  """Returns whether other ranks hold rows of this table, as its lookups tell."""
  return any(op.type in _exchange_ops for op in resource.consumers())


def check_not_spread(resource, what):
  """Raises ValueError when a gradient reaches only this rank's part of a table.

  Args:
    resource: resource scalar.
    what: string, the lookup whose gradient is asked for.
  """
  if is_spread_over_ranks(resource):
    raise ValueError(
        "embedding variable '%s' is spread over ranks by sparse_operation_kit."
        "lookup_sparse, but %s reads and trains only the rows of this rank. Look it "
        "up with sparse_operation_kit.lookup_sparse everywhere" %
        (resource.op.name, what))
