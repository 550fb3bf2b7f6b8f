# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Sums over the gradients of tables that are spread over ranks.

A rank has only the gradient rows of the keys that it owns. A value computed from all
rows of such a gradient, such as its norm, is therefore a sum over ranks. A package that
spreads tables registers the op that computes these gradients, and the collective that
adds.

The collective must run on all ranks or on none, but a script may fetch a norm on one
rank only, for example for a summary. So every op that trains with the same gradients
gets a control input that runs the collective in each of its steps. (In eager execution
and in a `tf.function` the collective runs where the script calls for it.)

The ops are found by walking back from the gradient. Eager tensors have no op, and the
gradient of a function called in a function has another, so these gradients are marked.
"""

import collections
import contextlib

from embedding_variable import graph_state
from embedding_variable.eager import taped
from embedding_variable.tf_names import control_flow_util
from embedding_variable.tf_names import ops

# Types of ops whose outputs are rows that this rank owns -> the function that adds.
_gradient_ops = {}

# Attribute of a graph: its `_Sums`.
_SUMS = "_embedding_variable_spread_sums"

# Ops that keep each row in place or move whole rows: if one of their inputs has rows of
# this rank, so have their outputs. Excludes ops that reduce, multiply matrices or
# exchange.
_ROWWISE = frozenset((
    "Abs", "Add", "AddN", "AddV2", "Cast", "CheckNumerics", "ClipByValue", "Concat",
    "ConcatV2", "DebugGradientIdentity", "DebugIdentity", "DebugIdentityV2",
    "DebugNanCount", "DebugNumericSummary", "Div", "DivNoNan", "EnsureShape", "Enter",
    "Exit", "ExpandDims", "Gather", "GatherV2", "Identity", "IdentityN", "Maximum",
    "Merge", "Minimum", "Mul", "MulNoNan", "Neg", "NextIteration",
    "PlaceholderWithDefault", "Pow", "PreventGradient", "Print", "RealDiv", "RefSwitch",
    "Reshape", "Select", "SelectV2", "Sign", "Snapshot", "SquaredDifference", "Square",
    "Squeeze", "StopGradient", "Sub", "Switch", "Tanh", "Transpose", "Unique",
    "UniqueV2", "UnsortedSegmentSum"))

# Attribute of a gradient's indices and values: the `_Source` of an eager table's
# gradient.
_MARK = "_embedding_variable_spread"

# Stands for the op that computed a gradient: its type and name.
_Source = collections.namedtuple("_Source", ["type", "name"])

# A sum over ranks, and an op that a training step runs. Each has an op and the set of
# ops that computed the gradients.
_Sum = collections.namedtuple("_Sum", ["op", "sources"])
_Training = collections.namedtuple("_Training", ["op", "sources"])


class _Sums(object):
  """A graph's sums over ranks, and the ops that train with the same gradients."""

  def __init__(self):
    self.made = {}  # (what, context, names of values) -> tensor
    self.sums = []  # list of _Sum
    self.trainings = []  # list of _Training


def _of_graph(graph):
  return graph_state.of(graph).setdefault(_SUMS, _Sums())


def register(op_type, sum_over_ranks):
  """Registers the type of ops that compute gradients of spread tables.

  Args:
    op_type: string. All outputs of the op are keys and gradient rows that this rank
      owns.
    sum_over_ranks: function (what, parts, sources) -> float64 `[K]`: adds the float64
      vector `parts` of all ranks, with the same bits on all. `what` and `sources`, a
      list of ops of that type in the order of their names, are the same on all ranks.
  """
  _gradient_ops[op_type] = sum_over_ranks


def mark(slices, op_type, name):
  """Records which op computed an eager table's gradient.

  Args:
    slices: IndexedSlices.
    op_type: string, a registered type.
    name: string, the op's name, the same on all ranks.
  """
  for tensor in (slices.indices, slices.values):
    setattr(tensor, _MARK, _Source(op_type, name))


def mark_spread(slices, name):
  """Records that all rows of a gradient are of keys that this rank owns.

  Args:
    slices: IndexedSlices, the gradient of an eager table that is spread over ranks.
    name: string, the table's name.
  """
  if not sources(slices):
    mark(slices, next(iter(_gradient_ops)), name)


