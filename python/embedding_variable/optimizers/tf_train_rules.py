# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""`tf.train` optimizers that run as fused row rules.

Each entry reads the tensors created by the optimizer's `_prepare`, so a learning rate
that is a schedule, a placeholder or a function works as on a dense variable.
"""

from embedding_variable.optimizers import registry
from embedding_variable.tf_names import adadelta
from embedding_variable.tf_names import adagrad
from embedding_variable.tf_names import adam
from embedding_variable.tf_names import ftrl
from embedding_variable.tf_names import gradient_descent
from embedding_variable.tf_names import momentum
from embedding_variable.tf_names import rmsprop

# pylint: disable=protected-access


def _slots(*names):
  """Returns a function that finds the slots of these names."""
  return lambda opt, var: [opt.get_slot(var, name) for name in names]


def register():
  """Registers the rules."""
  registry.register(
      gradient_descent.GradientDescentOptimizer, "SGD", _slots(),
      lambda opt, var, kwargs: [opt._learning_rate_tensor])
  registry.register(
      momentum.MomentumOptimizer, "Momentum", _slots("momentum"),
      lambda opt, var, kwargs: [
          opt._learning_rate_tensor, opt._momentum_tensor,
          1.0 if opt._use_nesterov else 0.0
      ])
  registry.register(
      adagrad.AdagradOptimizer, "Adagrad", _slots("accumulator"),
      lambda opt, var, kwargs: [opt._learning_rate_tensor])
  registry.register(adam.AdamOptimizer, "Adam", _slots("m", "v"), _adam_hyper)
  registry.register(
      ftrl.FtrlOptimizer, "Ftrl", _slots("accum", "linear"), _ftrl_hyper)
  registry.register(
      rmsprop.RMSPropOptimizer,
      lambda opt: "CenteredRMSProp" if opt._centered else "RMSProp",
      lambda opt, var: [opt.get_slot(var, name) for name in (
          ("mg", "rms", "momentum") if opt._centered else ("rms", "momentum"))],
      lambda opt, var, kwargs: [
          opt._learning_rate_tensor, opt._decay_tensor, opt._momentum_tensor,
          opt._epsilon_tensor
      ])
  registry.register(
      adadelta.AdadeltaOptimizer, "Adadelta", _slots("accum", "accum_update"),
      lambda opt, var, kwargs: [opt._lr_t, opt._rho_t, opt._epsilon_t])


def _adam_hyper(opt, unused_var, unused_kwargs):
  beta1_power, beta2_power = opt._get_beta_accumulators()
  return [
      opt._lr_t, opt._beta1_t, opt._beta2_t, opt._epsilon_t, beta1_power,
      beta2_power
  ]


def ftrl_l2(opt):
  """Returns the l2 strength that an FtrlOptimizer applies.

  2.x has an argument beta, which it adds to the strength that it was given.
  """
  adjusted = getattr(opt, "_adjusted_l2_regularization_strength_tensor", None)
  return opt._l2_regularization_strength_tensor if adjusted is None else adjusted


def _ftrl_hyper(opt, unused_var, unused_kwargs):
  # The stock optimizer ignores a shrinkage that is not positive.
  shrinkage = 0.0
  if opt._l2_shrinkage_regularization_strength > 0.0:
    shrinkage = opt._l2_shrinkage_regularization_strength_tensor
  return [
      opt._learning_rate_tensor, opt._l1_regularization_strength_tensor,
      ftrl_l2(opt), shrinkage,
      opt._learning_rate_power_tensor
  ]
