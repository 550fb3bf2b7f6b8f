# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Compares sok.lookup_sparse on embedding variables with TensorFlow on dense ones.

Two models with the same initial rows get the same batches for several steps. One has
embedding variables and one sok.lookup_sparse for all; the other has dense variables and
tf.nn.embedding_lookup_sparse. Losses must agree at every step, and trained rows at the
end. Run it with Python or with Bazel.
"""

import collections

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from sparse_operation_kit import experiment as sok

_STEPS = 5
_BATCH = 11
_MAX_HOTNESS = 6
_ROWS = 23
_RTOL = 1e-5
_ATOL = 1e-6

SPARSE = "sparse"
RAGGED = "ragged"

Table = collections.namedtuple("Table", ["dim", "combiner", "kind", "weighted"])

# Dims that are not multiples of 4, of a vector register, or of a cache line.
_TABLES = (
    Table(3, "sum", SPARSE, False),
    Table(16, "mean", RAGGED, False),
    Table(33, "mean", SPARSE, True),
    Table(1, "sum", RAGGED, True),
    Table(64, "mean", SPARSE, False),
)

_OPTIMIZERS = {
    "sgd": lambda: tf.compat.v1.train.GradientDescentOptimizer(0.5),
    "momentum": lambda: tf.compat.v1.train.MomentumOptimizer(0.1, 0.9),
    "nesterov": lambda: tf.compat.v1.train.MomentumOptimizer(
        0.1, 0.9, use_nesterov=True),
    "adagrad": lambda: tf.compat.v1.train.AdagradOptimizer(0.1),
    "adam": lambda: tf.compat.v1.train.AdamOptimizer(0.01),
    "ftrl": lambda: tf.compat.v1.train.FtrlOptimizer(
        0.1, l1_regularization_strength=0.001, l2_regularization_strength=0.01),
    "rmsprop": lambda: tf.compat.v1.train.RMSPropOptimizer(0.01, momentum=0.9),
    "adadelta": lambda: tf.compat.v1.train.AdadeltaOptimizer(1.0),
}

# TensorFlow's Adam updates every row of a dense variable at every step; an embedding
# variable's Adam updates only the rows of the batch. The results are equal only if each
# batch contains every row.
_NEEDS_ALL_ROWS = ("adam",)


def key_of(row):
  """Returns a key for a row of the dense table; keys are far apart, and some are negative.

  Key k starts as default row floormod(k, R), so key_of(r) starts as row r of the dense
  table.
  """
  return row + _ROWS * ((row * 7919 - 60000) * 10 ** 12)


class Batch(object):
  """Random ids and weights of one table; some samples are empty."""

  def __init__(self, rng, all_rows):
    lengths = rng.randint(0, _MAX_HOTNESS + 1, _BATCH)
    lengths[[2, _BATCH - 1]] = 0
    if all_rows:
      lengths[0] = _ROWS
    self.splits = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    self.nonempty = np.flatnonzero(lengths)
    self.rows = rng.randint(0, _ROWS, self.splits[-1])
    if all_rows:
      self.rows[:_ROWS] = np.arange(_ROWS)
    self.weights = rng.uniform(0.5, 2.0, self.splits[-1]).astype(np.float32)
    samples = np.repeat(np.arange(_BATCH), lengths)
    places = np.arange(len(self.rows)) - self.splits[:-1][samples]
    self.indices = np.stack([samples, places], axis=1).astype(np.int64)

  def sparse(self, values):
    shape = [_BATCH, _MAX_HOTNESS + _ROWS]
    return tf.compat.v1.SparseTensorValue(self.indices, values, shape)

  def ragged(self, values):
    return tf.compat.v1.ragged.RaggedTensorValue(values, self.splits)


class Feed(object):
  """Placeholders of one table's ids: sparse ones for TensorFlow, either kind for SOK.

  TensorFlow's lookups give NaN for empty samples (weighted mean) or omit trailing ones.
  So the dense model only reads the other samples; SOK's empty ones are zeros.
  """

  def __init__(self, table, key_dtype):
    self._table = table
    self.dense_ids = tf.compat.v1.sparse_placeholder(tf.int64)
    self.dense_weights = tf.compat.v1.sparse_placeholder(tf.float32)
    self.nonempty = tf.compat.v1.placeholder(tf.int64, [None])
    if table.kind == RAGGED:
      self.ids = tf.compat.v1.ragged.placeholder(key_dtype, 1, [])
      self.weights = tf.compat.v1.ragged.placeholder(tf.float32, 1, [])
    else:
      self.ids = tf.compat.v1.sparse_placeholder(key_dtype)
      self.weights = tf.compat.v1.sparse_placeholder(tf.float32)

  def values(self, batch, keys):
    """Returns the feed_dict of a Batch; SOK's ids are `keys`."""
    wrap = batch.ragged if self._table.kind == RAGGED else batch.sparse
    feed = {self.dense_ids: batch.sparse(batch.rows), self.ids: wrap(keys),
            self.nonempty: batch.nonempty}
    if self._table.weighted:
      feed[self.dense_weights] = batch.sparse(batch.weights)
      feed[self.weights] = wrap(batch.weights)
    return feed


