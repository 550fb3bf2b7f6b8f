# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Micro batches: one training step sums the gradients of several batches.

  optimizer = tf.train.AdagradOptimizer(0.1)
  pairs = optimizer.compute_gradients(loss)
  train_op = optimizer.apply_gradients(micro_batch.add_up(pairs, 4))

A step takes four batches from the iterator, in order, and applies the sum of their
gradients once. Placeholders are shared: all batches of a step have the value that is fed.
As in DeepRec, gradients are summed, not averaged: with a loss that is a mean they are
four times as large. The tensor `loss` is that of the first batch, and so are metrics and
what `tf.GraphKeys.UPDATE_OPS` has, such as moving averages.
"""

import collections

from embedding_variable.deeprec import graph_copy
from embedding_variable.deeprec import graph_lists
from embedding_variable.integration import patching
from embedding_variable.tf_names import array_ops
from embedding_variable.tf_names import control_flow_ops
from embedding_variable.tf_names import math_ops
from embedding_variable.tf_names import ops
from embedding_variable.tf_names import optimizer as optimizer_lib
from embedding_variable.variables import number_checks

# One call of `Optimizer.apply_gradients`.
#   outer: set of the ops that the caller's control dependencies name.
#   result: Operation that the call returned, or that makes its tensor.
_Call = collections.namedtuple("_Call", ["optimizer", "pairs", "name", "outer", "result"])


def add_up(grads_and_vars, num_micro_batches):
  """Returns pairs whose gradients are sums over several batches.

  The ops between the input and the gradients are copied; the copies take batches of
  their own and share variables.

  Args:
    grads_and_vars: list of (gradient, variable); a gradient is a Tensor, an
      IndexedSlices or None.
    num_micro_batches: int >= 1, batches of a step.

  Returns:
    A list of the same pairs in the same order. A sum of IndexedSlices is their
      concatenation.

  Raises:
    ValueError: `num_micro_batches` is below 1.
    NotImplementedError: a gradient depends on an op that cannot be copied, or no op that
      delivers batches is behind the gradients, so all micro batches would be one batch.
  """
  if not number_checks.is_int(num_micro_batches, 1):
    raise ValueError("add_up: num_micro_batches: expected an integer of at least 1, got %r" %
                     (num_micro_batches,))
  pairs = list(grads_and_vars)
  gradients = [g for g, _ in pairs if g is not None]
  if num_micro_batches == 1 or not gradients:
    return pairs
  tensors = [t for g in gradients for t in _tensors(g)]
  copied = graph_copy.batch_ops(tensors)
  _check_batches(pairs, tensors, copied)
  batches = [tensors] + graph_copy.copies(tensors, copied, num_micro_batches - 1)
  sums, at = [], 0
  with ops.name_scope("sum_of_micro_batches"):
    for gradient in gradients:
      count = len(_tensors(gradient))
      sums.append(_sum(gradient, [b[at:at + count] for b in batches]))
      at += count
  sums = iter(sums)
  return [(None if g is None else next(sums), v) for g, v in pairs]


def _check_batches(pairs, tensors, copied):
  """Raises if a sum would have the gradient of one batch several times."""
  if not copied:
    fed = graph_copy.inputs_not_copied(tensors, with_calls=True)
    raise NotImplementedError(
        "micro batches: expected an iterator, a queue or another op that delivers batches "
        "behind the gradients of '%s', got %s; read the batches with tf.data, or use "
        "micro_batch_num=0" % ([v.name for g, v in pairs if g is not None][0],
                               _named(fed)))
  for gradient, variable in pairs:
    parts = [] if gradient is None else _tensors(gradient)
    if not any(t.op in copied for t in parts):
      fed = graph_copy.inputs_not_copied(parts)
      if fed:
        raise NotImplementedError(
            "micro batches: the gradient of '%s' depends on %s and on no op that delivers "
            "batches, so each micro batch would add the same gradient; read its input "
            "with tf.data, or use micro_batch_num=0" % (variable.name, _named(fed)))


def _named(inputs):
  """Returns text with the names and types of ops."""
  return ", ".join("'%s' (%s)" % (op.name, op.type)
                   for op in inputs[:3]) or "constants and variables only"


def _tensors(gradient):
  """Returns the list of tensors of a gradient."""
  if isinstance(gradient, ops.IndexedSlices):
    return [t for t in (gradient.values, gradient.indices, gradient.dense_shape)
            if t is not None]
  return [gradient]


def _sum(gradient, parts):
  """Returns the sum of a gradient's `parts`, a list of tensors for each batch."""
  if not isinstance(gradient, ops.IndexedSlices):
    with ops.colocate_with(gradient.op, ignore_existing=True):
      return math_ops.add_n([p[0] for p in parts])
  # A shape that is computed from the batch is the variable's, the same for all.
  return ops.IndexedSlices(array_ops.concat([p[0] for p in parts], 0),
                           array_ops.concat([p[1] for p in parts], 0),
                           gradient.dense_shape)


def record_all_optimizers():
  """Makes `tf.train` optimizers record their calls, for `apply_recorded`."""
  patching.wrap(optimizer_lib.Optimizer, "apply_gradients", _apply_gradients,
                layer="_micro_batch")


def _apply_gradients(stock):

  def apply_gradients(self, grads_and_vars, global_step=None, name=None):
    pairs = list(grads_and_vars)
    graph = ops.get_default_graph()
    is_outermost = not getattr(graph, "_embedding_variable_applies", False)
    outer = set(graph._control_dependencies_for_inputs([]))  # pylint: disable=protected-access
    graph._embedding_variable_applies = True  # pylint: disable=protected-access
    try:
      result = stock(self, pairs, global_step, name)
    finally:
      if is_outermost:
        graph._embedding_variable_applies = False  # pylint: disable=protected-access
    if is_outermost:
      graph_lists.of(graph, graph_lists.APPLY_CALLS).append(_Call(
          self, pairs, name, outer,
          result if isinstance(result, ops.Operation) else result.op))
    return result

  return apply_gradients


def apply_recorded(graph, num_micro_batches):
  """Makes each training op of a graph a step of several batches, once.

  Call it before the graph is finalized. The training ops that scripts hold stay the
  same.

  Args:
    graph: Graph whose optimizers were recorded.
    num_micro_batches: int; 1 changes nothing.
  """
  calls = graph_lists.of(graph, graph_lists.APPLY_CALLS)
  if num_micro_batches == 1 or not calls:
    return
  pending = list(calls)
  del calls[:]
  pairs = [p for call in pending for p in call.pairs]
  with graph.as_default():
    summed = iter(add_up(pairs, num_micro_batches))
    for call in pending:
      own = [next(summed) for _ in call.pairs]
      graph._embedding_variable_applies = True  # pylint: disable=protected-access
      try:
        applied = call.optimizer.apply_gradients(own, name=call.name)
      finally:
        graph._embedding_variable_applies = False  # pylint: disable=protected-access
      _redirect(call, control_flow_ops.group(applied))


def _redirect(call, applied):
  """Makes the result of a call depend on `applied` in place of its own updates.

  If the result increments the global step, the constant 1 waits for the updates, and the
  increment for the constant.
  """
  waiting = [op for op in [call.result] + [t.op for t in call.result.inputs]
             if any(c not in call.outer for c in op.control_inputs)]
  if not waiting:
    raise ValueError("micro batches: training op '%s' has no updates" % call.result.name)
  for op in waiting:
    kept = [c for c in op.control_inputs if c in call.outer]
    # pylint: disable=protected-access
    op._remove_all_control_inputs()
    op._add_control_inputs(kept + [applied])
