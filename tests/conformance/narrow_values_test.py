# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Embedding variables whose rows keep values of float16 or bfloat16."""

import os

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import sparse_operation_kit as sok
import tensorflow as tf

import embedding_variable as ev
from embedding_variable.checkpoint import incremental
from tensorflow.core.framework.embedding import config_pb2

_DIM = 8
_FLOAT16 = ev.EmbeddingVariableOption(value_dtype=tf.float16)


class _Model(object):
  """Two tables, one of them in three parts, trained by an optimizer with a slot."""

  def __init__(self, option, optimizer=None, restore=None, deltas=False):
    self.graph = tf.Graph()
    with self.graph.as_default():
      step = tf.train.get_or_create_global_step()
      self.tables = [
          tf.get_embedding_variable(
              name, _DIM, ev_option=option, partitioner=partitioner,
              initializer=tf.random_normal_initializer(seed=7))
          for name, partitioner in (("users", None), ("items", tf.fixed_size_partitioner(3)))
      ]
      self.ids = tf.placeholder(tf.int64, [None])
      self.rows = [tf.nn.embedding_lookup(t, self.ids) for t in self.tables]
      pooled = tf.nn.embedding_lookup_sparse(
          self.tables[0], tf.sparse.from_dense(tf.expand_dims(self.ids, 1)), None,
          combiner="mean")
      loss = tf.reduce_sum(tf.square(sum(self.rows) + pooled - 1.))
      optimizer = optimizer or tf.train.AdagradOptimizer(.05)
      self.train = optimizer.minimize(loss, global_step=step)
      self.overflows = tf.add_n([v.overflows() for v in tf.get_collection(
          "embedding_variables")])
      self.stored_rows = self.tables[0].tier_stats()[1]
      saver = (dict(incremental_save_restore=True) if deltas else {})
      self.saver = tf.train.Saver(**saver)
      self.session = tf.Session()
      if restore is None:
        self.session.run(tf.global_variables_initializer())
      else:
        self.saver.restore(self.session, restore)

  def run(self, first, last):
    for step in range(first, last):
      ids = np.random.RandomState(step).randint(-40, 40, [64])
      self.session.run(self.train, {self.ids: ids})
    return self

  def values(self):
    """Returns float32 [2, 100, dim]: all rows of both tables, present or not."""
    return np.array(self.session.run(self.rows, {self.ids: np.arange(-50, 50)}))


def _rounded(values, dtype):
  with tf.Session(graph=tf.Graph()) as session:
    return session.run(tf.cast(tf.cast(values, dtype), tf.float32))


class NarrowValuesTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    self.folder = self.create_tempdir().full_path

  def path(self, name):
    return os.path.join(self.folder, name)

  @parameterized.product(dtype=[tf.float16, tf.bfloat16],
                         rounding=["stochastic", "nearest"])
  def test_trains_and_restores_with_the_same_bits(self, dtype, rounding):
    option = ev.EmbeddingVariableOption(value_dtype=dtype, value_rounding=rounding)
    model = _Model(option).run(0, 4)
    values = model.values()
    self.assertEqual(values.dtype, np.float32)
    np.testing.assert_array_equal(values, _rounded(values, dtype))
    # Another run has the same bits, and so has one that goes on after a restore.
    np.testing.assert_array_equal(values, _Model(option).run(0, 4).values())
    saved = model.saver.save(model.session, self.path("model"))
    expected = model.run(4, 7).values()
    np.testing.assert_array_equal(expected,
                                  _Model(option, restore=saved).run(4, 7).values())
    self.assertEqual(model.session.run(model.overflows), 0)
    # float32 tables train to nearly the same, and differ from both roundings.
    wide = _Model(ev.EmbeddingVariableOption()).run(0, 7).values()
    self.assertFalse(np.array_equal(wide, expected))
    np.testing.assert_allclose(wide, expected, atol=.05)

  def test_rows_on_an_ssd_have_the_bits_of_those_in_memory(self):
    storage = ev.StorageOption(config_pb2.StorageType.DRAM_SSDHASH, self.folder,
                               storage_size=[20 * 4 * _DIM])  # a few of the rows
    option = ev.EmbeddingVariableOption(value_dtype=tf.float16, storage_option=storage)
    model = _Model(option).run(0, 5)
    np.testing.assert_array_equal(_Model(_FLOAT16).run(0, 5).values(), model.values())
    self.assertGreater(model.session.run(model.stored_rows), 0)

  def test_the_roundings_differ(self):
    found = [_Model(ev.EmbeddingVariableOption(value_dtype="bfloat16", value_rounding=how))
             .run(0, 3).values() for how in ("stochastic", "nearest")]
    self.assertFalse(np.array_equal(*found))

  def test_checkpoints_are_float32_and_fit_both_types(self):
    model = _Model(_FLOAT16).run(0, 3)
    saved = model.saver.save(model.session, self.path("narrow"))
    reader = tf.train.load_checkpoint(saved)
    types = reader.get_variable_to_dtype_map()
    self.assertEqual(types["users-values"], tf.float32)
    self.assertEqual(reader.get_tensor("users-rounding")[1], 3)
    self.assertIn("items/part_2-rounding", types)
    wide = _Model(ev.EmbeddingVariableOption(), restore=saved)
    np.testing.assert_array_equal(model.values(), wide.values())
    wide.run(3, 5)
    saved = wide.saver.save(wide.session, self.path("wide"))
    reader = tf.train.load_checkpoint(saved)
    self.assertEmpty([n for n in reader.get_variable_to_dtype_map() if "rounding" in n])
    np.testing.assert_array_equal(_rounded(wide.values(), tf.float16),
                                  _Model(_FLOAT16, restore=saved).values())

  def test_incremental_checkpoints_continue_the_random_bits(self):
    model = _Model(_FLOAT16, deltas=True).run(0, 2)
    model.saver.save(model.session, self.path("m"), global_step=2)
    model.run(2, 4)
    incremental.save_incremental(model.saver, model.session, self.folder, 4)
    expected = model.run(4, 6).values()
    # A restore applies the deltas of its checkpoint.
    other = _Model(_FLOAT16, deltas=True, restore=self.path("m-2"))
    np.testing.assert_array_equal(expected, other.run(4, 6).values())

  def test_row_wise_adagrad_and_stock_optimizers(self):
    for optimizer in (ev.RowWiseAdagradOptimizer(.05),
                      tf.train.ProximalAdagradOptimizer(.05)):  # the generic path
      values = _Model(_FLOAT16, optimizer).run(0, 4).values()
      np.testing.assert_array_equal(values, _rounded(values, tf.float16))
      wide = _Model(ev.EmbeddingVariableOption(), optimizer).run(0, 4).values()
      np.testing.assert_allclose(wide, values, atol=.05)

  def test_a_feature_column_takes_the_option(self):
    column = tf.feature_column.embedding_column(
        tf.feature_column.categorical_column_with_embedding(
            "id", dtype=tf.int64, ev_option=_FLOAT16), 4)
    with tf.Graph().as_default(), tf.Session() as session:
      layer = tf.feature_column.input_layer({"id": tf.constant([[5], [6]], tf.int64)}, [column])
      session.run(tf.global_variables_initializer())
      rows = session.run(layer)
      self.assertEqual(rows.dtype, np.float32)
      np.testing.assert_array_equal(rows, _rounded(rows, tf.float16))

  def test_lookup_sparse(self):
    sok.init()
    ids = np.array([[1, 2, 3], [3, 3, 9]], np.int64)
    with tf.Graph().as_default(), tf.Session() as session:
      table = tf.get_embedding_variable("v", 4, value_dtype=tf.float16,
                                        initializer=tf.random_normal_initializer(seed=1))
      pooled = sok.lookup_sparse(table, tf.sparse.from_dense(ids), combiners="sum")
      train = sok.OptimizerWrapper(tf.train.AdagradOptimizer(.1)).minimize(
          tf.reduce_sum(pooled[0] if isinstance(pooled, list) else pooled))
      session.run(tf.global_variables_initializer())
      session.run(train)
      keys, values, _, _ = session.run(table.export())
      self.assertCountEqual(keys, [1, 2, 3, 9])
      np.testing.assert_array_equal(values, _rounded(values, tf.float16))

  def test_overflows_are_counted_and_drawn(self):
    with tf.Graph().as_default(), tf.Session() as session:
      table = tf.get_embedding_variable("v", 2, value_dtype=tf.float16,
                                        initializer=tf.constant_initializer(65504.))
      loss = tf.reduce_sum(tf.nn.embedding_lookup(table, tf.constant([1, 2], tf.int64)))
      train = tf.train.GradientDescentOptimizer(-65504.).minimize(loss)
      charts = ev.summaries()
      session.run(tf.global_variables_initializer())
      session.run(train)
      self.assertEqual(session.run(table.overflows()), 2)
      found = {v.tag: v.simple_value for chart in session.run(charts)
               for v in tf.Summary.FromString(chart).value}
      self.assertEqual(found["v/overflows"], 2)
      np.testing.assert_array_equal(session.run(table.export()).values, np.inf)

  def test_wrong_options_name_the_variable(self):
    for option, error, message in (
        (dict(value_dtype=tf.int32), ValueError, "expected float32, float16 or bfloat16"),
        (dict(value_dtype="half please"), ValueError, "got 'half please'"),
        (dict(value_dtype=tf.float16, value_rounding="up"), ValueError,
         "expected 'stochastic' or 'nearest', got 'up'")):
      with tf.Graph().as_default():
        with self.assertRaisesRegex(error, "'v'.*" + message):
          tf.get_embedding_variable("v", 3, ev_option=ev.EmbeddingVariableOption(**option))
        tf.get_embedding_variable("v", 3, ev_option=_FLOAT16)
    with tf.Graph().as_default(), self.assertRaisesRegex(
        ValueError, "'v': value_dtype is bfloat16, but that of ev_option is float16"):
      tf.get_embedding_variable("v", 3, value_dtype=tf.bfloat16, ev_option=_FLOAT16)


if __name__ == "__main__":
  absltest.main()
