# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""One rank of the jobs that spread_checkpoint_test.py starts.

  spread_checkpoint_job.py MODE FOLDER STEPS

Every rank trains its share of one global batch, so the result does not depend on the
number of ranks.
"""

import json
import os
import signal
import sys
import time

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

from sparse_operation_kit import experiment as sok

_train = tf.compat.v1.train
_BATCH = 12


def keys_of_step(step):
  """Returns the keys of a step: int64 `[tables = 4, _BATCH]`; some of them are new."""
  random = np.random.RandomState(step)
  return random.randint(-30, 40, [4, _BATCH]) * 10**9 * 7 + random.randint(
      0, 3, [4, _BATCH])


class Model(object):
  """Tables with every placement, trained by Adagrad, and a dense variable."""

  def __init__(self, ids=None):
    last = hvd.size() - 1
    options = [
        tf.EmbeddingVariableOption(filter_option=tf.CounterFilter(filter_freq=2))
        if i == 3 else tf.EmbeddingVariableOption() for i in range(4)
    ]
    self.step = _train.get_or_create_global_step()
    self.dense = tf.compat.v1.get_variable("dense", [],
                                           initializer=tf.zeros_initializer())
    self.tables = [
        tf.get_embedding_variable(
            "table_%d" % i, 3 + i, ev_option=option,
            initializer=tf.compat.v1.random_uniform_initializer(seed=i + 1))
        for i, option in enumerate(options)
    ]
    for table, place in zip(self.tables, (-1, last, [last, 0, 0], -1)):
      table.target_gpu = place
    self.ids = tf.compat.v1.placeholder(tf.int64, [4, None]) if ids is None else ids
    count = tf.shape(self.ids)[1]
    indices = tf.stack([tf.range(count), tf.zeros([count], tf.int32)], 1)
    rows = sok.lookup_sparse(self.tables, [
        tf.SparseTensor(tf.cast(indices, tf.int64), self.ids[i],
                        tf.cast([count, 1], tf.int64)) for i in range(4)
    ], combiners=["sum"] * 4)
    # Every sample has the same weight on any rank.
    loss = tf.add_n([tf.reduce_sum(tf.square(r - .7)) for r in rows])
    optimizer = _train.AdagradOptimizer(.1)
    update = optimizer.minimize(loss, global_step=self.step)
    self.train = tf.group(update, self.dense.assign_add(1.))
    self.loss = loss
    if hvd.size() > 1:
      self.loss = hvd.allreduce(loss, op=hvd.Sum, name="loss")

  def feed(self, step):
    return {self.ids: keys_of_step(step)[:, hvd.rank()::hvd.size()]}

  def run(self, session, step):
    return float(session.run([self.loss, self.train], self.feed(step))[0])


def _write(folder, name, what):
  with open(os.path.join(folder, name), "w") as f:
    json.dump(what, f)


def _train_until(folder, steps, checkpoint_dir, **kwargs):
  """Trains in a monitored session; rank 0 writes step -> loss."""
  model, losses = Model(), {}
  hooks = [_train.StopAtStepHook(last_step=steps)]
  with _train.MonitoredTrainingSession(
      checkpoint_dir=checkpoint_dir, hooks=hooks, save_summaries_steps=None,
      save_summaries_secs=None, log_step_count_steps=None, **kwargs) as session:
    step = int(session.run(model.step))
    while not session.should_stop():
      losses[step] = model.run(session, step)
      step += 1
  if hvd.rank() == 0:
    _write(folder, "losses_%d.json" % steps, losses)


def train(folder, steps):
  _train_until(folder, steps, folder, save_checkpoint_steps=3)


def by_seconds(folder, steps):
  model = Model()
  hooks = [sok.CheckpointSaverHook(folder, save_secs=1),
           _train.StopAtStepHook(last_step=steps)]
  with _train.SingularMonitoredSession(hooks=hooks) as session:
    for step in range(steps):
      model.run(session, step)
      time.sleep(.05 * (1 + hvd.rank()))


def rank_0_only(folder, steps):
  _train_until(folder, steps, folder if hvd.rank() == 0 else None)


def _estimate(folder, steps):

  def model_fn(features, mode):
    model = Model(features)
    return tf.estimator.EstimatorSpec(mode, loss=model.loss, train_op=model.train)

  def input_fn():
    batches = [keys_of_step(step)[:, hvd.rank()::hvd.size()] for step in range(steps)]
    return tf.data.Dataset.from_tensor_slices(np.stack(batches))

  estimator = tf.estimator.Estimator(model_fn, config=tf.estimator.RunConfig(
      model_dir=folder, save_checkpoints_steps=4, log_step_count_steps=None,
      save_summary_steps=None))
  estimator.train(input_fn, max_steps=steps)
  estimator.train(input_fn, max_steps=steps + 2)


def other_ways(folder, steps):
  """Saves in other ways, each with its own graph and folder."""
  del steps
  for name, way, count in (("sharded", sharded, 3), ("by_seconds", by_seconds, 40),
                           ("estimator", _estimate, 9)):
    with tf.Graph().as_default():
      way(os.path.join(folder, name), count)


def estimator_on_rank_0(folder, steps):
  _estimate(folder if hvd.rank() == 0 else None, steps)


def sharded(folder, steps):
  model = Model()
  saver_ = _train.Saver(sharded=True)
  if not hvd.rank():
    os.makedirs(folder)
  with tf.compat.v1.Session() as session:
    session.run(tf.compat.v1.global_variables_initializer())
    for step in range(steps):
      model.run(session, step)
    saver_.save(session, os.path.join(folder, "model.ckpt"), global_step=model.step)


def saver(folder, steps):
  """Saves by a plain Saver. During the last save rank 1 may be killed."""
  model = Model()
  saver_ = _train.Saver()
  path = os.path.join(folder, "model.ckpt")
  ends = os.environ.get("RANK_1")

  class Session(tf.compat.v1.Session):
    armed = False

    def run(self, fetches, *args, **kwargs):
      if self.armed and fetches == saver_.saver_def.save_tensor_name:
        if hvd.rank() == 1:
          os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(2)  # writes its part after the other ranks have failed
      return super(Session, self).run(fetches, *args, **kwargs)

  with Session() as session:
    session.run(tf.compat.v1.global_variables_initializer())
    for step in range(steps):
      model.run(session, step)
    saver_.save(session, path, global_step=model.step)
    model.run(session, steps)
    # After this step no rank is far behind.
    sok.init(exchange_timeout=float(os.environ.get("TIMEOUT", "60")))
    session.armed = ends == "killed" and hvd.rank() > 0
    begin = time.time()
    try:
      if ends == "another path" and hvd.rank() == 1:
        saver_.save(session, path + "_of_mine", global_step=model.step)
      elif ends == "goes on" and hvd.rank() == 1:
        model.run(session, steps + 1)
      else:
        saver_.save(session, path, global_step=model.step)
    except Exception as e:  # pylint: disable=broad-except
      print("FAILED after %.1f s: %s: %s" % (time.time() - begin, type(e).__name__, e))
      sys.stdout.flush()
      os._exit(3)  # Horovod may wait for a rank that is gone


def restore(folder, steps):
  """Restores by a plain Saver into new and into trained tables; writes the keys."""
  del steps
  model = Model()
  saver_ = _train.Saver()
  exports = [t.export() for t in model.tables]
  with tf.compat.v1.Session() as session:
    for _ in range(2):
      saver_.restore(session, _train.latest_checkpoint(folder))
      found = [e[0].tolist() for e in session.run(exports)]
      session.run(tf.compat.v1.global_variables_initializer())
      model.run(session, 77)
  _write(folder, "keys_%d.json" % hvd.rank(), found)


def late_lookup(folder, steps):
  """Makes the Saver before the lookup that spreads the table."""
  del folder, steps
  table = tf.get_embedding_variable("t", 2)
  saver_ = _train.Saver()
  sok.lookup_sparse([table], [tf.SparseTensor([[0, 0]], tf.constant([1], tf.int64),
                                              [1, 1])], combiners=["sum"])
  with tf.compat.v1.Session() as session:
    session.run(tf.compat.v1.global_variables_initializer())
    saver_.save(session, "never")


def mistakes(folder, steps):
  """Prints the errors of mistakes that every rank must refuse."""
  for mistake in (rank_0_only, estimator_on_rank_0, late_lookup):
    try:
      with tf.Graph().as_default():
        mistake(os.path.join(folder, mistake.__name__), steps)
    except ValueError as e:
      print("%s: %s" % (mistake.__name__, e))
      sys.stdout.flush()


def main(mode, folder, steps):
  hvd.init()
  sok.init(exchange_timeout=60)
  globals()[mode](folder, int(steps))


if __name__ == "__main__":
  main(*sys.argv[1:])
