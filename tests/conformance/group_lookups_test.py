# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""DeepRec's group and fused lookups, and its additional arguments of stock lookups."""

import os

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

import embedding_variable as ev
from embedding_variable.lookup import group
import pairs
# Importing embedding_variable adds these modules.
from tensorflow.python.ops import group_embedding_lookup_ops
from tensorflow.python.ops import kv_variable_ops

_ROWS = 50
_DIMS = (3, 8, 3, 5)
_COMBINERS = ("mean", "sum", "sum", "sqrtn")
_BATCH = 6


def _sparse(seed, weights=False):
  """Returns SparseTensorValues (ids, weights) of `_BATCH` samples; the last is empty."""
  random = np.random.RandomState(seed)
  indices, ids = [], []
  for sample in range(_BATCH - 1):
    for column in range(random.randint(0, 4)):
      indices.append([sample, column])
      ids.append(random.randint(0, _ROWS))
  indices = np.array(indices, np.int64).reshape(-1, 2)
  shape = [_BATCH, 4]
  return (tf.SparseTensorValue(indices, np.array(ids, np.int64), shape),
          tf.SparseTensorValue(indices, random.rand(len(ids)).astype(np.float32) + .5,
                               shape))


def _expected(values, ids, weights, combiner):
  """Pools with NumPy; returns float64 `[_BATCH, dim]`."""
  result = np.zeros([_BATCH, values.shape[1]])
  for sample in range(_BATCH):
    mine = ids.indices[:, 0] == sample
    w = weights.values[mine].astype(np.float64) if weights else np.ones(mine.sum())
    if not len(w):
      continue
    total = (values[ids.values[mine]] * w[:, None]).sum(0)
    result[sample] = total / {"sum": 1.0, "mean": w.sum(),
                              "sqrtn": np.sqrt((w**2).sum())}[combiner]
  return result


