# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests sok.DynamicVariable and reading and writing rows, in one process."""

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from sparse_operation_kit import experiment as sok


class DynamicVariableTest(parameterized.TestCase):

  def setUp(self):
    super(DynamicVariableTest, self).setUp()
    graph = tf.Graph().as_default()
    graph.__enter__()
    self.addCleanup(graph.__exit__, None, None, None)
    tf.compat.v1.set_random_seed(7)

  def _session(self):
    session = tf.compat.v1.Session()
    self.addCleanup(session.close)
    session.run(tf.compat.v1.global_variables_initializer())
    return session

  def test_properties(self):
    v = sok.DynamicVariable(dimension=3)
    w = sok.DynamicVariable(5, "0.5", "auto", key_type=tf.int32, mode="localized:0",
                            init_capacity=1024, trainable=False)
    self.assertEqual([v.name, w.name],
                     ["sok_dynamic_Variable_0:0", "sok_dynamic_Variable_1:0"])
    self.assertEqual([v.dimension, w.dimension], [3, 5])
    self.assertEqual([v.backend_type, w.backend_type], ["hybrid", "auto"])
    self.assertEqual([v.key_type, w.key_type], [tf.int64, tf.int32])
    self.assertEqual([v.target_gpu, w.target_gpu], [-1, 0])
    self.assertEqual([v.mode, w.mode], [None, "localized:0"])
    self.assertEqual([v.config_dict, w.config_dict], [{}, {"init_capacity": 1024}])
    self.assertEqual([v.initializer_str, w.initializer_str], ["", "0.5"])
    self.assertEqual(v.num_gpus, 1)
    self.assertEqual(v.handle_dtype, tf.float32)
    self.assertEqual(v.key_map(7), 7)
    self.assertEqual([id(x) for x in tf.compat.v1.trainable_variables()], [id(v)])
    self.assertEqual(self._session().run([v.size, w.size])[1].tolist(), [0, 5])

  def test_default_names_start_again_in_each_graph(self):
    sok.DynamicVariable(dimension=1)
    with tf.Graph().as_default():
      self.assertEqual(sok.DynamicVariable(dimension=1).name, "sok_dynamic_Variable_0:0")

  @parameterized.parameters(2, 4096 * 2)
  def test_constants_of_many_numbers(self, count):
    values = np.arange(count, dtype=np.float32)
    v = sok.DynamicVariable(2, tf.constant_initializer(values))
    rows = self._session().run(tf.nn.embedding_lookup(v, [0, 1, 4097]))
    expected = values.reshape([-1, 2])
    np.testing.assert_array_equal(rows, expected[np.array([0, 1, 1]) % len(expected)])

  @parameterized.parameters(
      ("auto", None, -.05, .05), ("auto", "", -.05, .05), ("auto", "random", -.05, .05),
      ("hybrid", "uniform", 0., 1.))
  def test_uniform_initializers(self, var_type, text, low, high):
    v = sok.DynamicVariable(8, text, var_type)
    rows = self._session().run(tf.nn.embedding_lookup(v, np.arange(1000)))
    self.assertBetween(rows.min(), low, low + .01 * (high - low))
    self.assertBetween(rows.max(), high - .01 * (high - low), high)

  @parameterized.parameters(None, "random", "normal")
  def test_normal_initializers(self, text):
    v = sok.DynamicVariable(8, text, "hybrid")
    rows = self._session().run(tf.nn.embedding_lookup(v, np.arange(1000)))
    self.assertBetween(rows.std(), .95, 1.05)

  @parameterized.parameters(
      ("ones", 1.), ("zeros", 0.), ("-2.5", -2.5), ("1e-3", 1e-3), (3, 3.),
      (tf.constant_initializer(7.), 7.), (tf.keras.initializers.Ones(), 1.),
      (tf.zeros_initializer, 0.))
  def test_constant_initializers(self, initializer, value):
    for var_type in ("auto", "hybrid"):
      v = sok.DynamicVariable(2, initializer, var_type)
      np.testing.assert_allclose(
          self._session().run(tf.nn.embedding_lookup(v, [5, -5])), np.full([2, 2], value))

  @parameterized.parameters(
      (ValueError, "dimension", dict(dimension=0)),
      (ValueError, "dimension", dict(dimension="8")),
      (ValueError, "var_type", dict(var_type="ssd")),
      (ValueError, "key_type", dict(key_type=tf.float32)),
      (NotImplementedError, "float32", dict(dtype=tf.float64)),
      (ValueError, "constraint", dict(constraint=tf.identity)),
      (RuntimeError, "localized", dict(mode="localised:0")),
      (RuntimeError, "rank 1", dict(mode="localized:1")),
      (RuntimeError, "mode", dict(mode=0)),
      (TypeError, "unknown argument capacity", dict(capacity=5)),
      (ValueError, "init_capacity: expected a positive integer", dict(init_capacity=0)),
      (ValueError, "max_load_factor", dict(max_load_factor=1.5)),
      (ValueError, "evict_strategy: expected one of kEpochLfu", dict(evict_strategy="lru")),
      (ValueError, r"evict_strategy: expected .*\['kLru'\]", dict(evict_strategy=["kLru"])),
      (ValueError, "io_by_cpu: expected a bool", dict(io_by_cpu="yes")),
      (ValueError, "filter_ratio", dict(filter_ratio=2.)),
      (ValueError, "max_hbm_for_vectors: expected a number of gigabytes",
       dict(max_hbm_for_vectors=-1)),
      (ValueError, "max_hbm_for_vectors: expected a number of gigabytes",
       dict(max_hbm_for_vectors=float("inf"))),
      (ValueError, "max_hbm_for_vectors: expected a number of gigabytes",
       dict(max_hbm_for_vectors="16")),
      (ValueError, "filter_ratio is for", dict(filter_ratio=.5, var_type="hbm")),
      (ValueError, "max_capacity: expected a positive", dict(max_capacity=-1)),
      (ValueError, "max_capacity is for", dict(max_capacity=8, var_type="hbm")),
      (ValueError, "init_capacity 9 is more than max_capacity 8",
       dict(max_capacity=8, init_capacity=9)),
      (ValueError, "one of random, ones, zeros, normal, uniform, or a number",
       dict(initializer="he")),
      (ValueError, "or a number, got 'normal'",
       dict(initializer="normal", var_type="hbm")),
      (TypeError, "initializer", dict(initializer=[1.])),
  )
  def test_wrong_arguments(self, error, words, kwargs):
    with self.assertRaisesRegex(error, "(?s)'v'.*" + words if error is not RuntimeError
                                else words):
      sok.DynamicVariable(**dict(dict(dimension=4, name="v"), **kwargs))

  def test_every_documented_argument_is_taken(self):
    v = sok.DynamicVariable(
        4, init_capacity=1024, max_hbm_for_vectors=.5, max_load_factor=.6,
        max_bucket_size=64, block_size=256, device_id=0, io_by_cpu=True,
        evict_strategy="kLfu", filter_ratio=.25, max_capacity=2048)
    self.assertEqual(v.filter_ratio, .25)
    self.assertLen(v.config_dict, 10)
    sok.DynamicVariable(4, io_by_cpu=np.bool_(True))

  def test_keys_of_32_bits(self):
    v = sok.DynamicVariable(1, "0", key_type=tf.int32)
    session = self._session()
    session.run(sok.assign(v, tf.constant([-7], tf.int32), [[2.]]))
    keys, values = session.run(sok.export(v))
    self.assertEqual([keys.dtype, keys.tolist(), values.tolist()], [np.int32, [-7], [[2.]]])

  def test_gpu_memory_without_a_gpu(self):
    v = sok.DynamicVariable(2, var_type="hbm", name="here")
    with tf.compat.v1.Session() as session:
      try:
        session.run(v.initializer)
      except tf.errors.FailedPreconditionError as error:
        self.assertIn("'here'", error.message)
        self.assertRegex(error.message, "GPU|driver")
        return
      self.assertEqual(v.storage_type, 6)  # This machine has a GPU: HBM.

  @parameterized.parameters(
      (dict(max_hbm_for_vectors=.5), "hbm_dram", 2**29),
      (dict(max_hbm_for_vectors=16), "hbm_dram", 2**34),
      (dict(max_hbm_for_vectors=1, evict_strategy="kLfu"), "hbm_dram", 2**30),
      (dict(max_hbm_for_vectors=0), "dram", 0),
      (dict(), "dram", 0),
      (dict(max_hbm_for_vectors=1, var_type="auto"), "auto", 0),
      (dict(max_hbm_for_vectors=1, var_type="hbm"), "hbm", 0),
  )
  def test_where_rows_are(self, kwargs, storage, memory_bytes):
    handle = sok.DynamicVariable(2, **kwargs).handle.op
    self.assertEqual(handle.get_attr("storage").decode(), storage)
    self.assertEqual(handle.get_attr("memory_bytes"), memory_bytes)

  def test_which_rows_make_way_in_gpu_memory(self):
    for strategy, name in (("kLru", "LRU"), ("kLfu", "LFU"), ("kFifo", "FIFO"),
                           (None, "LRU")):
      kwargs = {} if strategy is None else dict(evict_strategy=strategy)
      v = sok.DynamicVariable(2, max_hbm_for_vectors=1, **kwargs)
      self.assertEqual(v.handle.op.get_attr("cache_strategy").decode(), name)

  def test_two_memories_without_a_gpu(self):
    v = sok.DynamicVariable(2, "0.5", name="both", max_hbm_for_vectors=1e-3)
    with tf.compat.v1.Session() as session:
      try:
        session.run(v.initializer)
      except tf.errors.FailedPreconditionError as error:
        self.assertIn("'both'", error.message)
        self.assertRegex(error.message, "GPU|driver")
        return
      self.assertEqual(v.storage_type, 13)  # This machine has a GPU: HBM_DRAM.
      session.run(sok.assign(v, tf.constant([5], tf.int64), [[1., 2.]]))
      self.assertEqual(session.run(tf.nn.embedding_lookup(v, [5, 6])).tolist(),
                       [[1., 2.], [.5, .5]])

  @parameterized.parameters("kLru", "kEpochLru", None)
  def test_max_capacity_keeps_what_changed_last(self, strategy):
    kwargs = {} if strategy is None else dict(evict_strategy=strategy)
    v = sok.DynamicVariable(1, "0", max_capacity=3, name="v", **kwargs)
    ids = tf.compat.v1.placeholder(tf.int64, [None])
    write = sok.assign(v, ids, tf.ones([tf.size(ids), 1]))
    session = self._session()
    now = [1000]
    # Timestamps of rows are seconds, so the test uses its own clock to avoid waiting.

    def clock(step):
      del step
      with tf.device("/cpu:0"):
        return tf.compat.v1.py_func(lambda: np.int64(now[0]), [], tf.int64)

    v.version_of_update = clock
    write = sok.assign(v, ids, tf.ones([tf.size(ids), 1]))
    for keys in ([1, 2], [3], [1], [4]):
      now[0] += 1
      session.run(write, {ids: keys})
    self.assertEqual(session.run(v.indices).tolist(), [1, 3, 4])
    self.assertEqual(session.run(v.evicted_count()), 1)

  def test_evicts_by_time(self):
    v = sok.DynamicVariable(1, "0")
    tf.compat.v1.train.create_global_step()
    ids, now = tf.compat.v1.placeholder(tf.int64, [None]), [10 ** 9]

    def clock(step):
      del step
      with tf.device("/cpu:0"):
        return tf.compat.v1.py_func(lambda: np.int64(now[0]), [], tf.int64)

    v.version_of_update = clock
    write, evict = sok.assign(v, ids, tf.ones([tf.size(ids), 1])), v.evict(steps_to_live=60)
    session = self._session()
    session.run(write, {ids: [1]})
    now[0] += 60
    session.run(write, {ids: [2]})
    self.assertEqual(session.run(evict), 0)
    now[0] += 1
    self.assertEqual(session.run(evict), 1)
    self.assertEqual(session.run(v.indices).tolist(), [2])

  @parameterized.parameters("kLru", "kLfu")
  def test_rows_of_the_step_at_hand_stay(self, strategy):
    v = sok.DynamicVariable(1, "0", max_capacity=64, evict_strategy=strategy)
    ids = tf.compat.v1.placeholder(tf.int64, [None])
    loss = tf.reduce_sum(tf.nn.embedding_lookup(v, ids))
    train = tf.compat.v1.train.GradientDescentOptimizer(1.).minimize(loss)
    write = sok.assign(v, ids, tf.ones([tf.size(ids), 1]))
    read = sok.sparse_read_and_evict(v, ids)
    session = self._session()
    # All within one second, the resolution of timestamps.
    for first in range(0, 1024, 256):
      for _ in range(2):
        session.run(train, {ids: np.arange(first, first + 64)})
      _, evicted, _ = session.run(read, {ids: np.arange(first + 64, first + 128)})
      self.assertCountEqual(evicted, np.arange(first, first + 64))
      session.run(train, {ids: np.arange(first + 128, first + 168)})
      left = session.run(v.indices)
      self.assertLen(left, 64)
      self.assertContainsSubset(np.arange(first + 128, first + 168), left)
      session.run(write, {ids: np.arange(first + 192, first + 256)})
      np.testing.assert_array_equal(
          session.run(v.indices), np.arange(first + 192, first + 256))

  def test_times_are_known_to_the_graph(self):
    self.assertTrue(sok.DynamicVariable(1).versions_are_times)
    self.assertFalse(sok.DynamicVariable(1, var_type="auto").versions_are_times)
    e = tf.get_embedding_variable("e", embedding_dim=1)
    self.assertFalse(e.versions_are_times)

  def test_max_capacity_keeps_what_is_trained_often(self):
    v = sok.DynamicVariable(1, "0", max_capacity=2, evict_strategy="kLfu")
    ids = tf.compat.v1.placeholder(tf.int64, [None])
    loss = tf.reduce_sum(tf.nn.embedding_lookup(v, ids))
    train = tf.compat.v1.train.GradientDescentOptimizer(1.).minimize(loss)
    session = self._session()
    for keys in ([8, 8, 8], [-8, -8], [5, 5, 5, 5]):
      session.run(train, {ids: keys})
    self.assertEqual(session.run(v.indices).tolist(), [5, 8])

  def test_trains_as_an_embedding_variable_does(self):
    v = sok.DynamicVariable(2, "ones", name="v")
    e = tf.get_embedding_variable("e", embedding_dim=2,
                                  initializer=tf.ones_initializer())
    ids = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], tf.constant([4, 4, -9], tf.int64),
                          [2, 2])
    outputs = sok.lookup_sparse([v, e], [ids, ids], combiners=["sum", "sum"])
    loss = tf.add_n([tf.reduce_sum(o ** 2) for o in outputs])
    train = tf.compat.v1.train.AdamOptimizer(.1).minimize(loss)
    session = self._session()
    for _ in range(3):
      session.run(train)
    mine, other = session.run([sok.export(v), sok.export(e)])
    np.testing.assert_array_equal(mine[0], [-9, 4])
    np.testing.assert_array_equal(mine[0], other[0])
    np.testing.assert_array_equal(mine[1], other[1])
    self.assertEqual(session.run(v.size).tolist(), [2, 2])
    np.testing.assert_array_equal(session.run(v.indices), [-9, 4])

  def test_lookup_inserts_nothing(self):
    v = sok.DynamicVariable(2, "ones")
    session = self._session()
    session.run(tf.nn.embedding_lookup(v, [1, 2]))
    self.assertEqual(session.run(v.size).tolist(), [0, 2])

  def test_assign_and_export(self):
    v = sok.DynamicVariable(2, "zeros")
    session = self._session()
    session.run(sok.assign(v, [2 ** 40, -1, 0, -1], np.arange(8).reshape(4, 2)))
    keys, values = session.run(sok.export(v))
    np.testing.assert_array_equal(keys, [-1, 0, 2 ** 40])
    np.testing.assert_array_equal(values, [[6, 7], [4, 5], [0, 1]])
    self.assertEqual(keys.dtype, np.int64)
    session.run(sok.assign(v, tf.constant([0], tf.int32), tf.constant([[9., 9.]])))
    np.testing.assert_array_equal(
        session.run(tf.nn.embedding_lookup(v, [0, -1])), [[9, 9], [6, 7]])

  def test_export_is_ascending_from_the_least_key_on(self):
    v = sok.DynamicVariable(1, "zeros")
    session = self._session()
    keys = [2**63 - 1, 0, -2**63, -1, 5, -2**63 + 1]
    session.run(sok.assign(v, tf.constant(keys, tf.int64),
                           tf.constant([[float(i)] for i in range(6)])))
    found, values = session.run(sok.export(v))
    self.assertEqual(found.tolist(), sorted(keys))
    self.assertEqual(values[:, 0].tolist(), [2, 5, 3, 1, 4, 0])
    self.assertEqual(session.run(v.indices).tolist(), sorted(keys))

  def test_ids_beyond_int32_keys(self):
    v = sok.DynamicVariable(1, "zeros", key_type=tf.int32, name="v")
    ids = tf.compat.v1.placeholder(tf.int64, [None])
    sparse = tf.SparseTensor(tf.stack([tf.zeros_like(ids), tf.range(2, dtype=tf.int64)], 1),
                             ids, [1, 2])
    ops = [
        sok.lookup_sparse(v, sparse, combiners="sum"),
        sok.lookup_sparse(v, sparse, combiners="sum", use_low_frequency_filter=True),
        sok.all2all_dense_embedding(v, ids),
        sok.assign(v, ids, tf.ones([2, 1])),
        sok.sparse_read_and_evict(v, ids),
        v.scatter_add(tf.IndexedSlices(tf.ones([2, 1]), ids)),
    ]
    session = self._session()
    for op in ops:
      with self.assertRaisesRegex(tf.errors.InvalidArgumentError,
                                  r"id 1099511627776 does not fit into int32.*'v'"):
        session.run(op, {ids: [3, 2**40]})
      self.assertEqual(session.run(v.size)[0], 0)
    session.run(ops, {ids: [3, 2**31 - 1]})
    self.assertEqual(session.run(v.indices).tolist(), [3, 2**31 - 1])

  def test_assign_keeps_slots(self):
    v = sok.DynamicVariable(1, "zeros")
    optimizer = tf.compat.v1.train.MomentumOptimizer(1., .5)
    train = optimizer.minimize(
        tf.reduce_sum(sok.all2all_dense_embedding(v, tf.constant([3], tf.int64))))
    session = self._session()
    session.run(train)
    session.run(sok.assign(v, [3], [[10.]]))
    session.run(train)
    # The second step subtracts 1 + 0.5 * 1.
    np.testing.assert_allclose(session.run(sok.export(v))[1], [[8.5]])

  def test_assign_refuses(self):
    v = sok.DynamicVariable(2, name="v")
    with self.assertRaisesRegex(ValueError, "'v'.*values: expected shape"):
      sok.assign(v, [1, 2], [[1., 2.]])
    with self.assertRaisesRegex(ValueError, "'v'.*one axis"):
      sok.assign(v, [[1, 2]], [[1., 2.]])
    dense = tf.compat.v1.get_variable("dense", [2, 2])
    for function in (lambda x: sok.assign(x, [1], [[1.]]), sok.export):
      with self.assertRaisesRegex(TypeError, "expected a SOK variable"):
        function(dense)

  def test_scatter(self):
    v = sok.DynamicVariable(1, "1")
    session = self._session()
    delta = tf.IndexedSlices(tf.constant([[1.], [2.], [5.]]), tf.constant([7, 8, 7]))
    session.run(v.scatter_sub(delta))
    np.testing.assert_array_equal(session.run(sok.export(v))[1], [[-5], [-1]])
    session.run(v.scatter_add(delta))
    np.testing.assert_array_equal(session.run(sok.export(v))[1], [[1], [1]])
    session.run(v.scatter_update(delta))
    np.testing.assert_array_equal(session.run(sok.export(v))[1], [[5], [2]])

  def test_sparse_read_and_evict(self):
    v = sok.DynamicVariable(2, "3")
    session = self._session()
    session.run(sok.assign(v, [1], [[4., 5.]]))
    rows, keys, values = session.run(sok.sparse_read_and_evict(v, [6, 1]))
    np.testing.assert_array_equal(rows, [[3, 3], [4, 5]])
    self.assertEqual([keys.shape, values.shape], [(0,), (0, 2)])
    np.testing.assert_array_equal(session.run(v.indices), [1, 6])
    for other in (sok.DynamicVariable(2, var_type="auto"), sok.Variable(np.ones([2, 2]))):
      with self.assertRaisesRegex(TypeError, "hybrid"):
        sok.sparse_read_and_evict(other, [1])

  def test_sparse_read_and_evict_with_a_capacity(self):
    v = sok.DynamicVariable(2, "3", max_capacity=2, evict_strategy="kLfu")
    session = self._session()
    session.run(sok.assign(v, [1, 2], [[4., 5.], [6., 7.]]))
    session.run(sok.assign(v, [2], [[6., 8.]]))
    outputs = sok.sparse_read_and_evict(v, [6, 6, 6])
    self.assertEqual([o.shape.as_list() for o in outputs], [[3, 2], [None], [None, 2]])
    rows, keys, values = session.run(outputs)
    np.testing.assert_array_equal(rows, [[3, 3]] * 3)
    self.assertEqual([keys.tolist(), values.tolist()], [[1], [[4, 5]]])
    np.testing.assert_array_equal(session.run(v.indices), [2, 6])

  def test_sparse_read_and_evict_is_differentiable(self):
    v = sok.DynamicVariable(2, "3", max_capacity=8)
    ids = tf.compat.v1.placeholder(tf.int64, [None])
    embeddings, _, _ = sok.sparse_read_and_evict(v, ids)
    gradient, = tf.gradients(tf.reduce_sum(embeddings * [[1., 2.]]), [v])
    self.assertIsInstance(gradient, tf.IndexedSlices)
    train = tf.compat.v1.train.GradientDescentOptimizer(.5).apply_gradients(
        [(gradient, v)])
    session = self._session()
    rows, _ = session.run([embeddings, train], {ids: [6, 1, 6]})
    np.testing.assert_array_equal(rows, [[3, 3]] * 3)
    keys, values = session.run(sok.export(v))
    np.testing.assert_array_equal(keys, [1, 6])
    np.testing.assert_array_equal(values, [[2.5, 2], [2, 1]])
    session.run(train, {ids: []})
    np.testing.assert_array_equal(session.run(sok.export(v))[1], values)

  def test_saver(self):
    v = sok.DynamicVariable(2, "random", name="scope/v")
    saver = tf.compat.v1.train.Saver()
    path = self.create_tempdir().full_path + "/model"
    session = self._session()
    session.run(sok.assign(v, [5], [[1., 2.]]))
    before = session.run(tf.nn.embedding_lookup(v, [5, 6]))
    saver.save(session, path)
    with tf.compat.v1.Session() as other:
      saver.restore(other, path)
      np.testing.assert_array_equal(
          other.run(tf.nn.embedding_lookup(v, [5, 6])), before)

  def test_filter_variables(self):
    dense = tf.compat.v1.get_variable("d", [2])
    v, w = sok.DynamicVariable(1), sok.Variable(np.ones([2, 1]))
    sparse, others = sok.filter_variables([v, dense, w])
    self.assertEqual([id(x) for x in sparse], [id(v), id(w)])
    self.assertEqual([id(x) for x in others], [id(dense)])


