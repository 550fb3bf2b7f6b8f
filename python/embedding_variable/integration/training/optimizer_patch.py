# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Patch: updates of embedding variables by `tf.train` optimizers.

Why: the base class selects how a variable is updated in `_get_processor`, which handles
only dense variables. The base class looks it up as a global, so the patch reaches every
subclass that does not override `apply_gradients`. `apply_gradients` is wrapped to give
the first update the whole list of gradients. During the call the optimizer object gets
its own `_create_slots`, in which tables without rows on this rank appear to have some.
"""

import contextlib

from tensorflow.python.framework import dtypes
from tensorflow.python.training import optimizer as optimizer_lib

from embedding_variable.integration import patching
from embedding_variable.ops import handle_ops
from embedding_variable.ops import spread_gradients
from embedding_variable.optimizers import apply_scope
from embedding_variable.optimizers import fused
from embedding_variable.optimizers import generic
from embedding_variable.optimizers import registry
from embedding_variable.optimizers import slot_view
from embedding_variable.tf_names import array_ops
from embedding_variable.tf_names import ops
from embedding_variable.variables import strategies
from embedding_variable.variables import variable as ev

# pylint: disable=protected-access


def install():
  """Replaces `_get_processor` and `Optimizer.apply_gradients`."""
  patching.wrap(optimizer_lib, "_get_processor", _get_processor)
  patching.wrap(optimizer_lib.Optimizer, "apply_gradients", _apply_gradients)


def check_gradient(var, grad):
  """Raises TypeError unless `grad` has keys."""
  if not isinstance(grad, ops.IndexedSlices):
    raise TypeError(
        "embedding variable '%s': its gradient: expected an IndexedSlices as "
        "tf.gradients gives it, got %s" % (var.op.name, grad))


class _EmbeddingVariableProcessor(optimizer_lib._OptimizableVariable):
  """Defines how the base class updates an embedding variable."""

  def __init__(self, variable):
    self._variable = variable

  def target(self):
    return self._variable

  def update_op(self, optimizer, g):
    check_gradient(self._variable, g)
    rule = registry.find(optimizer)
    if rule is not None:
      return fused.update(optimizer, rule, g, self._variable)
    return generic.update(optimizer, g, self._variable, _runner(optimizer))


def _runner(optimizer):
  """Returns the function that calls the optimizer's own sparse update."""
  base = optimizer_lib.Optimizer
  cls = type(optimizer)
  has_resource_update = any(
      getattr(cls, method) is not getattr(base, method)
      for method in ("_resource_apply_sparse",
                     "_resource_apply_sparse_duplicate_indices"))
  if has_resource_update:
    return optimizer._resource_apply_sparse_duplicate_indices

  def run(grad, variable, indices):
    # A class for reference variables only; its state_ops accept this one. It may make
    # the gradient dense.
    shape = array_ops.shape(grad, out_type=dtypes.int64)
    return optimizer._apply_sparse_duplicate_indices(
        ops.IndexedSlices(grad, indices, shape), variable)

  return run


def _get_processor(stock):

  def get_processor(v, *args, **kwargs):
    if ev.is_embedding_variable(v):
      return _EmbeddingVariableProcessor(v)
    return stock(v, *args, **kwargs)

  return get_processor


@contextlib.contextmanager
def _own_create_slots(optimizer):
  """Context in which the optimizer object has its own method."""
  before = optimizer.__dict__.get("_create_slots")
  stock = optimizer._create_slots

  def create_slots(var_list):
    with slot_view.a_row_shown():
      return stock(var_list)

  optimizer._create_slots = create_slots
  try:
    yield
  finally:
    if before is None:
      del optimizer._create_slots
    else:
      optimizer._create_slots = before


def _apply_gradients(stock):

  def apply_gradients(self, grads_and_vars, *args, **kwargs):
    grads_and_vars = list(grads_and_vars)
    if not any(ev.is_embedding_variable(v) for _, v in grads_and_vars):
      return stock(self, grads_and_vars, *args, **kwargs)
    for _, var in grads_and_vars:
      if ev.is_embedding_variable(var):
        strategies.check_update(var)
        generic.check(self, var)
    with apply_scope.enter(self, grads_and_vars), _own_create_slots(self):
      train = stock(self, grads_and_vars, *args, **kwargs)
    spread_gradients.train_by(train, [g for g, _ in grads_and_vars])
    for grad, var in grads_and_vars:
      if grad is not None and ev.is_embedding_variable(var):
        handle_ops.set_optimizer(var.handle, registry.describe(self))
    return train

  return apply_gradients
