# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""DeepRec's `AdamAsyncOptimizer`: Adam without scalars shared by all variables."""

from embedding_variable.checkpoint import numbers_saveable
from embedding_variable.checkpoint_format import tensor_names
from embedding_variable.eager import taped
from embedding_variable.optimizers import registry
from embedding_variable.optimizers import rows_of_dense
from embedding_variable.optimizers import slot_view
from embedding_variable.tf_names import array_ops
from embedding_variable.tf_names import constant_op
from embedding_variable.tf_names import control_flow_ops
from embedding_variable.tf_names import math_ops
from embedding_variable.tf_names import ops
from embedding_variable.tf_names import optimizer
from embedding_variable.tf_names import state_ops
from embedding_variable.tf_names import training_ops
from embedding_variable.variables import variable as ev


class AdamAsyncOptimizer(optimizer.Optimizer):
  """Adam with separate powers of beta for each variable.

  For a gradient g of a variable w, with that variable's own b1, b2 (beta1^t, beta2^t):

    m = beta1 * m + (1 - beta1) * g
    v = beta2 * v + (1 - beta2) * g^2
    w = w - learning_rate * sqrt(1 - b2) / (1 - b1) * m / (sqrt(v) + epsilon)

  Works in graph mode only. Rows without a gradient keep their m and v. With
  `apply_sparse_rmsprop`, sparse gradients are applied without momentum and without bias
  correction, as in DeepRec's documentation; m is unchanged:

    v = beta2 * v + (1 - beta2) * g^2
    w = w - learning_rate * g / (sqrt(v) + epsilon)
  """

  def __init__(self,
               learning_rate=0.001,
               beta1=0.9,
               beta2=0.999,
               epsilon=1e-8,
               use_locking=False,
               apply_sparse_rmsprop=False,
               name="AdamAsync"):
    """Constructs the optimizer.

    Args:
      learning_rate: float, tensor, or function without arguments.
      beta1: float, decay of the first moment.
      beta2: float, decay of the second moment.
      epsilon: float, for numerical stability.
      use_locking: if True, dense updates hold a lock.
      apply_sparse_rmsprop: if True, sparse gradients are applied in RMSProp's way.
      name: name of the ops, and of the slots.
    """
    super(AdamAsyncOptimizer, self).__init__(use_locking, name)
    self._lr = learning_rate
    self._beta1 = beta1
    self._beta2 = beta2
    self._epsilon = epsilon
    self._apply_sparse_rmsprop = apply_sparse_rmsprop
    self._lr_t = self._beta1_t = self._beta2_t = self._epsilon_t = None

  def _create_slots(self, var_list):
    for var in var_list:
      if taped.is_eager(getattr(var, "handle", None)):
        raise NotImplementedError(
            "variable '%s': AdamAsyncOptimizer works in graph mode only. Use "
            "tf.compat.v1.train.AdamOptimizer" % var.name)
      self._zeros_slot(var, "m", self._name)
      self._zeros_slot(var, "v", self._name)
      # One number per variable (or part), not per element or row. By its name it is the
      # third and fourth slot, as in DeepRec: a scalar for a dense variable, of shape
      # [1] for a table. The number in the name is explicit, because stock code would
      # not count a table's first two slots, which are not variables.
      is_table = ev.is_embedding_variable(var)
      with ops.colocate_with(var), slot_view.ordinary_slots():
        for number, slot, beta in ((2, "beta1_power", self._beta1),
                                   (3, "beta2_power", self._beta2)):
          value = self._call_if_callable(beta)
          power = self._get_or_make_slot(
              var,
              constant_op.constant([value] if is_table else value,
                                   var.dtype.base_dtype), slot,
              "%s_%d" % (self._name, number) if is_table else self._name)
          numbers_saveable.register(power, self._names_in_checkpoints(var, power, slot))

  def _names_in_checkpoints(self, var, power, slot):
    """Returns the names of a power in checkpoints of other parts or earlier versions."""
    own = var.op.name
    whole, _ = tensor_names.split_part(own)
    tails = [power.op.name[len(own) + 1:], "%s/%s" % (self._name, slot)]
    # The powers of all parts are equal.
    return ["%s/%s" % (owner, tail) for owner in (own, whole, tensor_names.part(whole, 0))
            for tail in tails]

  def _prepare(self):
    self._lr_t = ops.convert_to_tensor(
        self._call_if_callable(self._lr), name="learning_rate")
    self._beta1_t = ops.convert_to_tensor(
        self._call_if_callable(self._beta1), name="beta1")
    self._beta2_t = ops.convert_to_tensor(
        self._call_if_callable(self._beta2), name="beta2")
    self._epsilon_t = ops.convert_to_tensor(
        self._call_if_callable(self._epsilon), name="epsilon")

  def _powers(self, var):
    """Returns the variable's beta1^t and beta2^t as scalars."""
    return [
        array_ops.reshape(self.get_slot(var, name), [])
        for name in ("beta1_power", "beta2_power")
    ]

  def _multiply_powers(self, var, update):
    """Returns the op that advances the variable's powers after its update."""
    with ops.control_dependencies([update]):
      moved = []
      for name, beta in (("beta1_power", self._beta1_t),
                         ("beta2_power", self._beta2_t)):
        power = self.get_slot(var, name)
        beta = math_ops.cast(beta, power.dtype.base_dtype)
        moved.append(
            state_ops.assign(power, power * beta, use_locking=self._use_locking))
      return control_flow_ops.group(update, *moved)

  def _numbers(self, dtype):
    """Returns learning rate, beta1, beta2 and epsilon in the variable's type."""
    return [
        math_ops.cast(t, dtype)
        for t in (self._lr_t, self._beta1_t, self._beta2_t, self._epsilon_t)
    ]

  def _apply_dense(self, grad, var):
    dtype = var.dtype.base_dtype
    update = training_ops.apply_adam(
        var, self.get_slot(var, "m"), self.get_slot(var, "v"),
        *(self._powers(var) + self._numbers(dtype)), grad=grad,
        use_locking=self._use_locking)
    return self._multiply_powers(var, update.op)

  def _resource_apply_dense(self, grad, var):
    dtype = var.dtype.base_dtype
    update = training_ops.resource_apply_adam(
        var.handle, self.get_slot(var, "m").handle, self.get_slot(var, "v").handle,
        *(self._powers(var) + self._numbers(dtype)), grad=grad,
        use_locking=self._use_locking)
    return self._multiply_powers(var, update)

  def _apply_sparse(self, grad, var):
    return self._resource_apply_sparse(grad.values, var, grad.indices)

  def _resource_apply_sparse(self, grad, var, indices):
    lr, beta1, beta2, epsilon = self._numbers(var.dtype.base_dtype)
    beta1_power, beta2_power = self._powers(var)
    m, v = self.get_slot(var, "m"), self.get_slot(var, "v")

    def rms_prop(rows):
      w, v_rows = rows
      v_rows = v_rows * beta2 + grad * grad * (1 - beta2)
      return [w - lr * grad / (math_ops.sqrt(v_rows) + epsilon), v_rows]

    def adam(rows):
      w, m_rows, v_rows = rows
      step_size = lr * math_ops.sqrt(1 - beta2_power) / (1 - beta1_power)
      m_rows = m_rows * beta1 + grad * (1 - beta1)
      v_rows = v_rows * beta2 + grad * grad * (1 - beta2)
      return [
          w - step_size * m_rows / (math_ops.sqrt(v_rows) + epsilon), m_rows,
          v_rows
      ]

    if self._apply_sparse_rmsprop:
      update = rows_of_dense.update_rows([var, v], indices, rms_prop)
    else:
      update = rows_of_dense.update_rows([var, m, v], indices, adam)
    return self._multiply_powers(var, update)


def _hyper(opt, var, unused_kwargs):
  """Returns the row rule's hyperparameters, in its order."""
  # pylint: disable=protected-access
  return (opt._numbers(var.dtype.base_dtype) + opt._powers(var) +
          [1.0 if opt._apply_sparse_rmsprop else 0.0])


def register():
  """Registers the fused rule for embedding variables."""
  registry.register(
      AdamAsyncOptimizer, "AdamAsync",
      lambda opt, var: [opt.get_slot(var, "m"), opt.get_slot(var, "v")], _hyper,
      finish=lambda opt, var, op: opt._multiply_powers(var, op))  # pylint: disable=protected-access
