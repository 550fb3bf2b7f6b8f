# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""`train`: runs a whole training by the solver clause of a configuration."""

import time

import tensorflow.compat.v1 as tf

from hugectr.commands import progress
from hugectr.training import learning_rate
from hugectr.training import metrics
from hugectr.training import session as sessions
from hugectr.training import solver as solvers


class _Summaries(object):
  """Writes numbers for TensorBoard; does nothing without a folder."""

  def __init__(self, folder):
    self._writer = None
    if folder:
      with tf.Graph().as_default():
        self._writer = tf.summary.FileWriter(folder)

  def add(self, step, pairs):
    if self._writer is not None:
      values = [tf.Summary.Value(tag=tag, simple_value=value)
                for tag, value in pairs]
      self._writer.add_summary(tf.Summary(value=values), step)

  def close(self):
    if self._writer is not None:
      self._writer.close()


class _Run(object):
  """One training run."""

  def __init__(self, path, folder, out, terminal):
    self._solver = solvers.SolverParser(path)
    self._schedule = learning_rate.get_learning_rate_scheduler(path)
    self._session = sessions.Session(self._solver, path)
    # Only one rank prints.
    self._prints = self._session.rank == 0
    self._summaries = _Summaries(folder if self._prints else None)
    self._out = out
    total = self._solver.max_iter if self._solver.repeat_dataset else 0
    self._bar = progress.Progress(terminal if self._prints else None, total)
    self._metrics = [metrics.parse(m) for m in self._solver.eval_metrics]
    self._step = 0
    # For samples per second: seconds and samples, without evaluations and file writes.
    self._busy, self._counted = 0., 0

  def _print(self, sentence):
    if self._prints:
      self._bar.clear()
      self._out.write(sentence + "\n")
      self._out.flush()

  def _display(self, rate):
    loss = self._session.get_current_loss()
    speed = self._counted / max(self._busy, 1e-9)
    self._busy, self._counted = 0., 0
    self._summaries.add(self._step, [("loss", loss), ("learning_rate", rate),
                                     ("samples_per_second", speed)])
    self._print("iter %d; loss %.6g; learning rate %.6g; samples/s %.0f" %
                (self._step, loss, rate, speed))

  def _evaluate(self):
    """Evaluates; returns whether all metrics with a threshold have reached it."""
    reader = self._session.get_data_reader_eval()
    if not reader.has_source:
      return False
    reader.restart()
    batches = self._solver.max_eval_batches
    if self._solver.max_eval_samples:
      batches = -(-self._solver.max_eval_samples // self._solver.batchsize_eval)
    for _ in range(batches):
      if not self._session.eval():
        break
    prefix = self._solver.export_predictions_prefix
    values = self._session.get_eval_metrics(
        *["%s_%s_%d" % (prefix, what, self._step) for what in ("pred", "label")]
        if prefix else [])
    self._summaries.add(self._step, [("eval/" + name, v) for name, v in values])
    self._print("iter %d; evaluation: %s" % (self._step, ", ".join(
        "%s %.6f" % pair for pair in values) or "no samples"))
    wanted = [(m, v) for m, (_, v) in zip(self._metrics, values) if m.threshold is not None]
    return bool(wanted) and all(metrics.is_reached(m, v) for m, v in wanted)

  def _is_due(self, interval):
    return interval and self._step % interval == 0

  def _after(self, rate):
    """Does what is due after a step; returns whether training has reached its goal."""
    self._bar.show(self._step, "%.0f samples/s" % (self._counted / max(self._busy, 1e-9)))
    if self._is_due(self._solver.display):
      self._display(rate)
    if self._is_due(self._solver.snapshot):
      self._session.download_params_to_files(self._solver.snapshot_prefix, self._step)
      self._print("iter %d; wrote model files %s*_%d.model" %
                  (self._step, self._solver.snapshot_prefix, self._step))
    return self._is_due(self._solver.eval_interval) and self._evaluate()

  def _train(self, limit):
    """Trains up to `limit` steps, or to the end of the data; returns whether to continue."""
    while limit is None or self._step < limit:
      rate = self._schedule.get_next()
      self._session.set_learning_rate(rate)
      began = time.monotonic()
      if not self._session.train():
        return True
      self._busy += time.monotonic() - began
      self._counted += self._session.last_batch_size
      self._step += 1
      if self._after(rate):
        self._print("iter %d; metrics have reached their thresholds" % self._step)
        return False
    return False

  def run(self):
    """Trains to the end."""
    try:
      if self._solver.repeat_dataset:
        self._session.start_data_reading()
        self._train(self._solver.max_iter)
      else:
        for _ in range(self._solver.num_epochs):
          self._session.get_data_reader_train().set_source()
          if not self._train(None):
            break
      self._print("trained %d iterations" % self._step)
    finally:
      self._bar.clear()
      self._summaries.close()
      self._session.close()


def train(path, summaries, out, terminal):
  """Trains by the solver clause of a configuration.

  Prints a line of loss and speed every `display` iterations, metrics every
  `eval_interval`, and writes model files every `snapshot`. An evaluation begins at the
  start of the evaluation data. It ends after `max_iter` iterations or `num_epochs` passes,
  or once all metrics that have a threshold have reached it.

  Args:
    path: path of the JSON file.
    summaries: folder for TensorBoard, or None.
    out: a file to print to.
    terminal: a file; progress is shown on it if it is a terminal.

  Raises:
    ConfigError, DataError, NotImplementedError, RuntimeError, OSError: as in Session.
  """
  _Run(path, summaries, out, terminal).run()
