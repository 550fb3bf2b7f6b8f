# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The table: its handle, initialisation and sizes."""

import collections

from embedding_variable import _lib
from embedding_variable import tf_names
from embedding_variable.tf_names import attr_value_pb2
from embedding_variable.tf_names import compat
from embedding_variable.tf_names import dtypes
from embedding_variable.tf_names import ops

_gen = _lib.load()

# Attribute of ops whose error messages get a prefix.
_START_OF_ERRORS = "_embedding_variable_errors"

HANDLE_OP = "EvHandle"

# Attributes of EvHandle that `handle` sets itself; the others are options of the table.
_SET_BY_HANDLE = ("container", "shared_name", "dtype", "shape")


def _value(attr_value):
  """Returns an `AttrValue` as a Python value."""
  kind = attr_value.WhichOneof("value")
  value = getattr(attr_value, kind)
  if kind == "type":
    return dtypes.as_dtype(value)
  return compat.as_str(value) if kind == "s" else value


_OPTIONS = [
    attr for attr in tf_names.op_def(HANDLE_OP).attr
    if attr.name not in _SET_BY_HANDLE
]

# Options of a table: admission and eviction, storage, and what is recorded per key. The
# fields and their defaults are those of the op EvHandle, whose documentation describes
# them (kernels/tf/ops/handle_ops.cc).
TableOptions = collections.namedtuple("TableOptions", [a.name for a in _OPTIONS])
TableOptions.__new__.__defaults__ = tuple(_value(a.default_value) for a in _OPTIONS)


def options_of(resource):
  """Returns the `TableOptions` of a handle."""
  attributes = resource.op.node_def.attr
  return TableOptions(*[_value(attributes[name]) for name in TableOptions._fields])


def records_frequency(resource):
  """Returns whether a table records frequencies, as a filter requires; False if unknown.

  Args:
    resource: any resource scalar.
  """
  op = handle_op_of(resource)
  if op is None:
    return False
  options = getattr(op, "table_options", None) or options_of(op.outputs[0])
  return options.record_frequency


def handle(shared_name, dim, container="", name=None, **options):
  """Creates the handle of a table; running it creates the (empty) table.

  Two handles with the same `container` and `shared_name` refer to the same table of a
  session; every session has its own.

  Args:
    shared_name: string: the variable's name; it is in every error.
    dim: int >= 1, the length of a row.
    container: string, as for a variable.
    name: name of the op.
    **options: fields of `TableOptions`.

  Returns:
    A resource scalar whose handle data is (float32, [None, dim]).

  Raises:
    ValueError: `dim` < 1.
    TypeError: an option that does not exist, or of another type.
  """
  if dim < 1:
    raise ValueError("embedding variable '%s': dim: expected >= 1, got %s" %
                     (shared_name, dim))
  return _gen.ev_handle(
      container=container, shared_name=shared_name, dtype=dtypes.float32,
      shape=[None, dim], name=name, **options)


