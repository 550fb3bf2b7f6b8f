# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""`tf.keras.optimizers` of Keras 2.11 and later, Keras 3 included, as fused row rules.

Their update of a variable is the method `update_step`. The formulas below are those of
a dense gradient in it, applied to the touched rows only.

The following differ from every rule and are refused: SGD with momentum (its velocity
includes the learning rate), Adam with amsgrad, Adamax, Nadam, Lion and Adafactor.
"""

import weakref

from embedding_variable import tf_names
from embedding_variable.optimizers import apply_scope
from embedding_variable.optimizers import registry
from embedding_variable.optimizers import slot_view
from embedding_variable.tf_names import dtypes
from embedding_variable.tf_names import math_ops
from embedding_variable.tf_names import ops

# pylint: disable=protected-access

# Optimizer -> {table: {slot: SlotView}}.
_slots_of = weakref.WeakKeyDictionary()


def read_counters(optimizer):
  """Reads learning rate and iterations for the updates of an open apply scope.

  Updates of the scope may then run after the optimizer has incremented its iterations.
  """
  cache = apply_scope.current(optimizer).cache
  cache["learning rate"] = learning_rate(optimizer)
  cache["iterations"] = iterations(optimizer)


def learning_rate(optimizer):
  """Returns the learning rate of this step, a float32 scalar."""
  cache = apply_scope.current(optimizer).cache
  if "learning rate" in cache:
    return cache["learning rate"]
  rate = optimizer._learning_rate
  if callable(rate) and not hasattr(rate, "assign"):
    try:
      rate = rate(iterations(optimizer))
    except TypeError:
      rate = rate()  # a function without arguments
  return math_ops.cast(ops.convert_to_tensor(rate), dtypes.float32)


def iterations(optimizer):
  """Returns the number of steps before this one, an int64 scalar."""
  cache = apply_scope.current(optimizer).cache
  if "iterations" in cache:
    return cache["iterations"]
  return math_ops.cast(ops.convert_to_tensor(optimizer.iterations), dtypes.int64)


def _slots(**initials):
  """Returns a function that finds or creates slots.

  Args:
    **initials: name of a slot -> its initial value, a float or a function of the
      optimizer; in the order of the rule.
  """

  def find(optimizer, var):
    slots = _slots_of.setdefault(optimizer, {}).setdefault(var, {})
    for name, initial in initials.items():
      if name not in slots:
        if callable(initial):
          initial = initial(optimizer)
        slots[name] = slot_view.create(var, name, initial)
    return [slots[name] for name in initials]

  return find


def _numbers(*names):
  """Returns a function that reads the learning rate and attributes of the optimizer."""
  return lambda optimizer, var, kwargs: (
      [learning_rate(optimizer)] + [getattr(optimizer, name) for name in names])


def _adam_hyper(optimizer, unused_var, unused_kwargs):
  step = math_ops.cast(iterations(optimizer) + 1, dtypes.float32)
  return [learning_rate(optimizer), optimizer.beta_1, optimizer.beta_2, optimizer.epsilon,
          math_ops.pow(float(optimizer.beta_1), step),
          math_ops.pow(float(optimizer.beta_2), step)]


def _ftrl_hyper(optimizer, unused_var, unused_kwargs):
  rate = learning_rate(optimizer)
  return [rate, optimizer.l1_regularization_strength,
          optimizer.l2_regularization_strength + optimizer.beta / (2. * rate),
          optimizer.l2_shrinkage_regularization_strength, optimizer.learning_rate_power]


def _rmsprop_slots(optimizer, var):
  names = {"velocity": 0.0, "momentum": 0.0}
  if optimizer.centered:
    names = dict(average_gradient=0.0, **names)
  return _slots(**names)(optimizer, var)


_ADAM = (lambda opt: None if opt.amsgrad else "Adam", _slots(momentum=0.0, velocity=0.0),
         _adam_hyper)

# Class -> (rule or function, slots, hyperparameters).
_RULES = {
    "SGD": (lambda opt: None if opt.momentum else "SGD", _slots(), _numbers()),
    # epsilon is added to the sum of squares under the root: so it is part of the
    # initial sum.
    "Adagrad": ("Adagrad", _slots(accumulator=lambda opt: (
        opt.initial_accumulator_value + opt.epsilon)), _numbers()),
    "Adam": _ADAM,
    "AdamW": _ADAM,  # a table has no decay, see eager/keras_update.py
    "Adadelta": ("Adadelta", _slots(accumulated_grad=0.0, accumulated_delta_var=0.0),
                 _numbers("rho", "epsilon")),
    "RMSprop": (lambda opt: "CenteredRMSProp" if opt.centered else "RMSProp",
                _rmsprop_slots, _numbers("rho", "momentum", "epsilon")),
    "Ftrl": ("Ftrl", _slots(accumulator=lambda opt: opt.initial_accumulator_value,
                            linear=0.0), _ftrl_hyper),
}


def remember(optimizer, table):
  """Records that an optimizer trains a table, for `tables`."""
  _slots_of.setdefault(optimizer, {}).setdefault(table, {})


def tables(optimizer):
  """Returns a list of the tables that an optimizer trains, in the order of its variables."""
  return list(_slots_of.get(optimizer, {}))


def existing_slots(optimizer, var):
  """Returns {name: SlotView} of the slots that an optimizer has created for a table."""
  return dict(_slots_of.get(optimizer, {}).get(var, {}))


def slot_names(optimizer):
  """Returns the names of the slots that an optimizer has created for tables."""
  return sorted({name for slots in _slots_of.get(optimizer, {}).values()
                 for name in slots})


def register():
  """Registers the rules for the optimizers of each Keras that has them."""
  for module in tf_names.keras_step_optimizers():
    for name, (rule, slots, hyper) in _RULES.items():
      cls = getattr(module, name, None)
      if cls is not None:
        registry.register(cls, rule, slots, hyper,
                          step=lambda optimizer, step: iterations(optimizer))


def find(optimizer):
  """Returns the `FusedRule` with the optimizer's results, or None.

  Args:
    optimizer: an optimizer whose base class is in `tf_names.keras_step_bases`.
  """
  rule = registry.find(optimizer)
  if rule is None:
    return None
  # A subclass with its own update has its own formula.
  own = type(optimizer).update_step
  known = any(own is getattr(getattr(module, name, None), "update_step", None)
              for module in tf_names.keras_step_optimizers() for name in _RULES)
  return rule if known and "update_step" not in vars(optimizer) else None
