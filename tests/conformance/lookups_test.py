# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Compares stock lookups of embedding variables with those of dense variables."""

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

import embedding_variable as ev
import pairs

_ROWS, _DIM = 29, 3


def _sparse(seed, batch, max_ids, empty=True, dtype=np.int64, low=0):
  """Returns SparseTensorValues of ids and weights; the last sample is not empty."""
  random = np.random.RandomState(seed)
  indices, ids = [], []
  for sample in range(batch):
    count = random.randint(0 if empty else 1, max_ids + 1)
    if sample == batch - 1:
      count = max(count, 1)
    for position in range(count):
      indices.append([sample, position])
      ids.append(random.randint(low, _ROWS))
  shape = [batch, max_ids]
  weights = random.rand(len(ids)).astype(np.float32) + .1
  indices = np.array(indices, np.int64).reshape([-1, 2])
  return (tf.SparseTensorValue(indices, np.array(ids, dtype), shape),
          tf.SparseTensorValue(indices, weights, shape))


def _weightless():
  """Returns SparseTensors of ids and weights that sum to 0 in samples 0, 1 and 3."""
  indices = [[0, 0], [0, 1], [1, 0], [1, 1], [2, 0], [3, 0], [3, 1], [4, 0]]
  return (tf.SparseTensor(indices, tf.constant([3, 5, 2, 2, 8, 1, 1, 9], tf.int64), [5, 2]),
          tf.SparseTensor(indices, [1., -1., .5, -.5, .5, 0., -0., .5], [5, 2]))


def _both(use, make_inputs=lambda: ()):
  """Runs `use(variable, *inputs)` on both kinds and trains one step of SGD.

  Returns:
    [(result, rows after the step), ...] of the table and the dense variable.
  """
  results = []
  values = pairs.rows(_ROWS, _DIM)
  for kind in ("table", "resource"):
    with tf.Graph().as_default():
      variable = pairs.make(kind, "v", values)
      result = use(variable, *make_inputs())
      weights = tf.reshape(
          tf.cast(tf.range(tf.size(result)), tf.float32), tf.shape(result))
      train = tf.train.GradientDescentOptimizer(.01).minimize(
          tf.reduce_sum(tf.square(result) * weights))
      with pairs.session() as session:
        session.run(tf.global_variables_initializer())
        first, _ = session.run([result, train])
        results.append((first, session.run(pairs.read_all(variable, _ROWS))))
  return results


