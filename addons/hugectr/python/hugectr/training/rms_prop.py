# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""RMSProp with epsilon outside the root."""

import tensorflow.compat.v1 as tf


class RmsPropOptimizer(tf.train.Optimizer):
  """v = beta v + (1 - beta) g^2, w = w - lr g / (sqrt(v) + epsilon).

  For rows of embeddings only. A row without a gradient keeps its v. TensorFlow's RMSProp
  has epsilon inside the root and starts with a v of 1; here v starts at 0.
  """

  def __init__(self, learning_rate, beta, epsilon, name="RMSProp"):
    """Constructs the optimizer.

    Args:
      learning_rate: float or scalar tensor.
      beta: float of at least 0, below 1.
      epsilon: float above 0.
      name: name of the ops, and of the slots.
    """
    super(RmsPropOptimizer, self).__init__(False, name)
    self._lr = learning_rate
    self._beta = float(beta)
    self._epsilon = float(epsilon)

  def _create_slots(self, var_list):
    for var in var_list:
      self._zeros_slot(var, "v", self._name)

  def _resource_apply_sparse(self, grad, handle, indices):
    slot = self.get_slot(handle, "v")
    v = self._beta * slot.sparse_read(indices) + (1. - self._beta) * tf.square(grad)
    step = self._lr * grad / (tf.sqrt(v) + self._epsilon)
    return tf.group(slot.scatter_update(tf.IndexedSlices(v, indices)),
                    handle.scatter_sub(tf.IndexedSlices(step, indices)))

  def _apply_sparse(self, grad, var):
    return self._resource_apply_sparse(grad.values, var, grad.indices)
