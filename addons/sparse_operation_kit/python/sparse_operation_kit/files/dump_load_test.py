# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of sok.dump, sok.load and sok.incremental_model_dump in one process."""

import datetime
import itertools
import os

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

import embedding_variable
from embedding_variable.ops import checkpoint_ops
from sparse_operation_kit import experiment as sok
from sparse_operation_kit import testing
from sparse_operation_kit.files import dump_format
from sparse_operation_kit.files import dump_load
from sparse_operation_kit.files import table_files

_train = tf.compat.v1.train
_KEYS = np.array([-7, 0, 3, 2 ** 50], np.int64)
_VALUE = np.arange(10, dtype=np.float32).reshape(5, 2)

_OPTIMIZERS = {
    "none": lambda: None,
    "sgd": lambda: sok.SGD(.1),
    "adagrad": lambda: _train.AdagradOptimizer(.1),
    "row_wise_adagrad": lambda: embedding_variable.RowWiseAdagradOptimizer(.1),
    "adam": lambda: _train.AdamOptimizer(.1),
    "momentum": lambda: _train.MomentumOptimizer(.1, .9),
    "keras_adamax": lambda: sok.OptimizerWrapper(tf.keras.optimizers.Adamax(.1)),
    "keras_ftrl": lambda: [tf.keras.optimizers.Ftrl(.1)],
}


def _write(path, kind, array, slot=""):
  writer = dump_format.Writer(path, kind, array.dtype, slot)
  writer.append(array)
  writer.close()
  os.replace(path + ".part", path)


class _Model(object):
  """Two tables that an optimizer trains."""

  def __init__(self, make_optimizer):
    self.dynamic = sok.DynamicVariable(3, "random", name="scope/dynamic")
    self.static = sok.Variable(_VALUE, name="static")
    self.variables = [self.dynamic, self.static]
    self.optimizer = make_optimizer()
    used = self.optimizer[0] if isinstance(self.optimizer, list) else self.optimizer
    losses = [tf.reduce_sum(sok.all2all_dense_embedding(self.dynamic, _KEYS) ** 2),
              tf.reduce_sum(sok.all2all_dense_embedding(self.static, [4, 2]) ** 2)]
    gradients = tf.gradients(losses, self.variables)
    self.train = (used or sok.SGD(.1)).apply_gradients(zip(gradients, self.variables))
    self.initialize = tf.compat.v1.global_variables_initializer()


