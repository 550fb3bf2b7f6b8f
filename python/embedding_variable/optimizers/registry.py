# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Maps optimizer classes to fused row rules."""

import functools

# Words in the names of methods that apply sparse gradients: `_resource_apply_sparse`,
# Adam's `_apply_sparse_shared`, Keras's `_resource_scatter_add`. An optimizer that
# overrides any of them runs its own code, through generic.py.
_SPARSE = ("sparse", "scatter")

_rules = {}


class FusedRule(object):
  """How to run one optimizer class as a row rule of the engine.

  Args:
    slots: function (optimizer, variable) -> list of `SlotView` in the rule's order.
    hyper: function (optimizer, variable, kwargs) -> list of float scalars in the rule's
      order; kwargs are those of a Keras update (`apply_state`), {} otherwise.
    rule: the rule's name, or a function (optimizer) -> name, or None if this optimizer
      must use generic.py.
    finish: None, or a function (optimizer, variable, update op) -> op, for state that
      the optimizer keeps per variable. Such variables are not updated together.
    step: None for the global step before its increment, or a function (optimizer,
      function that returns that step) -> the version that rows get.
  """

  def __init__(self, rule, slots, hyper, finish=None, step=None):
    self._rule = rule
    self.slots = slots
    self.hyper = hyper
    self.finish = finish
    self.step = step

  def rule_of(self, optimizer):
    return self._rule(optimizer) if callable(self._rule) else self._rule


def register(optimizer_class, rule, slots, hyper, **kwargs):
  """Registers `optimizer_class` and those of its subclasses that do not override
  updates.

  The arguments are those of `FusedRule`.
  """
  _rules[optimizer_class] = FusedRule(rule, slots, hyper, **kwargs)


@functools.lru_cache(maxsize=None)
def _sparse_methods(cls):
  """Returns the names of a registered class's methods that apply sparse gradients."""
  return [m for m in dir(cls) if any(part in m for part in _SPARSE)]


def find(optimizer):
  """Returns the `FusedRule` with the same results as the optimizer, or None.

  Args:
    optimizer: a `tf.train.Optimizer` or a Keras `OptimizerV2`.
  """
  cls = type(optimizer)
  for base in cls.__mro__:
    rule = _rules.get(base)
    if rule is None:
      continue
    for method in _sparse_methods(base):
      # Compares functions, so a method overridden in between is detected.
      if getattr(cls, method, None) is not getattr(base, method, None):
        return None
      if method in getattr(optimizer, "__dict__", {}):
        return None
    return rule if rule.rule_of(optimizer) else None
  return None


def describe(optimizer):
  """Returns a string that differs if two optimizers update rows differently.

  It is the class and the fused rule, "RMSPropOptimizer/rmsprop_centered", without the
  hyperparameters, which may be tensors.
  """
  rule = find(optimizer)
  own = rule.rule_of(optimizer) if rule is not None else None
  return type(optimizer).__name__ + ("/" + own if own else "")
