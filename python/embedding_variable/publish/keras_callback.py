# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""A callback of Keras that publishes while `fit` trains."""

from embedding_variable import tf_names
from embedding_variable.publish import schedule

# One of each installed Keras, so that `fit` of any of them takes the callback.
_BASES = tf_names.keras_classes("callbacks.Callback") or (object,)


class PublishCallback(*_BASES):
  """Publishes after the first batch of a `fit`, then periodically, and at its end.

  The first publication of a publisher is a full version. An error of a publication ends
  the training, like that of a checkpoint. For models of Keras 2 and Keras 3.

  Attributes:
    model: the model that `fit` trains.
  """

  model = None  # Keras 3 has a property that Keras 2 cannot set.

  def __init__(self, publisher, every_steps=None, every_secs=None, full_every=24, step=None,
               after=None):
    """Writes nothing.

    Args:
      publisher: EagerPublisher. It may be that of an earlier `fit` of the model, which
        this one then continues.
      every_steps: int, steps between publications; or
      every_secs: float, seconds between them. Exactly one of the two.
      full_every: int >= 1, every how many publications one is a full version.
      step: integer variable that counts steps; None: `iterations` of the optimizer that
        the model was compiled with.
      after: function without arguments that is called after each publication, such as
        `hps.PublicationSender.send`, or None.

    Raises:
      ValueError: both periods or none, `full_every` is less than 1, or a period in
        seconds in a job of several ranks, whose clocks differ.
    """
    super(PublishCallback, self).__init__()
    self._schedule = schedule.Schedule(publisher, every_steps, every_secs, full_every,
                                       after)
    self._counter = step

  def set_model(self, model):
    """Sets the model; `fit` calls it."""
    self.model = model

  def on_train_begin(self, logs=None):
    """Finds the counter of steps.

    Raises:
      ValueError: there is none.
    """
    del logs
    if self._counter is None and getattr(self.model, "optimizer", None) is None:
      raise ValueError("PublishCallback: the model was compiled without an optimizer, whose "
                       "iterations count the steps; expected one, or the argument step")
    self._schedule.begin()

  def on_train_batch_end(self, batch, logs=None):
    """Publishes if it is due."""
    del batch, logs
    step = self._step()
    if self._schedule.is_due(step):
      self._schedule.publish(step)

  def on_train_end(self, logs=None):
    """Publishes the last step, if no publication has."""
    del logs
    step = self._step()
    if not self._schedule.is_published(step):
      self._schedule.publish(step)

  def _step(self):
    counter = self.model.optimizer.iterations if self._counter is None else self._counter
    return int(counter.numpy())
