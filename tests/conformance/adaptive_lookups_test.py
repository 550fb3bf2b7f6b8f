# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Lookups where a mask chooses between an embedding variable and a shared dense table."""

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

import embedding_variable as ev
import pairs

_DIM, _KEYS, _SHARED = 3, 40, 4
_fc = tf.feature_column

# Sample 2 has no id; id 13 occurs twice, once for each table.
_INDICES = np.array([[0, 0], [0, 1], [1, 0], [3, 0], [3, 1], [3, 2]], np.int64)
_IDS = np.array([5, 13, 13, 38, 6, 5], np.int64)
_MASK = np.array([1, 0, 1, 0, 0, 1], np.int32)
_WEIGHTS = np.array([.5, 2., 1., 3., .25, 1.], np.float32)


def _sparse(values, indices=_INDICES):
  return tf.SparseTensor(indices, values, [4, 3])


def _expected(own, shared, combiner, weights=None, ids=_IDS, mask=_MASK):
  """Pools as the definition does, with float64 sums."""
  weights = np.ones(len(ids)) if weights is None else weights
  out = np.zeros([4, _DIM])
  for sample in range(4):
    at = np.flatnonzero((_INDICES[:, 0] == sample) & (ids >= 0))
    rows = [own[ids[i]] if mask[i] else shared[ids[i] % _SHARED] for i in at]
    w = weights[at].astype(np.float64)
    total = sum((row * x for row, x in zip(rows, w)), np.zeros(_DIM))
    if len(at):
      total /= {"sum": 1, "mean": w.sum(), "sqrtn": np.sqrt((w ** 2).sum())}[combiner]
    out[sample] = total
  return out


class AdaptiveLookupTest(parameterized.TestCase):

  def setUp(self):
    super(AdaptiveLookupTest, self).setUp()
    tf.reset_default_graph()
    self.own, self.shared = pairs.rows(_KEYS, _DIM), pairs.rows(_SHARED, _DIM, seed=1)

  def _tables(self, parts=None):
    partitioner = None if parts is None else tf.fixed_size_partitioner(parts)
    with tf.variable_scope("", partitioner=partitioner):
      table = pairs.table("own", self.own)
    return table, pairs.dense("shared", self.shared)

  @parameterized.product(combiner=["sum", "mean", "sqrtn", None],
                         weighted=[False, True], parts=[None, 3])
  def test_rows_and_gradients(self, combiner, weighted, parts):
    table, shared = self._tables(parts)
    weights = _WEIGHTS if weighted else None
    output = tf.nn.adaptive_embedding_lookup_sparse(
        shared, table, _sparse(_IDS), _MASK, _sparse(weights) if weighted else None,
        combiner=combiner)
    self.assertEqual(output.shape.as_list(), [4, _DIM])
    loss = tf.reduce_sum(tf.square(output))
    train = tf.train.GradientDescentOptimizer(1.).minimize(loss)
    combiner = combiner or "mean"
    with pairs.session() as session:
      session.run(tf.global_variables_initializer())
      first, _ = session.run([output, train])
      np.testing.assert_allclose(
          first, _expected(self.own, self.shared, combiner, weights), rtol=1e-5)
      # Finite differences of the definition in float64 give the expected gradient.
      for rows, read in ((self.own, pairs.read_all(table, _KEYS)),
                         (self.shared, shared)):
        gradient = np.zeros(rows.shape)
        for at in np.ndindex(*rows.shape):
          sides = []
          for step in (1e-4, -1e-4):
            moved = rows.astype(np.float64)
            moved[at] += step
            pair = ((moved, self.shared) if rows is self.own else (self.own, moved))
            sides.append(np.sum(_expected(pair[0], pair[1], combiner, weights)**2))
          gradient[at] = (sides[0] - sides[1]) / 2e-4
        np.testing.assert_allclose(session.run(read), rows - gradient, rtol=1e-4,
                                   atol=1e-4)
      # Ids of the shared table have no row in the embedding variable.
      keys = [session.run(p.export()[0]) for p in ev_parts(table)]
      self.assertCountEqual(np.concatenate(keys), [5, 13])

  @parameterized.parameters(0, 1)
  def test_all_ids_on_one_side(self, side):
    table, shared = self._tables()
    mask = tf.placeholder(tf.bool, [None])
    output = tf.nn.adaptive_embedding_lookup_sparse(shared, table, _sparse(_IDS), mask,
                                                    combiner="sum")
    with pairs.session() as session:
      session.run(tf.global_variables_initializer())
      np.testing.assert_allclose(
          session.run(output, {mask: [side] * 6}),
          _expected(self.own, self.shared, "sum", mask=[side] * 6), rtol=1e-5)

  def test_no_ids(self):
    table, shared = self._tables()
    empty = tf.SparseTensor(np.zeros([0, 2], np.int64), np.zeros([0], np.int64), [2, 3])
    output = tf.nn.adaptive_embedding_lookup_sparse(shared, table, empty,
                                                    np.zeros([0], np.int32))
    with pairs.session() as session:
      session.run(tf.global_variables_initializer())
      np.testing.assert_array_equal(session.run(output), np.zeros([2, _DIM]))

  def test_safe_form(self):
    table, shared = self._tables()
    ids = np.where(_IDS == 6, -1, _IDS)
    output = tf.nn.safe_adaptive_embedding_lookup_sparse(
        shared, table, _sparse(ids), _MASK, combiner="mean")
    filled = tf.nn.safe_adaptive_embedding_lookup_sparse(
        shared, table, _sparse(ids), _MASK, _sparse(_WEIGHTS), combiner="mean",
        default_id=7)
    with pairs.session() as session:
      session.run(tf.global_variables_initializer())
      np.testing.assert_allclose(
          session.run(output), _expected(self.own, self.shared, "mean", ids=ids),
          rtol=1e-5)
      expected = _expected(self.own, self.shared, "mean", _WEIGHTS, ids=ids)
      expected[2] = self.own[7]
      np.testing.assert_allclose(session.run(filled), expected, rtol=1e-5)

  def test_wrong_arguments(self):
    table, shared = self._tables()
    lookup = tf.nn.adaptive_embedding_lookup_sparse
    for error, words, args in (
        (TypeError, "ev_params", (shared, shared, _sparse(_IDS), _MASK)),
        (TypeError, "'own'.*SparseTensor", (shared, table, _IDS, _MASK)),
        (TypeError, "'own'.*integers or bools",
         (shared, table, _sparse(_IDS), _MASK.astype(np.float32))),
        (ValueError, r"'own'.*\(6,\).*\(5,\)", (shared, table, _sparse(_IDS), _MASK[:5])),
        (ValueError, "'own'.*length 3, those .* 2",
         (tf.get_variable("narrow", [4, 2]), table, _sparse(_IDS), _MASK))):
      with self.assertRaisesRegex(error, words):
        lookup(*args)
    with self.assertRaisesRegex(ValueError, "'own'.*combiner.*'median'"):
      lookup(shared, table, _sparse(_IDS), _MASK, combiner="median")
    mask = tf.placeholder(tf.int32)
    output = lookup(shared, table, _sparse(_IDS), mask)
    with pairs.session() as session:
      session.run(tf.global_variables_initializer())
      with self.assertRaisesRegex(tf.errors.InvalidArgumentError,
                                  "own.*: the mask: expected one element for each id"):
        session.run(output, {mask: [1, 0]})