class LookupsTest(parameterized.TestCase):

  def _check(self, use, make_inputs=lambda: (), rtol=1e-5):
    table, dense = _both(use, make_inputs)
    np.testing.assert_allclose(table[0], dense[0], rtol=rtol, atol=1e-6)
    np.testing.assert_allclose(table[1], dense[1], rtol=rtol, atol=1e-6)
    self.assertTrue((table[1] != pairs.rows(_ROWS, _DIM)).any())

  @parameterized.parameters(
      (lambda v: tf.nn.embedding_lookup(v, [1, 2, 1]),),
      (lambda v: tf.nn.embedding_lookup(v, tf.constant([[1], [5]])),),
      (lambda v: tf.nn.embedding_lookup(v, tf.constant(7, tf.int64)),),
      (lambda v: tf.nn.embedding_lookup([v], [1, 2, 1]),),
      (lambda v: tf.nn.embedding_lookup(v, [1, 2, 1], max_norm=.5),),
      (lambda v: tf.compat.v2.nn.embedding_lookup(v, [3, 4]),),
      (lambda v: tf.gather(v, [3, 4, 3]),),
      (lambda v: tf.compat.v1.gather(v, tf.constant([[1, 2]], tf.int64)),))
  def test_rows(self, use):
    self._check(use)

  @parameterized.product(
      combiner=("sum", "mean", "sqrtn"), weighted=(False, True),
      dtype=(np.int64, np.int32), max_norm=(None, .7))
  def test_embedding_lookup_sparse(self, combiner, weighted, dtype, max_norm):
    # TensorFlow gives NaN for an empty sample with weights; embedding variables give
    # zeros.
    ids, weights = _sparse(3, 7, 4, dtype=dtype, empty=not weighted)

    def use(v):
      return tf.nn.embedding_lookup_sparse(
          v, tf.SparseTensor.from_value(ids),
          tf.SparseTensor.from_value(weights) if weighted else None,
          combiner=combiner, max_norm=max_norm)

    self._check(use)

  @parameterized.product(
      combiner=("sum", "mean", "sqrtn"), weighted=(False, True),
      default_id=(None, 0, 5), max_norm=(None, .7))
  def test_safe_embedding_lookup_sparse(self, combiner, weighted, default_id,
                                        max_norm):
    ids, weights = _sparse(4, 9, 4, low=-4)
    # Includes weights that are not positive.
    weights = weights._replace(values=weights.values - .3)

    def use(v):
      return tf.nn.safe_embedding_lookup_sparse(
          v, tf.SparseTensor.from_value(ids),
          tf.SparseTensor.from_value(weights) if weighted else None,
          combiner=combiner, default_id=default_id, max_norm=max_norm)

    self._check(use)

  def test_weighted_mean_of_an_empty_sample(self):
    ids = tf.SparseTensorValue(np.array([[1, 0]]), np.array([1]), [2, 1])
    weights = ids._replace(values=np.array([.5], np.float32))
    values = pairs.rows(_ROWS, _DIM)
    with tf.Graph().as_default():
      v = pairs.table("v", values)
      for max_norm in (None, 100.0):
        result = tf.nn.embedding_lookup_sparse(
            v, tf.SparseTensor.from_value(ids),
            tf.SparseTensor.from_value(weights), combiner="mean",
            max_norm=max_norm)
        with pairs.session() as session:
          session.run(tf.global_variables_initializer())
          np.testing.assert_allclose(
              session.run(result), [np.zeros(_DIM), values[1]], rtol=1e-6)

  @parameterized.product(combiner=("mean", "sqrtn"), max_norm=(None, 100.),
                         parts=(1, 3))
  def test_weights_that_sum_to_zero(self, combiner, max_norm, parts):
    # The NaNs and infinities must be in the same samples and rows as with dense
    # variables.
    def use(v):
      return tf.nn.embedding_lookup_sparse(
          v, *_weightless(), combiner=combiner, max_norm=max_norm)

    self._check_weightless(use, use, parts)

  @parameterized.parameters(
      lambda v, *s: tf.nn.fused_embedding_lookup_sparse(v, *s, combiner="mean"),
      lambda v, *s: tf.nn.group_embedding_lookup_sparse(
          [v], [s[0]], ["mean"], sp_weights=[s[1]])[0],
      lambda v, *s: ev.lookup_sparse([v], [s[0]], [s[1]], ["mean"])[0])
  def test_weights_that_sum_to_zero_in_other_lookups(self, use):
    for parts in (1, 3):
      self._check_weightless(
          lambda v: use(v, *_weightless()),
          lambda v: tf.nn.embedding_lookup_sparse(v, *_weightless(), combiner="mean"),
          parts)

  def _check_weightless(self, use, stock, parts):
    values = pairs.rows(_ROWS, _DIM)
    found = []
    for make, look_up in (
        (lambda: pairs.table("v", values, partitioner=None if parts == 1 else
                             tf.fixed_size_partitioner(parts)), use),
        (lambda: pairs.dense("v", values), stock)):
      with tf.Graph().as_default():
        variable = make()
        result = look_up(variable)
        train = tf.train.GradientDescentOptimizer(.01).minimize(tf.reduce_sum(result))
        with pairs.session() as session:
          session.run(tf.global_variables_initializer())
          first, _ = session.run([result, train])
          found.append([first, session.run(pairs.read_all(variable, _ROWS))])
    if np.isfinite(found[1][0]).all():
      # Dense variables of TensorFlow 2.x give zeros, tables what 1.15 gives.
      self.assertFalse(np.isfinite(found[0][0]).all())
      return
    for table, dense in zip(*found):
      np.testing.assert_allclose(table, dense, rtol=1e-5, atol=1e-6)
      self.assertFalse(np.isfinite(dense).all())

  @parameterized.product(combiner=("mean", "sqrtn"), parts=(1, 3))
  def test_no_nan(self, combiner, parts):
    values = pairs.rows(_ROWS, _DIM)
    with tf.Graph().as_default():
      v = pairs.table("v", values, partitioner=None if parts == 1 else
                      tf.fixed_size_partitioner(parts))
      ids, weights = _weightless()
      w = tf.identity(weights.values)
      weights = tf.SparseTensor(weights.indices, w, weights.dense_shape)
      result, = ev.lookup_sparse([v], [ids], [weights], [combiner], no_nan=True)
      train = tf.train.GradientDescentOptimizer(.01).minimize(tf.reduce_sum(result))
      of_weights, = tf.gradients(tf.reduce_sum(result), [w])
      with pairs.session() as session:
        session.run(tf.global_variables_initializer())
        found, of_weights, _ = session.run([result, of_weights, train])
        after = session.run(pairs.read_all(v, _ROWS))
    if combiner == "mean":
      # Only samples 0, 1 and 3 have the ids 0, 1, 2, 5, 6 and 7.
      np.testing.assert_array_equal(found[[0, 1, 3]], np.zeros([3, _DIM]))
      np.testing.assert_array_equal(of_weights[[0, 1, 2, 3, 5, 6]], np.zeros(6))
      np.testing.assert_array_equal(after[[3, 5, 2, 1]], values[[3, 5, 2, 1]])
    np.testing.assert_array_equal(found[3], np.zeros(_DIM))
    self.assertEqual(of_weights[5], 0)
    np.testing.assert_allclose(found[[2, 4]], values[[8, 9]] * .5 / .5, rtol=1e-6)
    self.assertTrue((after[[8, 9]] != values[[8, 9]]).all())
    self.assertTrue(np.isfinite(after).all() and np.isfinite(of_weights).all())

  def test_safe_lookup_of_rank_3(self):
    ids = tf.SparseTensorValue(
        np.array([[0, 0, 0], [0, 1, 0], [0, 1, 1], [1, 1, 0]], np.int64),
        np.array([1, 2, 3, 4], np.int64), [2, 2, 2])

    def use(v):
      result = tf.nn.safe_embedding_lookup_sparse(
          v, tf.SparseTensor.from_value(ids), combiner="sum")
      return result

    self._check(use)
    with tf.Graph().as_default():
      v = pairs.table("v", pairs.rows(_ROWS, _DIM))
      self.assertEqual(use(v).shape.as_list(), [2, 2, _DIM])

  def test_safe_lookup_inserts_no_padding(self):
    ids = tf.SparseTensorValue(np.array([[1, 0]]), np.array([7]), [3, 1])
    with tf.Graph().as_default():
      v = pairs.table("v", pairs.rows(_ROWS, _DIM))
      result = tf.nn.safe_embedding_lookup_sparse(
          v, tf.SparseTensor.from_value(ids))
      train = tf.train.AdagradOptimizer(.1).minimize(tf.reduce_sum(result))
      with pairs.session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train)
        self.assertEqual(session.run(v.export()[0]).tolist(), [7])

  def test_negative_ids_without_pruning(self):
    ids = tf.SparseTensorValue(np.array([[0, 0]]), np.array([-1]), [1, 1])
    values = pairs.rows(_ROWS, _DIM)
    with tf.Graph().as_default():
      v = pairs.table("v", values)
      ids = tf.SparseTensor.from_value(ids)
      with pairs.session() as session:
        session.run(tf.global_variables_initializer())
        pruned, kept = session.run([
            tf.nn.safe_embedding_lookup_sparse(v, ids),
            tf.nn.safe_embedding_lookup_sparse(v, ids, prune=False)
        ])
    np.testing.assert_array_equal(pruned, np.zeros([1, _DIM]))
    np.testing.assert_array_equal(kept, values[[-1]])

  def test_empty_samples_at_the_end_are_rows_too(self):
    ids = tf.SparseTensorValue(np.array([[0, 0]]), np.array([1]), [4, 1])
    with tf.Graph().as_default():
      v = pairs.table("v", pairs.rows(_ROWS, _DIM))
      for combiner in ("sum", "mean", "sqrtn"):
        for max_norm in (None, 100.0):
          result = tf.nn.embedding_lookup_sparse(
              v, tf.SparseTensor.from_value(ids), None, combiner=combiner,
              max_norm=max_norm)
          with pairs.session() as session:
            session.run(tf.global_variables_initializer())
            found = session.run(result)
          np.testing.assert_allclose(found[0], pairs.rows(_ROWS, _DIM)[1],
                                     rtol=1e-6)
          np.testing.assert_array_equal(found[1:], np.zeros([3, _DIM]))

  def test_weights_have_gradients(self):
    ids, weights = _sparse(5, 6, 3)
    gradients = []
    for kind in ("table", "resource"):
      with tf.Graph().as_default():
        variable = pairs.make(kind, "v", pairs.rows(_ROWS, _DIM))
        w = tf.constant(weights.values)
        result = tf.nn.embedding_lookup_sparse(
            variable, tf.SparseTensor.from_value(ids),
            tf.SparseTensor(weights.indices, w, weights.dense_shape),
            combiner="mean")
        gradient, = tf.gradients(tf.reduce_sum(tf.square(result)), [w])
        with pairs.session() as session:
          session.run(tf.global_variables_initializer())
          gradients.append(session.run(gradient))
    np.testing.assert_allclose(gradients[0], gradients[1], rtol=1e-4, atol=1e-6)

  def test_several_lookups_of_one_variable(self):
    ids, _ = _sparse(6, 5, 3)

    def use(v):
      pooled = tf.nn.embedding_lookup_sparse(
          v, tf.SparseTensor.from_value(ids), None, combiner="sum")
      rows = tf.nn.embedding_lookup(v, [1, 2, 1, 3, 0])
      again = tf.gather(v, [1, 1, 1, 1, 1])
      return pooled + rows * again

    self._check(use)

  @parameterized.parameters(
      (tf.gather,), (tf.compat.v2.gather,),
      (lambda v, ids: tf.gather(v, ids, axis=0, batch_dims=0, name="rows"),),
      (lambda v, ids: tf.gather(params=v, indices=ids, validate_indices=True),))
  def test_gather_of_ragged_ids(self, gather):
    for ids in (tf.ragged.constant_value([[1, 2, 1], [], [4, 5]], dtype=np.int64),
                tf.ragged.constant_value([[[1, 2], []], [[1, 4, 5]]], dtype=np.int32)):

      def use(v):
        ragged = tf.RaggedTensor.from_nested_row_splits(
            tf.constant(ids.flat_values), ids.nested_row_splits)  # pylint: disable=cell-var-from-loop
        rows = gather(v, ragged)
        self.assertIsInstance(rows, tf.RaggedTensor)
        self.assertEqual([x.name for x in rows.nested_row_splits],
                         [x.name for x in ragged.nested_row_splits])
        return rows.flat_values

      self._check(use)

  @parameterized.parameters((None,), (3,))
  def test_error_for_other_ids_names_the_function_to_call(self, parts):
    with tf.Graph().as_default(), pairs.session() as session:
      values = pairs.rows(_ROWS, _DIM)
      v = pairs.table("v", values, partitioner=parts and tf.fixed_size_partitioner(parts))
      ids = tf.ragged.constant([[1, 2, 1], [], [4, 5]], dtype=tf.int64)
      with self.assertRaisesRegex(
          TypeError, r"^embedding variable 'v.*': ids: expected .* got a RaggedTensor. .* "
          r"tf.ragged.map_flat_values\(tf.nn.embedding_lookup, v, ids\);.*lookup_sparse"):
        tf.nn.embedding_lookup(v, ids)
      with self.assertRaisesRegex(
          TypeError, r"^embedding variable 'v.*': ids: expected .* got a SparseTensor. .* "
          r"tf.nn.embedding_lookup\(v, ids.values\);.*lookup_sparse"):
        tf.nn.embedding_lookup(v, ids.to_sparse())
      rows = tf.ragged.map_flat_values(tf.nn.embedding_lookup, v, ids)
      session.run(tf.global_variables_initializer())
      np.testing.assert_array_equal(session.run(rows.values), values[[1, 2, 1, 4, 5]])

  @parameterized.parameters((True,), (False,))
  def test_cond(self, taken):
    ids, _ = _sparse(6, 5, 3)

    def use(v):
      predicate = tf.placeholder_with_default(taken, [])
      rows = tf.cond(
          predicate, lambda: tf.nn.embedding_lookup(v, [1, 2, 1, 4, 5]),
          lambda: tf.nn.embedding_lookup_sparse(
              v, tf.SparseTensor.from_value(ids), None, combiner="sum"))
      return rows + tf.nn.embedding_lookup(v, [7, 8, 9, 10, 11])

    self._check(use)

  def test_untaken_branch_inserts_nothing(self):
    ids, _ = _sparse(6, 5, 3)
    with tf.Graph().as_default():
      v = pairs.table("v", pairs.rows(_ROWS, _DIM))
      predicate = tf.placeholder(tf.bool, [])
      rows = tf.cond(
          predicate, lambda: tf.nn.embedding_lookup(v, [1, 2, 1, 4, 5]),
          lambda: tf.nn.embedding_lookup_sparse(
              v, tf.SparseTensor.from_value(ids), None, combiner="sum"))
      train = tf.train.AdamOptimizer().minimize(tf.reduce_sum(rows))
      with pairs.session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train, {predicate: True})
        self.assertEqual(session.run(v.export()[0]).tolist(), [1, 2, 4, 5])
        session.run(v.initializer)
        session.run(train, {predicate: False})
        self.assertEqual(
            session.run(v.export()[0]).tolist(), sorted(set(ids.values)))

  @parameterized.parameters(("rows",), ("pooled",))
  def test_while_loop(self, lookup):
    def use(v):
      ids = tf.placeholder_with_default(np.array([5, 7, 5], np.int64), [None])

      def body(i, total):
        now = ids + tf.cast(i, tf.int64)
        if lookup == "rows":
          rows = tf.nn.embedding_lookup(v, now)
        else:
          position = tf.range(tf.size(now, out_type=tf.int64))
          sparse = tf.SparseTensor(
              tf.stack([position, tf.zeros_like(position)], axis=1), now,
              [tf.size(now, out_type=tf.int64), 1])
          rows = tf.nn.embedding_lookup_sparse(v, sparse, None, combiner="sum")
        return i + 1, total + tf.reshape(rows, [3, _DIM])

      return tf.while_loop(lambda i, _: i < 4, body,
                           [0, tf.zeros([3, _DIM])])[1]

    self._check(use)

  @parameterized.parameters(("rows",), ("pooled",))
  def test_a_loop_inserts_only_what_it_looked_up(self, lookup):
    with tf.Graph().as_default():
      v = pairs.table("v", pairs.rows(_ROWS, _DIM))
      ids = tf.placeholder(tf.int64, [None])

      def one(i):
        if lookup == "rows":
          return tf.nn.embedding_lookup(v, i)
        sparse = tf.SparseTensor(tf.zeros([1, 2], tf.int64), [i], [1, 1])
        return tf.nn.embedding_lookup_sparse(v, sparse, None, combiner="sum")[0]

      rows = tf.map_fn(one, ids, dtype=tf.float32)
      train = tf.train.AdagradOptimizer(.1).minimize(tf.reduce_sum(rows))
      with pairs.session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train, {ids: [3, 9, 3]})
        self.assertEqual(session.run(v.export()[0]).tolist(), [3, 9])

  def test_a_table_that_the_loss_does_not_use_stays_empty(self):
    ids, _ = _sparse(6, 5, 3)
    with tf.Graph().as_default():
      v = pairs.table("v", pairs.rows(_ROWS, _DIM))
      w = pairs.table("w", pairs.rows(_ROWS, _DIM))
      outputs = ev.lookup_sparse([v, w], [ids, ids], combiners=["sum", "sum"])
      train = tf.train.AdamOptimizer().minimize(tf.reduce_sum(outputs[0]))
      with pairs.session() as session:
        session.run(tf.global_variables_initializer())
        session.run([train, outputs[1]])
        self.assertGreater(session.run(v)[0], 0)
        self.assertEqual(session.run(w)[0], 0)

  def test_recurrent_network(self):
    def use(v):
      ids = tf.constant([[1, 2, 3], [4, 1, 1]])
      cell = tf.nn.rnn_cell.BasicRNNCell(4)
      with tf.variable_scope("rnn", initializer=tf.constant_initializer(.1)):
        output, _ = tf.nn.dynamic_rnn(cell, tf.nn.embedding_lookup(v, ids),
                                      dtype=tf.float32)
      return output

    self._check(use)

  def test_the_update_waits_for_the_lookup(self):
    # The loss is linear in the rows, so no data dependency orders the ops.
    with tf.Graph().as_default():
      v = pairs.table("v", np.zeros([1, 2], np.float32))
      rows = tf.nn.embedding_lookup(v, [0])
      train = tf.train.GradientDescentOptimizer(1.0).minimize(tf.reduce_sum(rows))
      with pairs.session() as session:
        session.run(tf.global_variables_initializer())
        for step in range(300):
          before, _ = session.run([rows, train])
          self.assertEqual(before[0, 0], -step)


