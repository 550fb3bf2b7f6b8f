# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The table itself: its handle, initialisation and size."""

import collections

from tensorflow.core.framework import attr_value_pb2
from tensorflow.python.framework import dtypes
from tensorflow.python.framework import ops
from tensorflow.python.util import compat

from embedding_variable import _lib

_gen = _lib.load()

# The attribute of ops whose errors begin with more than they say.
_START_OF_ERRORS = "_embedding_variable_errors"

# Which keys get a row and which lose it; the attributes of the handle.
#   filter: string, "none", "counter" or "bloom".
#   filter_freq: int, occurrences that admit a key.
#   no_permission: float, what keys read that are not admitted.
#   max_element_size, false_positive_probability, counter_bits: of a Bloom filter.
#   steps_to_live: int, what a saver evicts by; 0: nothing.
#   l2_weight_threshold: float, the same; -1: nothing.
#   max_rows, max_bytes: ints, what the table holds at most; 0: no bound.
#   cache_strategy: string, what goes from a full table (variables/cache_strategies.py).
Policy = collections.namedtuple("Policy", [
    "filter", "filter_freq", "no_permission", "max_element_size",
    "false_positive_probability", "counter_bits", "steps_to_live",
    "l2_weight_threshold", "max_rows", "max_bytes", "cache_strategy"
])
Policy.__new__.__defaults__ = ("none", 0, 0.0, 0, 0.0, 64, 0, -1.0, 0, 0, "LFU")


def policy_of(resource):
  """Returns the `Policy` of a handle."""
  get = resource.op.get_attr
  return Policy(**{
      name: compat.as_str(get(name)) if name in ("filter", "cache_strategy") else
      get(name) for name in Policy._fields
  })


