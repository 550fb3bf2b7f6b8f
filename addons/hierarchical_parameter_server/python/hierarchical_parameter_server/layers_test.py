# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Compares the layers with tf.nn.embedding_lookup(_sparse) on a dense variable."""

import itertools
import os

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

import deprecations
import hierarchical_parameter_server as hps
from hierarchical_parameter_server import _lib
from hierarchical_parameter_server import testing

deprecations.silence()

_ROWS, _DIM = 200, 12


class LayersTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    hps.stop()
    self.folder = self.create_tempdir().full_path
    random = np.random.RandomState(3)
    self.rows = random.normal(size=(_ROWS, _DIM)).astype(np.float32)
    testing.write_table(os.path.join(self.folder, "t"), np.arange(_ROWS), self.rows)

  def tearDown(self):
    hps.stop()
    super().tearDown()

  def config(self, long_keys=True, **more):
    return testing.write_config(
        os.path.join(self.folder, "ps.json"),
        [testing.model("m", ["t"], [_DIM], [0.25])], supportlonglong=long_keys, **more)

  def layer(self, kind=None, **more):
    return (kind or hps.LookupLayer)(
        model_name="m", table_id=0, emb_vec_size=_DIM, emb_vec_dtype=tf.float32,
        ps_config_file=self.config(**more), global_batch_size=8)

  def run_graph(self, build, feed=None):
    with tf.Graph().as_default():
      fetched, feeds = build()
      with tf.Session() as session:
        return session.run(fetched, feeds)

  @parameterized.parameters(
      *itertools.product([tf.int32, tf.int64], [None, 0., 0.1, 10.],
                         ["parallel_hash_map", "multi_process_hash_map"]))
  def test_acceptance_01_dense_parity(self, dtype, max_norm, kind):
    layer = self.layer(long_keys=dtype == tf.int64, volatile_db={"type": kind})
    random = np.random.RandomState(5)
    for shape in ([], [7], [3, 4], [2, 3, 5], [0], [4, 0]):
      ids = random.randint(0, _ROWS, size=shape)

      def build():
        fed = tf.placeholder(dtype, [None] * len(shape))
        ours = layer(fed, max_norm=max_norm)
        self.assertEqual(ours.shape.as_list(), [None] * len(shape) + [_DIM])
        stock = tf.nn.embedding_lookup(tf.constant(self.rows), fed, max_norm=max_norm)
        return (ours, stock), {fed: ids}

      ours, stock = self.run_graph(build)
      np.testing.assert_array_equal(ours, stock)

  def sparse(self, rows, weights_type=None):
    """Returns (ids, weights) as SparseTensorValues made from lists of ids."""
    random = np.random.RandomState(7)
    indices = [[r, c] for r, row in enumerate(rows) for c in range(len(row))]
    shape = [len(rows), max([len(row) for row in rows] + [1])]
    values = [i for row in rows for i in row]
    indices = np.reshape(np.array(indices, np.int64), [-1, 2])
    ids = tf.SparseTensorValue(indices, np.array(values, np.int64), shape)
    weights = tf.SparseTensorValue(
        indices, random.uniform(0.1, 2, len(values)).astype(weights_type or np.float32),
        shape)
    return ids, weights

  @parameterized.parameters(
      *itertools.product(["sum", "mean", "sqrtn", None], [False, True],
                         [None, 0., 0.1, 10.], [tf.int32, tf.int64]))
  def test_acceptance_01_sparse_parity(self, combiner, weighted, max_norm, dtype):
    layer = self.layer(hps.SparseLookupLayer, long_keys=dtype == tf.int64)
    full = [[3, 5, 3], [199], [0, 1, 2, 3, 4], [7, 7]]
    with tf.Graph().as_default(), tf.Session() as session:
      fed = tf.sparse_placeholder(tf.int64, [None, None])
      cast = tf.SparseTensor(fed.indices, tf.cast(fed.values, dtype), fed.dense_shape)
      fed_weights = tf.sparse_placeholder(tf.float32, [None, None])
      given = fed_weights if weighted else None
      lookup = layer(cast, sp_weights=given, combiner=combiner, max_norm=max_norm)
      self.assertEqual(lookup.shape.as_list(), [None, _DIM])
      stock_lookup = tf.nn.embedding_lookup_sparse(
          tf.constant(self.rows), cast, given, combiner=combiner or "mean",
          max_norm=max_norm)
      # One graph for all samples: most of the time goes into making one.
      samples = (full, [[]] + full, full[:2] + [[]] + full[2:], full + [[], []], [[], []],
                 [[], [4], []])
      outputs = [
          session.run([lookup, stock_lookup],
                      dict(zip((fed, fed_weights), self.sparse(rows))))
          for rows in samples
      ]
    for rows, (ours, stock) in zip(samples, outputs):
      # Stock lookups omit empty samples at the end, and divide by a zero weight sum for
      # other empty samples.
      self.assertEqual(ours.shape, (len(rows), _DIM))
      stock[[not row for row in rows[:len(stock)]]] = 0.
      if weighted and combiner == "sqrtn":
        # TensorFlow's optimizer turns the stock graph's division by a root into a
        # product.
        np.testing.assert_allclose(ours[:len(stock)], stock, rtol=3e-7)
      else:
        np.testing.assert_array_equal(ours[:len(stock)], stock)
      np.testing.assert_array_equal(ours[len(stock):], 0.)

  def test_ids_may_be_given_by_name(self):
    layer = self.layer(hps.SparseLookupLayer)
    ids, weights = self.sparse([[3, 5, 3], [], [7]])

    def build():
      sp_ids, sp_weights = [tf.SparseTensor(*v) for v in (ids, weights)]
      keras_ids = tf.keras.Input([None], dtype=tf.int64, sparse=True)
      keras_rows = layer(sp_ids=keras_ids, sp_weights=None, combiner="sum")
      return {
          "expected": layer(sp_ids, None, combiner="sum"),
          "by name": layer(sp_ids=sp_ids, sp_weights=None, combiner="sum"),
          "without weights": layer(sp_ids=sp_ids, combiner="sum"),
          "keras": layer(inputs=sp_ids, combiner="sum"),
          "model": tf.keras.Model(keras_ids, keras_rows)(sp_ids),
          "weighted expected": layer(sp_ids, sp_weights, combiner="mean"),
          "weighted": layer(sp_ids=sp_ids, sp_weights=sp_weights, combiner="mean"),
          "dense expected": self.layer()(tf.constant([4, 1], tf.int64)),
          "dense": self.layer()(ids=tf.constant([4, 1], tf.int64), max_norm=None),
      }, None

    found = self.run_graph(build)
    for name in ("by name", "without weights", "keras", "model"):
      np.testing.assert_array_equal(found[name], found["expected"], name)
    np.testing.assert_array_equal(found["weighted"], found["weighted expected"])
    np.testing.assert_array_equal(found["dense"], found["dense expected"])
    self.assertTrue(found["expected"].any())
    with tf.Graph().as_default():
      with self.assertRaisesRegex(TypeError, "missing 1 required positional argument"):
        layer(sp_weights=None)
      one = tf.SparseTensor(*ids)
      with self.assertRaisesRegex(TypeError, "multiple values for argument 'sp_ids'"):
        layer(one, sp_ids=one)

  @parameterized.parameters("mean", "sqrtn")
  def test_weights_that_sum_to_zero_give_zeros(self, combiner):
    layer = self.layer(hps.SparseLookupLayer)
    ids, weights = self.sparse([[3, 5], [7], [8, 8]])
    weights = weights._replace(values=np.array([1, -1, 0, .5, .5], np.float32))
    found = self.run_graph(lambda: (layer(
        tf.SparseTensor.from_value(ids), sp_weights=tf.SparseTensor.from_value(weights),
        combiner=combiner), None))
    if combiner == "mean":
      np.testing.assert_array_equal(found[0], np.zeros(_DIM))
    np.testing.assert_array_equal(found[1], np.zeros(_DIM))
    np.testing.assert_allclose(
        found[2], self.rows[8] * (1 if combiner == "mean" else 2 ** .5), rtol=1e-6)

  @parameterized.parameters(2 ** 62, 2 ** 32 + 2)
  def test_more_samples_than_a_batch_can_have(self, size):
    layer = self.layer(hps.SparseLookupLayer)
    ids, _ = self.sparse([[3, 5], [7]])
    fed = tf.SparseTensorValue(ids.indices, ids.values, [size, 2])

    def build():
      placeholder = tf.sparse_placeholder(tf.int64)
      return layer(placeholder, sp_weights=None, combiner="sum"), {placeholder: fed}

    with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "at most 2147483646"):
      self.run_graph(build)
    with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "at most 2147483646"):
      self.run_graph(lambda: (layer(tf.SparseTensor.from_value(fed), sp_weights=None,
                                    combiner="sum"), None))

  def test_ids_of_rank_3(self):
    layer = self.layer(hps.SparseLookupLayer)
    ids = tf.SparseTensorValue([[0, 0, 0], [0, 1, 0]], np.array([3, 5]), [1, 2, 1])
    with self.assertRaisesRegex(ValueError, r"expected the shape \[batch, ids\], got rank 3"):
      self.run_graph(lambda: (layer(tf.SparseTensor.from_value(ids), None), None))

    def build(fed):
      placeholder = tf.sparse_placeholder(tf.int64)
      return layer(placeholder, None, combiner="sum"), {placeholder: fed}

    with self.assertRaisesRegex(tf.errors.InvalidArgumentError, r"\[2,3\]"):
      self.run_graph(lambda: build(ids))
    good, _ = self.sparse([[3], [5]])
    np.testing.assert_array_equal(self.rows[[3, 5]], self.run_graph(lambda: build(good)))

  def test_acceptance_03_unknown_and_extreme_keys(self):
    limits = np.iinfo(np.int64)
    keys = np.array([limits.max, limits.min, -1, 0], np.int64)
    testing.write_table(os.path.join(self.folder, "t"), keys, self.rows[:4])
    layer = self.layer()
    asked = [limits.max, 5, -1, limits.min, limits.max - 1, 0, -2, -1]
    found = self.run_graph(lambda: (layer(tf.constant(asked, tf.int64)), None))
    other = np.full([_DIM], 0.25, np.float32)
    expected = [self.rows[0], other, self.rows[2], self.rows[1], other, self.rows[3],
                other, self.rows[2]]
    np.testing.assert_array_equal(found, expected)
    table = hps.metrics()["models"][0]["tables"][0]
    self.assertEqual((table["keys"], table["from_volatile"], table["defaults"]),
                     (8, 5, 3))

  def test_acceptance_03_keys_of_32_bits(self):
    keys = np.array([-1, 2**32 - 2, 2**31 - 1], np.int64)
    testing.write_table(os.path.join(self.folder, "t"), keys, self.rows[:3])
    layer = self.layer(long_keys=False)
    asked = [-1, -2, 2**31 - 1, -2**31, 0]
    found = self.run_graph(lambda: (layer(tf.constant(asked, tf.int32)), None))
    np.testing.assert_array_equal(found[:3], self.rows[:3])
    np.testing.assert_array_equal(found[3:], 0.25)

  def test_ragged_ids(self):
    dense, sparse = self.layer(), self.layer(hps.SparseLookupLayer)

    def build():
      ragged = tf.ragged.constant([[1, 2], [], [3]], tf.int64)
      weights = tf.ragged.constant([[1., 3.], [], [2.]], tf.float32)
      rows = dense(ragged)
      return (rows.flat_values, rows.row_splits,
              sparse(ragged, sp_weights=weights, combiner="sum")), None

    flat, splits, pooled = self.run_graph(build)
    np.testing.assert_array_equal(flat, self.rows[[1, 2, 3]])
    np.testing.assert_array_equal(splits, [0, 2, 2, 3])
    np.testing.assert_allclose(
        pooled, [self.rows[1] + 3 * self.rows[2], 0 * self.rows[0], 2 * self.rows[3]],
        rtol=1e-6)

  def test_keras_model_in_graph_mode(self):
    with tf.Graph().as_default(), tf.Session() as session:
      ids = tf.keras.Input([2], dtype=tf.int64)
      rows = self.layer()(ids)
      output = tf.keras.layers.Dense(1)(tf.keras.layers.Flatten()(rows))
      model = tf.keras.Model(ids, output)
      model.compile("sgd", "mse")
      self.assertLen(model.trainable_weights, 2)
      session.run(tf.global_variables_initializer())
      given = np.array([[1, 2], [3, 4], [5, 6], [7, 8]])
      kernel, bias = model.get_weights()
      np.testing.assert_allclose(
          model.predict(given), self.rows[given].reshape([4, -1]) @ kernel + bias,
          rtol=1e-5, atol=1e-6)
      before = model.evaluate(given, np.ones([4, 1]), verbose=0)
      model.fit(given, np.ones([4, 1]), epochs=20, verbose=0)
      self.assertLess(model.evaluate(given, np.ones([4, 1]), verbose=0), before)
      # Rebuilds the model from its configuration.
      again = tf.keras.Model.from_config(
          model.get_config(), {"LookupLayer": hps.LookupLayer})
      again.set_weights(model.get_weights())
      np.testing.assert_array_equal(again.predict(given), model.predict(given))

  def test_autograph_converts_a_call_of_a_subclass(self):
    class Negated(hps.LookupLayer):

      def call(self, ids, max_norm=None):
        rows = hps.LookupLayer.call(self, ids, max_norm)
        if tf.reduce_sum(ids) > 3:
          rows = -rows
        return rows

    layer = self.layer(Negated)
    for ids, sign in ([1, 2], 1), ([3, 2], -1):
      rows = self.run_graph(lambda: (layer(tf.constant(ids, tf.int64)), {}))
      np.testing.assert_array_equal(rows, sign * self.rows[ids])

  def test_arguments_are_checked(self):
    good = dict(model_name="m", table_id=0, emb_vec_size=4)
    for error, more in (
        (TypeError, dict(model_name="")), (TypeError, dict(table_id=1.5)),
        (ValueError, dict(table_id=-1)), (ValueError, dict(emb_vec_size=0)),
        (ValueError, dict(emb_vec_dtype=tf.float16)),
        (ValueError, dict(global_batch_size=0))):
      with self.assertRaisesRegex(error, list(more)[0]):
        hps.LookupLayer(**dict(good, **more))
    with tf.Graph().as_default():
      sparse = tf.SparseTensor([[0, 0]], tf.constant([1], tf.int64), [1, 1])
      with self.assertRaisesRegex(TypeError, "use hps.SparseLookupLayer"):
        hps.LookupLayer(**good)(sparse)
      with self.assertRaisesRegex(TypeError, "int32 or int64 ids, got float32"):
        hps.LookupLayer(**good)(tf.constant([1.]))
      with self.assertRaisesRegex(TypeError, "sp_ids: expected a SparseTensor"):
        hps.SparseLookupLayer(**good)(tf.constant([[1]]), sp_weights=None)
      with self.assertRaisesRegex(ValueError, "combiner: expected one of"):
        hps.SparseLookupLayer(**good)(sparse, sp_weights=None, combiner="max")
      with self.assertRaisesRegex(TypeError, "sp_weights"):
        hps.SparseLookupLayer(**good)(sparse, sp_weights=tf.constant([1.]))
      with self.assertRaisesRegex(TypeError, "unknown arguments config"):
        hps.Init(config="x")

  @parameterized.parameters(tf.int32, tf.int64)
  def test_distinct_ids_are_those_of_stock_tensorflow(self, dtype):
    random = np.random.RandomState(9)
    limits = np.iinfo(dtype.as_numpy_dtype)
    batches = [random.randint(-20, 20, n) for n in (0, 1, 2, 33, 5000)]
    batches += [np.full([300], limits.max), np.arange(70000) % 40009,
                random.choice([limits.min, limits.max, 0, -1, 1], 1000),
                random.randint(limits.min, limits.max, 3000, dtype=dtype.as_numpy_dtype)]
    with tf.Graph().as_default(), tf.Session() as session:
      fed = tf.placeholder(dtype, [None])
      ours, stock = _lib.load().hps_distinct(ids=fed), tf.unique(fed)
      self.assertEqual([ours.distinct.dtype, ours.positions.dtype], [dtype, tf.int32])
      for batch in batches:
        found, expected = session.run([ours, stock], {fed: batch})
        np.testing.assert_array_equal(found.distinct, expected.y)
        np.testing.assert_array_equal(found.positions, expected.idx)
      unknown = tf.placeholder(dtype)
      with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "one dimension"):
        session.run(_lib.load().hps_distinct(ids=unknown), {unknown: [[1]]})

  def test_weights_of_other_indices_are_an_error(self):
    layer = self.layer(hps.SparseLookupLayer)

    def build():
      ids = tf.SparseTensor([[0, 0], [1, 0]], tf.constant([1, 2], tf.int64), [2, 2])
      weights = tf.SparseTensor([[0, 0], [1, 1]], tf.constant([1., 2.]), [2, 2])
      return layer(ids, sp_weights=weights), None

    with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "indices of sp_ids"):
      self.run_graph(build)


if __name__ == "__main__":
  absltest.main()
