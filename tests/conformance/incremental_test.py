# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Incremental checkpoints by savers, hooks and sessions."""

import glob
import json
import os
import shutil

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

import embedding_variable as ev
from embedding_variable.checkpoint import incremental
from embedding_variable.ops import checkpoint_ops

_DIM = 3


class _Model(object):
  """A graph that trains two embedding variables and a dense one."""

  def __init__(self, train=True, parts=None, option=None, saver=None,
               optimizer=tf.train.AdamOptimizer, key_dtype=tf.int64):
    self.graph = tf.Graph()
    os.environ["TF_RECORD_FREQ"] = os.environ["TF_RECORD_VERSION"] = "1"
    with self.graph.as_default():
      tf.set_random_seed(3)
      self.step = tf.train.get_or_create_global_step()
      option = option or ev.EmbeddingVariableOption
      self.variables = [
          tf.get_embedding_variable(
              name, _DIM, key_dtype=key_dtype, ev_option=option(),
              initializer=tf.random_normal_initializer(seed=7),
              partitioner=parts and tf.fixed_size_partitioner(parts))
          for name in ("a", "b")
      ]
      self.dense = tf.get_variable("dense", [_DIM],
                                   initializer=tf.ones_initializer())
      self.ids = tf.placeholder(key_dtype, [None])
      rows = sum(tf.nn.embedding_lookup(v, self.ids) for v in self.variables)
      self.loss = tf.reduce_sum(tf.square(rows * self.dense - 1.0))
      if train:
        self.train = optimizer(0.05).minimize(self.loss, global_step=self.step)
      self.exports = []
      self.erase = []
      for v in self.variables:
        for part in ([v] if ev.is_embedding_variable(v) else list(v)):
          slots = list(part.slot_columns)
          self.exports.append((part.op.name.split("/")[0], slots,
                               checkpoint_ops.export_table(part.handle, slots)))
          self.erase.append(part.erase(self.ids))
      self.dense_state = tf.global_variables()
      self.dense_state = [v for v in self.dense_state
                          if not ev.is_embedding_variable(v)]
      self.saver = (saver or (lambda: tf.train.Saver(
          incremental_save_restore=True)))()
      self.init = tf.global_variables_initializer()
    del os.environ["TF_RECORD_FREQ"], os.environ["TF_RECORD_VERSION"]
    self.session = tf.Session(graph=self.graph)

  def start(self):
    self.session.run(self.init)
    # Slots exist from the first step on.
    return self.run(1, 0)

  def run(self, steps, seed, low=-50, high=50):
    random = np.random.RandomState(seed)
    for _ in range(steps):
      self.session.run(self.train, {self.ids: random.randint(low, high, size=8)})
    return self

  def state(self, slots=True):
    """Returns the whole content of a checkpoint, in a form that can be compared."""
    tables = {}
    for name, slot_names, export in self.exports:
      got = self.session.run(export)
      columns = [got.keys, got.values, got.versions, got.frequencies]
      if slots:
        columns += got.slots
      columns = [c.tolist() for c in columns]
      rows = tables.setdefault(name, {})
      for row in zip(*columns):
        rows[row[0]] = row[1:]
      for row in zip(got.filtered.keys.tolist(), got.filtered.frequencies.tolist(),
                     got.filtered.versions.tolist()):
        rows["counted", row[0]] = row[1:]
    dense = {}
    if slots:
      for v in self.dense_state:
        dense[v.op.name] = self.session.run(v).tolist()
    return tables, dense