def handle(shared_name,
           dim,
           key_dtype=dtypes.int64,
           storage="dram",
           record_frequency=False,
           record_version=False,
           policy=None,
           storage_path="",
           memory_bytes=0,
           versions_are_times=False,
           container="",
           name=None):
  """Creates the handle of a table; running it creates the (empty) table.

  Two handles with one `container` and `shared_name` name one table in a session;
  every session has its own.

  Args:
    shared_name: string: the variable's name; it appears in every error.
    dim: int >= 1, the length of a row.
    key_dtype: `tf.int64` or `tf.int32`. Ids may come as either; running an op with an
      id that this type does not hold is an InvalidArgumentError.
    storage: string, name of a storage (variables/storages.py): where the rows are.
    record_frequency: keep how often each key was trained.
    record_version: keep the global step of each key's last update.
    policy: `Policy`, or None: every key has a row from its first update on, for ever.
    storage_path: string, with "dram_ssd" the file's directory, which no other table
      has; in it each rank has a directory of its own.
    memory_bytes: int, with "dram_ssd" the bytes of the rows in CPU memory, with
      "hbm_dram" of those in the GPU's.
    versions_are_times: the steps that updates are given are times, not steps.
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
      record_version=record_version, storage_path=storage_path,
      memory_bytes=memory_bytes, versions_are_times=versions_are_times, name=name,
      **(policy or Policy())._asdict())


def check_lengths(call, resources, lists):
  """Raises ValueError unless there is an element for each table.

  Args:
    call: string that the error begins with, "lookup_sparse of".
    resources: list of T resource scalars.
    lists: list of (name of the argument, list).
  """
  for what, values in lists:
    if len(values) != len(resources):
      raise ValueError("%s %d tables got %d %s" %
                       (call, len(resources), len(values), what))


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


def policy_stats(resource, name=None):
  """Returns int64 `[3]`: what filter and evictions did.

  They are the keys that the filter counts and has not admitted (0 of a Bloom filter),
  the filter's bytes, and the rows evicted so far.
  """
  return _gen.ev_policy_stats(resource, name=name)


def tier_stats(resource, name=None):
  """Returns int64 `[6]`: where the rows of a table are that has two places for them.

  With "dram_ssd" they are the rows in memory, the rows in the file, the file's bytes,
  and of the session so far the rows used that were in memory, those used that were
  not, and the bytes written. With "hbm_dram" the same of the GPU's memory and the
  CPU's. With "hbm" they are the rows, 0, 0, and of the session so far the ids of
  lookups and updates whose keys the GPU found by itself, the ids of those for which
  keys were looked for on the CPU, and 0. Else zeros.
  """
  return _gen.ev_tier_stats(resource, name=name)


def evict(resource, step, steps_to_live=0, l2_weight_threshold=-1.0, name=None):
  """Evicts rows by age and by weight; returns int64 scalar, how many.

  Args:
    resource: resource scalar from `handle`; must be initialised. Its table must
      record versions if rows go by age.
    step: int64 scalar, the global step.
    steps_to_live: int: rows go that no update touched for more steps; 0: none.
    l2_weight_threshold: float: rows go with `0.5 * sum(w^2)` below; <= 0: none.
    name: name of the op.
  """
  return _gen.ev_evict(
      resource, step, steps_to_live=steps_to_live,
      l2_weight_threshold=l2_weight_threshold, name=name)


for _op_type in ("EvHandle", "EvInitialize", "EvIsInitialized", "EvShape",
                 "EvStats", "EvPolicyStats", "EvTierStats", "EvEvict"):
  ops.NotDifferentiable(_op_type)


HANDLE_OP = "EvHandle"

# Ops that hand a resource on.
_PASSING = ("Switch", "RefSwitch", "Identity", "Enter", "RefEnter", "Exit", "Merge",
            "NextIteration")


def handle_op_of(tensor):
  """Returns the EvHandle op that a resource tensor leads back to, or None.

  Args:
    tensor: any tensor; a resource may come through conditions, loops and functions.
  """
  while tensor is not None and tensor.dtype == dtypes.resource:
    if tensor.op.type == HANDLE_OP:
      return tensor.op
    if tensor.op.type == "Placeholder":
      tensor = _captured_as(tensor)
    elif tensor.op.type in _PASSING:
      tensor = tensor.op.inputs[0]
    else:
      return None
  return None


def _captured_as(placeholder):
  """Returns the tensor outside of a function that is this input of it, or None."""
  for outside, inside in getattr(placeholder.graph, "captures", ()):
    if inside is placeholder:
      return outside
  return None


# Op types that exchange rows of a table with other ranks; their first inputs are
# handles. The value is a function that takes what trains a table.
_exchange_ops = {}


def add_exchange_op(op_type, set_optimizer):
  """Makes `is_spread_over_ranks` recognise an op by which ranks exchange rows.

  Args:
    op_type: string.
    set_optimizer: function (op, number of the table among its inputs, string): called
      when the graph gets something that trains the table.
  """
  _exchange_ops[op_type] = set_optimizer


def set_optimizer(resource, optimizer):
  """Tells the lookups by which ranks exchange a table's rows what trains it.

  Args:
    resource: resource scalar.
    optimizer: string, the same on all ranks.
  """
  for op in resource.consumers():
    if op.type in _exchange_ops:
      table = [x.name for x in op.inputs].index(resource.name)
      _exchange_ops[op.type](op, table, optimizer)


def is_spread_over_ranks(resource):
  """Returns whether other ranks hold rows of this table, as its lookups tell."""
  return any(op.type in _exchange_ops for op in resource.consumers())


# What a lost rank is called in errors: a function of the carrier's message.
_reason = str


def add_reason_of_lost_rank(reason):
  """Sets the function of a carrier's message that returns why an exchange failed."""
  global _reason
  _reason = reason


def reason_of_lost_rank(message):
  """Returns why an exchange failed of which a carrier of ranks says `message`."""
  return _reason(message)


def name_in_errors(op, start):
  """Makes errors of an op that is not ours begin with `start`.

  An exchange with ranks that are gone is an InternalError then, whatever the op gave.
  """
  op._set_attr(  # pylint: disable=protected-access
      _START_OF_ERRORS, attr_value_pb2.AttrValue(s=compat.as_bytes(start)))


def start_of_errors(op):
  """Returns what `name_in_errors` was told of an op, or None."""
  if op is None:
    return None
  try:
    return compat.as_str(op.get_attr(_START_OF_ERRORS))
  except ValueError:
    return None


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
