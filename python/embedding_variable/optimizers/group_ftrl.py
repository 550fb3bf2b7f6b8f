# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""FTRL whose l1 applies to whole rows, as for DeepRec's embedding variables."""

from embedding_variable.optimizers import rows_of_dense
from embedding_variable.optimizers import tf_train_rules
from embedding_variable.tf_names import array_ops
from embedding_variable.tf_names import ftrl
from embedding_variable.tf_names import math_ops


class GroupFtrlOptimizer(ftrl.FtrlOptimizer):
  """FTRL-proximal with group lasso: l1 makes a whole row zero, or none of it.

  `tf.train.FtrlOptimizer` compares each number of a row with l1, in tables as in dense
  variables. This optimizer compares the row's length. It takes only sparse gradients in
  this way; for a gradient g of a row w, with its slots n ("accum") and z ("linear"):

    gs = g + 2 * l2_shrinkage * w
    n' = n + g^2
    z  = z + gs - (n'^-power - n^-power) / learning_rate * w
    w  = 0                                                       where |z| <= l1
    w  = (l1 / |z| - 1) * z / (n'^-power / learning_rate + 2 * l2)      elsewhere

  where |z| is the Euclidean length of the row's z. Dense gradients are applied as in
  `tf.train.FtrlOptimizer`. Arguments and slots are those of that class too. Embedding
  variables are updated through generic.py.
  """

  def _apply_sparse(self, grad, var):
    return self._resource_apply_sparse(grad.values, var, grad.indices)

  def _resource_apply_sparse(self, grad, var, indices):
    dtype = var.dtype.base_dtype
    lr, l1, l2, power = [
        math_ops.cast(t, dtype)
        for t in (self._learning_rate_tensor, self._l1_regularization_strength_tensor,
                  tf_train_rules.ftrl_l2(self),
                  self._learning_rate_power_tensor)
    ]
    # The stock optimizer ignores a shrinkage that is not positive.
    shrinkage = 0.0
    if self._l2_shrinkage_regularization_strength > 0.0:
      shrinkage = math_ops.cast(self._l2_shrinkage_regularization_strength_tensor,
                                dtype)

    def update(rows):
      w, n, z = rows
      new_n = n + grad * grad
      root = math_ops.pow(new_n, -power)
      z = z + (grad + 2 * shrinkage * w) - (root - math_ops.pow(n, -power)) / lr * w
      axes = list(range(1, grad.shape.ndims))
      length = math_ops.sqrt(
          math_ops.reduce_sum(z * z, axis=axes, keepdims=True))
      kept = (math_ops.div_no_nan(l1, length) - 1) * z / (root / lr + 2 * l2)
      w = array_ops.where_v2(length > l1, kept, array_ops.zeros_like(kept))
      return [w, new_n, z]

    return rows_of_dense.update_rows(
        [var, self.get_slot(var, "accum"), self.get_slot(var, "linear")], indices,
        update)
