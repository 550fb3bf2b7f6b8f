# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Names, order and placement for exchanges of eager tables."""

import contextlib
import functools

import numpy as np
from embedding_variable import graph_state
from embedding_variable.eager import taped
from embedding_variable.ops import checkpoint_ops
from embedding_variable.ops import handle_ops
from embedding_variable.ops import row_ops
from embedding_variable.tf_names import array_ops
from embedding_variable.tf_names import context
from embedding_variable.tf_names import dtypes
from embedding_variable.tf_names import errors
from embedding_variable.tf_names import ops
from embedding_variable.tf_names import resource_variable_ops
from embedding_variable.tf_names import tf

from sparse_operation_kit import communication

# Attribute of a function's graph: whether it assigns to the variable of `run_in_order`.
_IN_ORDER = "_sok_in_order"


@contextlib.contextmanager
def root_scope(name, again=False):
  """Context of the ops of a call, whose name it returns.

  In a graph it is a new scope of the root, so names are unique, and equal on all ranks. In
  eager execution all calls of a kind have one name.

  Args:
    name: string.
    again: bool; True enters the scope of an existing call.
  """
  if context.executing_eagerly():
    with ops.name_scope_v2(name + "/"):
      yield name
  else:
    with ops.name_scope(None), ops.name_scope(name + "/" if again else name) as scope:
      yield scope[:-1]


def full_name(name):
  """Returns the name of a collective in eager execution, with its scope."""
  return context.context().scope_name + name


def by_horovod(tensor, splits, name):
  """Sends `splits[r]` numbers to rank r; returns (received, received splits).

  Args:
    tensor: eager tensor `[N]`.
    splits: int32 `[W]`.
    name: string, the name of the collective.

  Raises:
    tf.errors.InternalError: another rank is gone.
  """
  try:
    return _function(name, tensor.dtype)(tensor, splits)
  except (errors.UnknownError, errors.AbortedError) as e:
    raise errors.InternalError(
        None, None, "%s: the exchange between ranks failed: %s" %
        (name, handle_ops.reason_of_lost_rank(e.message)))


@functools.lru_cache(maxsize=None)
def _function(name, dtype):
  """Returns a function with one alltoall, whose kernel has this name.

  Horovod matches collectives by the names of kernels. A kernel that runs eagerly has the
  name of its type.
  """

  @tf.function(input_signature=[tf.TensorSpec([None], dtype),
                                tf.TensorSpec([None], dtypes.int32)], autograph=False)
  def send(tensor, splits):
    return communication.horovod().alltoall(tensor, splits=splits, name=name)

  return send


def run_in_order():
  """Makes functions with exchanges run one after the other if a function calls several.

  Collectives are matched by name, and two functions may have the same names. TensorFlow
  runs functions that write one variable in the order of their calls.
  """
  with ops.init_scope():
    is_in_function = context.executing_eagerly()
  state = graph_state.of(ops.get_default_graph())
  if context.executing_eagerly() or not is_in_function or _IN_ORDER in state:
    return
  state[_IN_ORDER] = True
  variable = _order()
  with ops.device("/device:CPU:0"):
    variable.assign(0, read_value=False)


@functools.lru_cache(maxsize=None)
def _order():
  with ops.init_scope(), ops.device("/device:CPU:0"):
    return resource_variable_ops.ResourceVariable(
        0, trainable=False, dtype=dtypes.int32, name="sok_order")


def spread_from_the_start(table):
  """Records that a new table is spread, if it is eager and there are several ranks.

  Then a checkpoint that is restored before the first lookup brings its own rows only.
  """
  if communication.num_ranks() > 1 and taped.is_eager(table.handle):
    handle_ops.set_spread_over_ranks(table.handle)


def spread(table, ranks):
  """Records that an eager table is spread over ranks; called before its lookups.

  A checkpoint that was restored before the first lookup has brought the rows of all
  ranks; those of other ranks are removed.

  Args:
    table: eager embedding variable.
    ranks: list of ints, as for `exchange.ranks_of`.
  """
  if handle_ops.is_spread_over_ranks(table.handle):
    return
  with ops.init_scope():
    keys = checkpoint_ops.export_table(table.handle).keys.numpy()
    others = keys[np.array(ranks)[np.mod(keys, len(ranks))] != communication.rank()]
    if len(others):
      row_ops.erase(table.handle, array_ops.constant(others, dtypes.int64))
  handle_ops.set_spread_over_ranks(table.handle)
