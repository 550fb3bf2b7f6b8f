# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""`RowWiseAdagradOptimizer`: Adagrad with one accumulator per row."""

from embedding_variable.optimizers import registry
from embedding_variable.optimizers import rows_of_dense
from embedding_variable.optimizers import slot_view
from embedding_variable.tf_names import init_ops
from embedding_variable.tf_names import math_ops
from embedding_variable.tf_names import ops
from embedding_variable.tf_names import optimizer


class RowWiseAdagradOptimizer(optimizer.Optimizer):
  """Adagrad with one accumulator per row, known as exact row-wise Adagrad.

  For a gradient g of a row w of dim numbers, with accumulator a:

    a = a + sum(g^2) / dim
    w = w - learning_rate / (sqrt(a) + epsilon) * g

  The slot of a table takes 1 / dim of the memory of `AdagradOptimizer`'s. The model
  learns differently, so tune the learning rate. A row of a dense variable is its last
  axis.
  """

  def __init__(self,
               learning_rate,
               initial_accumulator_value=0.1,
               epsilon=1e-8,
               use_locking=False,
               name="RowWiseAdagrad"):
    """Constructs the optimizer.

    Args:
      learning_rate: float, tensor, or function without arguments.
      initial_accumulator_value: float >= 0.
      epsilon: float >= 0, added to the square root. With 0, an accumulator of 0 and a
        gradient of zeros give NaN.
      use_locking: accepted for compatibility.
      name: name of the ops, and of the slot.

    Raises:
      ValueError: a number out of its range.
    """
    for what, value in (("initial_accumulator_value", initial_accumulator_value),
                        ("epsilon", epsilon)):
      if not value >= 0.0:
        raise ValueError("RowWiseAdagradOptimizer: %s: expected at least 0, got %s" %
                         (what, value))
    super(RowWiseAdagradOptimizer, self).__init__(use_locking, name)
    self._learning_rate = learning_rate
    self._initial_accumulator_value = float(initial_accumulator_value)
    self._epsilon = float(epsilon)
    self._learning_rate_tensor = None

  def _create_slots(self, var_list):
    for var in var_list:
      dtype = var.dtype.base_dtype
      initializer = init_ops.constant_initializer(self._initial_accumulator_value,
                                                  dtype=dtype)
      shape = var.get_shape()
      if shape.ndims:
        shape = shape[:-1].concatenate([1])
      with slot_view.per_row_slots():
        self._get_or_make_slot_with_initializer(var, initializer, shape, dtype,
                                                "accumulator", self._name)

  def _prepare(self):
    self._learning_rate_tensor = ops.convert_to_tensor(
        self._call_if_callable(self._learning_rate), name="learning_rate")

  def _update(self, grad, dtype):
    """Returns the function of (w, a) that applies `grad`."""
    lr = math_ops.cast(self._learning_rate_tensor, dtype)
    squares = grad * grad
    if grad.shape.ndims != 0:
      squares = math_ops.reduce_mean(squares, axis=-1, keepdims=True)

    def update(values):
      w, a = values
      a += squares
      return [w - lr / (math_ops.sqrt(a) + self._epsilon) * grad, a]

    return update

  def _apply_dense(self, grad, var):
    return rows_of_dense.update_all([var, self.get_slot(var, "accumulator")],
                                    self._update(grad, var.dtype.base_dtype))

  def _resource_apply_dense(self, grad, var):
    return self._apply_dense(grad, var)

  def _apply_sparse(self, grad, var):
    return self._resource_apply_sparse(grad.values, var, grad.indices)

  def _resource_apply_sparse(self, grad, var, indices):
    return rows_of_dense.update_rows([var, self.get_slot(var, "accumulator")], indices,
                                     self._update(grad, var.dtype.base_dtype))


def register():
  """Registers the fused rule for embedding variables."""
  # pylint: disable=protected-access
  registry.register(
      RowWiseAdagradOptimizer, "RowWiseAdagrad",
      lambda opt, var: [opt.get_slot(var, "accumulator")],
      lambda opt, unused_var, unused_kwargs: [opt._learning_rate_tensor, opt._epsilon])