class IncrementalTest(parameterized.TestCase):

  def setUp(self):
    super(IncrementalTest, self).setUp()
    self._dir = self.create_tempdir().full_path
    self._path = os.path.join(self._dir, "model.ckpt")

  def _full(self, model, **kwargs):
    return model.saver.save(model.session, self._path, global_step=model.step,
                            write_meta_graph=False, **kwargs)

  def _delta(self, model):
    return incremental.save_incremental(
        model.saver, model.session, self._dir, model.session.run(model.step))

  def _restored(self, path=None, **kwargs):
    model = _Model(**kwargs)
    model.saver.restore(model.session, path or tf.train.latest_checkpoint(self._dir))
    return model

  @parameterized.parameters(
      dict(), dict(parts=2), dict(key_dtype=tf.int32),
      dict(optimizer=tf.train.ProximalAdagradOptimizer),
      dict(option=lambda: ev.EmbeddingVariableOption(
          filter_option=ev.CounterFilter(3))),
      dict(option=lambda: ev.EmbeddingVariableOption(
          storage_option=ev.StorageOption(max_capacity=20, cache_strategy=0))),
      dict(saver=lambda: tf.train.Saver(sharded=True,
                                        incremental_save_restore=True)))
  def test_full_and_deltas_restore_the_last_state(self, **kwargs):
    one = _Model(**kwargs).start()
    one.run(5, seed=1)
    self._full(one)
    for i in range(3):
      one.run(3, seed=2 + i)
      one.session.run(one.erase, {one.ids: [i, -i]})
      self._delta(one)
      two = self._restored(**kwargs)
      self.assertEqual(two.state(), one.state())
    # Training after the restore equals uninterrupted training.
    self.assertEqual(two.run(4, seed=9).state(), one.run(4, seed=9).state())
    # The next full checkpoint starts a new chain.
    self._full(one)
    self.assertEqual(self._restored(**kwargs).state(), one.state())
    one.run(2, seed=10)
    self._delta(one)
    self.assertEqual(self._restored(**kwargs).state(), one.state())

  def test_a_delta_has_its_changes_and_its_predecessor(self):
    model = _Model().start()
    model.run(5, seed=1)
    full = self._full(model)
    model.session.run(model.train, {model.ids: [5, 1005, 5]})
    model.session.run(model.erase, {model.ids: [1005]})
    reader = tf.train.load_checkpoint(self._delta(model))
    shapes = reader.get_variable_to_shape_map()
    self.assertEqual(reader.get_tensor("a-sparse_incr_keys").tolist(), [5])
    self.assertEqual(reader.get_tensor("a-sparse_incr_erased_keys").tolist(), [1005])
    self.assertEqual(reader.get_tensor("a-sparse_incr_freqs").dtype, np.int64)
    self.assertEqual(reader.get_tensor("a-sparse_incr_versions").tolist(), [6])
    for name in ("a", "b", "a/Adam", "a/Adam_1"):
      self.assertEqual(shapes[name + "-sparse_incr_values"], [1, _DIM])
      self.assertEqual(shapes[name + "-incr_partition_offset"], [1001])
    # Dense variables are saved whole.
    self.assertEqual(reader.get_tensor("global_step"), 7)
    self.assertEqual(shapes["dense/Adam"], [_DIM])
    info = json.loads(reader.get_tensor("incremental_checkpoint"))
    self.assertEqual(info["full"], os.path.basename(full))
    self.assertEqual((info["sequence"], info["global_step"]), (1, 7))
    # Nothing changed after this, so the next delta has no rows.
    self.assertEqual(
        tf.train.load_checkpoint(self._delta(model)).get_tensor(
            "a-sparse_incr_keys").tolist(), [])

  def test_a_graph_without_the_optimizer_and_other_parts(self):
    one = _Model(parts=2).start()
    one.run(5, seed=1)
    self._full(one)
    one.run(3, seed=2)
    self._delta(one)
    tables, _ = one.state(slots=False)
    for parts in (None, 2, 3):
      two = self._restored(train=False, parts=parts, saver=tf.train.Saver)
      self.assertEqual(two.state(slots=False)[0], tables)
      self.assertEqual(two.session.run(two.step), 9)

  def test_a_reinitialized_table_is_replaced(self):
    one = _Model().start()
    one.run(5, seed=1)
    self._full(one)
    one.session.run(one.init)
    one.run(2, seed=3)
    self._delta(one)
    self.assertEqual(self._restored().state(), one.state())
    # The chain also restores into a graph with another number of parts.
    two = self._restored(parts=3)
    self.assertEqual(two.state()[0], one.state()[0])

  def test_which_restores_take_deltas(self):
    model = _Model().start()
    first = self._full(model)
    at_first = model.state()
    model.run(1, seed=1)
    self._delta(model)
    at_delta = model.state()
    off = lambda: tf.train.Saver(incremental_save_restore=False)
    self.assertEqual(self._restored(first, saver=tf.train.Saver).state(), at_delta)
    self.assertEqual(self._restored(first, saver=off).state(), at_first)
    with tf.Graph().as_default(), self.assertLogs("tensorflow", "WARNING") as logs:
      tf.get_embedding_variable("a", _DIM)
      tf.train.init_from_checkpoint(self._dir, {"a": "a"})
    self.assertIn("reads %s without its 1 incremental checkpoints" % first,
                  "".join(logs.output))
    model.run(1, seed=2)
    second = self._full(model)
    # An older checkpoint is restored without its deltas, unless the Saver enables them.
    self.assertEqual(self._restored(first, saver=tf.train.Saver).state(), at_first)
    self.assertEqual(self._restored(first).state(), at_delta)
    self.assertEqual(self._restored(second).state(), model.state())

  def test_a_failed_delta_loses_nothing(self):
    model = _Model().start()
    self._full(model)
    model.run(3, seed=1)
    folder = os.path.join(self._dir, ".incremental_checkpoint")
    with open(folder, "w"):
      pass
    with self.assertRaises(tf.errors.OpError):
      self._delta(model)
    os.remove(folder)
    model.run(1, seed=2)
    self._delta(model)
    self.assertEqual(self._restored().state(), model.state())

  def test_error_names_the_missing_or_damaged_delta(self):
    model = _Model().start()
    self._full(model)
    deltas = []
    for i in range(3):
      model.run(1, seed=i)
      deltas.append(self._delta(model))
    state = model.state()
    broken = _Model()
    before = self._restored(train=False).state(slots=False)

    def fails(pattern):
      with self.assertRaisesRegex(tf.errors.DataLossError, pattern):
        broken.saver.restore(broken.session, tf.train.latest_checkpoint(self._dir))
      # The restore changed nothing.
      with self.assertRaises(tf.errors.FailedPreconditionError):
        broken.session.run(broken.dense)

    kept = os.path.join(self._dir, "kept")
    shutil.copytree(os.path.join(self._dir, ".incremental_checkpoint"), kept)

    def mend():
      for f in os.listdir(kept):
        shutil.copy(os.path.join(kept, f), os.path.dirname(deltas[0]))

    for i, what in ((0, ".index"), (1, ".index"), (0, ".data-00000-of-00001"),
                    (2, ".data-00000-of-00001")):
      os.remove(deltas[i] + what)
      fails("%s (is missing|cannot be read)" % os.path.basename(deltas[i]))
      mend()
    random = np.random.RandomState(1)
    for i, what in ((2, ".data-00000-of-00001"), (2, ".index"), (1, ".index")):
      path = deltas[i] + what
      with open(path, "rb") as f:
        contents = f.read()
      for change in ("cut", "flip", "flip", "flip"):
        at = random.randint(len(contents))
        damaged = bytearray(contents[:at] if change == "cut" else contents)
        if change == "flip":
          damaged[at] ^= 1 << random.randint(8)
        with open(path, "wb") as f:
          f.write(damaged)
        fails(os.path.basename(deltas[i]))
      mend()
    # Deltas of another chain under the same name.
    shutil.copy(deltas[0] + ".index", deltas[1] + ".index")
    shutil.copy(deltas[0] + ".data-00000-of-00001", deltas[1] + ".data-00000-of-00001")
    fails("%s.*continues something else" % os.path.basename(deltas[1]))
    mend()
    self.assertEqual(self._restored().state(), state)
    self.assertEqual(self._restored(train=False).state(slots=False), before)
    # Without its last delta a chain is valid but shorter.
    os.remove(deltas[2] + ".index")
    self._restored()

  def test_deltas_go_with_their_full_checkpoint(self):
    model = _Model(saver=lambda: tf.train.Saver(
        max_to_keep=2, incremental_save_restore=True)).start()
    for i in range(4):
      self._full(model)
      model.run(1, seed=i)
      self._delta(model)
    deltas = glob.glob(os.path.join(self._dir, ".incremental_checkpoint", "*.index"))
    fulls = glob.glob(os.path.join(self._dir, "*.index"))
    self.assertLen(fulls, 2)
    self.assertCountEqual(
        [os.path.basename(d).rsplit("-", 2)[0] + ".index" for d in deltas],
        [os.path.basename(f) for f in fulls])

  def test_a_full_checkpoint_saved_again_has_no_old_deltas(self):
    model = _Model().start()
    self._full(model)
    model.run(3, seed=1)
    self._delta(model)
    # Another training under the same name.
    other = _Model().start()
    other.run(4, seed=7)
    other.saver.save(other.session, self._path + "-1", write_meta_graph=False)
    self.assertEqual(self._restored(self._path + "-1").state(), other.state())

  def test_errors(self):
    plain = _Model(saver=tf.train.Saver).start()
    with self.assertRaisesRegex(ValueError, "incremental_save_restore=True"):
      self._delta(plain)
    model = _Model().start()
    with self.assertRaisesRegex(ValueError, "has not saved one to"):
      self._delta(model)

  def test_deeprecs_calls(self):
    from tensorflow.python.training import incremental_saver  # pylint: disable=g-import-not-at-top
    model = _Model(saver=lambda: tf.train.Saver(sharded=True,
                                                incremental_include_normal_var=True))
    with model.graph.as_default():
      deltas = incremental_saver._get_incremental_saver(True, model.saver)
    self.assertIsNone(incremental_saver._get_incremental_saver(False, model.saver))
    full = self._full(model.start())
    found = []
    for path, step in ((".incremental_checkpoint/incr", model.step), ("mine", 77)):
      model.run(2, seed=step if step == 77 else 1)
      prefix = os.path.join(self._dir, path)
      delta = deltas.incremental_save(model.session, prefix, step)
      self.assertEqual(delta, "%s-%d" % (prefix, 77 if step == 77 else
                                         model.session.run(model.step)))
      self.assertTrue(tf.train.load_checkpoint(delta).has_tensor("a-sparse_incr_keys"))
      found.append((delta, model.state()))
    other = _Model()
    deltas = incremental_saver.IncrementalSaver(other.saver)
    for delta, state in reversed(found):
      deltas.incremental_restore(other.session, full, delta)
      self.assertEqual(other.state(), state)
    # A stock restore reads the chain of deltas that the copies came from.
    self.assertEqual(self._restored(full).state(), found[-1][1])
    second = self._full(model)
    with self.assertRaisesRegex(tf.errors.DataLossError, "mine-77 is not one of the 0 that"):
      deltas.incremental_restore(other.session, second, found[1][0])
    with self.assertRaises(tf.errors.NotFoundError):
      deltas.incremental_restore(other.session, full, self._path + "-9")
    self.assertEqual(other.state(), found[0][1])

  def test_deeprecs_incremental_saver(self):
    from tensorflow.python.training import incremental_saver  # pylint: disable=g-import-not-at-top
    model = _Model(saver=tf.train.Saver)
    with model.graph.as_default():
      deltas = incremental_saver.IncrementalSaver(
          sharded=True, saver_def=model.saver.saver_def, defer_build=True, allow_empty=True,
          incremental_include_normal_var=True)
      deltas.build(model.saver._builder.filename_tensor)
      same = incremental_saver.IncrementalSaver(saver_def=model.saver.saver_def)
      self.assertIs(same._saver, model.saver)
      self.assertIs(incremental_saver.IncrementalSaver()._saver, model.saver)
      another = tf.train.Saver()
      with self.assertRaisesRegex(ValueError, "the graph has 2 savers that are built: name"):
        incremental_saver.IncrementalSaver()
      del another
    full = self._full(model.start())
    states = [(full, model.state())]
    folder = os.path.join(self.create_tempdir().full_path, "deltas")
    for step in (7, 9):
      model.run(2, seed=step)
      delta = deltas.incremental_save(model.session, os.path.join(folder, "incr"), step)
      self.assertEqual(delta, os.path.join(folder, "incr-%d" % step))
      states.append((delta, model.state()))
    other = _Model()
    restoring = incremental_saver.IncrementalSaver(other.saver)
    for delta, state in states[1:]:
      restoring.incremental_restore(other.session, full, delta)
      self.assertEqual(other.state(), state)
    # Restores the full checkpoint, then its deltas.
    off = _Model(saver=lambda: tf.train.Saver(incremental_save_restore=False))
    off.saver.restore(off.session, full)
    self.assertEqual(off.state(), states[0][1])
    incremental_saver.IncrementalSaver(off.saver).recover_incr_checkpoints(off.session,
                                                                           self._dir)
    self.assertEqual(off.state(), states[-1][1])
    with self.assertRaisesRegex(ValueError, "graph has 0 savers that are built with this"):
      incremental_saver.IncrementalSaver(saver_def=model.saver.saver_def)

  def test_an_export_takes_deltas(self):
    from tensorflow.python.training import incremental_saver  # pylint: disable=g-import-not-at-top
    model = _Model().start()
    full = self._full(model)
    export = os.path.join(self._dir, "export")
    with model.graph.as_default():
      builder = tf.saved_model.Builder(export)
      builder.add_meta_graph_and_variables(model.session, ["serve"], save_incr_model=True)
      builder.save()
    model.run(3, seed=1)
    delta = self._delta(model)
    with tf.Graph().as_default(), tf.Session() as session:
      meta_graph = tf.saved_model.load(session, ["serve"], export)
      tables = [v.export()[:2] for v in tf.get_collection("embedding_variables")]
      saver = tf.train.Saver(saver_def=meta_graph.saver_def)
      before = session.run(tables)
      incremental_saver.IncrementalSaver(saver).incremental_restore(session, full, delta)
      after = session.run(tables)
    for old, (keys, values), name in zip(before, after, ("a", "b")):
      want = model.state()[0][name]
      self.assertEqual(dict(zip(keys.tolist(), values.tolist())),
                       {key: row[0] for key, row in want.items()})
      self.assertNotEqual(old[0].tolist(), keys.tolist())

  def _train(self, steps, **kwargs):
    """Trains in a MonitoredTrainingSession; returns the state at the end."""
    model = _Model(saver=lambda: None)
    with model.graph.as_default():
      with tf.train.MonitoredTrainingSession(
          checkpoint_dir=self._dir, log_step_count_steps=None,
          save_summaries_steps=None, save_summaries_secs=None, **kwargs) as session:
        first = session.run(model.step)
        for i in range(steps):
          session.run(model.train, {model.ids: np.arange(i, i + 4) * 3})
        model.session = session._tf_sess()
        return first, model.state()

  def test_monitored_training_session_recovers_from_deltas(self):
    with self.assertRaisesRegex(RuntimeError, "the machine is gone"):
      with self._no_last_save():
        _, expected = self._train(7, save_checkpoint_steps=1000,
                                  save_incremental_checkpoint_steps=2)
    deltas = glob.glob(os.path.join(self._dir, ".incremental_checkpoint", "*.index"))
    self.assertLen(deltas, 3)
    first, _ = self._train(0, save_checkpoint_steps=1000)
    self.assertEqual(first, 6)

  def _no_last_save(self):
    hook = tf.train.CheckpointSaverHook

    def end(self, session):
      raise RuntimeError("the machine is gone")

    return absltest.mock.patch.object(hook, "end", end)

  def test_a_folder_with_a_relative_and_an_absolute_name(self):
    self.addCleanup(os.chdir, os.getcwd())
    os.chdir(self._dir)
    one = _Model().start()
    one.saver.save(one.session, "saved/model.ckpt", write_meta_graph=False)
    for folder in (os.path.join(self._dir, "saved"), "saved", "./saved/"):
      one.run(1, seed=1)
      delta = incremental.save_incremental(one.saver, one.session, folder)
      self.assertTrue(os.path.exists(delta + ".index"))

  def test_a_delta_of_another_session(self):
    one = _Model().start()
    path = self._full(one)
    with tf.Session(graph=one.graph) as other:
      one.saver.restore(other, path)
      with self.assertRaisesRegex(ValueError, r"in this session.*call its save\(\) first"):
        incremental.save_incremental(one.saver, other, self._dir)
    self._delta(one)

  def test_a_delta_of_a_monitored_session(self):
    model = _Model()
    with model.graph.as_default():
      for make in (tf.train.SingularMonitoredSession, tf.train.MonitoredSession):
        raw = []
        hook = tf.train.SessionRunHook()
        hook.after_create_session = lambda session, _: raw.append(session)  # pylint: disable=cell-var-from-loop
        with make(hooks=[hook]) as session:
          model.session = raw[0]
          model.start()
          self._full(model)
          incremental.save_incremental(model.saver, session, self._dir)

  def test_hook_with_both_periods(self):
    model = _Model(saver=lambda: None)
    with model.graph.as_default():
      hook = tf.train.CheckpointSaverHook(self._dir, save_steps=4,
                                          incremental_save_steps=1)
      with tf.train.SingularMonitoredSession(hooks=[hook]) as session:
        session.raw_session().run(model.init)
        for i in range(6):
          session.run(model.train, {model.ids: [i]})
    names = sorted(
        os.path.basename(p)[:-6].split("-") for p in glob.glob(
            os.path.join(self._dir, ".incremental_checkpoint", "*.index")))
    # Full checkpoints are saved at steps 0 and 4 and at the end, step 6.
    self.assertEqual([(n[1], n[3]) for n in names],
                     [("0", "00001"), ("0", "00002"), ("0", "00003"), ("4", "00001"),
                      ("4", "00002")])

  def test_rows_since_a_step_go_to_serving(self):
    one = _Model().start()
    one.run(4, seed=1)
    serving = _Model(train=False)
    path = self._full(one)
    serving.saver.restore(serving.session, path)
    one.run(3, seed=2)
    export = os.path.join(self._dir, "push", "5")
    self.assertEqual(ev.export_since(one.session, 5, export), export)
    changed = tf.train.load_checkpoint(export).get_tensor("a-sparse_incr_keys")
    self.assertLess(len(changed), len(one.state()[0]["a"]))
    for _ in range(2):
      ev.apply_export(serving.session, export)
      self.assertEqual(serving.state(slots=False)[0], one.state(slots=False)[0])
    with serving.graph.as_default(), self.assertRaises(tf.errors.NotFoundError):
      ev.apply_export(serving.session, export + "x")
    final = _Model().start()
    final.graph.finalize()
    with self.assertRaisesRegex(RuntimeError, "prepare_export"):
      ev.export_since(final.session, 5, export)
    with tf.Graph().as_default():
      tf.get_embedding_variable("plain", 2)
      with tf.Session() as session, self.assertRaisesRegex(ValueError, "'plain'"):
        ev.export_since(session, 5, export)

  def test_a_table_that_is_created_after_the_ops_of_exports(self):
    export = os.path.join(self._dir, "export")
    model = _Model().start()
    with model.graph.as_default():
      ev.prepare_export()
      tf.get_embedding_variable("late", 2)
      ev.prepare_export()
      for call in (lambda: ev.export_since(model.session, 0, export),
                   lambda: ev.apply_export(model.session, export)):
        with self.assertRaisesRegex(ValueError, "'late'.*prepare_export"):
          call()

  def test_a_graph_without_a_table(self):
    with tf.Graph().as_default():
      step = tf.train.get_or_create_global_step()
      hook = tf.train.CheckpointSaverHook(self._dir, save_steps=4,
                                          incremental_save_steps=1)
      with self.assertRaisesRegex(ValueError, "embedding variables, and the graph has"):
        tf.train.SingularMonitoredSession(hooks=[hook])
      with self.assertRaisesRegex(ValueError, "incremental checkpoints hold"):
        tf.train.MonitoredTrainingSession(checkpoint_dir=self._dir,
                                          save_incremental_checkpoint_steps=2)
      tf.get_embedding_variable("v", 2)
      hook = tf.train.CheckpointSaverHook(
          self._dir, save_steps=4, incremental_save_steps=1, saver=tf.train.Saver([step]))
      with self.assertRaisesRegex(ValueError, "embedding variables, and the saver has"):
        tf.train.SingularMonitoredSession(hooks=[hook])
    self.assertEmpty(glob.glob(os.path.join(self._dir, "*.index")))

  def test_state_file_that_is_not_text(self):
    model = _Model().start()
    path = self._full(model)
    with open(os.path.join(self._dir, "checkpoint"), "wb") as f:
      f.write(b"\xff\xfe")
    self.assertEqual(self._restored(path).state(), model.state())

  def test_invalid_arguments(self):
    with tf.Graph().as_default():
      with self.assertRaisesRegex(ValueError, "checkpoint_dir"):
        tf.train.MonitoredTrainingSession(save_incremental_checkpoint_secs=1)
      with self.assertRaisesRegex(ValueError, "continue full ones"):
        tf.train.MonitoredTrainingSession(
            checkpoint_dir=self._dir, save_checkpoint_secs=None,
            save_incremental_checkpoint_secs=1)
      with self.assertRaises(ValueError):
        tf.train.CheckpointSaverHook(self._dir, save_steps=1, incremental_save_secs=1,
                                     incremental_save_steps=1)


if __name__ == "__main__":
  absltest.main()
