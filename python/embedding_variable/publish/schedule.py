# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""When a training publishes, and which publications are full versions."""

from embedding_variable.checkpoint import job
from embedding_variable.tf_names import basic_session_run_hooks


class Schedule(object):
  """Publications at the first step, then periodically, and at the end."""

  def __init__(self, publisher, every_steps, every_secs, full_every, after=None):
    """Publishes nothing.

    Args:
      publisher: FolderPublisher.
      every_steps: int, steps between publications; or
      every_secs: float, seconds between them. Exactly one of the two.
      full_every: int >= 1, every how many publications one is a full version.
      after: function without arguments that is called after each publication, such as
        `hps.PublicationSender.send`, or None.

    Raises:
      ValueError: both periods or none, `full_every` is less than 1, or a period in
        seconds in a job of several ranks, whose clocks differ.
    """
    if full_every < 1:
      raise ValueError("full_every: expected at least 1, got %d" % full_every)
    if every_secs is not None and job.current().size() > 1:
      raise ValueError("ranks publish at the same step: give every_steps, not every_secs")
    self._publisher, self._full_every, self._after = publisher, full_every, after
    self._timer = basic_session_run_hooks.SecondOrStepTimer(every_secs, every_steps)
    self._published, self._count = None, 0

  def begin(self):
    """Makes a publication due at the next step."""
    self._timer.reset()

  def is_due(self, step):
    """Returns whether a publication is due at a step, an int."""
    return self._timer.should_trigger_for_step(step)

  def is_published(self, step):
    """Returns whether the last publication was that of a step, an int."""
    return step == self._published

  def publish(self, step, *args):
    """Publishes a full version or a delta.

    Args:
      step: int.
      *args: arguments of the publisher's methods that come before the step.
    """
    self._timer.update_last_triggered_step(step)
    if not self._publisher.can_continue or self._count >= self._full_every:
      self._count = 0
      self._publisher.full(*(args + (step,)))
    else:
      self._publisher.delta(*(args + (step,)))
    self._count += 1
    self._published = step
    if self._after is not None:
      self._after()
