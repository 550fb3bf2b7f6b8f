# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""A hook for `MonitoredTrainingSession` and Estimators that publishes while they train."""

from embedding_variable.checkpoint import job
from embedding_variable.tf_names import basic_session_run_hooks
from embedding_variable.tf_names import session_run_hook
from embedding_variable.tf_names import training_util


class PublishHook(session_run_hook.SessionRunHook):
  """Publishes after the first step, then periodically, and at the end.

  The first publication of a session is a full version. An error of a publication ends
  the training, like that of a checkpoint.
  """

  def __init__(self, publisher, every_steps=None, every_secs=None, full_every=24):
    """Writes nothing.

    Args:
      publisher: Publisher.
      every_steps: int, steps between publications; or
      every_secs: float, seconds between them. Exactly one of the two.
      full_every: int >= 1, every how many publications one is a full version.

    Raises:
      ValueError: both periods or none, `full_every` is less than 1, or a period in
        seconds in a job of several ranks, whose clocks differ.
    """
    if full_every < 1:
      raise ValueError("full_every: expected at least 1, got %d" % full_every)
    if every_secs is not None and job.current().size() > 1:
      raise ValueError("ranks publish at the same step: give every_steps, not every_secs")
    self._publisher, self._full_every = publisher, full_every
    self._timer = basic_session_run_hooks.SecondOrStepTimer(every_secs, every_steps)
    self._step = self._published = None
    self._count = 0

  def begin(self):
    """Adds the ops to the graph."""
    self._step = training_util.get_global_step()
    if self._step is None:
      raise ValueError("PublishHook needs a global step: tf.train.get_or_create_global_step()")
    self._publisher.build()

  def after_create_session(self, session, coord):
    """Makes the next publication a full version: another session's tables are others."""
    del session, coord
    self._timer.reset()
    self._publisher.restart()

  def before_run(self, run_context):
    """Fetches the global step."""
    return session_run_hook.SessionRunArgs(self._step)

  def after_run(self, run_context, run_values):
    """Publishes if it is due."""
    # The fetched step may be that before the update.
    if self._timer.should_trigger_for_step(run_values.results + 1):
      step = run_context.session.run(self._step)
      if self._timer.should_trigger_for_step(step):
        self._publish(run_context.session, step)

  def end(self, session):
    """Publishes the last step, if no publication has."""
    step = session.run(self._step)
    if step != self._published:
      self._publish(session, step)

  def _publish(self, session, step):
    self._timer.update_last_triggered_step(step)
    if not self._publisher.can_continue or self._count >= self._full_every:
      self._count = 0
      self._publisher.full(session, int(step))
    else:
      self._publisher.delta(session, int(step))
    self._count += 1
    self._published = step