def check_lengths(call, resources, lists):
  """Raises ValueError unless each list has an element per table.

  Args:
    call: string that starts the error, "lookup_sparse of".
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
  """Returns a bool scalar; False, not an error, if the table does not exist."""
  return _gen.ev_is_initialized(resource, name=name)


def shape(resource, name=None):
  """Returns int64 `[2]`: the number of keys, and D."""
  return _gen.ev_shape(resource, name=name)


def stats(resource, name=None):
  """Returns int64 `[4]`: rows, index bytes, row bytes, rows inserted so far."""
  return _gen.ev_stats(resource, name=name)


def policy_stats(resource, name=None):
  """Returns int64 `[3]`: statistics of filter and evictions.

  The number of keys that the filter counts and has not admitted (0 for a Bloom filter),
  the filter's bytes, and the number of rows evicted so far.
  """
  return _gen.ev_policy_stats(resource, name=name)


def overflows(resource, name=None):
  """Returns int64 scalar: updates of rows that made a number infinite, so far.

  They rounded it to `value_dtype`, whose largest number it exceeds. 0 with float32 values.
  """
  return _gen.ev_overflows(resource, name=name)


def tier_stats(resource, pairs=1, name=None):
  """Returns int64 `[6 * pairs]`: rows per memory, and hits and misses of this session.

  "dram_ssd": rows in memory, rows in the file, the file's bytes; then hits (used rows
  that were in memory), misses (used rows that were not), and bytes written. "hbm_dram":
  the same with GPU memory and CPU memory; used rows are those that lookups have read,
  and the bytes those of rows that moved to CPU memory. "hbm": rows, 0, 0; then ids of lookups and
  updates whose keys the GPU found, ids whose keys were looked up on the CPU, and 0.
  "hbm_dram_ssd", with 2 pairs: the numbers of GPU and CPU memory, then those of CPU
  memory and the file. Other storages: zeros.

  Args:
    resource: resource scalar from `handle`.
    pairs: int, number of pairs of adjacent memories.
    name: name of the op.
  """
  return _gen.ev_tier_stats(resource, pairs=pairs, name=name)


def move_stats(resource, name=None):
  """Returns int64 `[3]`: what moved between GPU and CPU memory in this session.

  Rows that moved to GPU memory, rows that moved out of it, and bytes that the GPU read and
  wrote in CPU memory. In "hbm_dram" two rows swap, so the first two numbers are equal.

  A value that a lookup read in CPU memory counts once for all ids of the batch that share
  the read. A row, value and slots, that an update changed there or that moved counts
  twice, since it was read and written. Not counted: default rows, new rows, rows that are
  saved, restored or removed, rows that the CPU reads one by one (a lookup that is not
  pooled, of a table on a CPU device, and its update), and, with "hbm_dram_ssd", rows
  that the CPU copies. Storages without rows in both memories: zeros.

  Args:
    resource: resource scalar from `handle`.
    name: name of the op.
  """
  return _gen.ev_move_stats(resource, name=name)


def evict(resource, step, steps_to_live=0, l2_weight_threshold=-1.0, name=None):
  """Evicts rows by age and by weight; returns int64 scalar, their number.

  Args:
    resource: resource scalar from `handle`; must be initialised. Its table must record
      versions if `steps_to_live` is set.
    step: int64 scalar, the global step.
    steps_to_live: int: evict rows that no update changed for more steps; 0: none.
    l2_weight_threshold: float: evict rows with `0.5 * sum(w^2)` below it; <= 0: none.
    name: name of the op.
  """
  return _gen.ev_evict(
      resource, step, steps_to_live=steps_to_live,
      l2_weight_threshold=l2_weight_threshold, name=name)


for _op_type in ("EvHandle", "EvInitialize", "EvIsInitialized", "EvShape",
                 "EvStats", "EvPolicyStats", "EvOverflows", "EvTierStats",
                 "EvMoveStats", "EvEvict"):
  ops.NotDifferentiable(_op_type)


# Ops that pass a resource through.
_PASSING = ("Switch", "RefSwitch", "Identity", "Enter", "RefEnter", "Exit", "Merge",
            "NextIteration")


# Attribute of the handle of an eager table: what stands for its op.
_EAGER_OP = "_embedding_variable_op"


def set_eager_op(handle_tensor, op):
  """Sets what `handle_op_of` returns for an eager handle: an object with a name."""
  setattr(handle_tensor, _EAGER_OP, op)


def handle_op_of(tensor):
  """Returns the EvHandle op from which a resource tensor comes, or None.

  Args:
    tensor: any tensor; a resource may come through conditions, loops and functions.
  """
  while tensor is not None and tensor.dtype == dtypes.resource:
    if isinstance(tensor, ops.EagerTensor):
      return getattr(tensor, _EAGER_OP, None)
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
  """Returns the tensor outside of a function that this placeholder captures, or None."""
  for outside, inside in getattr(placeholder.graph, "captures", ()):
    if inside is placeholder:
      return outside
  return None


# Op types that exchange rows of a table with other ranks; their first inputs are
# handles. The value is a function that is called with the name of the table's
# optimizer.
_exchange_ops = {}


def add_exchange_op(op_type, set_optimizer):
  """Registers an op type with which ranks exchange rows, for `is_spread_over_ranks`.

  Args:
    op_type: string.
    set_optimizer: function (op, number of the table among its inputs, string), called
      when an optimizer for the table is added to the graph.
  """
  _exchange_ops[op_type] = set_optimizer


def set_optimizer(resource, optimizer):
  """Passes the name of a table's optimizer to the lookups that exchange its rows.

  Args:
    resource: resource scalar.
    optimizer: string, the same on all ranks.
  """
  for op in _consumers(resource):
    if op.type in _exchange_ops:
      table = [x.name for x in op.inputs].index(resource.name)
      _exchange_ops[op.type](op, table, optimizer)


def set_spread_over_ranks(resource):
  """Records that other ranks hold rows of an eager table.

  Args:
    resource: the table's handle, an eager tensor.
  """
  getattr(resource, _EAGER_OP).is_spread = True


def is_spread_over_ranks(resource):
  """Returns whether other ranks hold rows of this table, judged by its lookups."""
  if getattr(handle_op_of(resource), "is_spread", False):
    return True
  return any(op.type in _exchange_ops for op in _consumers(resource))


def _consumers(resource):
  """Returns the ops that take a handle; none are known for an eager one."""
  return [] if isinstance(resource, ops.EagerTensor) else resource.consumers()


# Converts a carrier's message to the reason in errors about a lost rank.
_reason = str


def add_reason_of_lost_rank(reason):
  """Sets the function that converts a carrier's message to a reason."""
  global _reason
  _reason = reason


def reason_of_lost_rank(message):
  """Returns the reason why an exchange failed, from the carrier's `message`."""
  return _reason(message)


def name_in_errors(op, start):
  """Makes errors of a stock op start with `start`.

  Then an exchange with ranks that are gone is an InternalError, whatever error the op
  returned.
  """
  op._set_attr(  # pylint: disable=protected-access
      _START_OF_ERRORS, attr_value_pb2.AttrValue(s=compat.as_bytes(start)))


def start_of_errors(op):
  """Returns the prefix set by `name_in_errors` for an op, or None."""
  if op is None:
    return None
  try:
    return compat.as_str(op.get_attr(_START_OF_ERRORS))
  except ValueError:
    return None


def check_not_spread(resource, what):
  """Raises ValueError if a gradient would reach only this rank's part of a table.

  Args:
    resource: resource scalar.
    what: string, the lookup whose gradient is needed.
  """
  if is_spread_over_ranks(resource):
    raise ValueError(
        "embedding variable '%s' is spread over ranks by sparse_operation_kit."
        "lookup_sparse, but %s reads and trains only the rows of this rank. Look it "
        "up with sparse_operation_kit.lookup_sparse everywhere" %
        ((handle_op_of(resource) or resource.op).name, what))
