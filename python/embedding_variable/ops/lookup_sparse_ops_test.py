# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests the fused lookup and its gradients against NumPy, and all wrong inputs."""

import itertools

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from embedding_variable.ops import apply_ops
from embedding_variable.ops import handle_ops
from embedding_variable.ops import lookup_sparse_ops
from embedding_variable.ops import testing

_COMBINERS = ("sum", "mean", "sqrtn")


def _random_batch(rng, batch_size, max_hot, num_keys, dtype):
  """Returns (ids, lengths): ragged ids, about a fifth of the samples empty."""
  lengths = rng.randint(1, max_hot + 1, size=batch_size)
  lengths[rng.rand(batch_size) < 0.2] = 0
  ids = rng.randint(-num_keys, num_keys, size=lengths.sum()).astype(dtype)
  return ids, lengths


def _rows(lengths, layout):
  """Returns the batch's row splits, or its indices `[N, 2]`."""
  if layout == "splits":
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
  columns = [c for n in lengths for c in range(n)]
  return np.stack([_samples(lengths), np.array(columns, np.int64)], axis=1)


def _samples(lengths):
  return np.repeat(np.arange(len(lengths), dtype=np.int64), lengths)


def _lookup(tables, ids, rows, batch_sizes, combiners, weights=None):
  return lookup_sparse_ops.lookup_sparse([t.handle for t in tables], ids, rows,
                                         batch_sizes, combiners,
                                         [t.dim for t in tables], weights)


def _init(sess, tables):
  sess.run([t.init for t in tables])


