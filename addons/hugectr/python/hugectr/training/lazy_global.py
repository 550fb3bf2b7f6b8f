# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Optimizers whose rows catch up on missed steps when they are touched.

With update_type Global every row decays in every step. In this implementation, a row
with a gradient in step t whose last gradient was in step t - k - 1 first does k steps
without a gradient at once:

  MomentumSGD  w = w + v (f + f^2 + ... + f^k),   v = f^k v
  Nesterov     w = w + v (f^2 + ... + f^(k + 1)), v = f^k v
  Adam         w = w - rate(t) (r + r^2 + ... + r^k) m / (sqrt(v) + epsilon) with
               r = beta1 / sqrt(beta2), m = beta1^k m, v = beta2^k v

For momentum this equals the k steps exactly. Adam uses the rate of step t for all of
them, and treats epsilon as if it shrank with the root. A lookup in between reads the
row without these steps.

Steps are float32 numbers, which are exact below 2^24. The step after 2^24 - 1 is 2^23:
differences stay right for rows that were touched within the last 2^23 steps, and
powers of beta at such steps are as good as zero.
"""

import numpy as np
import tensorflow.compat.v1 as tf

_HALF = 2. ** 23


def next_step(step):
  """Returns the number of the step after a step."""
  return tf.where_v2(step + 1. < 2. * _HALF, step + 1., _HALF)


def later(times, began, step):
  """Returns times of rows that miss no step from `began` to `step`, as float64.

  Args:
    times: float32 array, the rows' last steps.
    began: float, step number.
    step: float, later step number.
  """
  times = times.astype("float64") + (step - began if step >= began else
                                     step - began + _HALF)
  return np.where(times < 2. * _HALF, times, times - _HALF)


def _sum_of_powers(ratio, count):
  """Returns ratio + ratio^2 + ... + ratio^count."""
  if ratio == 1:
    return count
  return ratio * (1. - ratio ** count) / (1. - ratio)


class _Catching(tf.train.Optimizer):
  """The common part: a row's last step, and the number of the current step.

  Slots of dense variables are created too; they have no steps to catch up on.
  """

  def __init__(self, learning_rate, states, name):
    super(_Catching, self).__init__(False, name)
    self._lr = learning_rate
    self._states = states
    self._now = None

  def _create_slots(self, var_list):
    self._create_non_slot_variable(0., "lazy_step", var_list[0])
    for var in var_list:
      for state in self._states + ["time"]:
        self._zeros_slot(var, state, self._name)
    self._first = var_list[0]

  def step_variable(self):
    """Returns the float32 variable that counts steps."""
    return self._get_non_slot_variable("lazy_step", self._first.graph)

  def _prepare(self):
    self._now = next_step(self.step_variable().read_value())

  def _finish(self, update_ops, name_scope):
    with tf.control_dependencies(update_ops):
      counted = self.step_variable().assign(self._now)
    return tf.group(*(update_ops + [counted]), name=name_scope)

  def _catch_up(self, row, states, skipped):
    """Returns (row, states) after steps without a gradient."""
    raise NotImplementedError

  def _step(self, row, states, grad):
    """Returns (row, states) after a step with a gradient."""
    raise NotImplementedError

  def _resource_apply_dense(self, grad, handle):
    slots = [self.get_slot(handle, state) for state in self._states]
    row, states = self._step(handle.read_value(), [s.read_value() for s in slots], grad)
    return tf.group(handle.assign(row), *[s.assign(v) for s, v in zip(slots, states)])

  def _resource_apply_sparse(self, grad, handle, indices):
    slots = [self.get_slot(handle, state) for state in self._states]
    time = self.get_slot(handle, "time")
    row = handle.sparse_read(indices)
    states = [s.sparse_read(indices) for s in slots]
    # A new row has zero states, so catching up does not change it.
    skipped = self._now - 1. - time.sparse_read(indices)
    skipped = tf.where_v2(skipped < 0., tf.floormod(skipped, _HALF), skipped)
    row, states = self._catch_up(row, states, skipped)
    row, states = self._step(row, states, grad)
    updates = [handle.scatter_update(tf.IndexedSlices(row, indices)),
               time.scatter_update(tf.IndexedSlices(tf.fill(tf.shape(row), self._now),
                                                    indices))]
    updates += [s.scatter_update(tf.IndexedSlices(v, indices))
                for s, v in zip(slots, states)]
    return tf.group(*updates)

  def _apply_dense(self, grad, var):
    return self._resource_apply_dense(grad, var)

  def _apply_sparse(self, grad, var):
    return self._resource_apply_sparse(grad.values, var, grad.indices)


class LazyMomentum(_Catching):
  """MomentumSGD or Nesterov; v has the sign of TensorFlow's.

  v = f v + lr g; w = w - v, for Nesterov w = w - lr g - f v.
  """

  def __init__(self, learning_rate, factor, is_nesterov, name):
    super(LazyMomentum, self).__init__(learning_rate, ["momentum"], name)
    self._factor = factor
    self._is_nesterov = is_nesterov

  def _catch_up(self, row, states, skipped):
    scale = self._factor if self._is_nesterov else 1.
    row = row - scale * states[0] * _sum_of_powers(self._factor, skipped)
    return row, [states[0] * self._factor ** skipped]

  def _step(self, row, states, grad):
    moved = self._lr * grad
    velocity = self._factor * states[0] + moved
    if self._is_nesterov:
      return row - moved - self._factor * velocity, [velocity]
    return row - velocity, [velocity]


class LazyAdam(_Catching):
  """Adam."""

  def __init__(self, learning_rate, beta1, beta2, epsilon, name):
    super(LazyAdam, self).__init__(learning_rate, ["m", "v"], name)
    self._beta1 = beta1
    self._beta2 = beta2
    self._epsilon = epsilon

  def _rate(self):
    return (self._lr * tf.sqrt(1. - self._beta2 ** self._now) /
            (1. - self._beta1 ** self._now))

  def _catch_up(self, row, states, skipped):
    m, v = states
    ratio = self._beta1 / self._beta2 ** .5
    row = row - self._rate() * _sum_of_powers(ratio, skipped) * m / (
        tf.sqrt(v) + self._epsilon)
    return row, [m * self._beta1 ** skipped, v * self._beta2 ** skipped]

  def _step(self, row, states, grad):
    m = self._beta1 * states[0] + (1. - self._beta1) * grad
    v = self._beta2 * states[1] + (1. - self._beta2) * tf.square(grad)
    return row - self._rate() * m / (tf.sqrt(v) + self._epsilon), [m, v]
