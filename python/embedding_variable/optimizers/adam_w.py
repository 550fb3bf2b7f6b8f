# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""DeepRec's `AdamWOptimizer`: Adam with decoupled weight decay."""

from embedding_variable.optimizers import registry
from embedding_variable.optimizers import rows_of_dense
from embedding_variable.tf_names import adam
from embedding_variable.tf_names import array_ops
from embedding_variable.tf_names import math_ops
from embedding_variable.tf_names import ops
from embedding_variable.tf_names import state_ops


class AdamWOptimizer(adam.AdamOptimizer):
  """Adam with decoupled weight decay (Loshchilov and Hutter).

  m, v and rate = learning_rate * sqrt(1 - beta2^t) / (1 - beta1^t) are those of
  `tf.train.AdamOptimizer`. The decay is scaled as in DeepRec: not at all on dense
  variables, by the rate on embedding variables:

    dense variable:      w = w - rate * m / (sqrt(v) + epsilon) - weight_decay * w
    embedding variable:  w = w - rate * (m / (sqrt(v) + epsilon) + weight_decay * w)

  The decay uses the value before the step. With sparse gradients, a row and its moments
  decay only in steps in which the row has a gradient.
  """

  def __init__(self,
               weight_decay,
               learning_rate=0.001,
               beta1=0.9,
               beta2=0.999,
               epsilon=1e-8,
               use_locking=False,
               name="AdamW"):
    """Constructs the optimizer.

    Args:
      weight_decay: float, tensor, or function without arguments: the part of a dense
        variable that decays in a step.
      learning_rate: float, tensor, or function without arguments.
      beta1: float, decay of the first moment.
      beta2: float, decay of the second moment.
      epsilon: float, for numerical stability.
      use_locking: if True, dense updates hold a lock.
      name: name of the ops, and of the slots.
    """
    super(AdamWOptimizer, self).__init__(learning_rate, beta1, beta2, epsilon,
                                         use_locking, name)
    self._weight_decay = weight_decay
    self._weight_decay_t = None

  def _prepare(self):
    super(AdamWOptimizer, self)._prepare()
    self._weight_decay_t = ops.convert_to_tensor(
        self._call_if_callable(self._weight_decay), name="weight_decay")

  def _with_decay(self, var, apply):  # pylint: disable=redefined-builtin
    """Runs a stock dense update between computing and applying the decay."""
    # The product copies; a plain read might share the variable's memory.
    decay = var * math_ops.cast(self._weight_decay_t, var.dtype.base_dtype)
    with ops.control_dependencies([decay]):
      update = apply()
    with ops.control_dependencies([update]):
      return state_ops.assign_sub(var, decay, use_locking=self._use_locking).op

  def _apply_dense(self, grad, var):
    return self._with_decay(
        var, lambda: super(AdamWOptimizer, self)._apply_dense(grad, var))

  def _resource_apply_dense(self, grad, var):
    return self._with_decay(
        var, lambda: super(AdamWOptimizer, self)._resource_apply_dense(grad, var))

  def _apply_sparse(self, grad, var):
    return self._resource_apply_sparse(grad.values, var, grad.indices)

  def _resource_apply_sparse(self, grad, var, indices):
    dtype = var.dtype.base_dtype
    lr, beta1, beta2, epsilon, weight_decay, beta1_power, beta2_power = [
        math_ops.cast(t, dtype)
        for t in (self._lr_t, self._beta1_t, self._beta2_t, self._epsilon_t,
                  self._weight_decay_t) + tuple(self._get_beta_accumulators())
    ]

    def update(rows):
      w, m, v = rows
      step_size = lr * math_ops.sqrt(1 - beta2_power) / (1 - beta1_power)
      m = m * beta1 + grad * (1 - beta1)
      v = v * beta2 + grad * grad * (1 - beta2)
      w -= step_size * m / (math_ops.sqrt(v) + epsilon) + weight_decay * w
      return [w, m, v]

    return rows_of_dense.update_rows(
        [var, self.get_slot(var, "m"), self.get_slot(var, "v")], indices, update)


def _hyper(opt, unused_var, unused_kwargs):
  """Returns the row rule's hyperparameters, in its order."""
  # pylint: disable=protected-access
  beta1_power, beta2_power = [
      array_ops.identity(p) for p in opt._get_beta_accumulators()
  ]
  return [
      opt._lr_t, opt._beta1_t, opt._beta2_t, opt._epsilon_t, beta1_power,
      beta2_power, opt._weight_decay_t
  ]


def register():
  """Registers the fused rule for embedding variables."""
  registry.register(
      AdamWOptimizer, "AdamW",
      lambda opt, var: [opt.get_slot(var, "m"), opt.get_slot(var, "v")], _hyper)
