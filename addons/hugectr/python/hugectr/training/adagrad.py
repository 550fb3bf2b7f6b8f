# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""AdaGrad with epsilon outside the root."""

import tensorflow.compat.v1 as tf


class AdaGradOptimizer(tf.train.Optimizer):
  """a = a + g^2, w = w - lr g / (sqrt(a) + epsilon).

  TensorFlow's AdaGrad has no epsilon, and needs an initial a above 0.
  """

  def __init__(self, learning_rate, initial_accumulator_value, epsilon, name="AdaGrad"):
    """Constructs the optimizer.

    Args:
      learning_rate: float or scalar tensor.
      initial_accumulator_value: float of at least 0.
      epsilon: float of at least 0.
      name: name of the ops, and of the slots.
    """
    super(AdaGradOptimizer, self).__init__(False, name)
    self._lr = learning_rate
    self._initial = float(initial_accumulator_value)
    self._epsilon = float(epsilon)

  def _create_slots(self, var_list):
    for var in var_list:
      self._get_or_make_slot_with_initializer(
          var, tf.constant_initializer(self._initial), var.shape,
          var.dtype.base_dtype, "accumulator", self._name)

  def _resource_apply_dense(self, grad, handle):
    slot = self.get_slot(handle, "accumulator")
    with tf.control_dependencies([slot.assign_add(tf.square(grad))]):
      rate = self._lr / (tf.sqrt(slot.read_value()) + self._epsilon)
    return handle.assign_sub(rate * grad).op

  def _resource_apply_sparse(self, grad, handle, indices):
    slot = self.get_slot(handle, "accumulator")
    with tf.control_dependencies(
        [slot.scatter_add(tf.IndexedSlices(tf.square(grad), indices))]):
      rate = self._lr / (tf.sqrt(slot.sparse_read(indices)) + self._epsilon)
    return handle.scatter_sub(tf.IndexedSlices(rate * grad, indices)).op

  def _apply_dense(self, grad, var):
    return self._resource_apply_dense(grad, var)

  def _apply_sparse(self, grad, var):
    return self._resource_apply_sparse(grad.values, var, grad.indices)
