# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The fused optimizer update."""

from embedding_variable import _lib
from embedding_variable.ops import handle_ops
from embedding_variable.tf_names import dtypes
from embedding_variable.tf_names import math_ops
from embedding_variable.tf_names import ops

_gen = _lib.load()


def apply(rule,  # pylint: disable=redefined-builtin
          resources,
          keys,
          grads,
          hyper,
          step,
          slot_names,
          slot_inits,
          plan=None,
          plan_tables=None,
          counts=None,
          name=None):
  """Returns the op that updates rows of K tables by one optimizer rule.

  Gradients of equal keys are summed first; absent keys are inserted with their default
  row and the slots' initial values.

  Args:
    rule: string, a row rule of the engine ("Adagrad", "Adam", ...).
    resources: list of K resource scalars, all different.
    keys: list of K int64 tensors `[M_k]`.
    grads: list of K float32 tensors `[M_k, D_k]`.
    hyper: list of float scalars (tensors or numbers), in the rule's order.
    step: integer scalar, the global step before its increment; becomes the rows'
      version.
    slot_names: list of K lists of strings, one name per slot of the rule.
    slot_inits: list of K lists of floats, one per slot name.
    plan: variant scalar of the lookup that returned all of `keys`, or None.
    plan_tables: with a plan, list of K ints: the tables' numbers in it.
    counts: list of K int64 tensors `[M_k]`, how often each key occurred; None: once
      (with a plan, its counts).
    name: name of the op.

  Raises:
    ValueError: the lists differ in length.
  """
  plan_tables = list(plan_tables or ())
  lists = [("keys", keys), ("grads", grads), ("slot_names", slot_names),
           ("slot_inits", slot_inits)]
  if plan is not None:
    lists.append(("plan_tables", plan_tables))
  elif plan_tables:
    raise ValueError("apply got plan_tables without a plan")
  if counts is not None:
    lists.append(("counts", counts))
  handle_ops.check_lengths("apply to", resources, lists)
  _check_slots(slot_names, slot_inits)
  return _gen.ev_apply(
      resources,
      keys,
      grads, [math_ops.cast(h, dtypes.float32) for h in hyper],
      math_ops.cast(step, dtypes.int64), [] if plan is None else [plan],
      [] if counts is None else counts,
      rule=rule,
      slot_names=[n for names in slot_names for n in names],
      slot_inits=[float(i) for inits in slot_inits for i in inits],
      plan_tables=plan_tables,
      name=name)


def apply_pooled(rule,
                 resources,
                 grads,
                 hyper,
                 step,
                 slot_names,
                 slot_inits,
                 plan,
                 plan_tables,
                 name=None):
  """Returns the op that updates rows of K tables by the gradients of a lookup.

  Equals `lookup_sparse_grad` followed by `apply`, bit by bit. If rows are on a device,
  the gradients are summed on the device.

  Args:
    rule: as for `apply`, like hyper, step, slot_names and slot_inits.
    resources: list of K resource scalars, all different.
    grads: list of K float32 tensors `[B_k, D_k]`, gradients of the lookup's outputs.
    plan: variant scalar of the lookup.
    plan_tables: list of K ints: the tables' numbers in the plan.
    name: name of the op.

  Raises:
    ValueError: the lists differ in length.
  """
  handle_ops.check_lengths("apply_pooled to", resources, [
      ("grads", grads), ("slot_names", slot_names), ("slot_inits", slot_inits),
      ("plan_tables", plan_tables)
  ])
  _check_slots(slot_names, slot_inits)
  return _gen.ev_apply_pooled(
      resources,
      grads, [math_ops.cast(h, dtypes.float32) for h in hyper],
      math_ops.cast(step, dtypes.int64),
      plan,
      rule=rule,
      slot_names=[n for names in slot_names for n in names],
      slot_inits=[float(i) for inits in slot_inits for i in inits],
      plan_tables=list(plan_tables),
      name=name)


def _check_slots(slot_names, slot_inits):
  """Raises unless each slot has an initial value."""
  for names, inits in zip(slot_names, slot_inits):
    if len(names) != len(inits):
      raise ValueError("apply got %d slot names but %d initial values" %
                       (len(names), len(inits)))


ops.NotDifferentiable("EvApply")
ops.NotDifferentiable("EvApplyPooled")
