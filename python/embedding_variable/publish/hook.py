# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""A hook for `MonitoredTrainingSession` and Estimators that publishes while they train."""

from embedding_variable.publish import schedule
from embedding_variable.tf_names import session_run_hook
from embedding_variable.tf_names import training_util


class PublishHook(session_run_hook.SessionRunHook):
  """Publishes after the first step, then periodically, and at the end.

  The first publication of a session is a full version. An error of a publication ends
  the training, like that of a checkpoint.
  """

  def __init__(self, publisher, every_steps=None, every_secs=None, full_every=24,
               after=None):
    """Writes nothing.

    Args:
      publisher: Publisher.
      every_steps: int, steps between publications; or
      every_secs: float, seconds between them. Exactly one of the two.
      full_every: int >= 1, every how many publications one is a full version.
      after: function without arguments that is called after each publication, such as
        `hps.PublicationSender.send`, or None.

    Raises:
      ValueError: both periods or none, `full_every` is less than 1, or a period in
        seconds in a job of several ranks, whose clocks differ.
    """
    self._schedule = schedule.Schedule(publisher, every_steps, every_secs, full_every,
                                       after)
    self._publisher = publisher
    self._step = None

  def begin(self):
    """Adds the ops to the graph."""
    self._step = training_util.get_global_step()
    if self._step is None:
      raise ValueError("PublishHook needs a global step: tf.train.get_or_create_global_step()")
    self._publisher.build()

  def after_create_session(self, session, coord):
    """Makes the next publication a full version: another session's tables are others."""
    del session, coord
    self._schedule.begin()
    self._publisher.restart()

  def before_run(self, run_context):
    """Fetches the global step."""
    return session_run_hook.SessionRunArgs(self._step)

  def after_run(self, run_context, run_values):
    """Publishes if it is due."""
    # The fetched step may be that before the update.
    if self._schedule.is_due(run_values.results + 1):
      step = int(run_context.session.run(self._step))
      if self._schedule.is_due(step):
        self._schedule.publish(step, run_context.session)

  def end(self, session):
    """Publishes the last step, if no publication has."""
    step = int(session.run(self._step))
    if not self._schedule.is_published(step):
      self._schedule.publish(step, session)
