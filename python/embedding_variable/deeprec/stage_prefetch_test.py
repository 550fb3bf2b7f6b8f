# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that stages prefetch rows of tables with two kinds of memory."""

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

import embedding_variable  # pylint: disable=unused-import
from embedding_variable.deeprec import stages
from embedding_variable.lookup import embedding_lookup
from embedding_variable.variables import config_pb2

_BATCH = 32
_BATCHES = 16
_DIM = 4
# Bytes of a row with an Adagrad slot, in memory.
_ROW = 20 + 2 * 4 * _DIM


def _prefetches(graph):
  return [op for op in graph.get_operations() if op.type == "EvPrefetch"]


class StagePrefetchTest(parameterized.TestCase):

  def _table(self, name="t", storage=config_pb2.StorageType.DRAM_SSDHASH, batches=4):
    option = tf.StorageOption(
        storage_type=storage, storage_path=self.create_tempdir().full_path,
        storage_size=[batches * _BATCH * _ROW],
        cache_strategy=config_pb2.CacheStrategy.LRU)
    return tf.get_embedding_variable(
        name, _DIM, initializer=tf.constant_initializer(.5),
        ev_option=tf.EmbeddingVariableOption(storage_option=option))

  def _train(self, prefetch_rows, lookup, make_ids):
    """Trains on every key twice.

    Returns:
      (rows in the order of their keys, the number of rows that were in the file when a
      step of the second half looked them up, the graph).
    """
    keys = np.random.RandomState(1).permutation(_BATCH * _BATCHES).astype(np.int64)
    with tf.Graph().as_default() as graph:
      data = tf.data.Dataset.from_tensor_slices(keys.reshape(_BATCHES, _BATCH)).repeat(2)
      iterator = tf.data.make_initializable_iterator(data)
      ids = make_ids(stages.staged(iterator.get_next(), capacity=1))
      # Rows leave memory by 64, the oldest first. With room for four batches these may
      # include a batch that is staged.
      table = self._table(batches=8 if prefetch_rows else 4)
      tiers = embedding_lookup.lookup_tier(table, ids)
      with tf.control_dependencies([tiers]):
        rows = lookup(table, tf.identity(ids))
      train = tf.train.AdagradOptimizer(.1).minimize(tf.reduce_sum(rows * rows))
      exported = table.export()[:2]
      scaffold = tf.train.Scaffold(local_init_op=tf.group(
          iterator.initializer, tf.tables_initializer()))
      with tf.train.MonitoredSession(
          tf.train.ChiefSessionCreator(scaffold),
          hooks=[stages.make_prefetch_hook(prefetch_rows=prefetch_rows)]) as session:
        found = np.stack([session.run([tiers, train])[0] for _ in range(2 * _BATCHES)])
        keys, values = session.run_step_fn(
            lambda step_context: step_context.session.run(exported))
    return values[np.argsort(keys)], np.sum(found[_BATCHES:] == 1), graph

  @parameterized.parameters("gather", "sparse", "strings")
  def test_rows_are_in_memory_when_a_step_needs_them(self, kind):
    def gather(table, ids):
      return tf.nn.embedding_lookup(table, ids)

    def sparse(table, ids):
      count = tf.cast(tf.size(ids), tf.int64)
      positions = tf.stack([tf.range(count), tf.zeros_like(ids)], 1)
      return tf.nn.embedding_lookup_sparse(
          table, tf.SparseTensor(positions, ids, [count, 1]), None, combiner="sum")

    def strings(ids):
      # A table of constants is shared by both ends of the queue.
      names = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(
          tf.constant(["0", "1"]), tf.constant([1000, 1001], tf.int64)), -1)
      text = tf.as_string(ids)
      known = names.lookup(text)
      return tf.where(known >= 0, known, tf.string_to_hash_bucket_strong(
          text, 2**40, [3, 4]))

    lookup = sparse if kind == "sparse" else gather
    make_ids = strings if kind == "strings" else lambda i: i
    rows, cold, graph = self._train(True, lookup, make_ids)
    expected, stock_cold, stock_graph = self._train(False, lookup, make_ids)
    self.assertLen(_prefetches(graph), 1)
    self.assertEmpty(_prefetches(stock_graph))
    np.testing.assert_array_equal(rows, expected)
    self.assertEqual(stock_cold, _BATCH * _BATCHES)
    self.assertEqual(cold, 0)

  def test_only_lookups_that_depend_on_the_stage_alone(self):
    dram = config_pb2.StorageType.DRAM
    with tf.Graph().as_default() as graph:
      number = tf.data.make_one_shot_iterator(
          tf.data.Dataset.range(8).batch(2)).get_next()
      staged = stages.staged(number)
      table, other = self._table("a"), self._table("b", dram)
      offset = tf.get_variable("offset", initializer=tf.constant(1, tf.int64))
      looked_up = [
          tf.nn.embedding_lookup(table, ids) for ids in (
              staged + offset, staged + tf.placeholder_with_default(
                  tf.constant(1, tf.int64), []), tf.constant([1, 2], tf.int64),
              staged + tf.random_uniform([], 0, 4, tf.int64))]
      looked_up.append(tf.nn.embedding_lookup(other, staged))
      with tf.train.MonitoredSession(hooks=[stages.make_prefetch_hook()]) as session:
        session.run(looked_up)
      self.assertEmpty(_prefetches(graph))

  def test_a_second_session_of_the_graph(self):
    with tf.Graph().as_default() as graph:
      iterator = tf.data.make_initializable_iterator(tf.data.Dataset.range(8).batch(2))
      staged = stages.prefetch_join([iterator.get_next(), iterator.get_next() + 8])
      rows = tf.nn.embedding_lookup(self._table(), staged)
      scaffold = tf.train.Scaffold(local_init_op=iterator.initializer)
      for _ in range(2):
        with tf.train.MonitoredSession(
            tf.train.ChiefSessionCreator(scaffold),
            hooks=[stages.make_prefetch_hook()]) as session:
          for _ in range(4):
            np.testing.assert_array_equal(session.run(rows), np.full([2, _DIM], .5))
        # One for each thread.
        self.assertLen(_prefetches(graph), 2)


if __name__ == "__main__":
  absltest.main()
