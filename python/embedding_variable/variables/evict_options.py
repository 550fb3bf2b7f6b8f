# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The evict options: which rows are evicted whenever a saver saves a variable.

`_RULES` has one entry per class: how its object is checked, and how it is converted to
the table's policy. (Eviction from a full table: cache_strategies.py.)
"""

import collections

from embedding_variable.tf_names import tf_logging as logging
from embedding_variable.variables import number_checks


class GlobalStepEvict(object):
  """Evicts keys that no step has updated for more than `steps_to_live` steps.

  Runs whenever a saver saves the variable, and in `variable.evict()`. None or 0: off.
  """

  def __init__(self, steps_to_live=None):
    self.steps_to_live = steps_to_live


class L2WeightEvict(object):
  """Evicts keys with `0.5 * sum(w^2)` below the threshold.

  w are the values that a lookup of the key returns; optimizer slots are ignored. Runs
  whenever a saver saves the variable, and in `variable.evict()`. -1.0: off.
  """

  def __init__(self, l2_weight_threshold=-1.0):
    if l2_weight_threshold <= 0 and l2_weight_threshold != -1.0:
      logging.warning(
          "L2WeightEvict: l2_weight_threshold: expected a positive number, got %s; "
          "nothing will be evicted", l2_weight_threshold)
    self.l2_weight_threshold = l2_weight_threshold


# The functions for one class of option.
#   check: function of the variable's name and the option; raises ValueError for invalid
#     numbers.
#   policy: function of the checked option; returns a dict of fields of
#     `handle_ops.TableOptions`.
_Rule = collections.namedtuple("_Rule", ["check", "policy"])


def _check_steps(name, evict):
  if evict.steps_to_live is not None and not number_checks.is_int(
      evict.steps_to_live, 0):
    raise ValueError(
        "embedding variable '%s': steps_to_live: expected an integer of at least 0, "
        "got %r" % (name, evict.steps_to_live))


def _policy_of_steps(evict):
  return dict(steps_to_live=evict.steps_to_live or 0)


def _check_weight(name, evict):
  if not number_checks.is_number(evict.l2_weight_threshold):
    raise ValueError(
        "embedding variable '%s': l2_weight_threshold: expected a number, got %r" %
        (name, evict.l2_weight_threshold))


def _policy_of_weight(evict):
  if evict.l2_weight_threshold <= 0:
    return {}
  return dict(l2_weight_threshold=float(evict.l2_weight_threshold))


_RULES = collections.OrderedDict([
    (GlobalStepEvict, _Rule(_check_steps, _policy_of_steps)),
    (L2WeightEvict, _Rule(_check_weight, _policy_of_weight)),
])


def check(name, evict):
  """Raises unless the option is valid.

  Args:
    name: the variable's name, for messages.
    evict: an object of a class above, or None.

  Raises:
    TypeError: an object of another class.
    ValueError: invalid numbers.
  """
  if evict is None:
    return
  if not isinstance(evict, tuple(_RULES)):
    raise TypeError(
        "embedding variable '%s': evict_option: expected %s, got %r" %
        (name, " or ".join("a " + c.__name__ for c in _RULES), evict))
  _rule_of(evict).check(name, evict)


def policy_of(evict):
  """Returns a dict of fields of `handle_ops.TableOptions` for a checked option or None."""
  return {} if evict is None else _rule_of(evict).policy(evict)


def _rule_of(evict):
  return next(rule for c, rule in _RULES.items() if isinstance(evict, c))
