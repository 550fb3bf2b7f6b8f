# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The learning rate schedule."""

import numbers

from hugectr.config import model as models

_KEYS = ("warmup_steps", "decay_start", "decay_steps", "decay_power", "end_lr")


class LearningRateScheduler(object):
  """A rate that rises, stays constant and decays. With step counted from 1:

    step <= warmup_steps:                base_lr * step / warmup_steps
    decay_start == 0,
    or step <= decay_start:              base_lr
    step <= decay_start + decay_steps:   max(base_lr * ((decay_start + decay_steps - step)
                                                        / decay_steps)^decay_power, end_lr)
    later:                               end_lr

  The first line that applies is used. Not thread-safe.
  """

  def __init__(self, base_lr, warmup_steps=1, decay_start=0, decay_steps=1,
               decay_power=2.0, end_lr=0.0):
    """Starts before step 1.

    Args:
      base_lr: number of at least 0.
      warmup_steps: int of at least 1.
      decay_start: int of at least 0; 0: the rate does not decay.
      decay_steps: int of at least 1.
      decay_power: number of at least 1.
      end_lr: number of at least 0.

    Raises:
      ValueError: an argument is something else.
    ValueError: an argument is invalid."""
    for name, value, least, kind in (
        ("base_lr", base_lr, 0, numbers.Real),
        ("warmup_steps", warmup_steps, 1, numbers.Integral),
        ("decay_start", decay_start, 0, numbers.Integral),
        ("decay_steps", decay_steps, 1, numbers.Integral),
        ("decay_power", decay_power, 1, numbers.Real),
        ("end_lr", end_lr, 0, numbers.Real)):
      if isinstance(value, bool) or not isinstance(value, kind) or not value >= least:
        raise ValueError(
            "LearningRateScheduler: %s: expected %s of at least %d, got %r" %
            (name, "an integer" if kind is numbers.Integral else "a number", least, value))
    self._base = base_lr
    self._warmup = warmup_steps
    self._start = decay_start
    self._steps = decay_steps
    self._power = decay_power
    self._end = end_lr
    self._step = 0
    self._rate = 0.0

  def get_next(self):
    """Advances one step; returns its rate."""
    self._step += 1
    last = self._start + self._steps
    if self._step <= self._warmup:
      self._rate = self._base * self._step / self._warmup
    elif self._start == 0 or self._step <= self._start:
      self._rate = self._base
    elif self._step <= last:
      part = (last - self._step) / self._steps
      self._rate = max(self._base * part ** self._power, self._end)
    else:
      self._rate = self._end
    return self._rate

  def get_lr(self):
    """Returns the rate of the current step; 0 before the first step."""
    return self._rate

  def get_step(self):
    """Returns the number of the current step; 0 before the first step."""
    return self._step


def of_optimizer(optimizer):
  """Returns the LearningRateScheduler of a config's Optimizer."""
  return LearningRateScheduler(
      optimizer.hparam["learning_rate"],
      **{key: int(value) if key.endswith(("steps", "start")) else value
         for key, value in ((k, optimizer.hparam[k]) for k in _KEYS)})


def get_learning_rate_scheduler(configure_file):
  """Returns the LearningRateScheduler of a configuration's optimizer.

  Args:
    configure_file: path of a JSON configuration.

  Raises:
    ConfigError: the file is not a configuration.
  """
  return of_optimizer(models.read(configure_file)[0].optimizer)