class LookupSparseTest(parameterized.TestCase, tf.test.TestCase):

  def setUp(self):
    super(LookupSparseTest, self).setUp()
    tf.compat.v1.reset_default_graph()

  @parameterized.parameters(
      *itertools.product(("splits", "indices"), (np.int64, np.int32),
                         (False, True)))
  def test_forward_and_gradient(self, layout, dtype, weighted):
    rng = np.random.RandomState(3)
    tables = [
        testing.Table("t%d" % i, dim)
        for i, dim in enumerate((1, 3, 4, 10, 16, 65))
    ]
    combiners = [_COMBINERS[i % 3] for i in range(len(tables))]
    sizes = [1, 7, 8, 40, 5, 16]
    batches = [_random_batch(rng, b, 6, 9, dtype) for b in sizes]
    weights = [
        rng.uniform(0.5, 2, size=len(ids)).astype(np.float32)
        for ids, _ in batches
    ] if weighted else None
    outputs, plan = _lookup(tables, [ids for ids, _ in batches],
                            [_rows(n, layout) for _, n in batches], sizes,
                            combiners, weights)
    self.assertEqual([], plan.shape.as_list())
    self.assertEqual([[b, t.dim] for b, t in zip(sizes, tables)],
                     [o.shape.as_list() for o in outputs])
    scales = [
        rng.randn(b, t.dim).astype(np.float32) for b, t in zip(sizes, tables)
    ]
    loss = tf.add_n(
        [tf.reduce_sum(o * s) for o, s in zip(outputs, scales)])
    grads = tf.gradients(loss, [t.handle for t in tables])
    with testing.session() as sess:
      _init(sess, tables)
      got_outputs, got_grads = sess.run([outputs, grads])
      shapes = sess.run([handle_ops.shape(t.handle) for t in tables])
    self.assertAllEqual([0] * len(tables), [s[0] for s in shapes])
    for t, table in enumerate(tables):
      ids, lengths = batches[t]
      samples = _samples(lengths)
      rows = testing.rows_of(ids, table.defaults)
      w = weights[t] if weighted else None
      want = testing.pool(rows, samples, sizes[t], combiners[t], w)
      self.assertAllClose(want, got_outputs[t], rtol=1e-5, atol=1e-6)
      # d output / d row: pool one-hot "rows", one column per id.
      share = testing.pool(np.eye(len(ids)), samples, sizes[t], combiners[t], w)
      per_id = share.T.dot(scales[t].astype(np.float64))
      _, first = np.unique(ids, return_index=True)
      keys = ids[np.sort(first)]
      self.assertAllEqual(keys, got_grads[t].indices)
      for key, value in zip(keys, got_grads[t].values):
        self.assertAllClose(per_id[ids == key].sum(0), value, rtol=1e-4,
                            atol=1e-5)

  @parameterized.parameters(
      *itertools.product(_COMBINERS, ("splits", "indices")))
  def test_weight_gradient_is_numerically_right(self, combiner, layout):
    rng = np.random.RandomState(5)
    table = testing.Table("user", 5)
    ids, lengths = _random_batch(rng, 9, 4, 6, np.int64)
    start = rng.uniform(0.5, 2, size=len(ids)).astype(np.float32)
    weights = tf.constant(start)
    (output,), _ = _lookup([table], [ids], [_rows(lengths, layout)], [9],
                           [combiner], [weights])
    with testing.session() as sess:
      _init(sess, [table])
      theory, numeric = tf.compat.v1.test.compute_gradient(
          weights, start.shape, output, [9, 5], x_init_value=start, delta=1e-2)
      self.assertAllClose(theory, numeric, rtol=1e-2, atol=5e-3)
      self.assertGreater(np.abs(theory).max(), 0.1)

  @parameterized.parameters(*_COMBINERS)
  def test_row_gradient_is_numerically_right(self, combiner):
    # Changes each default row a little and compares the pooled outputs.
    rng = np.random.RandomState(6)
    ids = np.array([0, 1, 2, 1, 1, 0], np.int64)
    lengths = [2, 0, 3, 1]
    weights = rng.uniform(0.5, 2, size=6).astype(np.float32)
    handle = handle_ops.handle("user", 2)
    defaults = tf.compat.v1.placeholder(tf.float32, [3, 2])
    init = handle_ops.initialize(handle, defaults)
    (output,), _ = lookup_sparse_ops.lookup_sparse(
        [handle], [ids], [_rows(lengths, "splits")], [4], [combiner], [2],
        [weights])
    scale = rng.randn(4, 2).astype(np.float32)
    loss = tf.reduce_sum(output * scale)
    grad, = tf.gradients(loss, [handle])
    start = rng.randn(3, 2).astype(np.float32)
    with testing.session() as sess:
      sess.run(init, {defaults: start})
      got = sess.run(grad)
      self.assertAllEqual([0, 1, 2], got.indices)
      for row, column in itertools.product(range(3), range(2)):
        around = []
        for sign in (1, -1):
          moved = start.copy()
          moved[row, column] += sign * 0.5
          sess.run(init, {defaults: moved})
          around.append(sess.run(loss))
        self.assertAllClose(around[0] - around[1], got.values[row, column],
                            rtol=1e-4, atol=1e-4)

  @parameterized.parameters("splits", "indices")
  def test_empty_batch_and_empty_samples(self, layout):
    tables = [testing.Table("none", 3), testing.Table("empty", 2)]
    outputs, _ = _lookup(
        tables, [np.zeros([0], np.int64)] * 2,
        [_rows([], layout).reshape([1] if layout == "splits" else [0, 2]),
         _rows([0, 0, 0], layout).reshape([4] if layout == "splits" else [0, 2])
         ], [0, 3], ["mean", "sqrtn"])
    grads = tf.gradients(
        tf.reduce_sum(outputs[0]) + tf.reduce_sum(outputs[1]),
        [t.handle for t in tables])
    with testing.session() as sess:
      _init(sess, tables)
      got, got_grads = sess.run([outputs, grads])
      self.assertEqual((0, 3), got[0].shape)
      self.assertAllEqual(np.zeros([3, 2]), got[1])
      for grad, table in zip(got_grads, tables):
        self.assertEqual((0,), grad.indices.shape)
        self.assertEqual((0, table.dim), grad.values.shape)

  def test_extreme_keys(self):
    table = testing.Table("user", 4)
    ids = testing.EXTREME_KEYS
    (output,), _ = _lookup([table], [tf.constant(ids, tf.int64)],
                           [np.arange(len(ids) + 1)], [len(ids)], ["sum"])
    with testing.session() as sess:
      _init(sess, [table])
      self.assertAllEqual(testing.rows_of(ids, table.defaults),
                          sess.run(output))

  def test_nan_weight_stays_in_its_sample(self):
    table = testing.Table("user", 4)
    (output,), _ = _lookup([table], [[1, 2]], [[0, 1, 2]], [2], ["mean"],
                           [[np.nan, 2.0]])
    with testing.session() as sess:
      _init(sess, [table])
      got = sess.run(output)
      self.assertTrue(np.isnan(got[0]).all())
      self.assertAllClose(testing.rows_of([2], table.defaults)[0], got[1])

  def test_mixed_id_types_are_cast(self):
    tables = [testing.Table("a", 2), testing.Table("b", 2)]
    outputs, _ = _lookup(
        tables, [tf.constant([1], tf.int32), tf.constant([2**40], tf.int64)],
        [[0, 1]] * 2, [1, 1], ["sum", "sum"])
    with testing.session() as sess:
      _init(sess, tables)
      got = sess.run(outputs)
      self.assertAllEqual(testing.rows_of([1], tables[0].defaults), got[0])
      self.assertAllEqual(testing.rows_of([2**40], tables[1].defaults), got[1])

  def test_float64_weights_are_cast(self):
    table = testing.Table("user", 2)
    (output,), _ = _lookup([table], [[1]], [[0, 1]], [1], ["sum"],
                           [np.array([2.0])])
    with testing.session() as sess:
      _init(sess, [table])
      self.assertAllClose(2 * testing.rows_of([1], table.defaults),
                          sess.run(output))

  def test_static_shapes(self):
    table = testing.Table("user", 3)
    ids = tf.compat.v1.placeholder(tf.int64, [None])
    splits = tf.compat.v1.placeholder(tf.int64, [None])
    indices = tf.compat.v1.placeholder(tf.int64, [None, 2])
    size = tf.compat.v1.placeholder(tf.int64, [])
    unknown = tf.compat.v1.placeholder(tf.int64)

    def shape(rows, batch_size):
      (output,), _ = _lookup([table], [ids], [rows], [batch_size], ["sum"])
      return output.shape.as_list()

    self.assertEqual([None, 3], shape(splits, size))
    self.assertEqual([4, 3], shape(splits, tf.constant(4, tf.int64)))
    self.assertEqual([2, 3], shape(tf.zeros([3], tf.int64), size))
    self.assertEqual([None, 3], shape(indices, size))
    self.assertEqual([4, 3], shape(indices, tf.constant(4, tf.int64)))
    self.assertEqual([None, 3], shape(unknown, unknown))
    (output,), _ = _lookup([table], [ids], [splits], [size], ["sum"])
    grad, = tf.gradients(output, [table.handle])
    self.assertEqual([None, 3], grad.values.shape.as_list())
    self.assertEqual([None], grad.indices.shape.as_list())

  # -- gradients and the plan -------------------------------------------------

  def test_only_tables_of_the_loss_get_a_gradient(self):
    tables = [testing.Table("t%d" % i, 2) for i in range(4)]
    outputs, plan = _lookup(tables, [[i] for i in range(4)], [[0, 1]] * 4,
                            [1] * 4, ["sum"] * 4)
    grads = tf.gradients(
        tf.reduce_sum(outputs[1]) + tf.reduce_sum(outputs[3]),
        [t.handle for t in tables])
    self.assertIsNone(grads[0])
    self.assertIsNone(grads[2])
    self.assertEqual((plan, 1), lookup_sparse_ops.plan_of(grads[1]))
    self.assertEqual((plan, 3), lookup_sparse_ops.plan_of(grads[3]))
    ops = [
        op for op in tf.compat.v1.get_default_graph().get_operations()
        if op.type == "EvLookupSparseGrad"
    ]
    self.assertLen(ops, 1)
    self.assertEqual([1, 3], list(ops[0].get_attr("tables")))
    with testing.session() as sess:
      _init(sess, tables)
      self.assertAllEqual([3], sess.run(grads[3]).indices)

  def test_plan_of_looks_at_the_indices_only(self):
    table = testing.Table("user", 2)
    (output,), plan = _lookup([table], [[1, 2]], [[0, 2]], [1], ["sum"])
    grad, = tf.gradients(tf.reduce_sum(output), [table.handle])
    plan_of = lookup_sparse_ops.plan_of
    self.assertEqual((plan, 0), plan_of(grad))
    clipped = tf.clip_by_norm(grad, 0.5)
    self.assertEqual((plan, 0), plan_of(clipped))
    (clipped,), _ = tf.clip_by_global_norm([grad], 0.5)
    self.assertEqual((plan, 0), plan_of(clipped))
    tupled, = tf.tuple([grad])
    self.assertEqual((plan, 0), plan_of(tupled))
    self.assertEqual(
        (plan, 0),
        plan_of(tf.IndexedSlices(grad.values, tf.identity(grad.indices))))
    self.assertIsNone(
        plan_of(tf.IndexedSlices(grad.values, grad.indices + 0)))
    self.assertIsNone(
        plan_of(tf.IndexedSlices(grad.values, tf.constant([1, 2], tf.int64))))
    # The gradient's values are an output of the same op, but not keys.
    self.assertIsNone(plan_of(tf.IndexedSlices(grad.values, grad.values)))

  def test_one_variable_twice_adds_up(self):
    table = testing.Table("user", 2)
    outputs, _ = _lookup([table, table], [[1, 2], [2]], [[0, 2], [0, 1]],
                         [1, 1], ["sum", "sum"])
    grad, = tf.gradients(
        tf.reduce_sum(outputs[0]) + 3 * tf.reduce_sum(outputs[1]),
        [table.handle])
    self.assertIsNone(lookup_sparse_ops.plan_of(grad))
    with testing.session() as sess:
      _init(sess, [table])
      got = sess.run(grad)
      self.assertAllEqual([1, 2, 2], got.indices)
      self.assertAllEqual([[1, 1], [1, 1], [3, 3]], got.values)

  def test_incoming_indexed_slices(self):
    table = testing.Table("user", 2)
    (output,), _ = _lookup([table], [[1, 2, 3]], [[0, 1, 2, 3]], [3], ["sum"])
    grad, = tf.gradients(
        tf.reduce_sum(tf.gather(output, [2, 2, 0])), [table.handle])
    with testing.session() as sess:
      _init(sess, [table])
      got = sess.run(grad)
      self.assertAllEqual([1, 2, 3], got.indices)
      self.assertAllEqual([[1, 1], [0, 0], [2, 2]], got.values)

  def test_gradient_to_ids_rows_and_sizes_is_none(self):
    table = testing.Table("user", 2)
    ids = tf.constant([1], tf.int64)
    splits = tf.constant([0, 1], tf.int64)
    size = tf.constant(1, tf.int64)
    (output,), _ = _lookup([table], [ids], [splits], [size], ["sum"])
    self.assertEqual([None] * 3, tf.gradients(output, [ids, splits, size]))

  def test_lookup_inside_a_cond(self):
    table = testing.Table("user", 2)
    flag = tf.compat.v1.placeholder(tf.bool, [])
    total = tf.cond(
        flag, lambda: tf.reduce_sum(
            _lookup([table], [[3, 4]], [[0, 2]], [1], ["sum"])[0][0]),
        lambda: tf.constant(0.0))
    with testing.session() as sess:
      _init(sess, [table])
      self.assertAllClose(
          np.sum(testing.rows_of([3, 4], table.defaults)),
          sess.run(total, {flag: True}))
      self.assertEqual(0, sess.run(total, {flag: False}))

  # -- wrong input ------------------------------------------------------------

  @parameterized.parameters(
      (dict(ids=[[1.0, 2.0]]), TypeError, ""),
      (dict(ids=[["a"]]), TypeError, ""),
      (dict(ids=[[[1, 2]]]), ValueError, "ids of table 0: expected rank 1"),
      (dict(ids=[[1], [2]]), ValueError, "1 tables got 2 ids"),
      (dict(rows=[[[[0]]]]), ValueError, "indices of table 0"),
      (dict(rows=[[[0], [0]]]), ValueError, "indices of table 0"),
      (dict(rows=[[[0, 0, 0], [0, 0, 0]]]), ValueError, "indices of table 0"),
      (dict(rows=[[[0, 0]]]), ValueError, "indices of table 0"),
      (dict(rows=[[0, 1, 2]]), ValueError, "3 row splits.*batch size 1"),
      (dict(rows=[[0.0, 2.0]]), (TypeError, ValueError), ""),
      (dict(batch_sizes=[[1]]), ValueError, "batch size of table 0"),
      (dict(batch_sizes=[-1]), ValueError, "-1"),
      (dict(batch_sizes=[2**62], rows=[[[0, 0], [0, 1]]]), ValueError,
       "table 0 has a batch of 4611686018427387904 samples"),
      (dict(combiners=["median"]), ValueError, "median"),
      (dict(combiners=["sum", "sum"]), ValueError, "2 combiners"),
      (dict(dims=[3]), ValueError, "rows of length 2, got dim 3"),
      (dict(dims=[0]), ValueError, "got dim 0"),
      (dict(weights=[[1.0]]), ValueError, "2 ids but 1 weights"),
      (dict(weights=[[1.0], [1.0]]), ValueError, "1 tables got 2 weights"),
      (dict(weights=[[[1.0, 2.0]]]), ValueError, "weights of table 0"),
  )
  def test_wrong_at_construction(self, change, error, message):
    table = testing.Table("user", 2)
    args = dict(ids=[[1, 2]], rows=[[0, 2]], batch_sizes=[1],
                combiners=["sum"], dims=[2])
    args.update(change)
    with self.assertRaisesRegex(error, message):
      lookup_sparse_ops.lookup_sparse([table.handle], **args)

  @parameterized.parameters(
      (dict(ids=[[1, 2]]), "'user'.*ids: expected a vector"),
      (dict(rows=[0, 1, 2]), "'user'.*row splits"),
      (dict(rows=[]), "'user'.*row splits"),
      (dict(rows=[1, 2]), "'user'"),
      (dict(rows=[0, 3]), "'user'"),
      (dict(rows=[0, 1]), "'user'"),
      (dict(rows=[0, -1, 2], size=2), "'user'"),
      (dict(rows=[0, 3, 2], size=2), "'user'"),
      (dict(rows=[[0, 0], [0, 1], [0, 2]]), "'user'.*indices"),
      (dict(rows=[[0], [0]]), "'user'.*indices"),
      (dict(rows=[[[0, 0]]]), "'user'.*indices"),
      (dict(rows=[[1, 0], [0, 1]], size=2), "'user'"),
      (dict(rows=[[0, 0], [1, 0]]), "'user'"),
      (dict(rows=[[-1, 0], [0, 0]]), "'user'"),
      (dict(rows=0), "'user'.*indices"),
      (dict(size=-1), "'user'.*a batch of -1 samples"),
      (dict(size=2**31 - 1), "'user'.*a batch of 2147483647 samples"),
      (dict(size=2**63 - 1), "'user'.*a batch of 9223372036854775807 samples"),
      (dict(size=2**62, rows=[[0, 0], [0, 1]]), "'user'.*expected a number in .0, 2147483646"),
      (dict(size=[1]), "'user'.*batch size: expected a scalar"),
      (dict(weights=[1.0]), "'user'.*weights"),
      (dict(weights=[[1.0, 2.0]]), "'user'.*weights"),
  )
  def test_wrong_when_run(self, change, message):
    table = testing.Table("user", 2)
    good = testing.Table("item", 2)
    right = dict(ids=[1, 2], rows=[0, 2], size=1, weights=[1.0, 1.0])
    types = dict(ids=tf.int64, rows=tf.int64, size=tf.int64,
                 weights=tf.float32)
    fed = {k: tf.compat.v1.placeholder(types[k]) for k in right}
    (output, _), _ = _lookup([table, good], [fed["ids"], [7]],
                             [fed["rows"], [0, 1]], [fed["size"], 1],
                             ["sum", "sum"], [fed["weights"], [1.0]])
    with testing.session() as sess:
      _init(sess, [table, good])
      wrong = dict(right, **change)
      with self.assertRaisesRegex(tf.errors.InvalidArgumentError, message):
        sess.run(output, {fed[k]: wrong[k] for k in fed})
      # The process, this variable and the session stay usable.
      self.assertAllClose(
          testing.rows_of([1, 2], table.defaults).sum(0)[None],
          sess.run(output, {fed[k]: right[k] for k in fed}))

  def test_lookup_before_initialisation_names_the_variable(self):
    tables = [testing.Table("ready", 2), testing.Table("late", 2)]
    outputs, _ = _lookup(tables, [[1], [1]], [[0, 1]] * 2, [1, 1],
                         ["sum", "sum"])
    with testing.session() as sess:
      sess.run(tables[0].init)
      with self.assertRaisesRegex(tf.errors.FailedPreconditionError,
                                  "'late' is not initialized"):
        sess.run(outputs)
      sess.run(tables[1].init)
      sess.run(outputs)

  def test_wrong_dim_behind_a_handle_without_data(self):
    table = testing.Table("user", 2)
    # Switching between handles loses the static shape, so the kernel must check it.
    flag = tf.compat.v1.placeholder(tf.bool, [])
    handle = tf.cond(flag, lambda: table.handle,
                     lambda: testing.Table("other", 2).handle)
    (output,), _ = lookup_sparse_ops.lookup_sparse([handle], [[1]], [[0, 1]],
                                                   [1], ["sum"], [3])
    with testing.session() as sess:
      sess.run(table.init)
      with self.assertRaisesRegex(tf.errors.InvalidArgumentError,
                                  "'user'.*length 2.*built for 3"):
        sess.run(output, {flag: True})

  def test_gradient_of_wrong_shape(self):
    table = testing.Table("user", 2)
    (output,), _ = _lookup([table], [[1]], [[0, 1]], [1], ["sum"])
    incoming = tf.compat.v1.placeholder(tf.float32)
    grad, = tf.gradients(output, [table.handle], grad_ys=[incoming])
    with testing.session() as sess:
      _init(sess, [table])
      for wrong in ([[1.0, 2.0]] * 2, [[1.0]], [1.0, 2.0]):
        with self.assertRaisesRegex(tf.errors.InvalidArgumentError,
                                    r"'user'.*shape \[1,2\]"):
          sess.run(grad, {incoming: wrong})
      self.assertAllEqual([[1, 2]],
                          sess.run(grad, {incoming: [[1.0, 2.0]]}).values)

  def test_something_else_for_a_plan(self):
    other = tf.raw_ops.EmptyTensorList(
        element_shape=tf.constant([], tf.int32),
        max_num_elements=tf.constant(0), element_dtype=tf.float32)
    gen = lookup_sparse_ops._gen
    keys, _ = gen.ev_lookup_sparse_grad(other, [[[1.0, 2.0]]], [], tables=[0],
                                        dims=[2])
    with testing.session() as sess:
      with self.assertRaisesRegex(tf.errors.InvalidArgumentError,
                                  "plan of an embedding lookup"):
        sess.run(keys)

  def test_table_that_the_plan_lacks(self):
    table = testing.Table("user", 2)
    _, plan = _lookup([table], [[1]], [[0, 1]], [1], ["sum"])
    gen = lookup_sparse_ops._gen
    keys, _ = gen.ev_lookup_sparse_grad(plan, [[[1.0, 2.0]]], [], tables=[1],
                                        dims=[2])
    twice, _ = gen.ev_lookup_sparse_grad(plan, [[[1.0, 2.0]]] * 2, [],
                                         tables=[0, 0], dims=[2, 2])
    weight_grad = gen.ev_lookup_sparse_weight_grad(plan, [[1.0, 2.0]],
                                                   [[1.0, 2.0]], [], table=1)
    with testing.session() as sess:
      _init(sess, [table])
      for wrong in (keys, weight_grad):
        with self.assertRaisesRegex(tf.errors.InvalidArgumentError,
                                    "table 1 of a lookup of 1"):
          sess.run(wrong)
      with self.assertRaisesRegex(tf.errors.InvalidArgumentError,
                                  "'user'.*twice"):
        sess.run(twice)

  def test_a_plan_can_be_neither_fetched_nor_crash(self):
    table = testing.Table("user", 2)
    _, plan = _lookup([table], [[1]], [[0, 1]], [1], ["sum"])
    with testing.session() as sess:
      _init(sess, [table])
      with self.assertRaises((tf.errors.OpError, TypeError, ValueError)):
        sess.run(plan)

  # -- bits -------------------------------------------------------------------

  def test_same_bits_with_any_number_of_threads(self):
    rng = np.random.RandomState(8)
    tables = [testing.Table("t%d" % i, d, 50) for i, d in enumerate((5, 16))]
    batches = [_random_batch(rng, 3000, 20, 300, np.int64) for _ in tables]
    outputs, _ = _lookup(tables, [b[0] for b in batches],
                         [_rows(b[1], "splits") for b in batches], [3000] * 2,
                         ["mean", "sum"])
    scale = rng.randn(3000, 1).astype(np.float32)
    grads = tf.gradients(
        tf.add_n([tf.reduce_sum(o * o * scale) for o in outputs]),
        [t.handle for t in tables])
    update = apply_ops.apply("Adagrad", [t.handle for t in tables],
                             [g.indices for g in grads],
                             [g.values for g in grads], [0.1], 0,
                             [["Adagrad"]] * 2, [[0.1]] * 2)
    fetches = outputs + [g.indices for g in grads] + [g.values for g in grads]
    results = []
    for threads in (1, 2, 8, 2):
      with testing.session(intra=threads) as sess:
        _init(sess, tables)
        for _ in range(3):
          got = sess.run(fetches)
          sess.run(update)
        results.append(got)
    for other in results[1:]:
      for want, got in zip(results[0], other):
        self.assertEqual(want.tobytes(), got.tobytes())


if __name__ == "__main__":
  absltest.main()