def sources(gradient):
  """Returns the set of registered ops that computed a gradient's rows.

  Empty if this rank has the whole gradient. The rows may have been scaled, clipped,
  concatenated or passed through a condition on their way.

  Args:
    gradient: an IndexedSlices, a tensor or None.
  """
  if not _gradient_ops or gradient is None:
    return set()
  if isinstance(gradient, ops.IndexedSlices):
    # Indices are mostly unchanged outputs; values may have passed through any ops.
    return _sources_of(gradient.indices) or _sources_of(gradient.values)
  return _sources_of(gradient) if isinstance(gradient, ops.Tensor) else set()


def _sources_of(tensor):
  found, seen, left = set(), set(), [tensor]
  while left:
    tensor = left.pop()
    marked = getattr(tensor, _MARK, None)
    if marked is not None:
      found.add(marked)
    if marked is not None or taped.is_eager(tensor) or tensor.op in seen:
      continue
    seen.add(tensor.op)
    if tensor.op.type in _gradient_ops:
      found.add(tensor.op)
    elif tensor.op.type in _ROWWISE:
      left.extend(tensor.op.inputs)
  return found


def values_of(gradient):
  """Returns the rows of a gradient, an IndexedSlices or a tensor."""
  return gradient.values if isinstance(gradient, ops.IndexedSlices) else gradient


def total(what, gradients, parts):
  """Returns the sum over ranks of numbers that each rank computes from its rows.

  The result has the same bits on all ranks. It is computed where the gradients are,
  even if requested in a branch of a `tf.cond`, which not all ranks may take. Repeated
  calls return the same tensor.

  Args:
    what: string, names the function `parts`.
    gradients: non-empty list of gradients that have `sources`, the same on all ranks.
    parts: function of the list of the gradients' values that returns float64 `[K]`,
      with the same K on all ranks.

  Returns:
    float64 `[K]`.
  """
  values = [values_of(g) for g in gradients]
  found = set().union(*(sources(g) for g in gradients))
  if any(taped.is_eager(v) for v in values):
    return _add(found)(what, parts(values), _in_order(found))
  with _beside(values):
    sums = _of_graph(ops.get_default_graph())
    key = (what, ops.get_default_graph()._get_control_flow_context(),  # pylint: disable=protected-access
           tuple(v.name for v in values))
    if key not in sums.made:
      made = _add(found)(what, parts(values), _in_order(found))
      sums.made[key] = made
      for training in sums.trainings:
        _run_with(training, _Sum(made.op, found))
      sums.sums.append(_Sum(made.op, found))
  return sums.made[key]


def _add(found):
  """Returns the function that adds over ranks."""
  return _gradient_ops[next(iter(found)).type]


def _in_order(found):
  return sorted(found, key=lambda op: op.name)


@contextlib.contextmanager
def _beside(values):
  """Context in which ops are created outside of conditions, if the values are outside."""
  graphs = {v.graph for v in values}
  contexts = {v.op._get_control_flow_context() for v in values}  # pylint: disable=protected-access
  if len(graphs) > 1 or contexts != {None}:
    yield
    return
  with graphs.pop().as_default(), ops.control_dependencies(None), \
      ops.name_scope(None), ops.name_scope("sum_over_ranks"), \
      ops.colocate_with(None, ignore_existing=True), ops.device(None):
    yield


def train_by(op, gradients):
  """Runs the sums over ranks of these gradients, also later ones, together with an op.

  Args:
    op: the op that a training step runs: an operation or a tensor; anything else is
      ignored.
    gradients: list of gradients; those without `sources` are ignored.
  """
  if taped.is_eager(op):
    return
  op = getattr(op, "op", op)
  found = set().union(*(sources(g) for g in gradients)) if gradients else set()
  if not found or not isinstance(op, ops.Operation):
    return
  sums = _of_graph(op.graph)
  training = _Training(op, found)
  for one in sums.sums:
    _run_with(training, one)
  sums.trainings.append(training)


def _run_with(training, one):
  """Makes an op wait for a sum if they have gradients in common."""
  # pylint: disable=protected-access
  context = one.op._get_control_flow_context()
  if (not training.sources & one.sources or one.op.graph is not training.op.graph or
      (context is not None and
       context is not training.op._get_control_flow_context()) or
      control_flow_util.IsInWhileLoop(training.op) or
      _waits_for(one.op, training.op)):
    return
  training.op._add_control_input(one.op)


def _waits_for(later, earlier):
  """Returns whether `later` depends on `earlier`."""
  seen, left = set(), [later]
  while left:
    op = left.pop()
    if op is earlier:
      return True
    # Ops depend only on older ones.
    if op not in seen and op._id > earlier._id:  # pylint: disable=protected-access
      seen.add(op)
      left.extend(op.control_inputs)
      left.extend(x.op for x in op.inputs)
  return False
