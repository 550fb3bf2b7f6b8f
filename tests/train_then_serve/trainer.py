# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Trains a model on lines in Criteo's format, saves checkpoints and publishes.

  python trainer.py WORK_FOLDER STEPS

reads WORK_FOLDER/train.txt, and continues WORK_FOLDER/checkpoints if there is one. The
publication is WORK_FOLDER/ranking. Before and after each publication, one line goes to
WORK_FOLDER/log: "begin STEP SCORES" and "end STEP", with the bytes of the scores of the
first lines, which `session.run` computes at that step, in hexadecimal digits.
"""

import os
import sys
import time

import numpy as np
import tensorflow.compat.v1 as tf

if tf.executing_eagerly():  # TensorFlow 2.x
  tf.disable_v2_behavior()

# pylint: disable=wrong-import-position
import criteo
import criteo_input
import embedding_variable as ev
import embeddings
from models import dlrm

PROBES = 16  # lines whose scores are logged
# Versions come every few tenths of a second, and a server still reads deltas of older ones.
KEEP = 6
BATCH = 64
_TABLES = 8  # of the 26 categories
_DIM = 4
_PUBLISH_STEPS, _FULL_EVERY, _CHECKPOINT_STEPS = 5, 4, 10
_STEP_SECONDS = 0.01  # at least, so that a server can follow


def probe(path):
  """Returns (numbers float32 [PROBES, 13], categories bytes [PROBES, 26]) of first lines."""
  with open(path, "rb") as f:
    fields = [next(f).rstrip(b"\n").split(b"\t")[1:] for _ in range(PROBES)]
  return (np.array([[float(x or 0) for x in line[:criteo.NUM_NUMERIC]] for line in fields],
                   np.float32),
          np.array([line[criteo.NUM_NUMERIC:] for line in fields], object))


def _model(numeric, ids):
  """Returns logits float32 [B]; every call in a graph has the same variables."""
  ids = ids[:_TABLES]
  with tf.variable_scope("ranking", reuse=tf.AUTO_REUSE):
    return dlrm.logits(numeric, embeddings.lookup(ids, dlrm.tables(_DIM), embeddings.SOK))


def _scores(numbers, categories):
  numeric, ids = criteo_input.features(numbers, categories)
  return tf.sigmoid(_model(numeric, tf.unstack(ids, criteo.NUM_CATEGORICAL)))


def _serving_fn():
  numbers = tf.placeholder(tf.float32, [None, criteo.NUM_NUMERIC], "numbers")
  categories = tf.placeholder(tf.string, [None, criteo.NUM_CATEGORICAL], "categories")
  # An answer names the step whose rows it has.
  step = tf.identity(tf.train.get_or_create_global_step())
  return ({"numbers": numbers, "categories": categories},
          {"scores": _scores(numbers, categories), "step": step})


class _LoggingPublisher(ev.publish.Publisher):
  """Publisher that logs the scores of the state that it publishes."""

  def __init__(self, folder, log, scores):
    super().__init__(folder, _serving_fn, keep=KEEP)
    self._log, self._scores = log, scores

  def _logged(self, publish, session, step):
    scores = session.run(self._scores)
    # Single writes, so that a killed process leaves whole lines.
    os.write(self._log, b"begin %d %s\n" % (step, scores.tobytes().hex().encode()))
    found = publish(session, step)
    os.write(self._log, b"end %d\n" % step)
    return found

  def full(self, session, step=None):
    return self._logged(super().full, session, step)

  def delta(self, session, step=None):
    return self._logged(super().delta, session, step)


def main(work, steps):
  data, checkpoints = os.path.join(work, "train.txt"), os.path.join(work, "checkpoints")
  newest = tf.train.latest_checkpoint(checkpoints)
  begin = int(tf.train.load_variable(newest, "global_step")) if newest else 0
  tf.set_random_seed(1)
  step = tf.train.get_or_create_global_step()
  batch = criteo_input.unpack(tf.data.make_one_shot_iterator(
      criteo_input.dataset(data, BATCH, skip=begin * BATCH)).get_next())
  loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(
      labels=batch.label, logits=_model(batch.numeric, batch.ids)))
  train_op = tf.train.AdagradOptimizer(0.05).minimize(loss, global_step=step)
  scores = _scores(*map(tf.constant, probe(data)))
  log = os.open(os.path.join(work, "log"), os.O_CREAT | os.O_WRONLY | os.O_APPEND)
  hooks = [
      ev.publish.PublishHook(_LoggingPublisher(os.path.join(work, "ranking"), log, scores),
                             every_steps=_PUBLISH_STEPS, full_every=_FULL_EVERY),
      tf.train.StopAtStepHook(last_step=steps)]
  with tf.train.MonitoredTrainingSession(
      checkpoint_dir=checkpoints, save_checkpoint_steps=_CHECKPOINT_STEPS,
      save_summaries_steps=None, log_step_count_steps=None, hooks=hooks) as session:
    while not session.should_stop():
      session.run(train_op)
      time.sleep(_STEP_SECONDS)


if __name__ == "__main__":
  main(sys.argv[1], int(sys.argv[2]))
