# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""DeepRec's `AdagradDecayOptimizer`: Adagrad whose accumulator decays."""

from embedding_variable.optimizers import registry
from embedding_variable.optimizers import rows_of_dense
from embedding_variable.tf_names import array_ops
from embedding_variable.tf_names import dtypes
from embedding_variable.tf_names import init_ops
from embedding_variable.tf_names import math_ops
from embedding_variable.tf_names import ops
from embedding_variable.tf_names import optimizer


class AdagradDecayOptimizer(optimizer.Optimizer):
  """Adagrad for continuous training.

  For a gradient g of an element w with accumulator a, in step s (counted from 1):

    for each multiple of accumulator_decay_step up to s that has not yet been applied
    to a: a = max(a * accumulator_decay_rate, initial value)
    a = a + g^2
    w = w - learning_rate * g / sqrt(a)

  An element that had no gradient for several periods applies all of them with its next
  gradient.
  """

  def __init__(self,
               learning_rate,
               global_step,
               initial_accumulator_value=0.1,
               accumulator_decay_step=100000,
               accumulator_decay_rate=0.9,
               use_locking=False,
               name="AdagradDecay"):
    """Constructs the optimizer.

    Args:
      learning_rate: float, tensor, or function without arguments.
      global_step: integer variable, the step before its increment.
      initial_accumulator_value: float > 0.
      accumulator_decay_step: int >= 1, steps between two decays.
      accumulator_decay_rate: float in (0, 1].
      use_locking: accepted for compatibility.
      name: name of the ops, and of the slots.

    Raises:
      ValueError: a number out of its range, or no global step.
    """
    if initial_accumulator_value <= 0.0:
      raise ValueError("initial_accumulator_value: expected a positive number, got %s" %
                       initial_accumulator_value)
    if global_step is None:
      raise ValueError("AdagradDecayOptimizer needs a global_step")
    if accumulator_decay_step < 1:
      raise ValueError("accumulator_decay_step: expected at least 1, got %s" %
                       accumulator_decay_step)
    if not 0.0 < accumulator_decay_rate <= 1.0:
      raise ValueError("accumulator_decay_rate: expected a number in (0, 1], got %s" %
                       accumulator_decay_rate)
    super(AdagradDecayOptimizer, self).__init__(use_locking, name)
    self._learning_rate = learning_rate
    self._initial_accumulator_value = initial_accumulator_value
    self._global_step = global_step
    self._accumulator_decay_step = accumulator_decay_step
    self._accumulator_decay_rate = accumulator_decay_rate
    self._learning_rate_tensor = None
    self._periods = None

  def _create_slots(self, var_list):
    for var in var_list:
      dtype = var.dtype.base_dtype
      self._get_or_make_slot_with_initializer(
          var, init_ops.constant_initializer(self._initial_accumulator_value,
                                             dtype=dtype), var.get_shape(), dtype,
          "accumulator", self._name)
      self._zeros_slot(var, "accumulator_decay_power", self._name)

  def _prepare(self):
    self._learning_rate_tensor = ops.convert_to_tensor(
        self._call_if_callable(self._learning_rate), name="learning_rate")
    # Integers, because floats represent steps only up to 2^24 exactly.
    step = math_ops.cast(self._global_step, dtypes.int64) + 1
    self._periods = math_ops.cast(
        math_ops.floordiv(step, int(self._accumulator_decay_step)), dtypes.float32)

  def _update(self, grad, dtype):
    """Returns the function of (w, a, decay power) that applies `grad`."""
    lr = math_ops.cast(self._learning_rate_tensor, dtype)
    periods = math_ops.cast(self._periods, dtype)

    def update(values):
      w, a, power = values
      due = math_ops.maximum(periods - power, 0)
      decayed = math_ops.maximum(
          a * math_ops.pow(math_ops.cast(self._accumulator_decay_rate, dtype), due),
          math_ops.cast(self._initial_accumulator_value, dtype))
      a = array_ops.where_v2(due > 0, decayed, a) + grad * grad
      return [w - lr * grad / math_ops.sqrt(a), a, math_ops.maximum(power, periods)]

    return update

  def _slots_of(self, var):
    return [
        self.get_slot(var, "accumulator"),
        self.get_slot(var, "accumulator_decay_power")
    ]

  def _apply_dense(self, grad, var):
    return rows_of_dense.update_all([var] + self._slots_of(var),
                                    self._update(grad, var.dtype.base_dtype))

  def _resource_apply_dense(self, grad, var):
    return self._apply_dense(grad, var)

  def _apply_sparse(self, grad, var):
    return self._resource_apply_sparse(grad.values, var, grad.indices)

  def _resource_apply_sparse(self, grad, var, indices):
    return rows_of_dense.update_rows([var] + self._slots_of(var), indices,
                                     self._update(grad, var.dtype.base_dtype))


class AdagradDecayOptimizerV2(AdagradDecayOptimizer):
  """`AdagradDecayOptimizer` under DeepRec's second name.

  DeepRec's two classes differ in the width of the slot for the decay; the updates are
  the same.
  """

  def __init__(self,
               learning_rate,
               global_step,
               initial_accumulator_value=0.1,
               accumulator_decay_step=100000,
               accumulator_decay_rate=0.9,
               use_locking=False,
               name="AdagradDecayV2"):
    """Constructs the optimizer; see `AdagradDecayOptimizer`."""
    super(AdagradDecayOptimizerV2, self).__init__(
        learning_rate, global_step, initial_accumulator_value,
        accumulator_decay_step, accumulator_decay_rate, use_locking, name)


def _hyper(opt, unused_var, unused_kwargs):
  """Returns the row rule's hyperparameters. The optimizer counts periods, so the rule's
  decay step is 1.
  """
  # pylint: disable=protected-access
  return [
      opt._learning_rate_tensor, 1.0, opt._accumulator_decay_rate,
      opt._initial_accumulator_value, opt._periods
  ]


def register():
  """Registers the fused rule for embedding variables."""
  registry.register(
      AdagradDecayOptimizer, "AdagradDecay",
      lambda opt, var: opt._slots_of(var), _hyper,  # pylint: disable=protected-access
      # DeepRec counts this optimizer's steps from 1, in the rows' versions too.
      step=lambda opt, step: step() + 1)
