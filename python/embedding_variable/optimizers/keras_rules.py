# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""`tf.keras.optimizers` whose formulas equal those of a fused row rule.

The following differ and are updated through generic.py: SGD with momentum (its
accumulator includes the learning rate), Adagrad (epsilon outside the root), RMSprop
without momentum (likewise), Adam with amsgrad.
"""

import numbers

from embedding_variable import tf_names
from embedding_variable.optimizers import registry

# pylint: disable=protected-access


def _coefficients(opt, var, kwargs):
  """Returns the tensors that the optimizer prepared for the variable's device."""
  key = (var.device, var.dtype.base_dtype)
  return (kwargs.get("apply_state") or {}).get(key) or opt._fallback_apply_state(
      *key)


def _hyper(*names):
  """Returns a function that picks prepared tensors by name."""

  def pick(opt, var, kwargs):
    coefficients = dict(_coefficients(opt, var, kwargs))
    # The optimizer's constant for a number is in GPU memory for a variable on a GPU,
    # and would be copied to the host in every step.
    if isinstance(getattr(opt, "epsilon", None), numbers.Number):
      coefficients["epsilon"] = opt.epsilon
    return [coefficients[name] for name in names]

  return pick


def _slots(*names):
  """Returns a function that finds the slots of these names."""
  return lambda opt, var: [opt.get_slot(var, name) for name in names]


def register():
  """Registers the rules for the optimizers of each Keras that has them."""
  names = ("gradient_descent", "adam", "adadelta", "rmsprop", "ftrl")
  for modules in zip(*[tf_names.keras_optimizers(name) for name in names]):
    _register(*modules)


def _register(gradient_descent, adam, adadelta, rmsprop, ftrl):
  registry.register(
      gradient_descent.SGD, lambda opt: None if opt._momentum else "SGD", _slots(),
      _hyper("lr_t"))
  registry.register(
      adam.Adam, lambda opt: None if opt.amsgrad else "Adam", _slots("m", "v"),
      _hyper("lr_t", "beta_1_t", "beta_2_t", "epsilon", "beta_1_power",
             "beta_2_power"))
  registry.register(
      adadelta.Adadelta, "Adadelta", _slots("accum_grad", "accum_var"),
      _hyper("lr_t", "rho", "epsilon"))
  registry.register(
      rmsprop.RMSprop, _rmsprop_rule,
      lambda opt, var: [opt.get_slot(var, name) for name in (
          ("mg", "rms", "momentum") if opt.centered else ("rms", "momentum"))],
      _hyper("lr_t", "rho", "momentum", "epsilon"))
  registry.register(
      ftrl.Ftrl, "Ftrl", _slots("accumulator", "linear"), _ftrl_hyper)


def _rmsprop_rule(opt):
  if not opt._momentum:
    return None
  return "CenteredRMSProp" if opt.centered else "RMSProp"


def _ftrl_hyper(opt, var, kwargs):
  c = _coefficients(opt, var, kwargs)
  # The stock optimizer ignores a shrinkage that is not positive.
  shrinkage = 0.0
  if opt._l2_shrinkage_regularization_strength > 0.0:
    shrinkage = c["l2_shrinkage_regularization_strength"]
  l2 = c["l2_regularization_strength"]
  if "beta" in c:  # 2.x
    l2 += c["beta"] / (2. * c["lr_t"])
  return [
      c["lr_t"], c["l1_regularization_strength"], l2, shrinkage, c["learning_rate_power"]
  ]
