# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0

import copy
import os

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf
from embedding_variable.tf_names import resource_variable_ops

import embedding_variable as ev

_INT64_MIN, _INT64_MAX = -2**63, 2**63 - 1


class VariableTest(parameterized.TestCase):

  def setUp(self):
    super(VariableTest, self).setUp()
    self._graph = tf.Graph().as_default()
    self._graph.__enter__()
    self.addCleanup(self._graph.__exit__, None, None, None)

  def _train_once(self, variable, ids, session, step=None):
    loss = tf.reduce_sum(tf.nn.embedding_lookup(variable, ids))
    train = tf.train.GradientDescentOptimizer(1.0).minimize(loss,
                                                            global_step=step)
    session.run(train)

  def test_metadata(self):
    v = tf.get_embedding_variable("v", 3, key_dtype=tf.int32)
    self.assertEqual(v.name, "v:0")
    self.assertEqual(v.op.name, "v")
    self.assertEqual(v.shape.as_list(), [3])
    self.assertEqual(v.get_shape().as_list(), [3])
    self.assertEqual(v.dtype, tf.float32)
    self.assertEqual(v.key_dtype, tf.int32)
    self.assertEqual(v.handle.dtype, tf.resource)
    self.assertEqual(v.target_gpu, -1)
    self.assertIs(v.graph, tf.get_default_graph())
    self.assertEqual(v.invalid_key, -1)
    self.assertIsNone(v.constraint)
    self.assertIn("'v:0' dim=3", repr(v))

  def test_passes_the_type_checks_of_code(self):
    from tensorflow.python.ops import kv_variable_ops  # pylint: disable=g-import-not-at-top
    v = tf.get_embedding_variable("v", 3)
    self.assertIsInstance(v, kv_variable_ops.EmbeddingVariable)
    stock = tf.get_variable("stock", [3], use_resource=True)
    self.assertEqual(isinstance(stock, tf.Variable), isinstance(v, tf.Variable))
    self.assertTrue(resource_variable_ops.is_resource_variable(v))
    self.assertTrue(ev.is_embedding_variable(v))
    self.assertFalse(ev.is_embedding_variable(tf.get_variable("d", [3])))
    self.assertTrue(v)
    self.assertIs(copy.copy(v), v)
    self.assertEqual({v: 1}[v], 1)

  def test_target_gpu(self):
    v = tf.get_embedding_variable("v", 3)
    v.target_gpu = 2
    self.assertEqual(v.target_gpu, 2)

  def test_run_gives_the_size(self):
    v = tf.get_embedding_variable("v", 3)
    with tf.Session() as session:
      session.run(v.initializer)
      self.assertEqual(session.run(v).tolist(), [0, 3])
      self._train_once(v, [4, 5, 4], session)
      for size in (session.run(v), session.run(v.total_count()),
                   session.run(v.get_dynamic_shape()), v.eval(session)):
        self.assertEqual(size.tolist(), [2, 3])
      rows, index_bytes, row_bytes, inserted = session.run(v.stats())
      self.assertEqual((rows, inserted), (2, 2))
      self.assertGreater(index_bytes, 0)
      self.assertGreater(row_bytes, 0)

  def test_initialization(self):
    v = tf.get_embedding_variable("v", 3, initializer=tf.ones_initializer())
    with tf.Session() as session:
      self.assertFalse(session.run(v.is_initialized()))
      self.assertEqual(
          session.run(tf.report_uninitialized_variables()).tolist(), [b"v"])
      with self.assertRaisesRegex(tf.errors.FailedPreconditionError, "'v'"):
        session.run(tf.nn.embedding_lookup(v, [1]))
      session.run(tf.global_variables_initializer())
      self.assertTrue(session.run(v.is_initialized()))
      self.assertEqual(
          session.run(tf.report_uninitialized_variables()).tolist(), [])
      self._train_once(v, [1, 2], session)
      # Initializing again empties the table.
      session.run(v.initializer)
      self.assertEqual(session.run(v).tolist(), [0, 3])

  def test_a_lookup_inserts_nothing(self):
    v = tf.get_embedding_variable("v", 3)
    with tf.Session() as session:
      session.run(v.initializer)
      session.run(tf.nn.embedding_lookup(v, [1, 2, 3]))
      session.run([v.get_frequency([1]), v.get_version([1])])
      self.assertEqual(session.run(v).tolist(), [0, 3])

  def test_any_key(self):
    v = tf.get_embedding_variable("v", 2, initializer=tf.zeros_initializer())
    keys = [0, -1, -2, _INT64_MIN, _INT64_MAX, 1000, -1000]
    with tf.Session() as session:
      session.run(v.initializer)
      self._train_once(v, np.array(keys), session)
      found = session.run(tf.nn.embedding_lookup(v, np.array(keys)))
      np.testing.assert_array_equal(found, np.full([7, 2], -1.0))
      exported = session.run(v.export())
      self.assertCountEqual(exported[0].tolist(), keys)
      buckets = [k % 1000 for k in exported[0].tolist()]
      self.assertEqual(buckets, sorted(buckets))

  @parameterized.parameters(
      ([1, 2, 1], tf.int64), (np.array([[1], [2]], np.int32), tf.int32),
      (2**40, tf.int64), (np.int64(5), tf.int64), ((), tf.int64))
  def test_python_ids(self, ids, dtype):
    v = tf.get_embedding_variable("v", 3)
    self.assertEqual(v.convert_ids(ids).dtype, dtype)
    rows = tf.nn.embedding_lookup(v, ids)
    self.assertEqual(rows.shape.as_list(), list(np.shape(ids)) + [3])
    with tf.Session() as session:
      session.run(v.initializer)
      self.assertEqual(session.run(rows).shape, np.shape(ids) + (3,))

  @parameterized.parameters(([1.5],), (["a"],), (np.array([1.0], np.float32),))
  def test_ids_of_wrong_types(self, ids):
    v = tf.get_embedding_variable("v", 3)
    with self.assertRaisesRegex(TypeError, "'v': ids"):
      tf.nn.embedding_lookup(v, ids)

  def test_int32_keys(self):
    v = tf.get_embedding_variable("v", 2, key_dtype=tf.int32)
    with tf.Session() as session:
      session.run(v.initializer)
      self._train_once(v, tf.constant([5, -2**31, 5]), session)
      keys = session.run(v.export()[0])
      self.assertEqual(keys.dtype, np.int32)
      self.assertCountEqual(keys.tolist(), [5, -2**31])

  def test_ids_beyond_int32_keys(self):
    v = tf.get_embedding_variable("v", 2, key_dtype=tf.int32)
    ids = tf.placeholder(tf.int64, [None])
    samples = tf.SparseTensor(
        tf.stack([tf.zeros_like(ids), tf.range(2, dtype=tf.int64)], 1), ids, [1, 2])
    rows = tf.nn.embedding_lookup(v, ids)
    pooled = tf.nn.embedding_lookup_sparse(v, samples, None)
    loss = tf.reduce_sum(rows) + tf.reduce_sum(pooled)
    ops = [v.erase(ids), rows, pooled, tf.train.AdagradOptimizer(.1).minimize(loss),
           v.get_version(ids), v.prefetch(ids)]
    with tf.Session() as session:
      session.run(tf.global_variables_initializer())
      for op in ops:
        session.run(op, {ids: [1, -2**31]})
      for op in ops:
        for wide in (2**40 + 1, 2**31, -2**31 - 1):
          with self.assertRaisesRegex(tf.errors.InvalidArgumentError,
                                      r"id %d does not fit into int32.*'v'" % wide):
            session.run(op, {ids: [1, wide]})
      self.assertEqual(session.run(v.total_count()).tolist(), [2, 2])

  def test_frequency_and_version(self):
    for name in ("TF_RECORD_FREQ", "TF_RECORD_VERSION"):
      os.environ[name] = "1"
      self.addCleanup(os.environ.pop, name)
    v = tf.get_embedding_variable("v", 3)
    step = tf.train.get_or_create_global_step()
    ids = tf.placeholder(tf.int64, [None])
    # DeepRec's own test case: two steps, keys 1 x 3, 2 x 2, 3 x 1.
    loss = tf.reduce_sum(tf.nn.embedding_lookup(v, ids))
    train = tf.train.AdagradOptimizer(0.1).minimize(loss, global_step=step)
    with tf.Session() as session:
      session.run(tf.global_variables_initializer())
      for _ in range(2):
        session.run(train, {ids: [1, 1, 1, 2, 2, 3]})
      frequency, version = session.run(
          [v.get_frequency([1, 2, 3, 4]), v.get_version([[1], [4]])])
      self.assertEqual(frequency.tolist(), [6, 4, 2, 0])
      self.assertEqual(version.tolist(), [[1], [-1]])
      exported = session.run(v.export())
      keys, _, versions, freqs = exported
      self.assertIs(exported.keys, keys)
      self.assertEqual(exported.values.tolist(), exported[1].tolist())
      self.assertEqual(exported.versions.tolist(), versions.tolist())
      self.assertEqual(exported.freqs.tolist(), freqs.tolist())
      self.assertEqual(keys.tolist(), [1, 2, 3])
      self.assertEqual(versions.tolist(), [1, 1, 1])
      self.assertEqual(freqs.tolist(), [6, 4, 2])

  @parameterized.product(
      lookup=("once", "twice", "table_twice", "rows", "mixed"),
      optimizer=(tf.train.AdagradOptimizer, tf.train.ProximalAdagradOptimizer))
  def test_frequency_counts_every_occurrence(self, lookup, optimizer):
    os.environ["TF_RECORD_FREQ"] = "1"
    self.addCleanup(os.environ.pop, "TF_RECORD_FREQ")
    v = tf.get_embedding_variable("v", 3)
    ids = tf.RaggedTensor.from_row_splits(
        np.array([5, 5, 5, 6], np.int64), [0, 2, 4])
    pooled = lambda: tf.reduce_sum(ev.lookup_sparse([v], [ids])[0])
    rows = lambda: tf.reduce_sum(tf.nn.embedding_lookup(v, ids.values))
    loss, times = {
        "once": lambda: (pooled(), 1),
        "twice": lambda: (pooled() + pooled(), 2),
        "table_twice": lambda: (
            tf.reduce_sum(ev.lookup_sparse([v, v], [ids, ids])), 2),
        "rows": lambda: (rows(), 1),
        "mixed": lambda: (rows() + pooled(), 2),
    }[lookup]()
    train = optimizer(.1).minimize(loss)
    with tf.Session() as session:
      session.run(tf.global_variables_initializer())
      session.run(train)
      self.assertEqual(
          session.run(v.get_frequency([5, 6])).tolist(), [3 * times, times])

  def test_nothing_is_recorded_by_default(self):
    v = tf.get_embedding_variable("v", 3)
    with tf.Session() as session:
      session.run(v.initializer)
      self._train_once(v, [1], session)
      self.assertEqual(session.run(v.get_frequency([1])).tolist(), [0])
      _, _, versions, freqs = session.run(v.export())
      self.assertEqual((versions.size, freqs.size), (0, 0))

  def test_erase(self):
    v = tf.get_embedding_variable("v", 1, initializer=tf.zeros_initializer())
    with tf.Session() as session:
      session.run(v.initializer)
      self._train_once(v, [1, 2, 3], session)
      self.assertEqual(session.run(v.erase([2, 2, 9])), 1)
      self.assertEqual(session.run(v.export()[0]).tolist(), [1, 3])
      self.assertEqual(
          session.run(tf.nn.embedding_lookup(v, [1, 2])).tolist(), [[-1], [0]])

  def test_sessions_have_their_own_rows(self):
    v = tf.get_embedding_variable("v", 1)
    with tf.Session() as one, tf.Session() as two:
      one.run(v.initializer)
      two.run(v.initializer)
      self._train_once(v, [1, 2], one)
      self.assertEqual(one.run(v).tolist(), [2, 1])
      self.assertEqual(two.run(v).tolist(), [0, 1])

  @parameterized.parameters(
      (tf.convert_to_tensor,), (lambda v: v + 1,), (lambda v: v.value(),),
      (lambda v: v.read_value(),), (lambda v: v[0],), (tf.nn.l2_loss,),
      (tf.shape,), (lambda v: tf.summary.histogram("h", v),),
      (lambda v: v.initialized_value(),), (lambda v: tf.gather(v, [1], axis=1),),
      (lambda v: tf.gather_nd(v, [[1]]),),
      (lambda v: tf.train.ExponentialMovingAverage(.9).apply([v]),))
  def test_what_needs_a_dense_value(self, use):
    v = tf.get_embedding_variable("v", 3)
    with self.assertRaisesRegex(NotImplementedError, "'v': it has no dense value"):
      use(v)

  @parameterized.parameters(
      (lambda v: v.assign(1.0),), (lambda v: v.assign_add(1.0),),
      (lambda v: tf.assign(v, 1.0),), (lambda v: tf.scatter_add(v, [1], 1.0),),
      (lambda v: v.load(1.0),))
  def test_what_would_assign(self, use):
    v = tf.get_embedding_variable("v", 3)
    with self.assertRaisesRegex(NotImplementedError,
                                "'v': it cannot be assigned"):
      use(v)

  def test_mixed_list(self):
    v = tf.get_embedding_variable("v", 3)
    with self.assertRaisesRegex(TypeError, "mixes the embedding variable 'v'"):
      tf.nn.embedding_lookup([v, tf.zeros([5, 3])], [1])

  def test_one_bad_variable_leaves_the_others(self):
    v = tf.get_embedding_variable("v", 3)
    w = tf.get_embedding_variable("w", 3)
    with tf.Session() as session:
      session.run(v.initializer)
      with self.assertRaises(tf.errors.FailedPreconditionError):
        session.run(tf.nn.embedding_lookup(w, [1]))
      self._train_once(v, [1], session)
      self.assertEqual(session.run(v).tolist(), [1, 3])


if __name__ == "__main__":
  absltest.main()
