# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Patch: gradients of embedding variables in `tf.train.SyncReplicasOptimizer`.

Why: its accumulators merge the indices of the workers as sorted lists without
duplicates, and divide entries found in several lists by their number. With unsorted
lists they sometimes treat equal keys as different, depending on which worker comes
first; such a key then gets the sum instead of the mean.
"""

from tensorflow.python.framework import dtypes
from tensorflow.python.ops import bitwise_ops
from tensorflow.python.ops import math_ops
from tensorflow.python.ops import sort_ops
from tensorflow.python.training import sync_replicas_optimizer

from embedding_variable.integration import patching
from embedding_variable.ops import row_ops
from embedding_variable.tf_names import array_ops
from embedding_variable.tf_names import ops
from embedding_variable.variables import variable as ev


def install():
  """Wraps `SyncReplicasOptimizer.apply_gradients`."""
  patching.wrap(sync_replicas_optimizer.SyncReplicasOptimizer, "apply_gradients",
                _apply_gradients)


def _in_order(grad, var):
  """Returns the gradient with each key once, in ascending order."""
  with ops.name_scope("in_order"), ops.colocate_with(var, ignore_existing=True):
    indices = math_ops.cast(grad.indices, dtypes.int64)
    keys, inverse, _ = row_ops.unique(indices)
    values = math_ops.unsorted_segment_sum(grad.values, inverse, array_ops.size(keys))
    # Inverts the bits to sort ascending: negating the smallest key would overflow.
    order = sort_ops.argsort(bitwise_ops.invert(keys), direction="DESCENDING")
    values.set_shape([None, var.dim])
    return ops.IndexedSlices(array_ops.gather(values, order),
                             array_ops.gather(keys, order))


def _apply_gradients(stock):

  def apply_gradients(self, grads_and_vars, *args, **kwargs):
    pairs = [
        (_in_order(grad, var), var) if ev.is_embedding_variable(var) and
        isinstance(grad, ops.IndexedSlices) else (grad, var)
        for grad, var in grads_and_vars
    ]
    return stock(self, pairs, *args, **kwargs)

  return apply_gradients
