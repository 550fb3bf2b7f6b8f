# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of sok.Variable in one process; for several ranks see sok_variables_utest.py."""

from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from sparse_operation_kit import communication
from sparse_operation_kit import experiment as sok

_train = tf.compat.v1.train
_VALUE = np.arange(15 * 4, dtype=np.float32).reshape(15, 4)

_OPTIMIZERS = {
    "sgd": lambda: _train.GradientDescentOptimizer(.1),
    "adagrad": lambda: _train.AdagradOptimizer(.1),
    "momentum": lambda: _train.MomentumOptimizer(.1, .9),
    "ftrl": lambda: _train.FtrlOptimizer(.1),
    "proximal": lambda: _train.ProximalAdagradOptimizer(.1),
    "keras": lambda: tf.keras.optimizers.Adadelta(.1),
}


class StaticVariableTest(parameterized.TestCase):

  def setUp(self):
    super(StaticVariableTest, self).setUp()
    graph = tf.Graph().as_default()
    graph.__enter__()
    self.addCleanup(graph.__exit__, None, None, None)

  def _session(self):
    session = tf.compat.v1.Session()
    self.addCleanup(session.close)
    session.run(tf.compat.v1.global_variables_initializer())
    return session

  @parameterized.parameters(None, "distributed", "localized:0")
  def test_looks_like_its_rows(self, mode):
    v = sok.Variable(_VALUE, mode=mode)
    self.assertIsInstance(v, sok.LocalizedVariable if mode == "localized:0"
                          else sok.DistributedVariable)
    self.assertEqual(v.name, "sok_static_Variable_0:0")
    self.assertEqual(v.global_shape.as_list(), [15, 4])
    self.assertEqual(v.shape.as_list(), [15, 4])
    self.assertEqual(v.get_shape().as_list(), [15, 4])
    self.assertEqual(v.target_gpu, 0 if mode == "localized:0" else -1)
    self.assertEqual([v.num_gpus, v.global_gpu_id], [1, 0])
    self.assertEqual(v.dtype, tf.float32)
    session = self._session()
    for fetched in (v, v.value(), v.read_value(), tf.convert_to_tensor(v), v + 0.,
                    tf.nn.embedding_lookup(v, np.arange(15))):
      np.testing.assert_array_equal(session.run(fetched), _VALUE)
    np.testing.assert_array_equal(session.run(v.key_map(tf.range(15))), np.arange(15))

  @parameterized.parameters(
      (lambda: _VALUE.tolist(),), (lambda: tf.constant(_VALUE),),
      (lambda: (lambda: tf.constant(_VALUE)),), (lambda: _VALUE.astype(np.float64),),
      (lambda: _VALUE.astype(np.int64),))
  def test_initial_values(self, make):
    v = sok.Variable(make())
    np.testing.assert_array_equal(self._session().run(v), _VALUE)

  def test_initializers(self):
    ones = sok.Variable(shape=[3, 2], initializer=tf.ones_initializer())
    named = sok.Variable(shape=(3, 2), initializer="zeros")
    drawn = sok.Variable(shape=[500, 4],
                         initializer=tf.random_uniform_initializer(1., 2., seed=3))
    session = self._session()
    np.testing.assert_array_equal(session.run(ones), np.ones([3, 2]))
    np.testing.assert_array_equal(session.run(named), np.zeros([3, 2]))
    rows = session.run(drawn)
    self.assertBetween(rows.min(), 1., 1.01)
    self.assertGreater(len(np.unique(rows)), 1900)

  @parameterized.parameters("distributed", "localized:1")
  def test_a_constant_on_the_second_rank(self, mode):
    with mock.patch.object(communication, "num_ranks", return_value=2), \
        mock.patch.object(communication, "rank", return_value=1):
      v = sok.Variable(shape=[15, 4], initializer=tf.constant_initializer(_VALUE),
                       mode=mode)
      one = sok.Variable(shape=[15, 4], initializer=tf.constant_initializer(7.),
                         mode=mode)
    session = self._session()
    expected = _VALUE[1::2] if mode == "distributed" else _VALUE
    np.testing.assert_array_equal(session.run(v), expected)
    np.testing.assert_array_equal(session.run(one), np.full(expected.shape, 7.))

  @parameterized.parameters(
      (ValueError, "either initial_value", dict()),
      (ValueError, "either initial_value",
       dict(initial_value=_VALUE, initializer=tf.ones_initializer())),
      (ValueError, "shape: expected", dict(initializer="ones")),
      (ValueError, "shape: expected", dict(initializer="ones", shape=[3])),
      (ValueError, "expected the shape", dict(initial_value=[1., 2.])),
      (ValueError, "initial_value has shape", dict(initial_value=_VALUE, shape=[4, 15])),
      (ValueError, "dtype: expected float32", dict(initial_value=_VALUE, dtype=tf.float64)),
      (ValueError, "at least one row", dict(initial_value=np.zeros([0, 4]))),
      (ValueError, "constraint", dict(initial_value=_VALUE, constraint=tf.identity)),
      (RuntimeError, "mode", dict(initial_value=_VALUE, mode="somewhere")),
      (RuntimeError, "rank 3", dict(initial_value=_VALUE, mode="localized:3")),
  )
  def test_wrong_arguments(self, error, words, kwargs):
    with self.assertRaisesRegex(error, words):
      sok.Variable(name="v", **kwargs)

  @parameterized.parameters(*sorted(_OPTIMIZERS))
  def test_trains_as_a_dense_variable_does(self, name):
    v = sok.Variable(_VALUE)
    dense = tf.compat.v1.get_variable("dense", initializer=_VALUE, use_resource=True)
    indices = [[0, 0], [0, 1], [1, 0], [3, 0]]
    ids = tf.SparseTensor(indices, tf.constant([0, 14, 7, 7], tf.int64), [4, 2])
    got = sok.lookup_sparse(v, ids, combiners="mean")
    expected = tf.nn.safe_embedding_lookup_sparse(dense, ids, combiner="mean")
    train = []
    for output, var in ((got, v), (expected, dense)):
      gradient, = tf.gradients(tf.reduce_sum(tf.tanh(output / 10.)), [var])
      train.append(_OPTIMIZERS[name]().apply_gradients([(gradient, var)]))
    session = self._session()
    for _ in range(3):
      session.run(train)
    a, b = session.run([v, dense])
    np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    self.assertNotEqual(a[14, 0], _VALUE[14, 0])
    np.testing.assert_array_equal(a[1], _VALUE[1])
    self.assertEqual(session.run(v.total_count()).tolist(), [15, 4])

  @parameterized.parameters(15, -1)
  def test_an_id_that_is_no_row_is_an_error(self, key):
    v = sok.Variable(_VALUE, name="user")
    ids = tf.SparseTensor([[0, 0]], tf.constant([key], tf.int64), [1, 1])
    session = self._session()
    for output in (sok.lookup_sparse(v, ids), sok.all2all_dense_embedding(v, [key]),
                   tf.nn.embedding_lookup(v, [key])):
      with self.assertRaisesRegex(tf.errors.InvalidArgumentError,
                                  "(?s)user: .*expected 0 <= id < 15.*%d" % key):
        session.run(output)

  def test_assign(self):
    v = sok.Variable(_VALUE)
    session = self._session()
    np.testing.assert_array_equal(session.run(v.assign(-_VALUE)), -_VALUE)
    session.run(sok.assign(v, [3], [[0., 0., 0., 1.]]))
    keys, rows = session.run(sok.export(v))
    np.testing.assert_array_equal(keys, np.arange(15))
    np.testing.assert_array_equal(rows[3], [0, 0, 0, 1])
    np.testing.assert_array_equal(rows[4], -_VALUE[4])
    session.run(v.assign(_VALUE))
    np.testing.assert_array_equal(session.run(v.assign_add(_VALUE)), 2. * _VALUE)
    np.testing.assert_array_equal(session.run(v.assign_sub(3. * _VALUE)), -_VALUE)
    session.run(v.assign_add(np.ones([15, 4]), read_value=False))
    np.testing.assert_array_equal(session.run(v), 1. - _VALUE)
    self.assertEqual(v.m_var_name, "sok_static_Variable_0")
    for assign in (v.assign, v.assign_add, v.assign_sub):
      with self.assertRaises(ValueError):
        assign(_VALUE[1:])
    with self.assertRaisesRegex(NotImplementedError, "cannot be erased"):
      v.erase([1])
    with self.assertRaisesRegex(NotImplementedError, "ev_init_value"):
      v.sparse_read([1], ev_init_value=_VALUE[:1])

  def test_saver(self):
    v = sok.Variable(_VALUE, name="v")
    saver = _train.Saver()
    path = self.create_tempdir().full_path + "/model"
    session = self._session()
    session.run(v.assign(2. * _VALUE))
    saver.save(session, path)
    with tf.compat.v1.Session() as other:
      saver.restore(other, path)
      np.testing.assert_array_equal(other.run(v), 2. * _VALUE)

  def test_not_initialized(self):
    v = sok.Variable(_VALUE, name="v")
    with tf.compat.v1.Session() as session:
      self.assertFalse(session.run(v.is_initialized()))
      with self.assertRaisesRegex(tf.errors.FailedPreconditionError, "v"):
        session.run(v)


if __name__ == "__main__":
  absltest.main()