class GroupLookupTest(parameterized.TestCase):

  def setUp(self):
    super(GroupLookupTest, self).setUp()
    tf.reset_default_graph()
    self.values = [pairs.rows(_ROWS, dim, seed=i) for i, dim in enumerate(_DIMS)]
    self.ids = [_sparse(10 + i) for i in range(len(_DIMS))]

  def variables(self, kinds):
    """Returns one variable for each kind: "table", "parts" or "dense"."""
    made = []
    for i, kind in enumerate(kinds):
      name, values = "v%d" % i, self.values[i]
      if kind == "parts":
        made.append(pairs.table(name, values, partitioner=tf.fixed_size_partitioner(3)))
      else:
        made.append(pairs.table(name, values) if kind == "table" else
                    pairs.dense(name, values))
    return made

  def run_op(self, fetches):
    with pairs.session() as session:
      session.run(tf.global_variables_initializer())
      return session.run(fetches)

  @parameterized.parameters(
      (["table"] * 4, False), (["table"] * 4, True), (["dense"] * 4, True),
      (["table", "dense", "parts", "table"], True))
  def test_each_table_has_its_own_combiner(self, kinds, weighted):
    outputs = tf.nn.group_embedding_lookup_sparse(
        self.variables(kinds), [tf.SparseTensor.from_value(i) for i, _ in self.ids],
        list(_COMBINERS), sp_weights=[
            tf.SparseTensor.from_value(w) for _, w in self.ids] if weighted else None)
    for i, got in enumerate(self.run_op(outputs)):
      np.testing.assert_allclose(
          got, _expected(self.values[i], self.ids[i][0],
                         self.ids[i][1] if weighted else None, _COMBINERS[i]),
          rtol=1e-5, atol=1e-6)

  def test_ragged_ids(self):
    ragged = [tf.RaggedTensor.from_sparse(tf.SparseTensor.from_value(i))
              for i, _ in self.ids]
    outputs = tf.nn.group_embedding_lookup_sparse(
        self.variables(["table", "dense", "table", "parts"]), ragged, list(_COMBINERS))
    for i, got in enumerate(self.run_op(outputs)):
      np.testing.assert_allclose(
          got, _expected(self.values[i], self.ids[i][0], None, _COMBINERS[i]),
          rtol=1e-5, atol=1e-6)

  @parameterized.parameters("float16", tf.bfloat16)
  def test_output_types(self, dtype):
    variables = self.variables(["table", "dense", "parts", "table"])
    ids = [tf.SparseTensor.from_value(i) for i, _ in self.ids]
    weights = [tf.SparseTensor.from_value(w) for _, w in self.ids]
    for lookup in (
        lambda **kw: tf.nn.group_embedding_lookup_sparse(
            variables, ids, list(_COMBINERS), **kw),
        lambda **kw: tf.nn.group_embedding_lookup_sparse(
            variables, ids, list(_COMBINERS), sp_weights=weights, **kw),
        lambda **kw: tf.nn.group_embedding_lookup_sparse(
            variables, ids, list(_COMBINERS), is_sequence=True, **kw),
        lambda **kw: tf.nn.group_embedding_lookup(
            variables, [i.values for i in ids], **kw)):
      wide, narrow = lookup(), lookup(output_dtype=dtype)
      self.assertEqual([x.dtype for x in narrow], [tf.as_dtype(dtype)] * 4)
      for got, want in zip(*self.run_op([
          [tf.cast(x, tf.float32) for x in narrow],
          [tf.cast(tf.cast(x, dtype), tf.float32) for x in wide]])):
        np.testing.assert_array_equal(got, want)
    for lookup, given in ((tf.nn.group_embedding_lookup_sparse, (ids, "sum")),
                          (tf.nn.group_embedding_lookup, ([i.values for i in ids],))):
      with self.assertRaisesRegex(TypeError, "group_embedding_lookup.*'v0.*output_dtype: "
                                             "expected float32.*got float64"):
        lookup(variables, *given, output_dtype=tf.float64)
      lookup(variables, *given, output_dtype=tf.float32)

  def test_a_lookup_over_ranks_gets_the_output_type(self):
    given = []

    def lookup(*args, **options):
      given.append(options)
      return ev.lookup_sparse(*args, **options)

    self.addCleanup(group.set_lookup, group.set_lookup(lookup))
    arguments = self.variables(["table"]), [tf.SparseTensor.from_value(self.ids[0][0])], "sum"
    for dtype in None, tf.float32, "float16":
      output, = tf.nn.group_embedding_lookup_sparse(*arguments, output_dtype=dtype)
      self.assertEqual(output.dtype, tf.as_dtype(dtype or tf.float32))
    self.assertEqual(given, [{}, {}, {"output_dtype": tf.float16}])

  @parameterized.parameters((100, 1), (4, 1), (3, 2), (1, 4))
  def test_tables_per_op(self, per_group, expected):
    tf.nn.group_embedding_lookup_sparse(
        self.variables(["table"] * 4),
        [tf.SparseTensor.from_value(i) for i, _ in self.ids], "sum",
        params_num_per_group=per_group)
    types = [op.type for op in tf.get_default_graph().get_operations()]
    self.assertEqual(types.count("EvLookupSparse"), expected)

  def test_one_update_of_all_tables_equals_dense_ones(self):
    trained = []
    for kind in ("table", "dense"):
      tf.reset_default_graph()
      variables = self.variables([kind] * 4)
      outputs = tf.nn.group_embedding_lookup_sparse(
          variables, [tf.SparseTensor.from_value(i) for i, _ in self.ids],
          list(_COMBINERS))
      loss = tf.add_n([tf.reduce_sum(tf.square(o)) for o in outputs])
      train = tf.train.AdagradOptimizer(0.1).minimize(loss)
      if kind == "table":
        types = [op.type for op in tf.get_default_graph().get_operations()]
        self.assertEqual(types.count("EvApply"), 1)
      rows = [pairs.read_all(v, _ROWS) for v in variables]
      with pairs.session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(3):
          session.run(train)
        trained.append(session.run(rows))
    for got, want in zip(*trained):
      np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)

  @parameterized.parameters("table", "dense", "parts")
  def test_sequences_are_padded_with_zeros(self, kind):
    sparse = self.ids[1][0]
    variable, = self.variables([kind])
    ragged = tf.RaggedTensor.from_row_splits(sparse.values[:3], [0, 2, 2, 3])
    outputs = tf.nn.group_embedding_lookup_sparse(
        [variable, variable], [tf.SparseTensor.from_value(sparse), ragged],
        ["mean", "mean"], is_sequence=True)
    self.assertEqual(outputs[0].shape.as_list(), [_BATCH, 4, _DIMS[0]])
    got, from_ragged = self.run_op(outputs)
    want = np.zeros([_BATCH, 4, _DIMS[0]], np.float32)
    for (sample, column), key in zip(sparse.indices, sparse.values):
      want[sample, column] = self.values[0][key]
    np.testing.assert_array_equal(got, want)
    rows = self.values[0][sparse.values[:3]]
    np.testing.assert_array_equal(
        from_ragged, [rows[:2], np.zeros([2, 3]), [rows[2], np.zeros(3)]])

  def test_rows_of_ids_of_any_shape(self):
    variables = self.variables(["table", "parts", "dense", "table"])
    ids = [tf.constant([[1, 2], [2, 3]], tf.int64), tf.constant([4, 4, 5], tf.int32),
           tf.constant([7], tf.int64), tf.zeros([0, 2], tf.int64)]
    outputs = tf.nn.group_embedding_lookup(variables, ids)
    self.assertEqual([o.shape.as_list() for o in outputs],
                     [[2, 2, 3], [3, 8], [1, 3], [0, 2, 5]])
    loss = tf.add_n([tf.reduce_sum(o) for o in outputs])
    train = tf.train.GradientDescentOptimizer(1.0).minimize(loss)
    rows = tf.nn.embedding_lookup(variables[0], tf.constant([1, 2, 3, 9], tf.int64))
    with pairs.session() as session:
      session.run(tf.global_variables_initializer())
      got = session.run(outputs)
      for values, own, found in zip(self.values, session.run(ids), got):
        np.testing.assert_array_equal(found, values[own])
      session.run(train)
      np.testing.assert_allclose(
          session.run(rows), self.values[0][[1, 2, 3, 9]] - [[1.], [2.], [1.], [0.]],
          rtol=1e-6)
    types = [op.type for op in tf.get_default_graph().get_operations()]
    self.assertNotIn("EvGather", types[:types.index("EvLookupSparse")])

  @parameterized.parameters(
      (dict(combiners=["sum"]), ValueError, "2 params came with 1 combiners"),
      (dict(combiners=["sum", "median"]), ValueError, "combiner: expected one of"),
      (dict(combiners="sum", partition_strategy="x"), ValueError, "'mod' or 'div'"),
      (dict(combiners="sum", params_num_per_group=0), ValueError, "at least 1, got 0"),
      (dict(combiners="sum", is_sequence=True, sp_weights=[None, None]), ValueError,
       "is_sequence"),
      (dict(combiners="sum", sp_ids=[tf.zeros([3]), None]), TypeError, "sp_ids: expected"))
  def test_refuses(self, changes, error, message):
    arguments = dict(sp_ids=[tf.SparseTensor.from_value(i) for i, _ in self.ids[:2]])
    arguments.update(changes)
    with self.assertRaisesRegex(error, message):
      tf.nn.group_embedding_lookup_sparse(self.variables(["table"] * 2), **arguments)

  def test_names(self):
    for owner in (tf.nn, tf.compat.v1.nn, group_embedding_lookup_ops):
      self.assertIs(owner.group_embedding_lookup_sparse,
                    tf.nn.group_embedding_lookup_sparse)
      self.assertIs(owner.group_embedding_lookup, tf.nn.group_embedding_lookup)
    variable, = self.variables(["table"])
    self.assertEqual(tf.get_collection(tf.GraphKeys.EMBEDDING_VARIABLES), [variable])