class All2AllDenseEmbeddingTest(absltest.TestCase):

  def test_rows_in_order_and_gradient(self):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      v = sok.DynamicVariable(2, "zeros", name="v")
      ids = tf.compat.v1.placeholder(tf.int64, [None])
      rows = sok.all2all_dense_embedding(v, ids)
      self.assertEqual(rows.shape.as_list(), [None, 2])
      gradient = tf.gradients(tf.reduce_sum(rows), v)[0]
      session.run(tf.compat.v1.global_variables_initializer())
      session.run(sok.assign(v, [3, -4], [[1., 2.], [3., 4.]]))
      found, grad = session.run([rows, gradient], {ids: [3, -4, 3, 9]})
      np.testing.assert_array_equal(found, [[1, 2], [3, 4], [1, 2], [0, 0]])
      self.assertEqual(dict(zip(grad.indices, grad.values[:, 0])), {3: 2, -4: 1, 9: 1})
      self.assertEqual(session.run(rows, {ids: []}).shape, (0, 2))
      self.assertEqual(sok.all2all_dense_embedding(v, [1, 2]).shape.as_list(), [2, 2])

  def test_refuses(self):
    with tf.Graph().as_default():
      v = sok.DynamicVariable(2, name="v")
      with self.assertRaisesRegex(ValueError, "'v'.*one axis"):
        sok.all2all_dense_embedding(v, [[1, 2]])
      with self.assertRaisesRegex(TypeError, "param: expected"):
        sok.all2all_dense_embedding(tf.zeros([2, 2]), [1])
      with self.assertRaisesRegex(TypeError, "'v'.*int32 or int64"):
        sok.all2all_dense_embedding(v, [1.])


if __name__ == "__main__":
  absltest.main()
