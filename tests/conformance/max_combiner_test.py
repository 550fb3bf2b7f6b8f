# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Compares the combiner "max" of embedding variables with segment_max on dense ones."""

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

import embedding_variable as ev
import pairs

_ROWS, _DIM = 29, 5


def _rows():
  """Returns few distinct values, most of them negative, so that elements tie."""
  return np.random.RandomState(1).randint(-5, 2, [_ROWS, _DIM]).astype(np.float32)


def _batch(seed, batch=30, max_ids=6, low=0):
  """Returns a SparseTensorValue of ids with empty samples and repeated ids."""
  random = np.random.RandomState(seed)
  lengths = random.randint(0, max_ids + 1, batch)
  lengths[-1] = 0
  indices = [[s, p] for s in range(batch) for p in range(lengths[s])]
  ids = random.randint(low, _ROWS // 2, len(indices))
  return tf.SparseTensorValue(np.array(indices, np.int64), ids.astype(np.int64),
                              [batch, max_ids])


def _dense_max(rows, samples, batch):
  """Computes "max" by its definition, with TensorFlow's gradient."""
  largest = tf.math.unsorted_segment_max(rows, samples, batch)
  counts = tf.math.unsorted_segment_sum(tf.ones_like(samples), samples, batch)
  return tf.where(counts > 0, largest, tf.zeros_like(largest))


def _oracle(variable, ids):
  return _dense_max(tf.gather(variable, ids.values), ids.indices[:, 0],
                    ids.dense_shape[0])


def _optimizers():
  return {
      "sgd": lambda: tf.train.GradientDescentOptimizer(.25),
      "adagrad": lambda: tf.train.AdagradOptimizer(.25),
      # An optimizer without a fused update takes the generic path.
      "generic": lambda: tf.train.ProximalGradientDescentOptimizer(.25),
  }


class MaxCombinerTest(parameterized.TestCase):

  def _train(self, kind, look_up, batches, optimizer="sgd", make=None):
    """Returns the outputs of some steps and the rows after them."""
    with tf.Graph().as_default():
      variable = (make or pairs.make)(kind, "v", _rows())
      ids = tf.sparse_placeholder(tf.int64, [None, 6])
      output = look_up(variable, ids)
      scale = tf.constant(np.linspace(.5, 1.5, _DIM), tf.float32)
      train = _optimizers()[optimizer]().minimize(
          tf.reduce_sum(tf.square(output - 1.) * scale))
      with pairs.session() as session:
        session.run(tf.global_variables_initializer())
        outputs = [
            session.run([output, train], {ids: batch})[0] for batch in batches
        ]
        return outputs, session.run(pairs.read_all(variable, _ROWS))

  def _check(self, look_up, oracle=_oracle, steps=1, low=0, optimizer="sgd", make=None):
    batches = [_batch(seed, low=low) for seed in range(steps)]
    table = self._train("table", look_up, batches, optimizer, make)
    dense = self._train("resource", oracle, batches, optimizer)
    self.assertTrue((dense[1] != _rows()).any())
    for a, b in zip(table[0], dense[0]):
      np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(table[1], dense[1], rtol=1e-5, atol=1e-5)

  @parameterized.product(
      optimizer=("sgd", "adagrad", "generic"),
      look_up=(
          lambda v, x: tf.nn.embedding_lookup_sparse(v, x, None, combiner="max"),
          lambda v, x: ev.lookup_sparse([v], [x], combiners=["max"])[0],
          lambda v, x: tf.nn.group_embedding_lookup_sparse([v], [x], ["max"])[0]))
  def test_lookups_and_optimizers(self, optimizer, look_up):
    self._check(look_up, optimizer=optimizer)

  def test_safe_lookup(self):

    def oracle(variable, ids):
      return _oracle(variable, tf.sparse_retain(ids, ids.values >= 0))

    self._check(
        lambda v, x: tf.nn.safe_embedding_lookup_sparse(v, x, combiner="max"), oracle,
        low=-4)

  def test_rows_that_are_clipped(self):

    def oracle(variable, ids):
      rows = tf.clip_by_norm(tf.gather(variable, ids.values), .7, axes=[1])
      return _dense_max(rows, ids.indices[:, 0], ids.dense_shape[0])

    self._check(
        lambda v, x: tf.nn.embedding_lookup_sparse(v, x, None, combiner="max",
                                                   max_norm=.7), oracle)

  def test_parts_of_a_partitioned_table(self):

    def make(unused_kind, name, values):
      # No two elements tie, because each part splits the gradient of ties on its own.
      values = values + np.linspace(0, .4, values.size).reshape(values.shape)
      option = ev.EmbeddingVariableOption(
          init_option=ev.InitializerOption(default_value_dim=len(values)))
      return tf.get_embedding_variable(
          name, _DIM, ev_option=option, partitioner=tf.fixed_size_partitioner(3),
          initializer=lambda shape, dtype: tf.constant(values, tf.float32))

    def dense(unused_kind, name, values):
      values = values + np.linspace(0, .4, values.size).reshape(values.shape)
      return pairs.dense(name, values.astype(np.float32))

    batches = [_batch(0)]
    table = self._train(
        "", lambda v, x: tf.nn.embedding_lookup_sparse(v, x, None, combiner="max"),
        batches, make=make)
    expected = self._train("", _oracle, batches, make=dense)
    np.testing.assert_allclose(table[0][0], expected[0][0], rtol=1e-6)
    np.testing.assert_allclose(table[1], expected[1], rtol=1e-5, atol=1e-6)

  def test_combiners_and_weights_of_several_tables_in_one_op(self):
    batch = _batch(3)
    weights = tf.SparseTensorValue(
        batch.indices, np.linspace(.5, 2, len(batch.values)).astype(np.float32),
        batch.dense_shape)

    def build(kind):
      variables = [pairs.make(kind, name, _rows()) for name in "abc"]
      ids, w = tf.SparseTensor.from_value(batch), tf.SparseTensor.from_value(weights)
      if kind == "table":
        outputs = ev.lookup_sparse(variables, [ids] * 3, [None, w, None],
                                   ["max", "mean", "sum"])
      else:
        outputs = [
            _oracle(variables[0], ids),
            tf.nn.safe_embedding_lookup_sparse(variables[1], ids, w),
            tf.nn.safe_embedding_lookup_sparse(variables[2], ids, combiner="sum")
        ]
        outputs = [tf.pad(o, [[0, 30 - tf.shape(o)[0]], [0, 0]]) for o in outputs]
      train = tf.train.AdagradOptimizer(.1).minimize(
          tf.add_n([tf.reduce_sum(tf.square(o - 1.)) for o in outputs]))
      return outputs, train, [pairs.read_all(v, _ROWS) for v in variables]

    results = []
    for kind in ("table", "resource"):
      with tf.Graph().as_default() as graph, pairs.session() as session:
        outputs, train, rows = build(kind)
        if kind == "table":
          types = [op.type for op in graph.get_operations()]
          self.assertEqual(types.count("EvLookupSparse"), 1)
        session.run(tf.global_variables_initializer())
        outputs, _ = session.run([outputs, train])
        results.append(outputs + session.run(rows))
    for a, b in zip(*results):
      np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)

  def test_feature_columns(self):
    column = tf.feature_column.categorical_column_with_embedding("c", tf.int64)
    column = tf.feature_column.embedding_column(
        column, _DIM, combiner="max",
        initializer=tf.random_uniform_initializer(-2, -1, seed=1))
    features = {"c": tf.SparseTensor([[0, 0], [0, 1], [2, 0]],
                                     tf.constant([4, 5, 4], tf.int64), [3, 2])}
    output = tf.feature_column.input_layer(features, [column])
    variable, = tf.trainable_variables()
    rows = tf.nn.embedding_lookup(variable, tf.constant([4, 5], tf.int64))
    with pairs.session() as session:
      session.run(tf.global_variables_initializer())
      output, rows = session.run([output, rows])
    np.testing.assert_array_equal(
        output, [np.maximum(*rows), np.zeros(_DIM), rows[0]])

  @parameterized.parameters(
      (lambda v, x, w: ev.lookup_sparse([v], [x], [w], ["max"]), "lookup_sparse of 'v'"),
      (lambda v, x, w: tf.nn.embedding_lookup_sparse(v, x, w, combiner="max"),
       "embedding_lookup_sparse of 'v'"),
      (lambda v, x, w: tf.nn.safe_embedding_lookup_sparse(v, x, w, combiner="max"),
       "embedding_lookup_sparse of 'v'"),
      (lambda v, x, w: tf.nn.embedding_lookup_sparse(v, x, w, combiner="max",
                                                     max_norm=1.),
       "embedding_lookup_sparse of 'v'"),
      (lambda v, x, w: tf.nn.group_embedding_lookup_sparse(
          [v], [x], ["max"], sp_weights=[w]), "group_embedding_lookup_sparse"))
  def test_weights_are_refused(self, look_up, op):
    with tf.Graph().as_default():
      variable = pairs.make("table", "v", _rows())
      ids = tf.SparseTensor([[0, 0]], tf.constant([1], tf.int64), [1, 1])
      weights = tf.SparseTensor([[0, 0]], [1.], [1, 1])
      with self.assertRaisesRegex(ValueError, op + ".*'max' takes no weights"):
        look_up(variable, ids, weights)


if __name__ == "__main__":
  absltest.main()
