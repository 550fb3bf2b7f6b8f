# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""State of a work queue in variables of the graph, on one device.

On a parameter server the variables are shared by all workers, because their names in
its memory are made of the queue's name. All ops are stock ones, so the server needs no
library.
"""

from embedding_variable.tf_names import array_ops
from embedding_variable.tf_names import constant_op
from embedding_variable.tf_names import control_flow_ops
from embedding_variable.tf_names import data_flow_ops
from embedding_variable.tf_names import dtypes
from embedding_variable.tf_names import math_ops
from embedding_variable.tf_names import ops
from embedding_variable.tf_names import random_ops
from embedding_variable.tf_names import sort_ops
from embedding_variable.tf_names import state_ops
from embedding_variable.tf_names import tensor_shape


# Value of the counter when the queue is empty. `CountUpTo` needs it in the graph, so a
# queue of n works starts at _END - n.
_END = 2**62

_WINDOW_SLACK = 4096


class GraphState(object):
  """The works in handing-out order, the number of the next, and the finished ones.

  Takes of several workers are ordered by the counter's op, which increments and returns
  under one lock. Every method adds ops to the current graph.
  """

  def __init__(self, name, works, num_epochs, shuffle, seed, held):
    """Creates the variables on the device of the current scope.

    Args:
      name: string, unique name of the queue.
      works: list of strings.
      num_epochs: int.
      shuffle: bool, whether each epoch has an order of its own.
      seed: int or None.
      held: int, number of a worker's last works that are unfinished.
    """
    self._works_list = works
    self._num_epochs = num_epochs
    self._shuffle = shuffle
    self._seed = seed
    self._held_size = held
    # The first variable lets a device function choose the device; the others follow it.
    self._next = self._variable(name, "next", dtypes.int64, [])
    self._device = self._next.device
    with self.host():
      self._works = self._variable(name, "works", dtypes.string, None)
      self._done = self._variable(name, "done", dtypes.bool, None)
      # Distinguishes the fills, since numbers of works are valid in one fill only.
      self._fill = self._variable(name, "fill", dtypes.int64, [1])
    # This worker's last works, as (fill, number). Takes that run at the same time may
    # exceed the limit for a moment.
    self._held = data_flow_ops.FIFOQueue(
        held + _WINDOW_SLACK, [dtypes.int64] * 2, [[], []], name=name + "_held")

  @property
  def op(self):
    """The op whose device has the queue."""
    return self._next.op

  def _variable(self, queue, name, dtype, shape):
    return state_ops.variable_op_v2(
        tensor_shape.TensorShape(shape), dtype, name="%s_%s" % (queue, name),
        shared_name="%s/%s" % (queue, name))

  def host(self):
    """Returns a scope of the queue's device alone."""
    return _OnDevice(self._device)

  def _first_fill(self):
    count = len(self._works_list)
    if self._shuffle:
      draws = random_ops.random_uniform([self._num_epochs, count], seed=self._seed)
      order = sort_ops.argsort(draws, axis=1)
    else:
      order = array_ops.tile([math_ops.range(count)], [self._num_epochs, 1])
    return array_ops.gather(constant_op.constant(self._works_list),
                            array_ops.reshape(order, [-1]))

  def _fill_with(self, works):
    """Returns an op that makes `works`, a string tensor [n], the queue's contents."""
    count = array_ops.size(works, out_type=dtypes.int64)
    fill = random_ops.random_uniform([1], 0, dtypes.int64.max, dtypes.int64)
    filled = [
        state_ops.assign(self._works, works, validate_shape=False).op,
        state_ops.assign(self._done, array_ops.zeros([count], dtypes.bool),
                         validate_shape=False).op,
        state_ops.assign(self._fill, fill).op,
    ]
    # The counter comes last: a queue whose counter is set can be read.
    with ops.control_dependencies(filled):
      return state_ops.assign(self._next, _END - count).op

  def initialize(self):
    """Returns an op that fills the queue unless it is filled."""
    with self.host():
      return control_flow_ops.cond(
          self.is_initialized(), control_flow_ops.no_op,
          lambda: self._fill_with(self._first_fill())).op

  def is_initialized(self):
    """Returns a bool scalar."""
    with self.host():
      return state_ops.is_variable_initialized(self._next)

  def restore(self, works, is_same):
    """Returns an op that refills the queue.

    Args:
      works: string tensor [n], what a checkpoint has.
      is_same: bool scalar, whether the checkpoint is of this list of works. If not, the
        queue is filled as at first.
    """
    with self.host():
      return self._fill_with(control_flow_ops.cond(
          is_same, lambda: array_ops.identity(works), self._first_fill))

  def take(self):
    """Returns the next work, a string scalar; OutOfRange if there is none."""
    with self.host():
      position = state_ops.count_up_to(self._next, _END)
      number = position - (_END - array_ops.size(self._works, out_type=dtypes.int64))
      work = array_ops.gather(self._works, number)
      # A copy: what `identity` returns would change with the variable.
      fill = array_ops.gather(self._fill, 0)
    with ops.control_dependencies([self._held.enqueue([fill, number])]):
      is_over = math_ops.greater(self._held.size(), self._held_size)
    finished = control_flow_ops.cond(is_over, lambda: self._finish(1),
                                     control_flow_ops.no_op)
    with ops.control_dependencies([finished]):
      return array_ops.identity(work)

  def finish(self):
    """Returns an op: all works that this worker has taken are finished."""
    return self._finish(self._held.size())

  def held(self):
    """Returns the number of works that this worker has taken and not finished."""
    return self._held.size()

  def _finish(self, count):
    """Marks this worker's first `count` held works as finished."""
    fills, numbers = self._held.dequeue_many(count)
    with self.host():
      numbers = array_ops.boolean_mask(
          numbers, math_ops.equal(fills, array_ops.identity(self._fill)))
      return state_ops.scatter_update(
          self._done, numbers, array_ops.ones_like(numbers, dtypes.bool)).op

  def left(self, at_most_once):
    """Returns a string tensor [n]: the works that a restored queue has.

    Args:
      at_most_once: bool; True leaves out works that were taken and are unfinished.
    """
    with self.host():
      if at_most_once:
        first = self._next - (_END - array_ops.size(self._works, out_type=dtypes.int64))
        return self._read_works()[first:]
      # Read before the works: a take between the two leaves its work unfinished.
      is_left = math_ops.logical_not(array_ops.identity(self._done))
      is_left.set_shape([None])
      with ops.control_dependencies([is_left]):
        return array_ops.boolean_mask(self._read_works(), is_left)

  def _read_works(self):
    works = array_ops.identity(self._works)
    works.set_shape([None])
    return works

  def size(self):
    """Returns the number of works that were not taken, an int64 scalar."""
    with self.host():
      return _END - array_ops.identity(self._next)


class _OnDevice(object):
  """Context: ops are on this device, whatever the outer scopes are."""

  def __init__(self, device):
    self._device = device
    self._scopes = []

  def __enter__(self):
    self._scopes = [ops.device(None), ops.device(self._device)]
    for scope in self._scopes:
      scope.__enter__()

  def __exit__(self, *exception):
    for scope in reversed(self._scopes):
      scope.__exit__(*exception)