class PartitionedTest(parameterized.TestCase):

  def _variable(self, kind):
    values = pairs.rows(_ROWS, _DIM)
    if kind == "whole":
      return pairs.table("v", values)
    return pairs.table("v", values, partitioner=tf.fixed_size_partitioner(3))

  def _check(self, use):
    results = []
    for kind in ("whole", "parts"):
      with tf.Graph().as_default():
        v = self._variable(kind)
        result = use(v)
        weights = tf.reshape(
            tf.cast(tf.range(tf.size(result)), tf.float32), tf.shape(result))
        train = tf.train.AdagradOptimizer(.1).minimize(
            tf.reduce_sum(tf.square(result) * weights))
        with pairs.session() as session:
          session.run(tf.global_variables_initializer())
          for _ in range(2):
            first, _ = session.run([result, train])
          keys = [session.run(p.export()[0]).tolist()
                  for p in ([v] if kind == "whole" else v)]
          results.append(
              (first, session.run(pairs.read_all(v, _ROWS)), keys, result.shape))
    np.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(results[0][1], results[1][1], rtol=1e-5, atol=1e-6)
    self.assertEqual(results[0][3].as_list(), results[1][3].as_list())
    for part, keys in enumerate(results[1][2]):
      self.assertTrue(all(k % 1000 % 3 == part for k in keys))
    self.assertCountEqual(sum(results[1][2], []), results[0][2][0])

  @parameterized.parameters(
      (lambda v: tf.nn.embedding_lookup(v, [1, 2, 1, 28]),),
      (lambda v: tf.nn.embedding_lookup(v, [[1, 5], [0, 2**40]]),),
      (lambda v: tf.nn.embedding_lookup(
          v, [1, 2, -7], partition_strategy="div"),),
      (lambda v: tf.nn.embedding_lookup(v, [1, 2, 1, 28], max_norm=.5),),
      (lambda v: tf.nn.embedding_lookup(
          [v] if ev.is_embedding_variable(v) else list(v), [3, 4]),))
  def test_rows(self, use):
    self._check(use)

  @parameterized.product(combiner=("sum", "mean", "sqrtn"), weighted=(False, True),
                         max_norm=(None, .7))
  def test_pooled(self, combiner, weighted, max_norm):
    ids, weights = _sparse(3, 7, 4, low=-9)

    def use(v):
      return tf.nn.embedding_lookup_sparse(
          v, tf.SparseTensor.from_value(ids),
          tf.SparseTensor.from_value(weights) if weighted else None,
          combiner=combiner, max_norm=max_norm)

    self._check(use)

  def test_ragged(self):
    splits = [0, 2, 2, 5, 6]
    ids = np.array([1, 2, 3, 3, 1, 9], np.int64)
    self._check(lambda v: ev.lookup_sparse(
        [v], [tf.RaggedTensor.from_row_splits(ids, splits)], combiners=["mean"])[0])

  @parameterized.product(safe=(False, True), weighted=(False, True), max_norm=(None, .7))
  def test_ragged_in_stock_lookups(self, safe, weighted, max_norm):
    splits = [0, 2, 2, 5, 6]
    ids = np.array([1, 2, 3, 3, 1, 9], np.int64)
    weights = np.array([.5, 2., 1., 3., 4., 1.5], np.float32)

    def use(v):
      given = [tf.RaggedTensor.from_row_splits(x, splits) for x in (ids, weights)]
      if ev.is_embedding_variable(v):  # compared with ragged ids on parts
        given = [x.to_sparse() for x in given]
      look_up = tf.nn.safe_embedding_lookup_sparse if safe else tf.nn.embedding_lookup_sparse
      return look_up(v, given[0], given[1] if weighted else None, combiner="mean",
                     max_norm=max_norm)

    self._check(use)

  def test_safe(self):
    ids, _ = _sparse(4, 9, 4, low=-4)
    self._check(lambda v: tf.nn.safe_embedding_lookup_sparse(
        v, tf.SparseTensor.from_value(ids)))

  def test_no_ids(self):
    with tf.Graph().as_default():
      v = self._variable("parts")
      rows = tf.nn.embedding_lookup(v, tf.placeholder_with_default(
          np.zeros([0, 2], np.int64), [None, 2]))
      with pairs.session() as session:
        session.run(tf.global_variables_initializer())
        self.assertEqual(session.run(rows).shape, (0, 2, _DIM))