class FusedLookupTest(parameterized.TestCase):

  def setUp(self):
    super(FusedLookupTest, self).setUp()
    tf.reset_default_graph()

  @parameterized.product(combiner=("mean", "sum", "sqrtn"), weighted=(False, True),
                         default_id=(None, 7), prune=(False, True))
  def test_equals_that_of_a_dense_variable(self, combiner, weighted, default_id, prune):
    values = pairs.rows(_ROWS, 4)
    ids, weights = _sparse(3)
    # The last sample has no ids; stock functions leave out its row.
    ids, weights = [tf.SparseTensorValue(x.indices, x.values, [_BATCH - 1, 4])
                    for x in (ids, weights)]
    if prune:
      ids.values[::3] = -1
    outputs = []
    for variable in (pairs.table("t", values), pairs.dense("d", values)):
      outputs.append(tf.nn.fused_embedding_lookup_sparse(
          variable, tf.SparseTensor.from_value(ids),
          tf.SparseTensor.from_value(weights) if weighted else None, combiner=combiner,
          default_id=default_id, prune_invalid_ids=prune))
    with pairs.session() as session:
      session.run(tf.global_variables_initializer())
      got, want = session.run(outputs)
    # TensorFlow's functions divide 0 by 0 for an empty sample with weights.
    np.testing.assert_allclose(got[:len(want)], np.nan_to_num(want), rtol=1e-5,
                               atol=1e-6)

  @parameterized.parameters(None, 7)
  def test_weights_that_are_not_positive(self, default_id):
    values = pairs.rows(_ROWS, 4)
    ids, weights = _sparse(3)
    weights.values[:] = np.where(np.arange(len(weights.values)) % 3, weights.values, -.25)
    outputs = [
        tf.nn.fused_embedding_lookup_sparse(
            variable, tf.SparseTensor.from_value(ids),
            tf.SparseTensor.from_value(weights), combiner="mean", default_id=default_id)
        for variable in (pairs.table("t", values), pairs.dense("d", values))]
    with pairs.session() as session:
      session.run(tf.global_variables_initializer())
      got, want = session.run(outputs)
    np.testing.assert_allclose(got[:len(want)], np.nan_to_num(want), rtol=1e-5,
                               atol=1e-6)

  @parameterized.parameters(None, 7)
  def test_safe_form(self, default_id):
    values = pairs.rows(_ROWS, 4)
    ids, weights = _sparse(3)
    ids.values[::4] = -1
    outputs = [
        tf.nn.fused_safe_embedding_lookup_sparse(
            variable, tf.SparseTensor.from_value(ids),
            tf.SparseTensor.from_value(weights), default_id=default_id)
        for variable in (pairs.table("t", values), pairs.dense("d", values))]
    with pairs.session() as session:
      session.run(tf.global_variables_initializer())
      got, want = session.run(outputs)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)

  def test_refuses(self):
    variable = pairs.table("t", pairs.rows(_ROWS, 4))
    ids = tf.SparseTensor.from_value(_sparse(3)[0])
    with self.assertRaisesRegex(ValueError, "blocknums"):
      tf.nn.fused_embedding_lookup_sparse(variable, ids, blocknums=[1])
    with self.assertRaisesRegex(TypeError, "sp_ids: expected a SparseTensor"):
      tf.nn.fused_embedding_lookup_sparse(variable, tf.zeros([3], tf.int64))


