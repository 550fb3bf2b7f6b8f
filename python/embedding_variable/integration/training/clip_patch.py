# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Patch: norms of the gradients of tables that are spread over ranks.

Why: a rank has only its own rows of such a gradient. Stock functions treat them as all
rows, so the norms differ between ranks, each rank scales its gradients by a different
number, and copies of dense variables diverge. All clipping in TensorFlow goes through
`tf.global_norm`, `tf.clip_by_norm` and `tf.clip_by_average_norm`;
`tf.clip_by_global_norm` calls the first.
"""

import collections.abc as collections_abc

from tensorflow.python.framework import dtypes
from tensorflow.python.framework import tensor_util
from tensorflow.python.ops import clip_ops
from tensorflow.python.ops import gen_nn_ops
from tensorflow.python.ops import math_ops

from embedding_variable.integration import patching
from embedding_variable.ops import spread_gradients
from embedding_variable.tf_names import array_ops
from embedding_variable.tf_names import ops


def install():
  """Replaces the functions."""
  for name, make in (("global_norm", _global_norm), ("clip_by_norm", _clip_by_norm),
                     ("clip_by_average_norm", _clip_by_average_norm)):
    patching.wrap(clip_ops, name, make)


def _half_squares(values):
  """Returns float64 `[1]`: half the sum of squares, as tf.global_norm computes it."""
  halves = []
  for v in values:
    with ops.colocate_with(v):
      halves.append(math_ops.cast(gen_nn_ops.l2_loss(v), dtypes.float64))
  return array_ops.reshape(math_ops.add_n(halves), [1])


def _norm(gradients):
  """Returns the L2 norm over all ranks' rows: a scalar of the rows' type."""
  half = spread_gradients.total("half squares", gradients, _half_squares)
  return math_ops.cast(math_ops.sqrt(2. * half[0]),
                       spread_gradients.values_of(gradients[0]).dtype)


def _global_norm(stock):

  def global_norm(t_list, name=None, *args, **kwargs):
    if not isinstance(t_list, collections_abc.Sequence):
      return stock(t_list, name, *args, **kwargs)
    spread, rest = [], []
    for t in t_list:
      (spread if spread_gradients.sources(t) else rest).append(t)
    if not spread:
      return stock(t_list, name, *args, **kwargs)
    with ops.name_scope(name, "global_norm"):
      norm = _norm(spread)
    # The norm of a scalar is its absolute value.
    return stock(rest + [norm], name, *args, **kwargs)

  return global_norm


def _clip_by_norm(stock):

  def clip_by_norm(t, clip_norm, axes=None, name=None, *args, **kwargs):
    if not spread_gradients.sources(t):
      return stock(t, clip_norm, axes, name, *args, **kwargs)
    values = spread_gradients.values_of(t)
    columns = _is_of_columns(values, axes)
    if columns is None:
      # Norms of rows: every row is whole on its rank.
      return stock(t, clip_norm, axes, name, *args, **kwargs)
    with ops.name_scope(name, "clip_by_norm", [clip_norm]) as scope:
      norm = _column_norms(t) if columns else _norm([t])
      clipped = array_ops.identity(
          values * clip_norm / math_ops.maximum(norm, clip_norm), name=scope)
    if isinstance(t, ops.IndexedSlices):
      return ops.IndexedSlices(clipped, t.indices, t.dense_shape)
    return clipped

  return clip_by_norm


def _is_of_columns(values, axes):
  """Returns None for norms of rows, True for norms of columns, False for the norm."""
  if axes is None:
    return False
  constant = tensor_util.constant_value(ops.convert_to_tensor(axes))
  if constant is None:
    raise ValueError(
        "tf.clip_by_norm: '%s' is the gradient of a table that is spread over ranks; "
        "its axes: expected constants, got %s" % (values.name, axes))
  numbers = {int(a) % 2 for a in constant.reshape([-1])}
  return None if 0 not in numbers else numbers == {0}


def _column_norms(t):
  """Returns [1, D]: the norms of the columns over all ranks' rows."""

  def squares(values):
    return math_ops.cast(math_ops.reduce_sum(values[0] * values[0], 0), dtypes.float64)

  total = spread_gradients.total("squares of columns", [t], squares)
  return math_ops.cast(math_ops.sqrt(total)[None, :],
                       spread_gradients.values_of(t).dtype)


def _clip_by_average_norm(stock):

  def clip_by_average_norm(t, clip_norm, name=None, *args, **kwargs):
    if not spread_gradients.sources(t) or isinstance(t, ops.IndexedSlices):
      # TensorFlow rejects IndexedSlices.
      return stock(t, clip_norm, name, *args, **kwargs)

    def squares_and_size(values):
      return math_ops.cast(
          [math_ops.reduce_sum(values[0] * values[0]),
           math_ops.cast(array_ops.size(values[0]), values[0].dtype)], dtypes.float64)

    with ops.name_scope(name, "clip_by_average_norm", [t, clip_norm]) as scope:
      total = spread_gradients.total("squares and size", [t], squares_and_size)
      average = math_ops.cast(math_ops.sqrt(total[0]) / total[1], t.dtype)
      return array_ops.identity(
          t * clip_norm / math_ops.maximum(average, clip_norm), name=scope)

  return clip_by_average_norm