class LookupSparseTest(parameterized.TestCase):

  def setUp(self):
    super(LookupSparseTest, self).setUp()
    self._graph = tf.Graph().as_default()
    self._graph.__enter__()
    self.addCleanup(self._graph.__exit__, None, None, None)

  def _tables(self):
    return (tf.get_embedding_variable("a", 3), tf.get_embedding_variable("b", 7))

  def test_one_op_for_all_tables(self):
    ids, weights = _sparse(1, 6, 3)
    a, b = self._tables()
    ragged = tf.RaggedTensor.from_row_splits(np.array([4, 5, 4], np.int32),
                                             [0, 1, 3])
    outputs = ev.lookup_sparse([a, b, a], [ids, ragged, ids],
                               sp_weights=[weights, None, None],
                               combiners=["sum", "mean", "sqrtn"])
    loss = tf.add_n([tf.reduce_sum(o) for o in outputs])
    train = tf.train.AdagradOptimizer(.1).minimize(loss)
    self.assertEqual([o.shape.as_list() for o in outputs],
                     [[6, 3], [2, 7], [6, 3]])
    count = lambda op_type: sum(
        op.type == op_type for op in tf.get_default_graph().get_operations())
    self.assertEqual(count("EvLookupSparse"), 1)
    self.assertEqual(count("EvLookupSparseGrad"), 1)
    with pairs.session() as session:
      session.run(tf.global_variables_initializer())
      session.run(train)
      self.assertEqual(session.run(b.export()[0]).tolist(), [4, 5])

  @parameterized.parameters(
      # 12 x 1024 x 32 floats are six times 256 KB.
      dict(tables=12, batch=1024, known=True, parts=3),
      dict(tables=40, batch=1024, known=True, parts=8),
      dict(tables=40, batch=1024, known=False, parts=4),
      dict(tables=12, batch=16, known=True, parts=1),
      dict(tables=12, batch=16, known=False, parts=3),
      dict(tables=7, batch=4096, known=True, parts=1))
  def test_many_tables_in_a_few_ops(self, tables, batch, known, parts):
    ids = np.arange(batch, dtype=np.int64) % 37
    splits = np.arange(batch + 1, dtype=np.int64)
    if not known:
      splits = tf.placeholder_with_default(splits, [None])
    ragged = tf.RaggedTensor.from_row_splits(ids, splits)
    variables = [tf.get_embedding_variable("t%d" % i, 32) for i in range(tables)]
    outputs = ev.lookup_sparse(variables, [ragged] * tables)
    types = [op.type for op in tf.get_default_graph().get_operations()]
    self.assertEqual(types.count("EvLookupSparse"), parts)
    with pairs.session() as session:
      session.run(tf.global_variables_initializer())
      got = session.run(outputs)
      for i in (0, tables // 2, tables - 1):
        alone, = session.run(ev.lookup_sparse([variables[i]], [ragged]))
        np.testing.assert_array_equal(got[i], alone)

  def test_a_table_used_twice_is_in_one_op(self):
    # If the batch size is not in the graph, twelve distinct tables take three ops.
    splits = tf.placeholder_with_default(np.arange(65, dtype=np.int64), [None])
    ragged = tf.RaggedTensor.from_row_splits(np.arange(64, dtype=np.int64), splits)
    variables = [tf.get_embedding_variable("t%d" % i, 4) for i in range(12)]
    types = lambda: [op.type for op in tf.get_default_graph().get_operations()]
    ev.lookup_sparse(variables[:11] + variables[:1], [ragged] * 12)
    self.assertEqual(types().count("EvLookupSparse"), 1)
    ev.lookup_sparse(variables, [ragged] * 12)
    self.assertEqual(types().count("EvLookupSparse"), 1 + 3)

  def test_one_update_for_all_tables(self):
    ids, _ = _sparse(1, 6, 3)
    a, b = self._tables()
    dense = tf.get_variable("dense", [10])
    outputs = ev.lookup_sparse([a, b], [ids, ids], combiners=["sum", "mean"])
    for optimizer in (tf.train.AdagradOptimizer(.1), tf.keras.optimizers.Adam()):
      loss = tf.reduce_sum(tf.concat(outputs, 1) * dense)
      if isinstance(optimizer, tf.train.Optimizer):
        gradients, variables = zip(*optimizer.compute_gradients(loss))
        # Clipping keeps the keys and therefore the lookup plan.
        gradients, _ = tf.clip_by_global_norm(gradients, 1.0)
        train = optimizer.apply_gradients(zip(gradients, variables))
      else:
        train = optimizer.apply_gradients(
            zip(tf.gradients(loss, [a, b]), [a, b]))
      updates = [op for op in tf.get_default_graph().get_operations()
                 if op.type == "EvApply"]
      self.assertEqual(updates[-1].get_attr("num_tables"), 2)
      self.assertEqual(updates[-1].get_attr("num_plans"), 1)
      with pairs.session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train)
        self.assertEqual(session.run(a)[0], len(set(ids.values)))
        self.assertEqual(session.run(b)[0], len(set(ids.values)))
    self.assertLen(updates, 2)

  @parameterized.parameters(
      (lambda a, b, s: ev.lookup_sparse([a, b], [s]), ValueError,
       "2 params came with 1 sp_ids"),
      (lambda a, b, s: ev.lookup_sparse([a], [s], combiners=["sum", "sum"]),
       ValueError, "1 params came with 2 combiners"),
      (lambda a, b, s: ev.lookup_sparse([a], [s], sp_weights=[]), ValueError,
       "1 params came with 0 sp_weights"),
      (lambda a, b, s: ev.lookup_sparse([a], [s], combiners=["median"]), ValueError,
       "'a': combiner: expected one of sum, mean, sqrtn, max, got 'median'"),
      (lambda a, b, s: ev.lookup_sparse([tf.zeros([3, 4])], [s]), TypeError,
       "params: expected embedding variables"),
      (lambda a, b, s: ev.lookup_sparse([a], [tf.zeros([3])]), TypeError,
       "'a': sp_ids: expected a SparseTensor or a RaggedTensor"),
      (lambda a, b, s: ev.lookup_sparse(
          [a], [tf.SparseTensor([[0]], tf.constant([1], tf.int64), [1])]),
       ValueError, "'a': sp_ids: expected .* rank 2 or more .* got rank 1"),
      (lambda a, b, s: ev.lookup_sparse(
          [a], [tf.SparseTensor([[0, 0]], [1.5], [1, 1])]), TypeError,
       "'a': ids: expected int32 or int64, got float32"),
      (lambda a, b, s: ev.lookup_sparse([a], [s], sp_weights=[tf.zeros([3])]),
       TypeError, "'a': sp_weights: expected the kind of sp_ids"),
      (lambda a, b, s: ev.lookup_sparse([a], [s], sp_weights=[s]), TypeError,
       "'a': sp_weights: expected floating point, got int64"),
      (lambda a, b, s: tf.nn.embedding_lookup_sparse(a, 3, None), TypeError,
       "'a': sp_ids: expected a SparseTensor"),
      (lambda a, b, s: tf.nn.embedding_lookup_sparse(a, s, None, combiner="x"),
       ValueError, "'a': combiner: expected"))
  def test_wrong_arguments(self, use, error, message):
    a, b = self._tables()
    ids, _ = _sparse(1, 6, 3)
    with self.assertRaisesRegex(error, message):
      use(a, b, tf.SparseTensor.from_value(ids))

  @parameterized.parameters(
      ([[1, 0], [0, 0]], [2, 1], "sample 0 comes after sample 1|order by sample"),
      ([[0, 0], [5, 0]], [2, 1], "'a'"),)
  def test_wrong_indices(self, indices, shape, message):
    a, b = self._tables()
    sparse = tf.SparseTensor(
        tf.constant(indices, tf.int64), tf.constant([1, 2], tf.int64), shape)
    output, = ev.lookup_sparse([a], [sparse], combiners=["sum"])
    with pairs.session() as session:
      session.run(tf.global_variables_initializer())
      with self.assertRaisesRegex(tf.errors.InvalidArgumentError, message):
        session.run(output)
      # The process and the other table still work.
      session.run(tf.nn.embedding_lookup(b, [1]))

  def test_empty(self):
    a, b = self._tables()
    self.assertEqual(ev.lookup_sparse([], []), [])
    nothing = tf.SparseTensor(
        tf.zeros([0, 2], tf.int64), tf.zeros([0], tf.int64), [4, 3])
    no_samples = tf.RaggedTensor.from_row_splits(tf.zeros([0], tf.int64), [0])
    outputs = ev.lookup_sparse([a, b], [nothing, no_samples],
                               combiners=["mean", "sum"])
    train = tf.train.AdamOptimizer().minimize(
        tf.add_n([tf.reduce_sum(o) for o in outputs]))
    with pairs.session() as session:
      session.run(tf.global_variables_initializer())
      first, second, _ = session.run(outputs + [train])
      np.testing.assert_array_equal(first, np.zeros([4, 3]))
      self.assertEqual(second.shape, (0, 7))
      self.assertEqual(session.run(a)[0], 0)


if __name__ == "__main__":
  absltest.main()