def _loss(outputs):
  # Nonlinear, with different weights per column, so that all gradients differ.
  total = 0.0
  for output, dim in outputs:
    scale = tf.constant(np.linspace(0.5, 1.5, dim), tf.float32)
    total += tf.reduce_sum(tf.tanh(output * scale) + 0.1 * tf.square(output))
  return total


class EmbeddingVarLookupTest(parameterized.TestCase):

  def _train(self, tables, optimizer, all_rows=False, key_dtype=tf.int64, seed=0):
    """Trains both models and compares losses and rows."""
    rng = np.random.RandomState(seed)
    initial = [rng.normal(0, 0.5, [_ROWS, t.dim]).astype(np.float32) for t in tables]
    all_keys = np.arange(_ROWS) if key_dtype == tf.int32 else np.array(
        [key_of(r) for r in range(_ROWS)])
    all_keys = all_keys.astype(key_dtype.as_numpy_dtype)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      feeds = [Feed(t, key_dtype) for t in tables]
      dense, evs = [], []
      for i, (table, rows) in enumerate(zip(tables, initial)):
        dense.append(tf.compat.v1.get_variable("dense_%d" % i, initializer=rows))
        option = tf.EmbeddingVariableOption(
            init_option=tf.InitializerOption(
                initializer=lambda shape, dtype, rows=rows: tf.constant(rows),
                default_value_dim=_ROWS))
        evs.append(tf.get_embedding_variable(
            "ev_%d" % i, embedding_dim=table.dim, key_dtype=key_dtype,
            ev_option=option))
        evs[-1].target_gpu = -1
      dense_loss = _loss([
          (tf.gather(tf.nn.embedding_lookup_sparse(
              v, f.dense_ids, f.dense_weights if t.weighted else None,
              combiner=t.combiner), f.nonempty), t.dim)
          for v, f, t in zip(dense, feeds, tables)])
      outputs = sok.lookup_sparse(
          evs, [f.ids for f in feeds],
          [f.weights if t.weighted else None for f, t in zip(feeds, tables)],
          [t.combiner for t in tables])
      ev_loss = _loss([(o, t.dim) for o, t in zip(outputs, tables)])
      dense_train = optimizer().minimize(dense_loss, var_list=dense)
      ev_optimizer = optimizer()
      ev_train = ev_optimizer.apply_gradients(
          ev_optimizer.compute_gradients(ev_loss, var_list=evs))
      trained = [tf.nn.embedding_lookup(v, all_keys) for v in evs]
      session.run(tf.compat.v1.global_variables_initializer())

      dense_losses, ev_losses = [], []
      seen = [set() for _ in tables]
      for _ in range(_STEPS):
        feed = {}
        for t, f in enumerate(feeds):
          batch = Batch(rng, all_rows)
          seen[t].update(batch.rows.tolist())
          feed.update(f.values(batch, all_keys[batch.rows]))
        # Both losses in one run, before either model trains.
        losses = session.run([dense_loss, ev_loss], feed)
        session.run([dense_train, ev_train], feed)
        dense_losses.append(losses[0])
        ev_losses.append(losses[1])
      np.testing.assert_allclose(ev_losses, dense_losses, rtol=_RTOL, atol=_ATOL)
      for t, (got, expected) in enumerate(zip(session.run(trained),
                                              session.run(dense))):
        count = session.run(evs[t].total_count())
        self.assertEqual(count.tolist(), [len(seen[t]), tables[t].dim])
        np.testing.assert_allclose(got, expected, rtol=_RTOL, atol=_ATOL)
        changed = np.any(expected != initial[t], axis=1)
        self.assertTrue(changed.any())
        # Rows outside all batches are unchanged.
        untouched = sorted(set(range(_ROWS)) - seen[t])
        np.testing.assert_array_equal(got[untouched], initial[t][untouched])

  @parameterized.parameters(*sorted(_OPTIMIZERS))
  def test_optimizer(self, name):
    self._train(_TABLES, _OPTIMIZERS[name], all_rows=name in _NEEDS_ALL_ROWS)

  @parameterized.product(
      kind=[SPARSE, RAGGED], combiner=["sum", "mean"], weighted=[False, True])
  def test_single_table(self, kind, combiner, weighted):
    self._train([Table(5, combiner, kind, weighted)], _OPTIMIZERS["adagrad"], seed=1)

  def test_int32_keys(self):
    self._train(_TABLES, _OPTIMIZERS["adagrad"], key_dtype=tf.int32, seed=2)

  def test_wide_row(self):
    self._train([Table(257, "mean", SPARSE, False)], _OPTIMIZERS["adagrad"], seed=3)


if __name__ == "__main__":
  absltest.main()
