# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Fused updates: one op reads, updates and writes the rows of many tables."""

from embedding_variable.ops import apply_ops
from embedding_variable.ops import lookup_sparse_ops
from embedding_variable.ops import pack_ops
from embedding_variable.optimizers import apply_scope
from embedding_variable.optimizers import occurrences
from embedding_variable.tf_names import dtypes
from embedding_variable.tf_names import math_ops
from embedding_variable.tf_names import ops
from embedding_variable.variables import storages
from embedding_variable.variables import variable as ev


def update(optimizer, rule, grad, var, **kwargs):
  """Returns the op that updates `var` and the other tables of the same lookup.

  Args:
    optimizer: the optimizer; its slots exist and it is prepared.
    rule: its `FusedRule`.
    grad: IndexedSlices.
    var: the embedding variable.
    **kwargs: arguments of a Keras update (`apply_state`).
  """
  scope = apply_scope.current(optimizer)
  made = scope.cache.setdefault("fused", {})
  if var in made:
    return made[var]
  group, plan = _group(scope, grad, var)
  if rule.finish is not None:
    group = group[:1]
  slots = [rule.slots(optimizer, v) for _, v, _ in group]
  # A rule that does not need the global step must not create it: in a function it cannot.
  step = scope.step() if rule.step is None else rule.step(optimizer, scope.step)
  step = var.version_of_update(step)
  sums, factor = _sums(group, plan)
  pooled = _pooled_grads(sums)
  counts = None
  if plan is None and var.need_counts():
    found = occurrences.of(grad)
    counts = None if found is None else [found]
  rule_name = rule.rule_of(optimizer)
  handles = [v.handle for _, v, _ in group]
  hyper = pack_ops.scalars_to_device(rule.hyper(optimizer, var, kwargs), dtypes.float32,
                                     var.device, scope.made)
  step, = pack_ops.scalars_to_device([step], dtypes.int64, var.device, scope.made)
  slot_names = [[s.column for s in views] for views in slots]
  slot_inits = [[s.initial for s in views] for views in slots]
  plan_tables = None if plan is None else [t for _, _, t in group]
  # One op for all tables, or none: each such op sums all tables' gradients.
  at_source = None if rule.finish is not None else sums and lookup_sparse_ops.update_of(sums)
  op = at_source and at_source(rule_name, handles, hyper + factor, step, slot_names,
                               slot_inits, plan_tables)
  if op is not None:
    made.update((v, op) for _, v, _ in group)
    return op
  if pooled is not None:
    op = apply_ops.apply_pooled(rule_name, handles, pooled, hyper + factor, step,
                                slot_names, slot_inits, plan, plan_tables)
  else:
    op = apply_ops.apply(
        rule_name,
        handles,
        [math_ops.cast(g.indices, dtypes.int64) for g, _, _ in group],
        [g.values for g, _, _ in group],
        hyper,
        step,
        slot_names,
        slot_inits,
        plan=plan,
        plan_tables=plan_tables,
        counts=counts)
  if rule.finish is not None:
    op = rule.finish(optimizer, var, op)
  for _, v, _ in group:
    made[v] = op
  return op


def _sums(group, plan):
  """Returns the gradients that an update may take from the lookup itself, and a factor.

  Rows must be where a device may sum their gradients.

  Returns:
    (gradients, factor): IndexedSlices of a group, or None; and a list of the scalar by
      which the update multiplies them, or of nothing.
  """
  if plan is None or not all(storages.of_variable(v).may_use_gpu for _, v, _ in group):
    return None, []
  found = [lookup_sparse_ops.without_factor(g) for g, _, _ in group]
  factor = found[0][1]
  if factor is None or any(other is not factor for _, other in found):
    return [g for g, _, _ in group], []
  return [g for g, _ in found], [factor]


def _pooled_grads(sums):
  """Returns the gradients of the lookup's outputs if nothing changed the sums, or None."""
  pooled = [lookup_sparse_ops.pooled_grad_of(g) for g in sums or []]
  return None if not pooled or any(p is None for p in pooled) else pooled


def _group(scope, grad, var):
  """Finds the variables whose gradients come from the same lookup as `grad`.

  Returns:
    (group, plan): a list of (gradient, variable, table in the plan), and the plan. If
      the gradient's keys do not come directly from a fused lookup: only `var`, and
      None.
  """
  found = lookup_sparse_ops.plan_of(grad)
  if found is None:
    return [(grad, var, None)], None
  plan, table = found
  group = [(grad, var, table)]
  seen = {var}
  for other_grad, other in scope.pairs:
    if (not isinstance(other_grad, ops.IndexedSlices) or
        not ev.is_embedding_variable(other) or other in seen):
      continue
    found = lookup_sparse_ops.plan_of(other_grad)
    # A plan and the op that uses it must be on one device.
    if found is None or found[0] is not plan or other.device != var.device:
      continue
    if other.versions_are_times != var.versions_are_times:
      continue  # one op gives all its rows the same version
    seen.add(other)
    group.append((other_grad, other, found[1]))
  return group, plan