class ArgumentsTest(parameterized.TestCase):
  """`ev_init_value`, `counts`, `lookup_tier`."""

  def setUp(self):
    super(ArgumentsTest, self).setUp()
    tf.reset_default_graph()

  def table(self, parts):
    option = ev.EmbeddingVariableOption(
        init_option=ev.InitializerOption(default_value_dim=1))
    return tf.get_embedding_variable(
        "t", 2, initializer=tf.ones_initializer(), ev_option=option,
        partitioner=tf.fixed_size_partitioner(parts) if parts else None)

  @parameterized.parameters(0, 3)
  def test_rows_start_with_ev_init_value(self, parts):
    table = self.table(parts)
    ids = tf.constant([[5, -6], [7, 5]], tf.int64)
    initial = tf.constant([[[5., 5.], [6., 6.]], [[7., 7.], [5., 5.]]])
    rows = tf.nn.embedding_lookup(table, ids, ev_init_value=initial)
    self.assertEqual(rows.shape.as_list(), [2, 2, 2])
    train = tf.train.GradientDescentOptimizer(1.0).minimize(tf.reduce_sum(rows))
    plain = tf.nn.embedding_lookup(table, tf.constant([5, -6, 7, 8], tf.int64))
    tiers = kv_variable_ops.lookup_tier(table, tf.constant([[5, 8], [-6, 7]]))
    with pairs.session() as session:
      session.run(tf.global_variables_initializer())
      first, expected = session.run([rows, initial])
      np.testing.assert_array_equal(first, expected)
      np.testing.assert_array_equal(session.run(tiers), [[-1, -1], [-1, -1]])
      np.testing.assert_array_equal(session.run(plain), np.ones([4, 2]))
      session.run(train)
      np.testing.assert_array_equal(session.run(plain),
                                    [[3., 3.], [5., 5.], [6., 6.], [1., 1.]])
      np.testing.assert_array_equal(session.run(tiers), [[0, -1], [0, 0]])
      # The rows now exist, so the table's values are read.
      np.testing.assert_array_equal(session.run(rows)[0], [[3., 3.], [5., 5.]])

  def test_ev_init_value_trains_as_a_table_that_starts_with_it(self):
    values = pairs.rows(_ROWS, 3)
    random = np.random.RandomState(1)
    batches = [random.randint(0, _ROWS, size=20) for _ in range(6)]
    results = []
    for with_argument in (True, False):
      tf.reset_default_graph()
      ids = tf.placeholder(tf.int64, [None])
      if with_argument:
        table = tf.get_embedding_variable("t", 3, initializer=tf.zeros_initializer())
        rows = tf.nn.embedding_lookup(table, ids,
                                      ev_init_value=tf.gather(values, ids))
      else:
        table = pairs.table("t", values)
        rows = tf.nn.embedding_lookup(table, ids)
      train = tf.train.AdamOptimizer(0.1).minimize(tf.reduce_sum(rows**2))
      exported = table.export()
      with pairs.session() as session:
        session.run(tf.global_variables_initializer())
        for batch in batches:
          session.run(train, {ids: batch})
        results.append(session.run(exported[:2]))
    np.testing.assert_array_equal(results[0][0], results[1][0])
    np.testing.assert_array_equal(results[0][1], results[1][1])

  @parameterized.parameters(0, 3)
  def test_counts_reach_the_frequencies(self, parts):
    with absltest.mock.patch.dict(os.environ, {"TF_RECORD_FREQ": "1"}):
      table = self.table(parts)
    ids = tf.constant([5, 6, -7], tf.int64)
    rows = tf.nn.embedding_lookup(table, ids, counts=[3, 1, 2**33])
    others = tf.nn.embedding_lookup(table, tf.constant([5, 5], tf.int64))
    loss = tf.reduce_sum(rows)
    steps = [tf.train.AdagradOptimizer(.1).minimize(loss),
             tf.train.AdagradOptimizer(.1, name="B").minimize(loss +
                                                              tf.reduce_sum(others)),
             tf.train.RMSPropOptimizer(.1, centered=True).minimize(loss)]
    tables = [table] if not parts else list(table)
    with pairs.session() as session:
      session.run(tf.global_variables_initializer())
      for step, expected in zip(steps, ([3, 1], [8, 2], [11, 3])):
        session.run(step)
        found = {}
        for t in tables:
          keys, _, _, freqs = session.run(t.export())
          found.update(zip(keys.tolist(), freqs.tolist()))
        self.assertEqual([found[5], found[6]], expected)
      self.assertEqual(found[-7], 2**32 - 1)  # counts saturate

  def test_wrong_arguments(self):
    table = self.table(0)
    dense = pairs.dense("d", pairs.rows(_ROWS, 2))
    with self.assertRaisesRegex(ValueError, r"'t': ev_init_value: expected shape \(1, 2\)"):
      tf.nn.embedding_lookup(table, [1], ev_init_value=tf.zeros([1, 3]))
    with self.assertRaisesRegex(ValueError, r"'t': counts: expected shape \(2,\)"):
      tf.nn.embedding_lookup(table, [1, 2], counts=[1])
    for arguments in (dict(ev_init_value=tf.zeros([1, 2])), dict(counts=[1])):
      with self.assertRaisesRegex(ValueError, "applies only to embedding variables"):
        tf.nn.embedding_lookup(dense, [1], **arguments)
    with self.assertRaisesRegex(TypeError, "expected an embedding variable"):
      kv_variable_ops.lookup_tier(dense, [1])
    with self.assertRaisesRegex(TypeError, "ids: expected int32 or int64"):
      kv_variable_ops.lookup_tier(table, [1.5])


if __name__ == "__main__":
  absltest.main()
