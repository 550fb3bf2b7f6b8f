# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""What one `apply_gradients` call knows as a whole.

Stock optimizers update variable after variable. One update op for all tables of one
lookup needs the whole list, so the patched `apply_gradients` opens a scope here with
it, and the first table's update emits the op that its sisters then share.
"""

import contextlib
import threading

from tensorflow.python.framework import constant_op
from tensorflow.python.framework import dtypes
from tensorflow.python.framework import ops
from tensorflow.python.ops import array_ops
from tensorflow.python.ops import math_ops
from tensorflow.python.ops import variable_scope
from tensorflow.python.training import training_util

_local = threading.local()


class ApplyScope(object):
  """The gradients of one `apply_gradients` call, and what is made once for all.

  Attributes:
    optimizer: the optimizer whose call it is.
    pairs: list of (gradient, variable).
    cache: dict for what the updates of this call share.
  """

  def __init__(self, optimizer, pairs):
    self.optimizer = optimizer
    self.pairs = pairs
    self.cache = {}
    self._graph = ops.get_default_graph()
    self._last_id = self._graph._last_id  # pylint: disable=protected-access

  def made(self, tensor):
    """Whether this call made the tensor: a script that only gave a number has none.

    What was there before the call is the script's own; a session may feed over it.
    """
    op = tensor.op
    return op.graph is self._graph and op._id > self._last_id  # pylint: disable=protected-access

  def step(self):
    """Returns int64 scalar: the global step before its increment.

    0 without one. Where a variable evicts by it the global step is made if need be, as
    DeepRec's optimizers do: rows stamped 0 for ever would all be old to a saver that
    finds a step made later.
    """
    key = ("step", ops.get_default_graph())
    if key not in self.cache:
      needs_step = any(
          getattr(getattr(var, "policy", None), "steps_to_live", 0)
          for _, var in self.pairs)
      self.cache[key] = _global_step(needs_step)
    return self.cache[key]


def _global_step(make):
  """Reads the global step. Its increment waits for the updates, so this is the old one."""
  step = training_util.get_global_step()
  if step is None and make:
    root = variable_scope.VariableScope(reuse=False, name="")
    with variable_scope.variable_scope(root, auxiliary_name_scope=False), \
        ops.init_scope():
      step = training_util.create_global_step()
  if step is None:
    return constant_op.constant(0, dtypes.int64)
  # Where the step is: with no device, TensorFlow would take the first task of a job
  # that it finds, a worker that may be gone, say.
  with ops.colocate_with(None, ignore_existing=True), ops.device(step.device):
    return array_ops.identity(math_ops.cast(step, dtypes.int64), name="ev_step")


@contextlib.contextmanager
def enter(optimizer, pairs):
  """Opens the scope of one `apply_gradients` call."""
  stack = _local.__dict__.setdefault("stack", [])
  stack.append(ApplyScope(optimizer, list(pairs)))
  try:
    yield stack[-1]
  finally:
    stack.pop()


def current(optimizer):
  """Returns the scope of the optimizer's running call; an empty one outside any."""
  stack = _local.__dict__.get("stack") or []
  if stack and stack[-1].optimizer is optimizer:
    return stack[-1]
  return ApplyScope(optimizer, [])
