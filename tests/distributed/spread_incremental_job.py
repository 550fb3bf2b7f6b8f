# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""One rank of the jobs that spread_incremental_test.py starts.

  spread_incremental_job.py MODE FOLDER TAG

Ranks write their state to `<name>_<TAG>_<rank>.pickle` in the folder.
"""

import os
import pickle
import signal
import sys
import time

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

import embedding_variable
from embedding_variable.ops import checkpoint_ops
from embedding_variable.ops import row_ops
from sparse_operation_kit import experiment as sok

import spread_checkpoint_job

_train = tf.compat.v1.train
_initializer = tf.compat.v1.global_variables_initializer
_SAVE_DELTA = "save/deltas/save:0"


class Contents(object):
  """The contents of a session's tables and variables."""

  def __init__(self, step, dense, tables):
    self._scalars = [step, dense]
    self._tables = [self._all_of(t) for t in tables]

  def _all_of(self, table):
    slots = table.slot_columns
    # Creates slots that no update has used yet.
    ready, _ = row_ops.read_rows(table.handle, tf.constant([], tf.int64), list(slots),
                                 list(slots.values()))
    with tf.control_dependencies([ready]):
      return checkpoint_ops.export_table(table.handle, list(slots))

  def dump(self, session, folder, name):
    """Writes the exact bits of this rank's part of each table."""
    step, dense = session.run(self._scalars)
    state = {"step": int(step), "dense": float(dense), "tables": []}
    for table in session.run(self._tables):
      rows = {}
      for i, key in enumerate(table.keys.tolist()):
        rows[key] = (table.values[i].tobytes(), [s[i].tobytes() for s in table.slots],
                     [m[i] for m in (table.versions, table.frequencies) if len(m)])
      state["tables"].append((rows, dict(zip(table.filtered.keys.tolist(),
                                             table.filtered.frequencies.tolist()))))
    path = os.path.join(folder, "%s_%d.pickle" % (name, hvd.rank()))
    with open(path + ".new", "wb") as f:
      pickle.dump(state, f)
    os.rename(path + ".new", path)


class Model(spread_checkpoint_job.Model):
  """A model that can also erase keys and write its contents."""

  def __init__(self, ids=None):
    super(Model, self).__init__(ids)
    self._erased = tf.compat.v1.placeholder(tf.int64, [None])
    self._erase = tf.group(*[t.erase(self._erased) for t in self.tables])
    self.empty_first = self.tables[0].initializer
    self.dump = Contents(self.step, self.dense, self.tables).dump

  def erase_half(self, session, step):
    """Erases half of the keys of a step, each on its owner rank."""
    keys = np.unique(spread_checkpoint_job.keys_of_step(step))[::2]
    session.run(self._erase, {self._erased: keys})


def _saver():
  return _train.Saver(incremental_save_restore=True)


def _start(model, saver, session, folder):
  """Restores the latest checkpoint if there is one; returns the step."""
  newest = _train.latest_checkpoint(folder)
  if newest:
    saver.restore(session, newest)
  else:
    session.run(_initializer())
  return int(session.run(model.step))


def _export(folder):
  return os.path.join(folder, "push", "rows")


def _import(path):
  """Imports the graph of a checkpoint; returns its Saver."""
  return _train.import_meta_graph(path + ".meta")


def _import_of_another_job(folder):
  with tf.Graph().as_default():
    _import(_train.latest_checkpoint(folder))
    try:
      _train.Saver()
    except ValueError as e:
      print("IMPORTED: %s" % e)


def imported(folder, tag):
  """Restores into a graph that rank 0 built."""
  model = Model()
  with tf.compat.v1.Session() as session:
    session.run(_initializer())
    for step in range(3):
      model.run(session, step)
    path = _train.Saver().save(session, os.path.join(folder, "model.ckpt"))
    model.dump(session, folder, "saved_" + tag)
  with tf.Graph().as_default() as graph, tf.compat.v1.Session() as session:
    of_rank_0 = _import(path)
    for use in (of_rank_0.save, of_rank_0.restore):
      try:
        use(session, path)
      except ValueError as e:
        print("REFUSED: %s" % e)
    _train.Saver().restore(session, path)
    tables = sorted(graph.get_collection("embedding_variables"), key=lambda v: v.op.name)
    Contents(_train.get_global_step(), graph.get_tensor_by_name("dense:0"),
             tables).dump(session, folder, "restored_" + tag)


