# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""`Model.fit`: training by iterations or epochs, with evaluations and model files."""

import math
import sys
import time

from hugectr.api import enums
from hugectr.api import printing
from hugectr.commands import progress


class TrainingCallback(object):
  """Methods that `fit` calls in iteration mode; a script overrides some of them."""

  def on_training_start(self):
    """Called before the first iteration."""

  def on_training_end(self, current_iter):
    """Called after the last iteration, with its number."""

  def on_eval_start(self, current_iter):
    """Called before an evaluation; returning True skips it."""

  def on_eval_end(self, current_iter, eval_results):
    """Called after an evaluation; returning True ends the training.

    Args:
      current_iter: int.
      eval_results: dict from a metric's name to its value.
    """


def shown(values):
  """Returns the metrics as a line shows them: "AUC: 0.74", or "AUC: {0.7, 0.8}"."""
  found = []
  for name, _, of_labels in values:
    each = ["%.6g" % v for v in of_labels]
    found.append("%s: %s" % (name, each[0] if len(each) == 1 else
                             "{%s}" % ", ".join(each)))
  return ", ".join(found)


class Fit(object):
  """One call of `fit`.

  Args:
    model: Model.
    session: its Session.
    solver: Solver.
    display, eval_interval, snapshot: ints, in iterations; 0: never.
    prefix: string, of the snapshots' names.
    limit: int, iterations to train; 0: not known.
  """

  def __init__(self, model, session, solver, display, eval_interval, snapshot, prefix, limit):
    self._model, self._session, self._solver = model, session, solver
    self._display, self._eval_interval = display, eval_interval
    self._snapshot, self._prefix = snapshot, prefix
    self._rank = session.rank
    self._bar = progress.Progress(sys.stderr if self._rank == 0 else None, limit)
    self._step = 0
    self._since = time.monotonic()

  def _print(self, text):
    self._bar.clear()
    printing.line(text, rank=self._rank)

  def _is_due(self, interval):
    return interval > 0 and self._step % interval == 0

  def _loss(self):
    loss = self._session.get_current_loss()
    if math.isnan(loss):
      raise RuntimeError("hugectr.Model.fit: the loss is NaN after iteration %d" % self._step)
    return loss

  def _show(self, rate):
    loss = self._loss()
    now = time.monotonic()
    if self._solver.repeat_dataset and not self._solver.gen_loss_summary:
      loss = 0.
    self._print("Iter: %d Time(%d iters): %.6gs Loss: %.6g lr:%.6g" % (
        self._step, self._display, now - self._since, loss, rate))
    self._since = now

  def _train(self, schedule):
    """Does one iteration; returns False at the end of the data."""
    rate = schedule.get_next()
    self._session.set_learning_rate(rate)
    if not self._session.train():
      if self._session.dropped:
        self._print("train drop incomplete batch. batchsize:%d" % self._session.dropped)
      return False
    self._step += 1
    # Over ranks each has a share of the loss: all must see it, or none.
    if self._session.ranks == 1 and math.isnan(self._session.shared_loss):
      self._loss()
    self._bar.show(self._step, "iterations")
    if self._is_due(self._display):
      self._show(rate)
    return True

  def evaluated(self):
    """Evaluates max_eval_batches batches; returns [(name, value, values of labels)]."""
    began = time.monotonic()
    for _ in range(self._solver.max_eval_batches):
      if not self._session.eval():
        # At its end the data begins again, for the next evaluation.
        self._session.get_data_reader_eval().restart()
        break
    values = self._session.evaluated_by_label()
    for one in values:
      self._print("Evaluation, " + shown([one]))
    self._print("Eval Time for %d iters: %.6gs" % (
        self._solver.max_eval_batches, time.monotonic() - began))
    self._since += time.monotonic() - began
    return values

  def _has_hit(self, values):
    """Returns whether the AUC is above its threshold, and prints that."""
    threshold = self._solver.metrics_spec.get(enums.MetricsType.AUC)
    for name, value, _ in values:
      if name == "AUC" and threshold is not None and value > threshold:
        self._print("Hit target accuracy AUC %.6g / %.6g with batchsize: %d" % (
            threshold, value, self._solver.batchsize))
        return True
    return False

  def _evaluate(self, callbacks):
    """Evaluates if it is due; returns whether training ends."""
    if not self._is_due(self._eval_interval):
      return False
    if [True for c in callbacks if c.on_eval_start(self._step)]:
      return False
    values = self.evaluated()
    found = {name: value for name, value, _ in values}
    ends = [True for c in callbacks if c.on_eval_end(self._step, dict(found))]
    return self._has_hit(values) or bool(ends)

  def _save(self):
    if self._is_due(self._snapshot):
      self._model.save_params_to_files(self._prefix, self._step)

  def iterations(self, schedule, count, callbacks):
    """Trains `count` iterations, or until the AUC's threshold or a callback ends it."""
    began = time.monotonic()
    for callback in callbacks:
      callback.on_training_start()
    while self._step < count and self._train(schedule):
      ends = self._evaluate(callbacks)
      self._save()
      if ends:
        break
    self._loss()
    for callback in callbacks:
      callback.on_training_end(self._step)
    self._bar.clear()
    self._print("Finish %d iterations with batchsize: %d in %.2fs." % (
        self._step, self._solver.batchsize, time.monotonic() - began))

  def _has_ended(self, schedule):
    """Trains to the end of the reader's data; returns whether training ends before."""
    while self._train(schedule):
      ends = self._evaluate(())
      self._save()
      if ends:
        return True
    return False

  def epochs(self, schedule, count, parts):
    """Trains `count` passes over the data, or until the AUC's threshold.

    Args:
      schedule: LearningRateScheduler.
      count: int.
      parts: list of functions, each of which starts reading a part of the data.
    """
    began = time.monotonic()
    for epoch in range(count):
      self._print("-------------------------------------------epoch %d" % epoch)
      for start in parts:
        start()
        if self._has_ended(schedule):
          count = epoch + 1
          break
      else:
        continue
      break
    if self._step:
      self._loss()
    self._bar.clear()
    self._print("Finish %d epochs %d global iterations with batchsize %d in %.2fs." % (
        count, self._step, self._solver.batchsize, time.monotonic() - began))
