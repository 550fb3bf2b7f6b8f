# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the default rows of eager tables, in one process that counts as several."""

import random
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from embedding_variable.checkpoint import job
from embedding_variable.ops import checkpoint_ops
import sparse_operation_kit as sok

_KEYS = tf.range(8, dtype=tf.int64)


class _TwoRanks(job.Job):

  def size(self):
    return 2


def _two_ranks():
  return mock.patch.object(job, "current", return_value=_TwoRanks())


def _drawn(rank, make, name="t"):
  """Returns the default rows that a rank draws; a rank has its own random state."""
  random.seed(rank)
  tf.random.uniform([rank])
  table = make(name)
  return checkpoint_ops.default_rows(table.handle).numpy()


def _table_of(initializer):
  return lambda name: tf.compat.v1.get_embedding_variable(name, 4, initializer=initializer())


_MAKERS = {
    "none given": _table_of(lambda: None),
    "tf.compat.v1": _table_of(lambda: tf.compat.v1.glorot_uniform_initializer()),
    "tf": _table_of(tf.random_uniform_initializer),
    "keras": _table_of(tf.keras.initializers.RandomNormal),
    "keras, a class": _table_of(lambda: tf.keras.initializers.HeNormal),
    "keras, by name": _table_of(lambda: tf.keras.initializers.get("uniform")),
    "a function": _table_of(lambda: lambda shape, dtype: tf.random.uniform(shape, dtype=dtype)),
    "sok": lambda name: sok.DynamicVariable(dimension=4, initializer="random", name=name),
    "sok, keras": lambda name: sok.DynamicVariable(
        dimension=4, initializer=tf.keras.initializers.TruncatedNormal(), name=name),
}


class DefaultRowsTest(parameterized.TestCase):

  def setUp(self):
    super(DefaultRowsTest, self).setUp()
    tf.random.set_seed(None)

  @parameterized.parameters(sorted(_MAKERS))
  def test_ranks_draw_the_same(self, kind):
    make = _MAKERS[kind]
    with _two_ranks():
      first, second = _drawn(1, make), _drawn(2, make)
      other = _drawn(1, make, "other")
    np.testing.assert_array_equal(first, second)
    self.assertGreater(len(np.unique(first)), 1000)
    self.assertGreater(np.abs(first - other).max(), 1e-3)
    # One process draws anew.
    self.assertGreater(np.abs(_drawn(1, make) - first).max(), 1e-3)

  @parameterized.parameters("none given", "tf", "keras", "sok, keras")
  def test_seeds_of_tensorflow_give_the_same_rows(self, kind):
    found = []
    for seed, rank in ((1, 1), (1, 2), (2, 1)):
      tf.random.set_seed(seed)
      random.seed(rank)
      with _two_ranks():
        table = _MAKERS[kind]("t")
      found.append(checkpoint_ops.default_rows(table.handle).numpy())
    np.testing.assert_array_equal(found[0], found[1])
    self.assertGreater(np.abs(found[0] - found[2]).max(), 1e-3)

  def test_the_rows_of_a_graph(self):
    with _two_ranks():
      eager = _drawn(1, _MAKERS["tf.compat.v1"])
      with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        table = _MAKERS["tf.compat.v1"]("t")
        session.run(tf.compat.v1.global_variables_initializer())
        graph = session.run(checkpoint_ops.default_rows(table.handle))
    np.testing.assert_array_equal(eager, graph)

  def test_keras_in_a_graph(self):
    found = []
    for rank in (1, 2):
      with _two_ranks(), tf.Graph().as_default(), tf.compat.v1.Session() as session:
        random.seed(rank)
        table = _MAKERS["keras"]("t")
        session.run(tf.compat.v1.global_variables_initializer())
        found.append(session.run(checkpoint_ops.default_rows(table.handle)))
    np.testing.assert_array_equal(*found)

  def test_an_initializer_with_a_seed_keeps_it(self):
    for kind in (tf.keras.initializers.RandomNormal, tf.random_normal_initializer):
      make = _table_of(lambda kind=kind: kind(seed=3))
      with _two_ranks():
        several = _drawn(1, make)
      np.testing.assert_array_equal(_drawn(2, make), several)

  def test_an_initializer_that_is_no_function_of_tensorflow(self):
    make = _table_of(lambda: lambda shape, dtype: tf.random.uniform(shape).numpy())
    with _two_ranks():
      with self.assertRaisesRegex(ValueError, "'t'.*several ranks.*tf.function"):
        make("t")
      _MAKERS["a function"]("t")
    make("t")

  def test_arrays_and_tensors(self):
    row = np.arange(4, dtype=np.float32)
    for given in (row, tf.constant(row), tf.Variable(row)):
      with _two_ranks():
        table = tf.compat.v1.get_embedding_variable("t", 4, initializer=given)
      np.testing.assert_array_equal([row], tf.nn.embedding_lookup(table, _KEYS[:1]).numpy())


if __name__ == "__main__":
  absltest.main()
