# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The Estimator of a CollectiveStrategy.

tensorflow_estimator is imported only if a script makes such an Estimator.
"""

import importlib
import os

from embedding_variable.deeprec import notices
from embedding_variable.tf_names import basic_session_run_hooks


def make(strategy, model_fn, **kwargs):
  """Returns a `CollectiveEstimator`; see `CollectiveStrategy.estimator`."""
  config = kwargs.get("config")
  if config is None or not config.model_dir and not kwargs.get("model_dir"):
    raise ValueError("CollectiveStrategy.estimator: all ranks need a config with the same "
                     "model_dir, got config=%r" % (config,))
  estimator = importlib.import_module("tensorflow_estimator.python.estimator.estimator")
  return _class(estimator.Estimator)(strategy, model_fn, **kwargs)


def _class(base):
  """Returns the class, derived from the Estimator that is installed."""

  class CollectiveEstimator(base):
    """An Estimator whose ranks train one model.

    All ranks call `train`, `evaluate` and `predict` equally often, with as many batches.
    The metrics of a rank are those of its own batches.
    """

    def __init__(self, strategy, model_fn, **kwargs):
      self._strategy = strategy
      super(CollectiveEstimator, self).__init__(model_fn, **kwargs)

    @staticmethod
    def _assert_members_are_not_overridden(unused_self):
      """Allows this class to override methods, which the base class checks for."""

    def train(self, *args, **kwargs):
      """Estimator's method, over the ranks."""
      with self._strategy.scope():
        return super(CollectiveEstimator, self).train(*args, **kwargs)

    def evaluate(self, *args, **kwargs):
      """Estimator's method, over the ranks."""
      with self._strategy.scope():
        return super(CollectiveEstimator, self).evaluate(*args, **kwargs)

    def predict(self, *args, **kwargs):
      """Estimator's method; lookups go over the ranks."""
      predictions = super(CollectiveEstimator, self).predict(*args, **kwargs)
      # The graph is built before the first prediction.
      with self._strategy.scope():
        first = next(predictions, None)
      if first is not None:
        yield first
        for prediction in predictions:
          yield prediction

    def train_and_evaluate(self, train_spec, eval_spec, eval_every_n_iter=None,
                           eval_history=None):
      """Trains, and evaluates checkpoints between steps.

      Args:
        train_spec: `tf.estimator.TrainSpec`.
        eval_spec: `tf.estimator.EvalSpec`. Its exporters run on rank 0, after each
          evaluation; `start_delay_secs` and `throttle_secs` have no effect, since every
          checkpoint is evaluated by all ranks.
        eval_every_n_iter: int >= 1: save and evaluate every so many steps, and after the
          last one; None: as often as `config` saves.
        eval_history: None, or a list to which each evaluation's dict of metrics is
          appended.

      Returns:
        The metrics of the last evaluation, or None if nothing was trained.
      """
      history = [] if eval_history is None else eval_history
      known = len(history)
      notices.ignored("EvalSpec", "all ranks evaluate every checkpoint",
                      start_delay_secs=(eval_spec.start_delay_secs, 120),
                      throttle_secs=(eval_spec.throttle_secs, 600))
      listener = _Evaluate(self, eval_spec, history, train_spec.max_steps,
                           is_exporter=not self._strategy.rank())
      config = self._config
      if eval_every_n_iter is not None:
        self._config = config.replace(save_checkpoints_secs=None,
                                      save_checkpoints_steps=eval_every_n_iter)
      try:
        self.train(train_spec.input_fn, hooks=list(train_spec.hooks),
                   max_steps=train_spec.max_steps, saving_listeners=[listener])
      finally:
        self._config = config
      return history[-1] if len(history) > known else None

    def export_saved_model(self, *args, **kwargs):
      """Estimator's method, on rank 0; other ranks return None."""
      if self._strategy.rank():
        return None
      with self._strategy.local_lookups():
        return super(CollectiveEstimator, self).export_saved_model(*args, **kwargs)

  return CollectiveEstimator


class _Evaluate(basic_session_run_hooks.CheckpointSaverListener):
  """Evaluates each checkpoint, except that of the first step of a session."""

  def __init__(self, estimator, spec, history, max_steps, is_exporter):
    self._estimator = estimator
    self._max_steps = max_steps
    self._exporters = list(spec.exporters or ()) if is_exporter else []
    self._spec = spec
    self._history = history
    self._evaluated = None

  def begin(self):
    self._first = None

  def after_save(self, session, global_step_value):
    if self._first is None:
      self._first = global_step_value
    if global_step_value in (self._first, self._evaluated):
      return
    self._evaluated = global_step_value
    self._history.append(self._estimator.evaluate(
        self._spec.input_fn, steps=self._spec.steps, hooks=list(self._spec.hooks),
        name=self._spec.name))
    for exporter in self._exporters:
      exporter.export(
          estimator=self._estimator,
          export_path=os.path.join(self._estimator.model_dir, "export", exporter.name),
          checkpoint_path=self._estimator.latest_checkpoint(),
          eval_result=self._history[-1],
          is_the_final_export=bool(self._max_steps) and
          global_step_value >= self._max_steps)
