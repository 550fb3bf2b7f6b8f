# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The optimizer state that a `sok.OptimizerWrapper` keeps to itself.

Optimizers have variables that are not slots: Adam's powers of beta, `iterations` of
Keras optimizers. Each `apply_gradients` advances them. An optimizer that updates tables
through a wrapper and dense variables directly is called twice per step. So the wrapper
has its own variables of this kind, and swaps them into the optimizer during its calls.
"""

import contextlib

from embedding_variable import tf_names
from embedding_variable.tf_names import tf

# Attributes in which stock Keras optimizers keep variables that are neither slots nor
# hyperparameters; None until they are created.
_KERAS_ATTRIBUTES = ("_iterations", "_m_cache")

# Attributes in which `tf.train` optimizers keep an optimizer that they wrap.
_INNER = ("_optimizer", "_opt")

# pylint: disable=protected-access


class OwnCounters(object):
  """The non-slot variables of one wrapper.

  Args:
    optimizer: a `tf.train` or Keras optimizer.
  """

  def __init__(self, optimizer):
    self._owners = []
    for owner in _chain(optimizer):
      count = owner.__dict__.get("_sok_wrappers", 0)
      object.__setattr__(owner, "_sok_wrappers", count + 1)
      # Prefix of this wrapper's variables in the optimizer. No prefix is a prefix of
      # another.
      prefix = "sok%s_" % (count or "")
      keeper = _TrainKeeper
      if isinstance(owner, tuple(tf_names.keras_step_bases())):
        keeper = _KerasStepKeeper
      elif isinstance(owner, tf_names.keras_optimizer_classes()):
        keeper = _KerasKeeper
      self._owners.append(keeper(owner, prefix))
    self._depth = 0

  @contextlib.contextmanager
  def shown(self):
    """A context in which the optimizer finds and creates this wrapper's variables."""
    self._depth += 1
    try:
      with contextlib.ExitStack() as stack:
        if self._depth == 1:
          for owner in self._owners:
            stack.enter_context(owner.shown())
        yield
    finally:
      self._depth -= 1


def _chain(optimizer):
  """Returns an optimizer and the optimizers that it wraps (Horovod's wraps one)."""
  found = []
  classes = (tf.compat.v1.train.Optimizer,) + tf_names.keras_optimizer_classes()
  while isinstance(optimizer, classes):
    found.append(optimizer)
    optimizer = next((optimizer.__dict__[name] for name in _INNER
                      if name in optimizer.__dict__), None)
  return found


class _TrainKeeper(object):
  """The `_non_slot_dict` of a `tf.train` optimizer: (name, graph) -> variable.

  Outside `shown` they stay in that dict under a prefixed name, so `variables()` and
  `tf.train.Checkpoint` still find them.
  """

  def __init__(self, optimizer, prefix):
    self._optimizer = optimizer
    self._prefix = prefix

  @contextlib.contextmanager
  def shown(self):
    numbers = self._optimizer._non_slot_dict
    mine = {(name[len(self._prefix):], graph): variable
            for (name, graph), variable in numbers.items()
            if name.startswith(self._prefix)}
    others = {key: variable for key, variable in numbers.items()
              if not key[0].startswith(self._prefix)}
    _replace(numbers, mine)
    try:
      yield
    finally:
      others.update({(self._prefix + name, graph): variable
                     for (name, graph), variable in numbers.items()})
      _replace(numbers, others)


def _replace(items, others):
  items.clear()
  items.update(others)


class _KerasKeeper(object):
  """The variables in a Keras optimizer's attributes."""

  def __init__(self, optimizer, prefix):
    self._optimizer = optimizer
    self._prefix = prefix
    self._mine = {name: None for name in _KERAS_ATTRIBUTES
                  if name in optimizer.__dict__}

  @contextlib.contextmanager
  def shown(self):
    values = self._optimizer.__dict__
    others = {name: values[name] for name in self._mine}
    self._optimizer._maybe_initialize_trackable()
    tracked = dict(self._optimizer._unconditional_dependency_names)
    values.update(self._mine)
    try:
      yield
    finally:
      self._mine = {name: values[name] for name in self._mine}
      values.update(others)
      self._track_beside(tracked)

  def _track_beside(self, before):
    """Makes `tf.train.Checkpoint` find these variables and those of direct use.

    Creating a variable takes over its tracked name in the optimizer, even if another
    variable already has it.
    """
    made = [variable for variable in self._mine.values() if variable is not None]
    tracked = self._optimizer._unconditional_dependency_names
    for name, variable in list(tracked.items()):
      if before.get(name) is variable or not any(variable is m for m in made):
        continue
      self._optimizer._track_trackable(variable, self._prefix + name, overwrite=True)
      if name in before:
        self._optimizer._track_trackable(before[name], name, overwrite=True)


class _KerasStepKeeper(object):
  """The count of steps of an optimizer of Keras 2.11 and later."""

  def __init__(self, optimizer, prefix):
    del prefix
    self._optimizer = optimizer
    with tf.init_scope():
      self._iterations = tf.Variable(0, dtype=tf.int64, trainable=False, name="iteration")

  @contextlib.contextmanager
  def shown(self):
    values = self._optimizer.__dict__
    other = values["_iterations"]
    values["_iterations"] = self._iterations
    try:
      yield
    finally:
      values["_iterations"] = other