class AdaptiveColumnTest(parameterized.TestCase):

  def _column(self, dtype=tf.int64, **kwargs):
    option = ev.EmbeddingVariableOption(
        init_option=ev.InitializerOption(default_value_dim=_KEYS))
    return _fc.categorical_column_with_adaptive_embedding(
        "ids", _SHARED, dtype, ev_option=option, **kwargs)

  @parameterized.parameters(None, 2)
  def test_input_layer(self, parts):
    own = pairs.rows(_KEYS, _DIM)

    def initializer(shape, dtype=None, partition_info=None):
      del dtype, partition_info
      return tf.constant(pairs.rows(_KEYS, _DIM)[:shape[0]])

    shared = own[:_SHARED]
    with tf.Graph().as_default(), pairs.session() as session:
      column = _fc.embedding_column(self._column(partition_num=parts), _DIM, "sum",
                                    initializer=initializer)
      output = _fc.input_layer({"ids": _sparse(_IDS)}, [column],
                               adaptive_mask_tensors={"ids": tf.constant(_MASK)})
      train = tf.train.AdagradOptimizer(.1).minimize(tf.reduce_sum(output))
      tables = [v.op.name for v in tf.get_collection("embedding_variables")]
      self.assertLen(tables, parts or 1)
      self.assertEqual(
          {v.op.name for v in tf.trainable_variables()} - set(tables),
          {"input_layer/ids_embedding/embedding_weights_hash"})
      session.run(tf.global_variables_initializer())
      # One run would not order the update of the dense variable after its lookup.
      first = session.run(output)
      session.run(train)
      np.testing.assert_allclose(first, _expected(own, shared, "sum"), rtol=1e-5)
      second = session.run(output)
      self.assertTrue((second[[0, 1, 3]] < first[[0, 1, 3]]).all())

  def test_strings(self):
    with tf.Graph().as_default(), pairs.session() as session:
      column = _fc.embedding_column(self._column(tf.string), _DIM)
      output = _fc.input_layer({"ids": tf.constant([["a"], ["b"], ["a"]])}, [column],
                               adaptive_mask_tensors={"ids": [1, 0, 1]})
      session.run([tf.global_variables_initializer()])
      found = session.run(output)
      np.testing.assert_array_equal(found[0], found[2])
      self.assertTrue((found[0] != found[1]).all())

  def test_without_a_mask(self):
    with tf.Graph().as_default():
      features = {"ids": _sparse(_IDS)}
      column = _fc.embedding_column(self._column(), _DIM)
      for build in (
          lambda: _fc.input_layer(features, [column]),
          lambda: _fc.input_layer(features, [column],
                                  adaptive_mask_tensors={"others": _MASK}),
          lambda: _fc.linear_model(features, [self._column()]),
          lambda: tf.keras.layers.DenseFeatures([column])(features),
          lambda: _fc.input_layer(
              features, _fc.shared_embedding_columns([self._column()], _DIM),
              adaptive_mask_tensors={"ids": _MASK})):
        with self.assertRaisesRegex(ValueError, "'ids'.*adaptive_mask_tensors"):
          build()

  def test_wrong_sizes(self):
    for size in (0, 1.5, True, None):
      with self.assertRaisesRegex(ValueError, "'k'.*hash_bucket_size"):
        _fc.categorical_column_with_adaptive_embedding("k", size)


def ev_parts(table):
  """Returns the parts of an embedding variable."""
  return list(table) if hasattr(table, "_get_variable_list") else [table]


if __name__ == "__main__":
  absltest.main()
