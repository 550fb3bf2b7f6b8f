# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""CreateOptimizer: the rule by which parameters are updated."""

import collections

from hugectr.api import enums
from hugectr.api import printing

_WHERE = "hugectr.CreateOptimizer"

# type, update_type: strings. hparam: dict without the learning rate.
OptParams = collections.namedtuple("OptParams", ["type", "update_type", "hparam"])

# Name of the clause, and the arguments that it contains with their keys.
_HPARAMS = {
    "Adam": ("adam_hparam", {"beta1": "beta1", "beta2": "beta2", "epsilon": "epsilon"}),
    "MomentumSGD": ("momentum_sgd_hparam", {"momentum_factor": "momentum_factor"}),
    "Nesterov": ("nesterov_hparam", {"momentum_factor": "momentum_factor"}),
    "SGD": ("sgd_hparam", {}),
    "AdaGrad": ("adagrad_hparam", {"initial_accu_value": "initial_accu_value",
                                   "epsilon": "epsilon"}),
    "Ftrl": ("ftrl_hparam", {"beta": "beta", "lambda1": "lambda1", "lambda2": "lambda2"}),
    "RMSProp": ("rmsprop_hparam", {"beta": "beta", "epsilon": "epsilon"}),
}

# Arguments of an optimizer, with their defaults.
_DEFAULTS = dict(atomic_update=True, beta=None, beta1=0.9, beta2=0.999, epsilon=1e-7,
                 initial_accu_value=0.0, lambda1=0.0, lambda2=0.0, momentum_factor=0.0)

# beta unless it is given.
_BETA = {"Ftrl": 0.0, "RMSProp": 0.9}


def CreateOptimizer(  # pylint: disable=invalid-name
    optimizer_type=enums.Optimizer_t.Adam, update_type=enums.Update_t.Global, beta1=0.9,
    beta2=0.999, epsilon=1e-7, initial_accu_value=0.0, momentum_factor=0.0,
    atomic_update=True, beta=None, lambda1=0.0, lambda2=0.0):
  """Returns an optimizer for `Model` or SparseEmbedding; the Solver has the rate.

  An argument of another optimizer is reported once.

  Args:
    optimizer_type: member of Optimizer_t. RMSProp updates rows of embeddings only.
    update_type: member of Update_t, for rows of embeddings. Local: a step updates the
      rows of its batch. Global: every row. LazyGlobal: approximates Global.
    beta1: number, of Adam.
    beta2: number, of Adam.
    epsilon: number, of Adam, AdaGrad and RMSProp.
    initial_accu_value: number, of AdaGrad.
    momentum_factor: number, of MomentumSGD and Nesterov.
    atomic_update: bool, without effect.
    beta: number, of Ftrl and RMSProp; None: 0 for Ftrl, 0.9 for RMSProp.
    lambda1: number, of Ftrl.
    lambda2: number, of Ftrl.

  Raises:
    TypeError: a type is no member of its enumeration.
  """
  given = {name: value for name, value in locals().items() if name in _DEFAULTS}
  kind = enums.check(_WHERE, "optimizer_type", optimizer_type, enums.Optimizer_t)
  update = enums.check(_WHERE, "update_type", update_type, enums.Update_t)
  printing.without_effect(_WHERE, {
      name: (value, _DEFAULTS[name]) for name, value in given.items()
      if name not in _HPARAMS[kind][1]})
  if beta is None:
    given["beta"] = _BETA.get(kind)
  return OptParams(kind, update, {key: given[name] for name, key in
                                  _HPARAMS[kind][1].items()})


def clause(params, solver):
  """Returns the clause of a configuration for OptParams and a Solver's rate."""
  # With 0 the rate is that of 1: full in the first step, and at its end after one.
  hparam = dict(params.hparam, learning_rate=solver.lr,
                warmup_steps=max(1, solver.warmup_steps), decay_start=solver.decay_start,
                decay_steps=max(1, solver.decay_steps), decay_power=solver.decay_power,
                end_lr=solver.end_lr)
  return {"type": params.type, "update_type": params.update_type,
          _HPARAMS[params.type][0]: hparam}


def with_rate(given, model):
  """Returns an embedding's optimizer clause with the rate of the model's clause, or None.

  Args:
    given: dict from a JSON, whose hparam may lack the rate; None: there is none.
    model: dict, result of `clause`.
  """
  name = _HPARAMS.get((given or {}).get("type"), ("",))[0]
  if not isinstance((given or {}).get(name), dict):
    return given
  rate = {k: v for k, v in model[_HPARAMS[model["type"]][0]].items()
          if k.startswith(("learning", "warmup", "decay", "end"))}
  return dict(given, **{name: dict(given[name], **rate)})
