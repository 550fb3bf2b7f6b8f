# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""State shared by all updates of one `apply_gradients` call.

Stock optimizers update one variable after the other. A single update op for all tables
of a lookup needs the whole list. So the patched `apply_gradients` opens a scope with
it, and the first table's update creates the op that the other tables share.
"""

import contextlib
import threading

from embedding_variable import graph_state
from embedding_variable.eager import taped
from embedding_variable.tf_names import array_ops
from embedding_variable.tf_names import constant_op
from embedding_variable.tf_names import dtypes
from embedding_variable.tf_names import math_ops
from embedding_variable.tf_names import ops
from embedding_variable.tf_names import training_util
from embedding_variable.tf_names import variable_scope

_local = threading.local()


class ApplyScope(object):
  """The gradients of one `apply_gradients` call, and results shared by its updates.

  Attributes:
    optimizer: the optimizer that was called.
    pairs: list of (gradient, variable).
    cache: dict for values shared by the updates of this call.
  """

  def __init__(self, optimizer, pairs):
    self.optimizer = optimizer
    self.pairs = pairs
    self.cache = {}
    self._graph = ops.get_default_graph()
    self._last_id = graph_state.last_id(self._graph)

  def made(self, tensor):
    """Returns whether this call created the tensor, as it does if a script passed a
    number.

    Tensors created before the call belong to the script; a session may feed them.
    """
    if taped.is_eager(tensor):
      return True
    op = tensor.op
    return op.graph is self._graph and op._id > self._last_id  # pylint: disable=protected-access

  def step(self):
    """Returns int64 scalar: the global step before its increment.

    0 without a global step. If a variable evicts by step, it is the `iterations` of a Keras
    optimizer, which increments no other step; with another optimizer a graph gets a global
    step, as in DeepRec's optimizers. Otherwise all rows would have version 0, and a saver
    that finds a global step created later would treat all of them as old.

    Raises:
      ValueError: a variable evicts by step in eager execution, and there is no step.
    """
    key = ("step", ops.get_default_graph())
    if key not in self.cache:
      evicting = [var for _, var in self.pairs if getattr(var, "steps_to_live", None)]
      self.cache[key] = _global_step(evicting, self.optimizer)
    return self.cache[key]


def _global_step(evicting, optimizer):
  """Reads the global step. Its increment waits for the updates, so this is the old
  value.

  Args:
    evicting: list of the variables that evict by step.
    optimizer: the optimizer that updates them.
  """
  step = training_util.get_global_step()
  if step is None and evicting:
    if hasattr(optimizer, "iterations"):
      return math_ops.cast(ops.convert_to_tensor(optimizer.iterations), dtypes.int64)
    if taped.is_eager(evicting[0].handle):
      raise ValueError(
          "embedding variable '%s' evicts rows by step: expected a global step or an "
          "optimizer with iterations, got %s and no global step. Call "
          "tf.compat.v1.train.get_or_create_global_step() before the first step and pass "
          "it to apply_gradients(global_step=...), or use a tf.keras optimizer" %
          (evicting[0].op.name, type(optimizer).__name__))
    root = variable_scope.VariableScope(reuse=False, name="")
    with variable_scope.variable_scope(root, auxiliary_name_scope=False), \
        ops.init_scope():
      step = training_util.create_global_step()
  if step is None:
    return constant_op.constant(0, dtypes.int64)
  # On the step's device. Without a device, TensorFlow would take the first task of the
  # job, for example a worker that has stopped.
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
  """Returns the scope of the optimizer's running call; an empty one outside of any."""
  stack = _local.__dict__.get("stack") or []
  if stack and stack[-1].optimizer is optimizer:
    return stack[-1]
  return ApplyScope(optimizer, [])