class DumpLoadTest(parameterized.TestCase):

  def setUp(self):
    super(DumpLoadTest, self).setUp()
    self._folder = self.create_tempdir().full_path + "/dump"

  @parameterized.parameters(*sorted(_OPTIMIZERS))
  def test_training_goes_on(self, name):
    with tf.Graph().as_default():
      model = _Model(_OPTIMIZERS[name])
      # The files contain slots, but no other state of the optimizer.
      others = sok.filter_variables(tf.compat.v1.global_variables())[1]
      with tf.compat.v1.Session() as session:
        session.run(model.initialize)
        for _ in range(2):
          session.run(model.train)
        sok.dump(self._folder, model.variables, model.optimizer, session=session)
        values = session.run(others)
        session.run(model.train)
        expected = session.run([sok.export(v) for v in model.variables])
      with tf.compat.v1.Session() as session:
        session.run(model.initialize)
        session.run(model.train)
        session.run(sok.assign(model.dynamic, [77], [[1., 1., 1.]]))
        sok.load(self._folder, tuple(model.variables), model.optimizer, session)
        for var, value in zip(others, values):
          var.load(value, session)
        session.run(model.train)
        found = session.run([sok.export(v) for v in model.variables])
      for f, e in zip(found, expected):
        np.testing.assert_array_equal(f[0], e[0])
        np.testing.assert_array_equal(f[1], e[1])

  def test_files(self):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      model = _Model(_OPTIMIZERS["adagrad"])
      session.run(model.initialize)
      session.run(model.train)
      with session.as_default():
        sok.dump(self._folder, model.variables, model.optimizer)
      self.assertEqual(sorted(os.listdir(self._folder)), [
          "scope_dynamic_0-Adagrad-accumulator", "scope_dynamic_0-default_rows",
          "scope_dynamic_0-key", "scope_dynamic_0-sums", "scope_dynamic_0-weight",
          "static_0-Adagrad-accumulator", "static_0-key", "static_0-sums",
          "static_0-weight"])
      keys, values = session.run(sok.export(model.dynamic))
    with open(self._folder + "/scope_dynamic_0-key", "rb") as f:
      self.assertEqual(f.read(), dump_format.header(0, np.int64) + _KEYS.tobytes())
    np.testing.assert_array_equal(keys, _KEYS)
    with open(self._folder + "/scope_dynamic_0-weight", "rb") as f:
      self.assertEqual(f.read(), dump_format.header(1, np.float32) + values.tobytes())

  def test_keys_without_a_row_read_the_same_rows(self):
    # Without a seed, each table draws its own rows.
    def table(initializer="random"):
      v = sok.DynamicVariable(3, initializer, name="v")
      rows = sok.all2all_dense_embedding(v, [-1, 5, 4095, 4096])
      session.run(tf.compat.v1.global_variables_initializer())
      return v, rows

    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      v, rows = table()
      session.run(sok.assign(v, [7], [[1., 2., 3.]]))
      expected = session.run(rows)
      sok.dump(self._folder, v, session=session)
    for initializer in ("random", "0.5"):
      with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        v, rows = table(initializer)
        self.assertNotEqual(session.run(rows).tolist(), expected.tolist())
        for _ in range(2):
          session.run(sok.assign(v, [5, 9], np.ones([2, 3])))
          sok.load(self._folder, v, session=session)
          np.testing.assert_array_equal(session.run(rows), expected)
          np.testing.assert_array_equal(session.run(sok.export(v))[0], [7])
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      # Upstream's folders have no such file; then the table keeps its own default rows.
      os.remove(self._folder + "/v_0-default_rows")
      os.remove(self._folder + "/v_0-sums")
      v, rows = table()
      before = session.run(rows)
      sok.load(self._folder, v, session=session)
      np.testing.assert_array_equal(session.run(rows), before)

  def test_default_rows_that_do_not_fit(self):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      v = sok.DynamicVariable(3, "1", name="v")
      session.run(v.initializer)
      session.run(sok.assign(v, [7], [[1., 2., 3.]]))
      sok.dump(self._folder, v, session=session)
      session.run(sok.assign(v, [8], [[1., 2., 3.]]))
      for array in (np.ones(4, np.float32), np.ones(0, np.float32), np.ones(3)):
        _write(self._folder + "/v_0-default_rows", 1, array)
        if os.path.exists(self._folder + "/v_0-sums"):
          os.remove(self._folder + "/v_0-sums")
        with self.assertRaisesRegex(ValueError, "v_0-default_rows holds"):
          sok.load(self._folder, v, session=session)
      np.testing.assert_array_equal(session.run(sok.export(v))[0], [7, 8])

  def test_key_types(self):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      small = sok.DynamicVariable(1, var_type="auto", key_type=tf.int32, name="small")
      local = sok.Variable(_VALUE, mode="localized:0", name="local")
      session.run(tf.compat.v1.global_variables_initializer())
      session.run(sok.assign(small, [-3, 7], [[1.], [2.]]))
      sok.dump(self._folder, [small, local], session=session)
      self.assertEqual(dump_format.read_header(self._folder + "/small_0-key", 0).dtype,
                       np.int32)
      self.assertEqual(dump_format.read_header(self._folder + "/local_0-key", 0).dtype,
                       np.uint64)
      session.run([sok.assign(small, [1], [[9.]]), local.assign(-_VALUE)])
      sok.load(self._folder, [small, local], session=session)
      np.testing.assert_array_equal(session.run(sok.export(small))[0], [-3, 7])
      np.testing.assert_array_equal(session.run(local), _VALUE)

  def test_rows_in_any_order(self):
    # Written by three ranks: rank 0 has rows 0 and 3, rank 1 has 1 and 4, rank 2 has 2.
    os.makedirs(self._folder)
    order = np.array([0, 3, 1, 4, 2])
    _write(self._folder + "/v_0-key", 0, order)
    _write(self._folder + "/v_0-weight", 1, _VALUE[order])
    for mode in ("distributed", "localized:0"):
      with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        v = sok.Variable(np.zeros([5, 2]), mode=mode, name="v")
        sok.load(self._folder, v, session=session)
        np.testing.assert_array_equal(session.run(v), _VALUE)

  def test_upstreams_name_of_adamax(self):
    os.makedirs(self._folder)
    _write(self._folder + "/v_0-key", 0, np.array([5]))
    for name, kind in (("weight", 1), ("Adam-m", 2), ("Adam-v", 2)):
      _write(self._folder + "/v_0-" + name, kind, np.array([2.], np.float32))
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      v = sok.DynamicVariable(1, name="v")
      optimizer = tf.keras.optimizers.Adamax(.1)
      sok.load(self._folder, v, optimizer, session)
      slot = optimizer.get_slot(v, "m").sparse_read([5])
      np.testing.assert_array_equal(session.run(slot), [[2.]])

  def test_empty_table(self):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      v = sok.DynamicVariable(3, name="v")
      session.run(v.initializer)
      sok.dump(self._folder, v, session=session)
      session.run(sok.assign(v, [1], [[1., 2., 3.]]))
      sok.load(self._folder, v, session=session)
      self.assertEqual(session.run(v.size).tolist(), [0, 3])

  def test_many_pieces(self):
    before = dump_load._PIECE_BYTES
    dump_load._PIECE_BYTES = 64
    self.addCleanup(setattr, dump_load, "_PIECE_BYTES", before)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      v = sok.DynamicVariable(2, name="v")
      session.run(v.initializer)
      rows = np.random.RandomState(1).normal(size=[101, 2]).astype(np.float32)
      session.run(sok.assign(v, np.arange(101), rows))
      sok.dump(self._folder, v, session=session)
      session.run(v.initializer)
      sok.load(self._folder, v, session=session)
      np.testing.assert_array_equal(session.run(sok.export(v))[1], rows)

  def test_refuses_arguments(self):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      v = sok.DynamicVariable(1, name="v")
      w = sok.DynamicVariable(1, name="w")
      session.run(tf.compat.v1.global_variables_initializer())
      adagrad = _train.AdagradOptimizer(.1)
      adagrad._create_slots([v])
      for error, words, args in (
          (TypeError, "expected SOK variables", ([tf.zeros([1])],)),
          (ValueError, "no variables", ([],)),
          (ValueError, "file name v_0", ([v, v],)),
          (ValueError, "a list of one, got 0", (v, [])),
          (ValueError, "a list of one, got 2", (v, [adagrad, adagrad])),
          (TypeError, "optimizer: expected", (v, "adam")),
          (ValueError, "slots of v_0, but not of w_0", ([v, w], adagrad)),
      ):
        with self.assertRaisesRegex(error, words):
          sok.dump(self._folder, *args, session=session)
      self.assertFalse(os.path.exists(self._folder))
    with self.assertRaisesRegex(ValueError, "no default session"):
      sok.dump(self._folder, v)

  def test_variables_with_one_file_name(self):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      variables = [sok.DynamicVariable(1, "1", var_type="auto", name=name)
                   for name in ("a/b", "a_b")]
      session.run(tf.compat.v1.global_variables_initializer())
      session.run(sok.assign(variables[0], [1], [[2.]]))
      sok.dump(self._folder, variables[0], session=session)
      for call in (sok.dump, sok.load):
        with self.assertRaisesRegex(
            ValueError, "%s: variable 'a_b': .*are those of variable 'a/b'" %
            call.__name__):
          call(self._folder, variables[1], session=session)
      self.assertEmpty(session.run(sok.export(variables[1]))[0])
      sok.dump(self._folder, variables[0], session=session)
      sok.load(self._folder, variables[0], session=session)
      sok.dump(self._folder + "/other", variables[1], session=session)

  def test_refuses_files_that_do_not_fit_and_changes_nothing(self):
    os.makedirs(self._folder)
    key, weight = self._folder + "/v_0-key", self._folder + "/v_0-weight"
    good = np.arange(5), _VALUE.ravel()
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      w = sok.DynamicVariable(2, name="w")
      v = sok.Variable(_VALUE + 1., name="v")
      optimizer = _train.AdagradOptimizer(.1)
      session.run(tf.compat.v1.global_variables_initializer())
      session.run(sok.assign(w, [1], [[1., 1.]]))
      _write(self._folder + "/w_0-key", 0, np.array([2]))
      _write(self._folder + "/w_0-weight", 1, np.zeros([2], np.float32))
      for words, keys, values in (
          ("holds 8 numbers, expected 10", good[0], good[1][:8]),
          ("holds 4 keys, expected exactly the rows 0 to 4", good[0][:4], good[1][:8]),
          ("expected exactly the rows", good[0] + 1, good[1]),
          ("a key twice", np.array([0, 1, 2, 3, 3]), good[1]),
          ("expected float32", good[0], good[1].astype(np.float64)),
          ("expected integers", good[0].astype(np.float32), good[1])):
        _write(key, 0, keys)
        _write(weight, 1, values)
        with self.assertRaisesRegex(ValueError, words):
          sok.load(self._folder, [w, v], session=session)
      _write(key, 0, good[0])
      _write(weight, 1, good[1])
      with self.assertRaisesRegex(ValueError, "Adagrad-accumulator cannot be read"):
        sok.load(self._folder, [w, v], optimizer, session=session)
      with self.assertRaisesRegex(ValueError, "x_0-key cannot be read"):
        sok.load(self._folder, sok.DynamicVariable(2, name="x"), session=session)
      np.testing.assert_array_equal(session.run(v), _VALUE + 1.)
      np.testing.assert_array_equal(session.run(w.indices), [1])

  def test_a_failed_dump_leaves_the_last_one(self):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      v = sok.DynamicVariable(1, "1", name="v")
      session.run(v.initializer)
      session.run(sok.assign(v, [1], [[1.]]))
      sok.dump(self._folder, v, session=session)
      session.run(sok.assign(v, [2], [[2.]]))
      os.makedirs(self._folder + "/v_0-weight.part")  # creating this file fails
      with self.assertRaises(OSError):
        sok.dump(self._folder, v, session=session)
      session.run(v.initializer)
      sok.load(self._folder, v, session=session)
      np.testing.assert_array_equal(session.run(v.indices), [1])

  def test_a_dump_that_is_killed_at_any_step(self):
    self._folder = os.path.join(testing.folder_in_memory(self), "tables")
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      tables = [sok.DynamicVariable(1, "1", name=name) for name in "ab"]
      session.run(tf.compat.v1.global_variables_initializer())

      key_fed = tf.compat.v1.placeholder(tf.int64, [])
      rows_fed = tf.fill([2, 1], tf.cast(key_fed, tf.float32))
      assign = [sok.assign(t, [key_fed, key_fed + 7], rows_fed) for t in tables]
      exports = [sok.export(t) for t in tables]

      def fill(key):
        session.run([t.initializer for t in tables])
        session.run(assign, {key_fed: key})

      def loaded():
        """Returns the key to which all rows of all tables belong."""
        sok.load(self._folder, tables, session=session)
        found = session.run(exports)
        for keys, values in found:
          np.testing.assert_array_equal(keys, [found[0][0][0], found[0][0][0] + 7])
          np.testing.assert_array_equal(values, [keys[:1], keys[:1]])
        return found[0][0][0]

      seen = []
      for step in itertools.count():
        fill(1)
        sok.dump(self._folder, tables, session=session)
        fill(2)
        with testing.Killed(step) as killed:
          sok.dump(self._folder, tables, session=session)
        seen.append(loaded())
        # A dump of one table, while files of the other table may still be named
        # `.part`.
        fill(3)
        with testing.Killed(1):
          sok.dump(self._folder, tables[0], session=session)
        self.assertEqual(loaded(), seen[-1])
        if not killed.happened:
          break
      self.assertEqual(seen, sorted(seen))
      self.assertEqual({1, 2}, set(seen))
      self.assertGreater(len(seen), 10)
      sok.dump(self._folder, tables, session=session)
      self.assertEqual(loaded(), 2)
      self.assertEqual(sorted(os.listdir(self._folder)), [
          "%s_0-%s" % (name, what) for name in "ab"
          for what in ("default_rows", "key", "sums", "weight")])

  def test_files_that_do_not_belong_together(self):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      v = sok.DynamicVariable(2, "1", name="v")
      optimizer = _train.AdagradOptimizer(0.1)
      train = optimizer.minimize(
          tf.reduce_sum(sok.all2all_dense_embedding(v, [4, 5])))
      session.run(tf.compat.v1.global_variables_initializer())
      session.run(train)
      sok.dump(self._folder, v, optimizer, session=session)
      # The same rows again: the slots still match them.
      sok.dump(self._folder, v, session=session)
      sok.load(self._folder, v, optimizer, session=session)
      expected = session.run(sok.export(v))
      for name in ("key", "weight", "Adagrad-accumulator", "sums"):
        path = self._folder + "/v_0-" + name
        with open(path, "rb") as f:
          whole = f.read()
        for at in (0, len(whole) // 2, len(whole) - 1):
          with open(path, "wb") as f:
            f.write(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1:])
          with self.assertRaisesRegex(ValueError, "v_0-"):
            sok.load(self._folder, v, optimizer, session=session)
        with open(path, "wb") as f:
          f.write(whole)
      for f, e in zip(session.run(sok.export(v)), expected):
        np.testing.assert_array_equal(f, e)
      session.run(train)
      sok.dump(self._folder, v, session=session)
      with self.assertRaisesRegex(ValueError, "'v': .*accumulator was not written togeth"):
        sok.load(self._folder, v, optimizer, session=session)
      # Without its sums, the folder looks like that of an older version.
      os.remove(self._folder + "/v_0-sums")
      sok.load(self._folder, v, optimizer, session=session)

  def test_the_graph_does_not_grow(self):
    with tf.Graph().as_default() as graph, tf.compat.v1.Session() as session:
      v = sok.DynamicVariable(1, name="v")
      session.run(v.initializer)
      since = datetime.datetime.utcnow()
      for i in range(3):
        sok.dump(self._folder, v, session=session)
        sok.load(self._folder, v, session=session)
        sok.incremental_model_dump(v, since, session)
        graph.finalize()
    with tf.Graph().as_default() as graph, tf.compat.v1.Session() as session:
      v = sok.DynamicVariable(1, name="v")
      graph.finalize()
      with self.assertRaisesRegex(RuntimeError, "finalized"):
        sok.dump(self._folder, v, session=session)


