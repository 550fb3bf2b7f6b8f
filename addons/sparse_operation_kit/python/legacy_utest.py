# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests the interface of SOK before 2.0, and the filter of rare keys, over ranks.

  horovodrun -np 2 -H localhost:2 python legacy_utest.py
"""

import os
import shutil
import tempfile

from absl.testing import absltest
from absl.testing import parameterized
import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

from sparse_operation_kit import experiment as sok
from sparse_operation_kit.exchange import collectives

_SLOTS = 3


def _samples(rank):
  rng = np.random.RandomState(rank)
  return [list(rng.randint(0, 20, rng.randint(0, 4))) for _ in range((2 + rank) * _SLOTS)]


def _sparse(samples):
  indices = [[b, i] for b, ids in enumerate(samples) for i in range(len(ids))]
  return tf.SparseTensor(np.array(indices, np.int64),
                         np.array([k for s in samples for k in s], np.int64),
                         [len(samples), 4])


class LegacyTest(parameterized.TestCase):

  @parameterized.product(combiner=["sum", "mean"], use_hashtable=[True, False])
  def test_distributed_embedding(self, combiner, use_hashtable):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      session.run(sok.Init(global_batch_size=64))
      layer = sok.DistributedEmbedding(
          combiner, max_vocabulary_size_per_gpu=20, embedding_vec_size=4,
          slot_num=_SLOTS, max_nnz=3, use_hashtable=use_hashtable,
          embedding_initializer="ones")
      dense = tf.compat.v1.get_variable("dense", initializer=np.ones([20, 4], np.float32))
      mine = layer(_sparse(_samples(hvd.rank())))
      whole = tf.reshape(tf.nn.safe_embedding_lookup_sparse(
          dense, _sparse([s for r in range(hvd.size()) for s in _samples(r)]),
          combiner=combiner), [-1, _SLOTS, 4])
      optimizer = tf.compat.v1.train.AdagradOptimizer(.1)
      ours, others = sok.split_embedding_variable_from_others(
          tf.compat.v1.trainable_variables())
      self.assertLen(ours, 1)
      train = [optimizer.minimize(tf.reduce_sum(mine ** 2), var_list=ours),
               optimizer.minimize(tf.reduce_sum(whole ** 2), var_list=others)]
      session.run(tf.compat.v1.global_variables_initializer())
      for _ in range(3):
        session.run(train)
      keys, values = session.run(sok.export(layer.embedding_variable))
      expected = session.run(dense)
      np.testing.assert_array_equal(keys % hvd.size(), np.full(len(keys), hvd.rank()))
      seen = keys < 20
      np.testing.assert_allclose(values[seen], expected[keys[seen]], rtol=1e-5)
      begin = sum(2 + r for r in range(hvd.rank()))
      found, reference = session.run([mine, whole])
      np.testing.assert_allclose(
          found, reference[begin:begin + len(found)], rtol=1e-5)

  def test_all2all_dense_embedding_and_saver(self):
    folder = tempfile.mkdtemp() if hvd.rank() == 0 else ""
    folder = collectives.channel("test").gather_text(folder)[0]
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      layers = [sok.All2AllDenseEmbedding(50, 4, 2, 2, embedding_initializer="zeros")
                for _ in range(3)]
      ids = tf.constant(np.arange(8).reshape(2, 2, 2) + hvd.rank())
      outputs = [layer(ids) for layer in layers]
      table = np.random.RandomState(1).normal(size=[30, 4]).astype(np.float32)
      saver = sok.Saver()
      variables = [layer.embedding_variable for layer in layers]
      load = [saver.load_embedding_values(v, [table[:7], table[7:]]) for v in variables]
      # All in one run: the order in which they end differs between ranks.
      dump = [saver.dump_to_file(v, folder) for v in variables]
      restore = [saver.restore_from_file(v, folder) for v in variables]
      session.run(tf.compat.v1.global_variables_initializer())
      session.run(load)
      collectives.channel("test").gather_text("loaded")
      for output in session.run(outputs):
        np.testing.assert_array_equal(
            output, table[np.arange(8).reshape(2, 2, 2) + hvd.rank()])
      session.run(dump)
      name = variables[0].m_var_name
      keys = np.fromfile(os.path.join(folder, name + "_keys.file"), np.int64)
      np.testing.assert_array_equal(np.sort(keys), np.arange(30))
      session.run([v.initializer for v in variables])
      session.run(restore)
      for v in variables:
        found, values = session.run(sok.export(v))
        np.testing.assert_array_equal(found, np.arange(hvd.rank(), 30, hvd.size()))
        np.testing.assert_array_equal(values, table[found])
    collectives.channel("test").gather_text("done")
    if hvd.rank() == 0:
      shutil.rmtree(folder)


class LowFrequencyTest(absltest.TestCase):

  def test_owners_draw_for_all_ranks(self):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      tf.compat.v1.set_random_seed(5 + hvd.rank())
      variables = [sok.DynamicVariable(2, "2", filter_ratio=.5),
                   sok.DynamicVariable(3, "3", filter_ratio=.5, mode="localized:0")]
      # The same ids on all ranks, but fewer on some of them.
      count = 100 - 10 * hvd.rank()
      splits = tf.range(count + 1, dtype=tf.int64)
      ids = tf.RaggedTensor.from_row_splits(tf.range(count, dtype=tf.int64), splits)
      outputs = sok.lookup_sparse(variables, [ids] * 2, combiners=["sum", "mean"],
                                  use_low_frequency_filter=True)
      train = sok.SGD(1.).minimize(tf.add_n([tf.reduce_sum(o) for o in outputs]))
      session.run(tf.compat.v1.global_variables_initializer())
      found, _ = session.run([outputs, train])
      for output, var, start in zip(found, variables, (2., 3.)):
        self.assertTrue(np.all((output == 0) | (output == start)))
        shown = (output[:, 0] == start).astype(np.int64)
        self.assertBetween(shown.mean(), .2, .8)
        everyone = collectives.channel("test").gather(shown)
        for other in everyone:
          both = min(len(other), len(shown))
          np.testing.assert_array_equal(other[:both], shown[:both])
        # Admitted keys were trained once for each rank that looked them up.
        keys, values = session.run(sok.export(var))
        all_keys = np.concatenate(collectives.channel("test").gather(keys))
        np.testing.assert_array_equal(np.sort(all_keys), np.flatnonzero(everyone[0]))
        for key, row in zip(keys, values):
          asked = sum(key < len(other) for other in everyone)
          np.testing.assert_array_equal(row, [start - asked] * len(row))


if __name__ == "__main__":
  hvd.init()
  sok.init()
  # After a failure, a rank that continued would wait for the others.
  absltest.main(failfast=True)