def chain(folder, tag):
  """Resumes if it can; saves a full checkpoint, three deltas, and an export."""
  model = Model()
  saver = _saver()
  embedding_variable.prepare_export()
  if os.path.exists(_export(folder) + ".index"):
    _import_of_another_job(folder)
    with tf.compat.v1.Session() as session:
      session.run(_initializer())
      embedding_variable.apply_export(session, _export(folder))
      model.dump(session, folder, "pulled_" + tag)
  with tf.compat.v1.Session() as session:
    step = _start(model, saver, session, folder)
    model.dump(session, folder, "restored_" + tag)
    for i in range(4):
      if i == 2 and hvd.rank() == 0:
        # After this the next delta has all rows of this rank, but only changes of the
        # others.
        session.run(model.empty_first)
      for _ in range(3):
        model.run(session, step)
        step += 1
      if i == 0:
        saver.save(session, os.path.join(folder, "model.ckpt"), global_step=model.step)
        continue
      model.erase_half(session, step - 3)
      embedding_variable.save_incremental(saver, session, folder, step)
    embedding_variable.export_since(session, step - 2, _export(folder))
    model.dump(session, folder, "saved_" + tag)


def restore(folder, tag):
  model = Model()
  with tf.compat.v1.Session() as session:
    _start(model, _train.Saver(), session, folder)
    model.dump(session, folder, "restored_" + tag)


def _serving_fn():
  ids = tf.compat.v1.placeholder(tf.int64, [None], name="ids")
  # The prediction graph runs alone.
  return {"ids": ids}, {
      "rows_%d" % i: tf.nn.embedding_lookup(tf.get_embedding_variable(
          "table_%d" % i, 3 + i, initializer=tf.compat.v1.zeros_initializer()), ids)
      for i in range(4)}


def publish(folder, tag):
  """Publishes a full version and two deltas; keys are erased before the last one."""
  model = Model()
  publisher = embedding_variable.publish.Publisher(folder, _serving_fn)
  publisher.build()
  with tf.compat.v1.Session() as session:
    session.run(_initializer())
    for step in range(4):
      model.run(session, step)
      if step == 3:
        model.erase_half(session, step)
      if step:
        (publisher.delta if publisher.can_continue else publisher.full)(session)
    model.dump(session, folder, "saved_" + tag)


class _MachineIsGone(Exception):
  pass


def monitored(folder, tag):
  """Saves by a MonitoredTrainingSession, which is aborted before its final save."""
  model = Model()
  try:
    with _train.MonitoredTrainingSession(
        checkpoint_dir=folder, save_checkpoint_steps=6,
        save_incremental_checkpoint_steps=2, save_summaries_steps=None,
        save_summaries_secs=None, log_step_count_steps=None) as session:
      raw = session._tf_sess()  # pylint: disable=protected-access
      step = int(raw.run(model.step))
      model.dump(raw, folder, "restored_" + tag)
      for _ in range(11):
        model.run(session, step)
        step += 1
        if step % 2 == 0:
          model.dump(raw, folder, "saved_" + tag)
      raise _MachineIsGone()
  except _MachineIsGone:
    pass


def _by_seconds(folder):
  """Saves by time on ranks whose clocks differ."""
  model = Model()
  hook = sok.CheckpointSaverHook(folder, save_steps=1000, incremental_save_secs=1)
  with _train.SingularMonitoredSession(hooks=[hook]) as session:
    for step in range(25):
      model.run(session, step)
      time.sleep(.05 * (1 + hvd.rank()))


def _estimator(folder):

  def model_fn(features, mode):
    model = Model(features)
    return tf.estimator.EstimatorSpec(mode, loss=model.loss, train_op=model.train)

  def input_fn():
    batches = [spread_checkpoint_job.keys_of_step(step)[:, hvd.rank()::hvd.size()]
               for step in range(9)]
    return tf.data.Dataset.from_tensor_slices(np.stack(batches))

  estimator = tf.estimator.Estimator(model_fn, config=tf.estimator.RunConfig(
      model_dir=folder, log_step_count_steps=None, save_summary_steps=None))
  estimator.train(input_fn, hooks=[_train.CheckpointSaverHook(
      folder, save_steps=5, incremental_save_steps=2)])


