# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests narrow outputs and gradients of the pooled lookup, in graphs.

The oracle is a float32 lookup followed by `tf.cast`: same bits of outputs and of rows
after training.
"""

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

import embedding_variable

tf1 = tf.compat.v1

_NARROW = (tf.float16, tf.bfloat16)
_KEYS = list(range(-20, 40))


def _ids(seed, distinct=False):
  """Returns a SparseTensor of samples of 0 to 4 ids."""
  random = np.random.RandomState(seed)
  counts = random.randint(0, 5, [30])
  values = random.randint(-20, 40, [counts.sum()])
  if distinct:
    values = np.arange(counts.sum())
  indices = [[s, i] for s, n in enumerate(counts) for i in range(n)]
  return tf.SparseTensor(np.array(indices, np.int64), values.astype(np.int64), [30, 5])


def _weights(ids, seed=0):
  random = np.random.RandomState(seed)
  values = random.uniform(.5, 2., ids.values.shape.as_list()).astype(np.float32)
  return tf.SparseTensor(ids.indices, values, ids.dense_shape)


def _bits(tensor):
  return tf.bitcast(tensor, tf.uint16)


class OutputTypesTest(parameterized.TestCase):

  def setUp(self):
    super(OutputTypesTest, self).setUp()
    graph = tf.Graph().as_default()
    graph.__enter__()
    self.addCleanup(graph.__exit__, None, None, None)

  def _table(self, name, dim=16, **kwargs):
    # Names with the same last part have the same default rows.
    return tf1.get_embedding_variable(
        name, embedding_dim=dim,
        initializer=tf1.random_uniform_initializer(-3., 3., seed=len(name) + dim), **kwargs)

  def _run(self, *fetches):
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      return session.run(fetches)

  @parameterized.product(dtype=_NARROW, combiner=("sum", "mean", "sqrtn", "max"),
                         distinct=(False, True))
  def test_outputs_have_the_bits_of_casts(self, dtype, combiner, distinct):
    tables = [self._table("t%d" % dim, dim) for dim in (1, 5, 16, 33, 64)]
    ids = [_ids(i, distinct) for i in range(len(tables))]
    found = embedding_variable.lookup_sparse(
        tables, ids, combiners=[combiner] * len(tables), output_dtype=dtype)
    wide = embedding_variable.lookup_sparse(
        tables, ids, combiners=[combiner] * len(tables))
    for output, expected in zip(found, wide):
      self.assertEqual(output.dtype, dtype)
      self.assertEqual(expected.dtype, tf.float32)
      self.assertEqual(output.shape.as_list(), expected.shape.as_list())
    results = self._run([_bits(x) for x in found], [_bits(tf.cast(x, dtype)) for x in wide])
    for output, expected in zip(*results):
      np.testing.assert_array_equal(output, expected)

  @parameterized.product(dtype=("float16", "bfloat16"), kind=("weights", "parts", "many"))
  def test_other_paths_have_the_bits_of_casts(self, dtype, kind):
    weights, count, parts = None, 2, None
    if kind == "parts":
      parts = tf1.fixed_size_partitioner(3)
    elif kind == "many":
      count = 9
    tables = [self._table("t%d" % i, 8 + i, partitioner=parts) for i in range(count)]
    ids = [_ids(i) for i in range(count)]
    if kind == "weights":
      weights = [_weights(ids[0]), None]
    arguments = dict(sp_weights=weights, combiners=["mean"] * count)
    found = embedding_variable.lookup_sparse(tables, ids, output_dtype=dtype, **arguments)
    wide = embedding_variable.lookup_sparse(tables, ids, **arguments)
    results = self._run([_bits(x) for x in found], [_bits(tf.cast(x, dtype)) for x in wide])
    for output, expected in zip(*results):
      np.testing.assert_array_equal(output, expected)

  def _trained(self, name, dtype, is_cast, optimizer, combiner, weighted=False):
    """Returns the train op and the rows, with a loss that differs in each step."""
    ids = _ids(1, distinct=combiner == "distinct")
    combiner = "sum" if combiner == "distinct" else combiner
    weights = [_weights(ids)] if weighted else None
    table = self._table(name)
    if is_cast:
      output, = embedding_variable.lookup_sparse([table], [ids], weights, [combiner])
      output = tf.cast(output, dtype)
    else:
      output, = embedding_variable.lookup_sparse([table], [ids], weights, [combiner],
                                                 output_dtype=dtype)
    step = tf.cast(tf1.train.get_or_create_global_step(), tf.float32)
    factors = tf.constant(np.random.RandomState(3).randn(30, 16).astype(np.float32))
    loss = tf.reduce_sum(tf.square(tf.cast(output, tf.float32)) * factors * (step + 1.1))
    train = optimizer.minimize(loss, var_list=[table])
    return train, tf.nn.embedding_lookup(table, tf.constant(_KEYS, tf.int64)), output

  @parameterized.product(
      dtype=_NARROW, combiner=("sum", "mean", "max", "distinct"),
      optimizer=(lambda: tf1.train.AdagradOptimizer(.1),
                 lambda: tf1.train.AdamOptimizer(.1)))
  def test_training_has_the_bits_of_casts(self, dtype, combiner, optimizer):
    a = self._trained("a", dtype, False, optimizer(), combiner)
    b = self._trained("b", dtype, True, optimizer(), combiner)
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      before = session.run(a[1])
      for _ in range(3):
        session.run([a[0], b[0]])
      narrow, cast = session.run([a[1], b[1]])
    np.testing.assert_array_equal(narrow, cast)
    self.assertFalse(np.array_equal(before, narrow))

  def test_training_with_weights_has_the_bits_of_casts(self):
    a = self._trained("a", tf.float16, False, tf1.train.AdagradOptimizer(.1), "mean", True)
    b = self._trained("b", tf.float16, True, tf1.train.AdagradOptimizer(.1), "mean", True)
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      session.run([a[0], b[0]])
      np.testing.assert_array_equal(*session.run([a[1], b[1]]))

  def test_gradients_are_float32_and_have_no_cast_of_their_own(self):
    table = self._table("t")
    output, = embedding_variable.lookup_sparse([table], [_ids(0)], output_dtype="float16")
    gradient, = tf.gradients(tf.reduce_sum(output), [table])
    self.assertEqual(gradient.values.dtype, tf.float32)
    types = [op.type for op in tf1.get_default_graph().get_operations()]
    self.assertNotIn("Cast", types[types.index("EvLookupSparse"):])

  @parameterized.parameters(*_NARROW)
  def test_gradients_of_gradients(self, dtype):
    results = []
    for is_cast in (False, True):
      table = self._table("ab"[is_cast])
      output, = embedding_variable.lookup_sparse(
          [table], [_ids(0)], output_dtype=None if is_cast else dtype)
      output = tf.cast(output, dtype)
      loss = tf.reduce_sum(tf.cast(output, tf.float32) ** 3)
      gradient, = tf.gradients(loss, [table])
      penalty = tf.reduce_sum(gradient.values ** 2)
      second, = tf.gradients(penalty, [table])
      results.append((second.indices, second.values))
    (keys, values), (other_keys, other_values) = self._run(*results)
    np.testing.assert_array_equal(keys, other_keys)
    np.testing.assert_array_equal(values, other_values)

  @parameterized.parameters(
      (tf.int32, "int32"), (tf.float64, "float64"), ("float17", "'float17'"), (3.5, "3.5"))
  def test_other_types_are_refused(self, dtype, got):
    table = self._table("users")
    with self.assertRaisesRegex(
        TypeError, "lookup_sparse of 'users': output_dtype: expected float32, float16 or "
        "bfloat16, got " + got):
      embedding_variable.lookup_sparse([table], [_ids(0)], output_dtype=dtype)
    output, = embedding_variable.lookup_sparse([table], [_ids(0)], output_dtype=tf.float16)
    self.assertEqual((30, 16), self._run(output)[0].shape)

  def test_graphs_without_the_attribute_are_float32(self):
    table = self._table("t")
    output, = embedding_variable.lookup_sparse([table], [_ids(0)])
    initializer = tf1.global_variables_initializer()
    definition = tf1.get_default_graph().as_graph_def()
    for node in definition.node:
      node.attr.pop("Tout", None)
    with tf.Graph().as_default() as graph:
      imported, _ = tf.import_graph_def(
          definition, return_elements=[output.name, initializer.name], name="")
      self.assertEqual(imported.dtype, tf.float32)
      with tf1.Session(graph=graph) as session:
        session.run(graph.get_operation_by_name(initializer.name))
        self.assertEqual((30, 16), session.run(imported).shape)


if __name__ == "__main__":
  absltest.main()
