# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Patch: loss scaling of tables' gradients.

Why: stock loss scale optimizers, and the dynamic loss scale, multiply gradients and
check them for NaN and Inf as dense tensors, which a table's gradient cannot become.
Both now use the gradient's values. There are three such optimizers: that of
`tf.train.experimental.enable_mixed_precision_graph_rewrite`, Keras's, and contrib's.

For a table that is spread over ranks, a rank has only its own rows of the gradient. All
ranks must skip a step or none, so values that are not finite are counted over ranks.
"""

from tensorflow.python.framework import dtypes
from tensorflow.python.ops import math_ops
from tensorflow.python.training.experimental import loss_scale

from embedding_variable import tf_names
from embedding_variable.integration import patching
from embedding_variable.ops import spread_gradients
from embedding_variable.ops import table_gradients
from embedding_variable.tf_names import array_ops
from embedding_variable.tf_names import ops

# pylint: disable=protected-access


def install():
  """Replaces the functions that scale gradients, and those that check them."""
  patching.wrap(loss_scale, "_is_all_finite", _is_all_finite)
  for module in tf_names.keras_modules(
      "mixed_precision.experimental.loss_scale_optimizer",
      "mixed_precision.loss_scale_optimizer"):
    patching.wrap(module.LossScaleOptimizer, "get_unscaled_gradients",
                  _get_unscaled_gradients)
    # 2.x has a copy of the function.
    if hasattr(module, "_is_all_finite"):
      patching.wrap(module, "_is_all_finite", _is_all_finite)
  patching.after_import("tensorflow.contrib.mixed_precision", _patch_contrib)


def _patch_contrib(module):
  optimizer = module.LossScaleOptimizer
  patching.wrap(optimizer, "_down_scale", _down_scale)
  patching.wrap(optimizer, "apply_gradients", _apply_gradients)


def _values(grad):
  """Returns the values of a gradient without a dense value; other gradients unchanged."""
  return grad.values if table_gradients.has_no_dense_value(grad) else grad


def _with_values(grad, values):
  """Returns the gradient with new `_values`."""
  if not table_gradients.has_no_dense_value(grad):
    return values
  return ops.IndexedSlices(values, grad.indices)


def _values_to_check(grads):
  """Returns the tensors to check for NaN and Inf in place of gradients.

  All gradients with rows on other ranks are represented by one number, the same on all
  ranks: 0, or NaN if a value on any rank is not finite.
  """
  spread = [g for g in grads if spread_gradients.sources(g)]
  values = [_values(g) for g in grads if not spread_gradients.sources(g)]
  if spread:
    count = spread_gradients.total("values that are not finite", spread, _not_finite)
    values.append(array_ops.where(count > 0., float("nan") * count, count))
  return values


def _not_finite(values):
  """Returns float64 [1]: the number of NaN and infinite values in a list of tensors."""
  counts = [math_ops.reduce_sum(math_ops.cast(
      math_ops.logical_not(math_ops.is_finite(v)), dtypes.float64)) for v in values]
  return array_ops.reshape(math_ops.add_n(counts), [1])


def _is_all_finite(stock):

  def is_all_finite(grads, *args, **kwargs):
    return stock(_values_to_check([g for g in grads if g is not None]), *args, **kwargs)

  return is_all_finite


def _get_unscaled_gradients(stock):

  def get_unscaled_gradients(self, grads, *args, **kwargs):
    grads = list(grads)
    unscaled = stock(self, [_values(g) for g in grads], *args, **kwargs)
    return [_with_values(g, values) for g, values in zip(grads, unscaled)]

  return get_unscaled_gradients


def _down_scale(stock):

  def down_scale(self, grads_vars, *args, **kwargs):
    grads_vars = list(grads_vars)
    scaled = stock(self, [(_values(g), v) for g, v in grads_vars], *args, **kwargs)
    return [(_with_values(g, values), v)
            for (g, v), (values, _) in zip(grads_vars, scaled)]

  return down_scale


class _Applies(object):
  """Proxy for an optimizer that was passed values in place of gradients."""

  def __init__(self, optimizer, grads_and_vars):
    self._optimizer = optimizer
    self._grads_and_vars = grads_and_vars

  def apply_gradients(self, unused_values_and_vars, *args, **kwargs):
    return self._optimizer.apply_gradients(self._grads_and_vars, *args, **kwargs)


def _apply_gradients(stock):

  def apply_gradients(self, grads_and_vars, *args, **kwargs):
    grads_and_vars = list(grads_and_vars)
    optimizer = self._opt
    self._opt = _Applies(optimizer, grads_and_vars)
    try:
      values = _values_to_check([g for g, _ in grads_and_vars if g is not None])
      return stock(self, [(v, None) for v in values], *args, **kwargs)
    finally:
      self._opt = optimizer

  return apply_gradients