class IncrementalDumpTest(absltest.TestCase):

  def _now(self):
    return datetime.datetime.now(datetime.timezone.utc)

  def test_what_changed_since(self):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      v = sok.DynamicVariable(1, "1", name="v")
      w = sok.DynamicVariable(2, "1", name="w")
      ids = tf.compat.v1.placeholder(tf.int64, [None])
      loss = (tf.reduce_sum(sok.all2all_dense_embedding(v, ids)) +
              tf.reduce_sum(sok.all2all_dense_embedding(w, ids)))
      fused = _train.GradientDescentOptimizer(1.).minimize(loss)
      generic = _train.ProximalAdagradOptimizer(1.).minimize(loss)
      session.run(tf.compat.v1.global_variables_initializer())
      # Dump files of a minute ago.
      old = table_files.now() - 60
      for var, keys in ((v, [1, -2, 4]), (w, [3])):
        session.run(checkpoint_ops.import_table(
            var.handle, keys, np.ones([len(keys), var.dimension]), [old] * len(keys),
            tf.zeros([0], tf.int64)))
      begin = self._now()
      session.run(fused, {ids: [1]})
      session.run(generic, {ids: [-2, 5]})
      session.run(tf.nn.embedding_lookup(v, [4]))
      session.run(sok.assign(w, [9], [[8., 8.]]))
      keys, values = sok.incremental_model_dump([v, w], begin, session)
      np.testing.assert_array_equal(keys[0], [-2, 1, 5])
      np.testing.assert_array_equal(values[0][1], [0.])
      np.testing.assert_array_equal(keys[1], [-2, 1, 5, 9])
      np.testing.assert_array_equal(values[1][3], [8, 8])
      self.assertEqual(keys[0].dtype, np.int64)
      minute = datetime.timedelta(minutes=1)
      keys, values = sok.incremental_model_dump(
          [v, w], [begin - 2 * minute, begin + minute], session)
      np.testing.assert_array_equal(keys[0], [-2, 1, 4, 5])
      self.assertEqual([keys[1].shape, values[1].shape], [(0,), (0, 2)])

  def test_time_zones(self):
    zone = datetime.timezone(datetime.timedelta(hours=5))
    minute = datetime.timedelta(minutes=1)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      v = sok.DynamicVariable(1, name="v")
      session.run(v.initializer)
      now = self._now()
      session.run(sok.assign(v, [3], [[1.]]))
      for time in (now, now.astimezone(zone), now.replace(tzinfo=None)):
        for since, count in ((time - minute, 1), (time, 1), (time + minute, 0)):
          self.assertLen(sok.incremental_model_dump([v], since, session)[0][0], count)

  def test_refuses(self):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      v = sok.DynamicVariable(1, name="v")
      other = sok.DynamicVariable(1, var_type="auto", name="other")
      with self.assertRaisesRegex(TypeError, "hybrid.*other"):
        sok.incremental_model_dump([other], self._now(), session)
      with self.assertRaisesRegex(TypeError, "datetime"):
        sok.incremental_model_dump([v], 17.5, session)
      with self.assertRaisesRegex(ValueError, "2 times and 1 variables"):
        sok.incremental_model_dump([v], [self._now()] * 2, session)
    with tf.Graph().as_default():
      with self.assertRaisesRegex(ValueError, "no default session"):
        sok.incremental_model_dump([sok.DynamicVariable(1)], self._now())

  def test_stamps_are_seconds(self):
    self.assertAlmostEqual(table_files.now(), self._now().timestamp(), delta=5)


if __name__ == "__main__":
  absltest.main()
