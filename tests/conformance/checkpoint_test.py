# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""`tf.train.Saver` with embedding variables."""

import glob
import os
import resource
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tensorflow.python.training import saver as saver_lib

import embedding_variable  # pylint: disable=unused-import
from embedding_variable.checkpoint import left_out_slots
from embedding_variable.checkpoint_format import interrupted

import pairs
import saved_model

_ROWS, _DIM = saved_model.ROWS, saved_model.DIM


class CheckpointTest(parameterized.TestCase):

  def setUp(self):
    super(CheckpointTest, self).setUp()
    self._path = os.path.join(self.create_tempdir().full_path, "model.ckpt")

  def _save(self, model):
    return model.saver.save(model.session, self._path, write_meta_graph=False)

  @parameterized.parameters(
      (tf.train.AdamOptimizer, None), (tf.train.AdagradOptimizer, None),
      (tf.train.FtrlOptimizer, 2), (tf.train.GradientDescentOptimizer, None),
      (tf.train.AdamAsyncOptimizer, 3),
      # Takes the generic path.
      (tf.train.ProximalAdagradOptimizer, None))
  def test_resumed_training_equals_uninterrupted_training(self, optimizer, parts):
    one = saved_model.Model(optimizer, parts).start()
    one.run(5, seed=1)
    path = self._save(one)
    expected = one.run(5, seed=2)
    two = saved_model.Model(optimizer, parts)
    # Restores first into a new session, then over trained rows.
    for _ in range(2):
      two.saver.restore(two.session, path)
      self.assertEqual(two.run(5, seed=2), expected)
      self.assertEqual(two.contents(), one.contents())
      self.assertEqual(two.session.run(two.step), 10)

  def test_tensors_of_the_checkpoint(self):
    model = saved_model.Model(record=("TF_RECORD_FREQ", "TF_RECORD_VERSION")).start()
    model.run(3, seed=1)
    reader = tf.train.load_checkpoint(self._save(model))
    types = reader.get_variable_to_dtype_map()
    suffixes = {
        "keys": tf.int64, "values": tf.float32, "versions": tf.int64,
        "freqs": tf.int64, "partition_offset": tf.int32,
        "keys_filtered": tf.int64, "versions_filtered": tf.int64,
        "freqs_filtered": tf.int64, "partition_filter_offset": tf.int32
    }
    for name in ("v", "v/Adam", "v/Adam_1"):
      for suffix, dtype in suffixes.items():
        self.assertEqual(types["%s-%s" % (name, suffix)], dtype)
    self.assertCountEqual(
        [name for name in types if name.startswith("v")], ["v-default_rows"] +
        ["%s-%s" % (n, s) for n in ("v", "v/Adam", "v/Adam_1") for s in suffixes])
    keys = reader.get_tensor("v-keys")
    np.testing.assert_array_equal(reader.get_tensor("v/Adam-keys"), keys)
    self.assertEqual(reader.get_tensor("v-values").shape, (len(keys), _DIM))
    self.assertEqual(reader.get_tensor("v-freqs").sum(), 60)
    self.assertLessEqual(reader.get_tensor("v-versions").max(), 2)
    self.assertEqual(
        dict(zip(keys.tolist(), reader.get_tensor("v-values").tolist())),
        model.contents())
    # Rows offset[b] to offset[b + 1] - 1 have the keys of bucket b.
    offset = reader.get_tensor("v-partition_offset")
    self.assertEqual(offset.shape, (1001,))
    self.assertEqual(offset[0], 0)
    self.assertEqual(offset[-1], len(keys))
    for bucket in range(1000):
      for key in keys[offset[bucket]:offset[bucket + 1]]:
        self.assertEqual(key % 1000, bucket)
    np.testing.assert_array_equal(
        reader.get_tensor("v-partition_filter_offset"), np.zeros([1001]))

  def test_frequency_and_version_come_back(self):
    record = ("TF_RECORD_FREQ", "TF_RECORD_VERSION")
    one = saved_model.Model(record=record).start()
    one.run(3, seed=1)
    two = saved_model.Model(record=record)
    two.saver.restore(two.session, self._save(one))
    for a, b in zip(one.session.run(one.export)[0], two.session.run(two.export)[0]):
      np.testing.assert_array_equal(a, b)
    # A variable that does not record them restores the same checkpoint.
    three = saved_model.Model()
    three.saver.restore(three.session, self._path)
    self.assertEqual(three.contents(), one.contents())

  @parameterized.product(saved=(None, 1, 2, 5), restored=(None, 1, 2, 3))
  def test_another_number_of_parts(self, saved, restored):
    one = saved_model.Model(parts=saved).start()
    one.run(4, seed=1)
    path = self._save(one)
    two = saved_model.Model(parts=restored)
    two.saver.restore(two.session, path)
    self.assertEqual(two.contents(), one.contents())
    self.assertGreater(len(one.contents()), 20)
    for i, (keys, _, _, _) in enumerate(two.session.run(two.export)):
      self.assertTrue(all(k % 1000 % (restored or 1) == i for k in keys.tolist()))
    # Slots are restored: training continues alike, except for the order of sums.
    np.testing.assert_allclose(two.run(3, seed=2), one.run(3, seed=2), rtol=1e-5)

  def test_a_missing_slot_starts_with_its_initial_value(self):
    one = saved_model.Model(tf.train.GradientDescentOptimizer).start()
    one.run(3, seed=1)
    path = self._save(one)
    two = saved_model.Model(tf.train.AdagradOptimizer, saver=lambda: tf.train.Saver(
        tf.get_collection("embedding_variables")))
    two.saver.restore(two.session, path)
    self.assertEqual(two.contents(), one.contents())
    self._save(two)
    np.testing.assert_array_equal(
        tf.train.load_variable(self._path, "v/Adagrad-values"),
        np.full([len(one.contents()), _DIM], .1, np.float32))

  @parameterized.parameters((None, False), (2, False), (None, True))
  def test_warnings_about_slots_that_are_left_out(self, parts, sharded):
    """Tests a Saver that was made before the optimizer, and its checkpoint."""

    def warnings(run):
      with mock.patch.object(left_out_slots.logging, "warning") as warning:
        run()
      return [args[0][0] % args[0][1:] for args in warning.call_args_list
              if "slots" in args[0][0] % args[0][1:]]

    def model():
      v = tf.get_embedding_variable(
          "v", _DIM, partitioner=parts and tf.fixed_size_partitioner(parts))
      u = tf.get_embedding_variable("untrained", _DIM)
      del u
      early = tf.train.Saver(sharded=sharded)
      loss = tf.reduce_sum(tf.nn.embedding_lookup(v, [1, 2, 3, 4]))
      train = tf.train.AdamOptimizer().minimize(loss)
      dense = [x for x in tf.global_variables() if "beta" in x.name]
      return early, tf.train.Saver(sharded=sharded), train, dense

    names = ["v"] if parts is None else ["v/part_0", "v/part_1"]
    with tf.Graph().as_default(), tf.Session() as session:
      early, late, train, dense = model()
      session.run(tf.global_variables_initializer())
      session.run(train)
      self.assertEmpty(warnings(lambda: late.save(session, self._path + "-late")))
      found = warnings(lambda: early.save(session, self._path))
      self.assertLen(found, len(names))
      for name, message in zip(names, found):
        self.assertRegex(
            message, "^embedding variable '%s': the Saver was made before the optimizer "
            "and does not save its slots Adam, Adam_1" % name)
      # The warning is logged only once.
      self.assertEmpty(warnings(lambda: early.save(session, self._path)))
    with tf.Graph().as_default(), tf.Session() as session:
      early, late, train, dense = model()
      del train
      self.assertEmpty(warnings(lambda: late.restore(session, self._path + "-late")))
      found = warnings(lambda: early.restore(session, self._path + "-late"))
      self.assertLen(found, len(names))
      self.assertIn("does not restore its slots Adam, Adam_1", found[0])
      tables = tf.train.Saver([v for v in tf.global_variables() if v not in dense],
                              sharded=sharded)
      found = warnings(lambda: tables.restore(session, self._path))
      self.assertLen(found, len(names))
      for name, message in zip(names, found):
        self.assertRegex(message, "^embedding variable '%s': checkpoint .*model.ckpt has "
                         "no slots Adam, Adam_1" % name)

  def test_restore_into_a_graph_without_the_optimizer(self):
    one = saved_model.Model().start()
    one.run(3, seed=1)
    path = self._save(one)
    two = saved_model.Model(train=False)
    two.saver.restore(two.session, path)
    self.assertEqual(two.contents(), one.contents())
    ids = {two.ids: list(range(-5, 5))}
    np.testing.assert_array_equal(
        two.session.run(two.rows, ids),
        one.session.run(one.rows, {one.ids: ids[two.ids]}))

  def test_another_dim(self):
    one = saved_model.Model().start()
    one.run(2, seed=1)
    path = self._save(one)
    two = saved_model.Model(dim=_DIM + 1, train=False,
                            saver=lambda: tf.train.Saver(tf.get_collection(
                     "embedding_variables")))
    with self.assertRaisesRegex(
        Exception, r"embedding variable 'v': .*v-values.*model.ckpt.*"
        r"embedding_dim is 4.*\[\d+,3\]"):
      two.saver.restore(two.session, path)

  @parameterized.parameters(_DIM + 2, _DIM - 1)
  def test_another_dim_on_demand(self, dim):
    one = saved_model.Model(tf.train.AdagradOptimizer).start()
    one.run(2, seed=1)
    path = self._save(one)
    os.environ["TF_EV_RESTORE_CUSTOM_DIM"] = "1"
    self.addCleanup(os.environ.pop, "TF_EV_RESTORE_CUSTOM_DIM")
    two = saved_model.Model(
        tf.train.AdagradOptimizer, dim=dim, saver=lambda: tf.train.Saver(
        tf.get_collection("embedding_variables")))
    two.saver.restore(two.session, path)
    keys = sorted(one.contents())
    # Absent keys with the same default rows.
    expected = two.session.run(two.rows, {two.ids: [k + 4096 * 10**5 for k in keys]})
    self.assertTrue(expected.all())
    common = min(dim, _DIM)
    expected[:, :common] = [one.contents()[k][:common] for k in keys]
    np.testing.assert_array_equal(two.session.run(two.rows, {two.ids: keys}), expected)
    slots = tf.train.load_variable(path, "v/Adagrad-values")
    self._save(two)
    found = tf.train.load_variable(self._path, "v/Adagrad-values")
    np.testing.assert_array_equal(found[:, :common], slots[:, :common])
    np.testing.assert_array_equal(found[:, common:], np.full_like(found[:, common:], .1))

  def test_versions_can_be_reset(self):
    one = saved_model.Model(record=("TF_RECORD_VERSION",)).start()
    one.run(3, seed=1)
    os.environ["TF_EV_RESET_VERSION"] = "1"
    self.addCleanup(os.environ.pop, "TF_EV_RESET_VERSION")
    two = saved_model.Model(record=("TF_RECORD_VERSION",))
    two.saver.restore(two.session, self._save(one))
    self.assertTrue(one.session.run(one.export)[0][2].any())
    self.assertFalse(two.session.run(two.export)[0][2].any())
    self.assertEqual(two.contents(), one.contents())

  def test_a_variable_that_the_checkpoint_lacks(self):
    path = self._save(saved_model.Model().start())
    other = saved_model.Model(name="w", train=False)
    with self.assertRaisesRegex(tf.errors.NotFoundError, "w-keys"):
      other.saver.restore(other.session, path)

  def test_a_damaged_checkpoint(self):
    one = saved_model.Model(train=False, saver=lambda: tf.train.Saver(
        tf.get_collection("embedding_variables")))
    trained = saved_model.Model().start()
    trained.run(3, seed=1)
    path = self._save(trained)
    first_row = np.array(sorted(
        trained.contents().items(), key=lambda kv: (kv[0] % 1000, kv[0]))[0][1],
        np.float32).tobytes()
    data, = [path + name[len("model.ckpt"):] for name, content in self._files().items()
             if name.startswith("model.ckpt.data-") and first_row in content]
    with open(data, "r+b") as f:
      content = f.read()
      f.seek(content.index(first_row))
      f.write(b"\x00\x01\x02")
    with self.assertRaisesRegex(tf.errors.DataLossError,
                                "'v': .*checksum of tensor v-values"):
      one.saver.restore(one.session, path)

  def test_int32_keys(self):
    one = saved_model.Model(key_dtype=tf.int32).start()
    one.run(3, seed=1)
    path = self._save(one)
    self.assertEqual(tf.train.load_variable(path, "v-keys").dtype, np.int32)
    two = saved_model.Model(key_dtype=tf.int32)
    two.saver.restore(two.session, path)
    self.assertEqual(two.contents(), one.contents())

  def test_table_named_like_a_part_of_another_table(self):
    for first in (True, False):
      with tf.Graph().as_default():
        names = [("v", tf.fixed_size_partitioner(2)), ("v/part_3", None)]
        for name, partitioner in names if first else names[::-1]:
          tf.get_embedding_variable(name, _DIM, partitioner=partitioner)
        tf.train.Saver()
    with tf.Graph().as_default():
      tf.get_embedding_variable("v", _DIM, partitioner=tf.fixed_size_partitioner(2))
      part = tf.get_embedding_variable("v/part_2", _DIM)
      tf.train.Saver([part])
      with self.assertRaisesRegex(ValueError, "'v/part_2' has the name that part 2 of 'v'"):
        tf.train.Saver()

  def test_missing_folders_are_created(self):
    model = saved_model.Model(saver=lambda: tf.train.Saver(sharded=True)).start()
    for i in range(5):
      path = os.path.join(os.path.dirname(self._path), "a%d" % i, "b", "c", "model.ckpt")
      self.assertEqual(model.saver.save(model.session, path), path)
    with open(self._path, "w"):
      pass
    with self.assertRaises((tf.errors.OpError, ValueError)):
      model.saver.save(model.session, os.path.join(self._path, "x", "model.ckpt"))

  def _interrupted(self):
    """Leaves a checkpoint whose replacement was interrupted; returns the new model."""
    model = saved_model.Model(tf.train.GradientDescentOptimizer).start()
    model.run(2, seed=1)
    self._save(model)
    model.run(3, seed=2)
    new = model.saver.save(model.session, self._path + "-new", write_meta_graph=False)
    for i, found in enumerate(sorted(glob.glob(new + ".*"))):
      # Only the first data file has its final name.
      os.rename(found, self._path + (".commit" if i else "") + found[len(new):])
    tf.train.update_checkpoint_state(os.path.dirname(self._path), self._path)
    return model

  def test_reading_an_interrupted_save_writes_nothing(self):
    one = self._interrupted()
    before = self._files()

    def init():
      tf.train.init_from_checkpoint(self._path, {"v": "v", "dense": "dense"})
      return tf.train.Saver()

    two = saved_model.Model(train=False, saver=init).start()
    self.assertEqual(two.contents(), one.contents())
    self.assertEqual(tf.train.load_variable(os.path.dirname(self._path), "global_step"), 5)
    self.assertEqual(self._files(), before)
    # A file system that allows no writes.
    read_only = tf.errors.PermissionDeniedError(None, None, "Read-only file system")
    three = saved_model.Model(train=False)
    with absltest.mock.patch.object(interrupted.tf.io.gfile, "rename", side_effect=read_only):
      three.saver.restore(three.session, self._path)
    self.assertEqual(three.contents(), one.contents())
    self.assertEqual(self._files(), before)
    # With writes, the restore completes the replacement.
    three.saver.restore(three.session, self._path)
    self.assertEqual(three.contents(), one.contents())
    self.assertFalse(glob.glob(self._path + ".commit*"))

  def test_keras_files_that_cannot_hold_a_table(self):
    if pairs.is_tensorflow_2():
      self.skipTest("tf.train.Checkpoint refuses tables: tensorflow_2_test")

    class Layer(tf.keras.layers.Layer):

      def build(self, shape):
        self.table = tf.get_embedding_variable("t", _DIM)

      def call(self, ids):
        return tf.nn.embedding_lookup(self.table, ids)

    with tf.Graph().as_default(), tf.Session().as_default() as session:
      tf.keras.backend.set_session(session)
      model = tf.keras.Sequential([Layer(input_shape=(1,), dtype=tf.int64)])
      session.run(tf.global_variables_initializer())
      path = self._path + ".h5"
      with open(path, "w") as f:
        f.write("old")
      for save in (lambda: model.save_weights(path), lambda: model.save(path),
                   lambda: model.save_weights(self._path, save_format="h5")):
        with self.assertRaisesRegex(NotImplementedError, "'t': Keras cannot save"):
          save()
      with open(path) as f:
        self.assertEqual(f.read(), "old")
      model.save_weights(self._path)
      self.assertTrue(os.path.exists(self._path + ".index"))

  def test_int64_keys_into_int32_keys(self):
    one = saved_model.Model().start()
    one.session.run(one.train, {one.ids: [1, 2**31 - 1]})
    narrow = saved_model.Model(key_dtype=tf.int32)
    narrow.saver.restore(narrow.session, self._save(one))
    self.assertEqual(narrow.contents(), one.contents())
    one.session.run(one.train, {one.ids: [1, 2**40 + 1]})
    with self.assertRaisesRegex(tf.errors.InvalidArgumentError,
                                "'v': id 1099511627777 does not fit into int32"):
      narrow.saver.restore(narrow.session, self._save(one))

  def test_save_before_the_first_step(self):
    path = self._save(saved_model.Model().start())
    self.assertEqual(tf.train.load_variable(path, "v-keys").shape, (0,))
    two = saved_model.Model()
    two.saver.restore(two.session, path)
    self.assertLen(two.run(1, seed=1), 1)

  @parameterized.parameters(
      (lambda: tf.train.Saver(sharded=True),),
      (lambda: tf.train.Saver(reshape=True),),
      (lambda: tf.train.Saver(tf.global_variables()),),
      (lambda: tf.train.Saver({v.op.name: v for v in tf.global_variables()}),),
      (lambda: tf.train.Saver(max_to_keep=1, save_relative_paths=True),))
  def test_ways_to_make_a_saver(self, saver):
    one, two = saved_model.Model(saver=saver).start(), saved_model.Model(saver=saver)
    one.run(3, seed=1)
    path = self._save(one)
    self.assertTrue(tf.train.checkpoint_exists(path))
    two.saver.restore(two.session, path)
    self.assertEqual(two.contents(), one.contents())

  def test_under_another_name(self):
    one = saved_model.Model(saver=lambda: tf.train.Saver({
        "renamed": tf.get_collection("embedding_variables")[0]})).start()
    one.run(2, seed=1)
    path = self._save(one)
    self.assertLen(tf.train.load_variable(path, "renamed-keys"),
                   len(one.contents()))
    two = saved_model.Model(saver=lambda: tf.train.Saver({
        "renamed": tf.get_collection("embedding_variables")[0]}))
    two.start()
    two.saver.restore(two.session, path)
    self.assertEqual(two.contents(), one.contents())

  def test_slots_can_be_initialized_and_listed(self):
    with tf.Graph().as_default(), tf.Session() as session:
      v = tf.get_embedding_variable("v", _DIM)
      optimizer = tf.train.AdamOptimizer(.1)
      train = optimizer.minimize(
          tf.reduce_sum(tf.square(tf.nn.embedding_lookup(v, [1, 2]))))
      reset = tf.variables_initializer(optimizer.variables())
      # Resetting a table before its creation does nothing.
      session.run(reset)
      session.run(tf.global_variables_initializer())
      session.run(train)
      rows = tf.nn.embedding_lookup(v, [1, 2])
      before = session.run(rows)
      slots = [optimizer.get_slot(v, name) for name in ("m", "v")]
      for slot in slots:
        self.assertTrue(session.run(slot.sparse_read([1, 2])).all())
        self.assertTrue(session.run(slot.is_initialized()))
      session.run(slots[0].initializer)
      self.assertFalse(session.run(slots[0].sparse_read([1, 2])).any())
      self.assertTrue(session.run(slots[1].sparse_read([1, 2])).all())
      np.testing.assert_array_equal(session.run(rows), before)
      tf.train.Saver([v] + optimizer.variables())
      with self.assertRaisesRegex(
          ValueError, "v/Adam:0 is saved .* embedding variable 'v'"):
        tf.train.Saver(optimizer.variables())

  def test_object_based_checkpoint(self):
    if pairs.is_tensorflow_2():
      self.skipTest("tf.train.Checkpoint refuses tables: tensorflow_2_test")

    def build():
      v = tf.get_embedding_variable("v", _DIM)
      optimizer = tf.train.AdamOptimizer()
      train = optimizer.minimize(
          tf.reduce_sum(tf.square(tf.nn.embedding_lookup(v, [1, -2]))))
      m = optimizer.get_slot(v, "m").sparse_read([1, -2])
      return v.export()[:2], m, train, tf.train.Checkpoint(table=v, opt=optimizer)

    with tf.Graph().as_default(), tf.Session() as session:
      export, m, train, checkpoint = build()
      session.run(tf.global_variables_initializer())
      session.run(train)
      path = checkpoint.save(self._path, session=session)
      expected = session.run([export, m])
    with tf.Graph().as_default(), tf.Session() as session:
      export, m, train, checkpoint = build()
      checkpoint.restore(path).initialize_or_restore(session)
      found = session.run([export, m])
      for a, b in zip(expected[0], found[0]):
        np.testing.assert_array_equal(a, b)
      np.testing.assert_array_equal(expected[1], found[1])

  def test_old_checkpoints_are_removed(self):
    model = saved_model.Model(saver=lambda: tf.train.Saver(max_to_keep=2)).start()
    for step in range(4):
      model.saver.save(model.session, self._path, global_step=step,
                       write_meta_graph=False)
    found = {f.split(".")[1] for f in os.listdir(os.path.dirname(self._path))
             if f.startswith("model.ckpt-")}
    self.assertEqual(found, {"ckpt-2", "ckpt-3"})

  def _files(self):
    """Returns name -> bytes of all files in the checkpoint's folder."""
    folder, found = os.path.dirname(self._path), {}
    for name in os.listdir(folder):
      with open(os.path.join(folder, name), "rb") as f:
        found[name] = f.read()
    return found

  def test_the_same_table_gives_the_same_bytes(self):
    model = saved_model.Model().start()
    model.run(3, seed=1)
    files = []
    for _ in range(2):
      self._save(model)
      files.append(self._files())
    self.assertEqual(files[0], files[1])
    self.assertCountEqual(
        files[0], ["checkpoint", "model.ckpt.index",
                   # Files of the keys, the values, two slots, and everything else.
                   *["model.ckpt.data-%05d-of-00005" % i for i in range(5)]])

    def train(keys):
      with tf.Graph().as_default(), tf.Session() as session:
        v = tf.get_embedding_variable("v", _DIM, initializer=tf.ones_initializer())
        ids = tf.placeholder(tf.int64, [None])
        loss = tf.reduce_sum(tf.nn.embedding_lookup(v, ids) *
                             tf.cast(ids, tf.float32)[:, None])
        train = tf.train.AdagradOptimizer(.1).minimize(loss)
        saver = tf.train.Saver()
        session.run(tf.global_variables_initializer())
        for key in keys:
          session.run(train, {ids: [key]})
        saver.save(session, self._path)
      return {name: data for name, data in self._files().items() if ".data-" in name}

    # The order of the keys' insertion does not matter.
    self.assertEqual(train(range(-60, 60)), train(range(59, -61, -1)))

  def test_a_save_that_fails_leaves_the_last_checkpoint(self):
    model = saved_model.Model().start()
    model.run(3, seed=1)
    path = model.saver.save(model.session, self._path, global_step=1)
    expected, before = model.contents(), self._files()
    model.run(50, seed=2, low=-5000)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    for limit in (10000, 2000):
      try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limits[1]))
        with self.assertRaisesRegex(
            tf.errors.OpError,
            r"'v': .*model.ckpt-2.partial_part_tables0.data-0000\d-of-00004 cannot be written"):
          model.saver.save(model.session, self._path, global_step=2)
      finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
      self.assertEqual(self._files(), before)
    self.assertEqual(tf.train.latest_checkpoint(os.path.dirname(self._path)), path)
    two = saved_model.Model()
    two.saver.restore(two.session, path)
    self.assertEqual(two.contents(), expected)
    # The next checkpoint is complete again.
    two.saver.restore(two.session, model.saver.save(
        model.session, self._path, global_step=2))
    self.assertEqual(two.contents(), model.contents())

  def test_tables_are_written_in_chunks(self):
    for saver in (tf.train.Saver, lambda: tf.train.Saver(sharded=True)):
      model = saved_model.Model(saver=saver)
      saved = [op for op in model.graph.get_operations() if op.type == "SaveV2"]
      self.assertLen(saved, 1)
      names = [t.op.name for t in saved[0].inputs]
      self.assertFalse([n for n in names if n.startswith("v")], names)
      self.assertTrue([op for op in model.graph.get_operations()
                       if op.type == "EvSave"])

  def test_an_old_version_of_checkpoints(self):
    with self.assertRaisesRegex(ValueError, "'v' can be saved .* V2 only"):
      saved_model.Model(saver=lambda: tf.train.Saver(write_version=tf.train.SaverDef.V1))

  def test_user_defined_saver_builder(self):

    class Builder(saver_lib.BulkSaverBuilder):
      """Writes all tensors itself."""

      def save_op(self, filename_tensor, saveables):
        specs = [spec for s in saveables for spec in s.specs]
        return tf.raw_ops.SaveV2(
            prefix=filename_tensor, tensor_names=[s.name for s in specs],
            shape_and_slices=[""] * len(specs), tensors=[s.tensor for s in specs])

    one = saved_model.Model(saver=lambda: tf.train.Saver(builder=Builder())).start()
    one.run(3, seed=1)
    names = [n for n, _ in tf.train.list_variables(self._save(one))]
    two = saved_model.Model()
    two.saver.restore(two.session, self._path)
    self.assertEqual(two.contents(), one.contents())
    self.assertEqual([n for n, _ in tf.train.list_variables(self._save(two))], names)

  def test_value_and_slot_are_consistent_during_training(self):
    # With rate 1, momentum 1 and gradient -1, n updates leave m = -n and
    # w = n (n + 1) / 2, whatever their order.
    with tf.Graph().as_default(), tf.Session() as session:
      v = tf.get_embedding_variable("v", _DIM, initializer=tf.zeros_initializer())
      ids = tf.placeholder(tf.int64, [None])
      train = tf.train.MomentumOptimizer(1.0, 1.0).minimize(
          -tf.reduce_sum(tf.nn.embedding_lookup(v, ids)))
      saver = tf.train.Saver()
      session.run(tf.global_variables_initializer())
      coordinator = tf.train.Coordinator()

      def work(seed):
        random = np.random.RandomState(seed)
        while not coordinator.should_stop():
          session.run(train, {ids: random.permutation(3000)[:200]})

      threads = [tf.train.LooperThread(coordinator, None, target=work, args=(i,))
                 for i in range(2)]
      for thread in threads:
        thread.start()
      try:
        for _ in range(10):
          reader = tf.train.load_checkpoint(saver.save(session, self._path))
          n = -reader.get_tensor("v/Momentum-values")
          np.testing.assert_array_equal(reader.get_tensor("v-values"),
                                        n * (n + 1) / 2)
          self.assertTrue((n == n[:, :1]).all())
      finally:
        coordinator.request_stop()
        coordinator.join(threads)
      self.assertGreater(n.max(), 3)

  def test_saver_saves_during_training(self):
    # Keys and slots are of the same moment: all tensors have the same rows.
    model = saved_model.Model().start()
    coordinator = tf.train.Coordinator()
    random = np.random.RandomState(0)

    def train():
      while not coordinator.should_stop():
        model.session.run(model.train, {
            model.ids: random.randint(0, 10**6, size=50)})

    threads = [tf.train.LooperThread(coordinator, None, target=train)
               for _ in range(2)]
    for thread in threads:
      thread.start()
    try:
      for _ in range(5):
        reader = tf.train.load_checkpoint(self._save(model))
        keys = reader.get_tensor("v-keys")
        for name in ("v", "v/Adam", "v/Adam_1"):
          np.testing.assert_array_equal(reader.get_tensor(name + "-keys"), keys)
          self.assertEqual(reader.get_tensor(name + "-values").shape,
                           (len(keys), _DIM))
        # A row and its slots are of the same moment: each row has a second moment.
        moved = reader.get_tensor("v/Adam_1-values") != 0
        self.assertTrue(moved.all())
    finally:
      coordinator.request_stop()
      coordinator.join(threads)

  def test_many_rows(self):
    # More rows than one chunk of the restore holds.
    with tf.Graph().as_default(), tf.Session() as session:
      v = tf.get_embedding_variable("v", 64, initializer=tf.zeros_initializer())
      ids = tf.range(100000, dtype=tf.int64) * 7 - 50000
      loss = tf.reduce_sum(tf.nn.embedding_lookup(v, ids) *
                           tf.cast(ids, tf.float32)[:, None])
      train = tf.train.AdagradOptimizer(1.0).minimize(loss)
      saver = tf.train.Saver()
      sample = tf.nn.embedding_lookup(v, ids[::997])
      session.run(tf.global_variables_initializer())
      session.run(train)
      before = session.run(sample)
      saver.save(session, self._path)
      session.run(v.initializer)
      self.assertFalse(session.run(sample).any())
      saver.restore(session, self._path)
      np.testing.assert_array_equal(session.run(sample), before)
      self.assertEqual(session.run(v)[0], 100000)


if __name__ == "__main__":
  absltest.main()