def _unlike(folder):
  Model()
  hook = _train.CheckpointSaverHook(folder, save_steps=5,
                                    incremental_save_steps=2 + hvd.rank())
  try:
    _train.SingularMonitoredSession(hooks=[hook])
  except ValueError as e:
    print("REFUSED: %s" % e)


def hooks(folder, tag):
  del tag
  for run in (_unlike, _by_seconds, _estimator):
    with tf.Graph().as_default():
      run(os.path.join(folder, run.__name__))


class _Session(tf.compat.v1.Session):
  """Calls `before` and `after` around the save of a delta."""

  before = after = staticmethod(lambda: None)

  def run(self, fetches, *args, **kwargs):
    is_delta = isinstance(fetches, list) and _SAVE_DELTA in fetches
    if is_delta:
      self.before()
    result = super(_Session, self).run(fetches, *args, **kwargs)
    if is_delta:
      self.after()
    return result


def _die():
  os.kill(os.getpid(), signal.SIGKILL)


def failing(folder, tag):
  """Saves a chain; at its second delta rank RANK misbehaves as DOES specifies."""
  model = Model()
  saver = _saver()
  does = os.environ["DOES"] if hvd.rank() == int(os.environ["RANK"]) else ""
  with _Session() as session:
    session.run(_initializer())
    for step in range(6):
      model.run(session, step)
      if step == 2:
        saver.save(session, os.path.join(folder, "model.ckpt"), global_step=model.step)
    embedding_variable.save_incremental(saver, session, folder)
    model.dump(session, folder, "first_" + tag)
    model.run(session, 6)
    model.dump(session, folder, "second_" + tag)
    # After this step no rank is far behind.
    sok.init(exchange_timeout=float(os.environ.get("TIMEOUT", "60")))
    if does == "is killed before":
      session.before = _die
    elif does == "is killed after":
      session.after = _die
    begin = time.time()
    try:
      if does == "goes on":
        model.run(session, 7)
      else:
        embedding_variable.save_incremental(saver, session, folder)
    except Exception as e:  # pylint: disable=broad-except
      print("FAILED after %.1f s: %s: %s" % (time.time() - begin, type(e).__name__, e))
      sys.stdout.flush()
      os._exit(3)  # Horovod may wait for a rank that is gone


def mistakes(folder, tag):
  """Saves deltas that fail on all ranks; the next delta must contain their changes."""

  def fail():
    raise tf.errors.ResourceExhaustedError(None, None, "the disk is full")

  model = Model()
  saver = _saver()
  path = os.path.join(folder, "model.ckpt")
  with _Session() as session:
    session.run(_initializer())
    model.run(session, 0)
    saver.save(session, path, global_step=model.step)
    model.run(session, 1)
    try:
      if hvd.rank() == 1:
        saver.save(session, path, global_step=model.step)
      else:
        embedding_variable.save_incremental(saver, session, folder)
    except ValueError as e:
      print("UNLIKE: %s" % e)
    model.erase_half(session, 0)
    if hvd.rank() == 1:
      session.before = fail
    try:
      embedding_variable.save_incremental(saver, session, folder)
    except Exception as e:  # pylint: disable=broad-except
      print("FAILED: %s: %s" % (type(e).__name__, e))
    if hvd.rank() == 0:
      print("LEFT: %s" % os.listdir(os.path.join(folder, ".incremental_checkpoint")))
    session.before = lambda: None
    model.run(session, 2)
    embedding_variable.save_incremental(saver, session, folder)
    model.dump(session, folder, "saved_" + tag)


def saves(folder, tag):
  """Saves until it is killed, and writes the state of each save."""
  del tag
  model = Model()
  saver = _saver()
  with tf.compat.v1.Session() as session:
    session.run(_initializer())
    for step in range(10**6):
      model.run(session, step)
      if step > 1:
        model.erase_half(session, step - 2)
      model.dump(session, folder, "at_%d" % step)
      if step % 5:
        embedding_variable.save_incremental(saver, session, folder)
      else:
        saver.save(session, os.path.join(folder, "model.ckpt"), global_step=model.step,
                   write_meta_graph=False)
      print("SAVED %d" % step)


def main(mode, folder, tag):
  hvd.init()
  sok.init(exchange_timeout=60)
  globals()[mode](folder, tag)


if __name__ == "__main__":
  main(*sys.argv[1:])
