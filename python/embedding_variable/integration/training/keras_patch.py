# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Patch: updates of embedding variables by `tf.keras.optimizers`.

Why: subclasses override `_resource_apply_sparse_duplicate_indices`, so it cannot be
patched on the base class; but all updates go through the base class's
`_distributed_apply`. During that call the optimizer object gets its own method with
that name, which handles embedding variables and passes the rest on. Slots come from
`add_slot`.
"""

import contextlib

from embedding_variable import tf_names
from embedding_variable.integration import patching
from embedding_variable.ops import handle_ops
from embedding_variable.ops import spread_gradients
from embedding_variable.optimizers import apply_scope
from embedding_variable.optimizers import fused
from embedding_variable.optimizers import generic
from embedding_variable.optimizers import registry
from embedding_variable.optimizers import slot_view
from embedding_variable.tf_names import keras_initializers
from embedding_variable.tf_names import ops
from embedding_variable.variables import strategies
from embedding_variable.variables import variable as ev

_METHOD = "_resource_apply_sparse_duplicate_indices"

# pylint: disable=protected-access


def install():
  """Replaces `OptimizerV2.add_slot`, `apply_gradients` and `_distributed_apply`."""
  for optimizer_v2 in tf_names.keras_optimizers("optimizer_v2"):
    patching.wrap(optimizer_v2.OptimizerV2, "add_slot", _add_slot)
    patching.wrap(optimizer_v2.OptimizerV2, "apply_gradients", _apply_gradients)
    patching.wrap(optimizer_v2.OptimizerV2, "_distributed_apply",
                  _distributed_apply)


def _add_slot(stock):

  def add_slot(self, var, slot_name, initializer="zeros", *args, **kwargs):
    if not ev.is_embedding_variable(var):
      return stock(self, var, slot_name, initializer, *args, **kwargs)
    if slot_name not in self._slot_names:
      self._slot_names.append(slot_name)
    slots = self._slots.setdefault(var._unique_id, {})
    if slot_name not in slots:
      if isinstance(initializer, str):
        initializer = keras_initializers.get(initializer)
      initial = slot_view.constant_of(var, initializer, slot_name)
      # Stock Keras names slot variables <variable>/<slot>. Two optimizers on one
      # variable must not share a column, so a number is added.
      slots[slot_name] = slot_view.create(var, slot_name, initial)
    return slots[slot_name]

  return add_slot


@contextlib.contextmanager
def _own_method(optimizer, method):
  """Context in which the optimizer object has its own method."""
  # object.__setattr__, because OptimizerV2's own checks hyperparameters first.
  object.__setattr__(optimizer, _METHOD, method)
  try:
    yield
  finally:
    object.__delattr__(optimizer, _METHOD)


def _apply_gradients(stock):

  def apply_gradients(self, grads_and_vars, *args, **kwargs):
    grads_and_vars = list(grads_and_vars)
    # Before Keras 2.x sums the gradients of replicas, which a table's have no shape for.
    for _, var in grads_and_vars:
      if ev.is_embedding_variable(var):
        strategies.check_update(var)
    return stock(self, grads_and_vars, *args, **kwargs)

  return apply_gradients


def _distributed_apply(stock):

  def distributed_apply(self, distribution, grads_and_vars, *args, **kwargs):
    grads_and_vars = list(grads_and_vars)
    with_rows = [v for _, v in grads_and_vars if ev.is_embedding_variable(v)]
    if not with_rows:
      return stock(self, distribution, grads_and_vars, *args, **kwargs)
    for grad, var in grads_and_vars:
      if ev.is_embedding_variable(var) and not isinstance(grad, ops.IndexedSlices):
        raise TypeError(
            "embedding variable '%s': its gradient: expected an IndexedSlices as "
            "tf.gradients gives it, got %s" % (var.op.name, grad))
    # Find the rule before the method is shadowed.
    rule = registry.find(self)
    own = getattr(self, _METHOD)

    def method(grad, var, indices, **apply_kwargs):
      if not ev.is_embedding_variable(var):
        return own(grad, var, indices, **apply_kwargs)
      slices = ops.IndexedSlices(grad, indices)
      if rule is not None:
        return fused.update(self, rule, slices, var, **apply_kwargs)

      def run(row_grad, variable, rows):
        return own(row_grad, variable, rows, **apply_kwargs)

      return generic.update(self, slices, var, run)

    with apply_scope.enter(self, grads_and_vars), _own_method(self, method):
      train = stock(self, distribution, grads_and_vars, *args, **kwargs)
    spread_gradients.train_by(train, [g for g, _ in grads_and_vars])
    for var in with_rows:
      handle_ops.set_optimizer(var.handle, registry.describe(self))
    return train

  return distributed_apply
