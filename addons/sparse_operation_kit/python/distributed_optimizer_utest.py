# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Trains dense layers and tables together over ranks, by Horovod's optimizers.

  horovodrun -np 2 -H localhost:2 python distributed_optimizer_utest.py

W ranks, each with its shard of a batch, must train like one process on the whole batch:
both the dense layer, of which every rank has a copy, and the rows, each of which is on
one rank.
"""

from absl.testing import absltest
from absl.testing import parameterized
import horovod.tensorflow as hvd
import horovod.tensorflow.keras as hvd_keras
import numpy as np
import tensorflow as tf

import embedding_variable
from sparse_operation_kit import experiment as sok

_BATCH = 4
_DIM = 3
_ROWS = 11
_STEPS = 4

_train = tf.compat.v1.train

_OPTIMIZERS = {
    "sgd": lambda: _train.GradientDescentOptimizer(.5),
    "adagrad": lambda: _train.AdagradOptimizer(.2),
    "adam": lambda: _train.AdamOptimizer(.05),
    "keras_sgd": lambda: tf.keras.optimizers.SGD(.5, momentum=.9),
    "keras_adagrad": lambda: tf.keras.optimizers.Adagrad(.2),
}

_WRAPPERS = {
    "horovod": hvd.DistributedOptimizer,
    "sok": sok.DistributedOptimizer,
    "sparse_as_dense": lambda o: hvd.DistributedOptimizer(o, sparse_as_dense=True),
    "sum": lambda o: hvd.DistributedOptimizer(o, op=hvd.Sum),
}


def _variable(name, seed=1):
  option = tf.EmbeddingVariableOption(init_option=tf.InitializerOption(
      initializer=lambda shape, dtype: tf.constant(
          np.random.RandomState(seed).normal(0, 1, [_ROWS, _DIM]), tf.float32),
      default_value_dim=_ROWS))
  return tf.get_embedding_variable(name, embedding_dim=_DIM, ev_option=option)


class _Net(object):
  """A table, pooled, and one dense layer."""

  def __init__(self, name, lookup, mean=True, spread=True):
    self.ids = tf.compat.v1.placeholder(tf.int64, [None, 2])
    self.labels = tf.compat.v1.placeholder(tf.float32, [None])
    self.table = _variable(name + "_table")
    if spread:
      batch = tf.shape(self.ids, out_type=tf.int64)[0]
      ids = tf.RaggedTensor.from_row_splits(
          tf.reshape(self.ids, [-1]), 2 * tf.range(batch + 1))
      pooled = lookup([self.table], [ids], combiners=["sum"])[0]
    else:
      pooled = tf.reduce_sum(lookup(self.table, self.ids), axis=1)
    self.dense = tf.compat.v1.get_variable(
        name + "_dense", initializer=tf.constant(
            np.random.RandomState(2).normal(0, 1, [_DIM]), tf.float32),
        use_resource=True)
    logits = tf.linalg.matvec(pooled, self.dense)
    losses = tf.nn.sigmoid_cross_entropy_with_logits(
        labels=self.labels, logits=logits)
    self.loss = tf.reduce_mean(losses) if mean else tf.reduce_sum(losses)

  def train(self, optimizer):
    variables = [self.table, self.dense]
    if isinstance(optimizer, tf.keras.optimizers.Optimizer):
      return tf.group(*optimizer.get_updates(self.loss, variables))
    return optimizer.minimize(self.loss, var_list=variables)


def _one_process(*args, **kwargs):
  return embedding_variable.lookup_sparse(*args, **kwargs)


class DistributedOptimizerTest(parameterized.TestCase):

  def _compare(self, make_optimizer, wrap, mean=True, spread=True):
    rng = np.random.RandomState(3)
    size, rank = hvd.size(), hvd.rank()
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      tf.keras.backend.set_session(session)
      lookup = sok.lookup_sparse if spread else tf.nn.embedding_lookup
      sharded = _Net("sharded", lookup, mean, spread)
      train = sharded.train(wrap(make_optimizer()))
      whole = _Net("whole", _one_process, mean)
      train_whole = whole.train(make_optimizer())
      session.run(tf.compat.v1.global_variables_initializer())
      for _ in range(_STEPS):
        # Repeat keys within a rank's batch, and use every key at least once over all
        # ranks, since TensorFlow's dense Adam also updates rows without a gradient.
        ids = rng.randint(-30, 30, [size * _BATCH, 2])
        labels = rng.randint(0, 2, size * _BATCH)
        mine = slice(rank * _BATCH, (rank + 1) * _BATCH)
        session.run([train, train_whole], {
            sharded.ids: ids[mine], sharded.labels: labels[mine],
            whole.ids: ids, whole.labels: labels})
      dense, expected = session.run([sharded.dense, whole.dense])
      np.testing.assert_allclose(dense, expected, rtol=1e-5, atol=1e-6)
      (keys, rows, _, _), (all_keys, all_rows, _, _) = session.run(
          [sharded.table.export(), whole.table.export()])
      if spread:
        self.assertTrue(np.all(keys % size == rank))
        wanted = all_keys % size == rank
      else:
        wanted = np.ones_like(all_keys, bool)
      np.testing.assert_array_equal(keys, all_keys[wanted])
      np.testing.assert_allclose(rows, all_rows[wanted], rtol=1e-5, atol=1e-6)

  @parameterized.parameters(*[
      (o, w) for o in sorted(_OPTIMIZERS) for w in ("horovod", "sok")])
  def test_ranks_train_as_one_process(self, optimizer, wrapper):
    self._compare(_OPTIMIZERS[optimizer], _WRAPPERS[wrapper])

  def test_sparse_as_dense(self):
    self._compare(_OPTIMIZERS["adagrad"], _WRAPPERS["sparse_as_dense"])

  def test_sum_of_a_sum(self):
    self._compare(_OPTIMIZERS["adagrad"], _WRAPPERS["sum"], mean=False)

  def test_keras_sum_of_a_sum(self):
    self._compare(
        _OPTIMIZERS["keras_sgd"],
        lambda o: hvd_keras.DistributedOptimizer(o, op=hvd.Sum), mean=False)

  @parameterized.parameters("horovod", "sok")
  def test_table_that_every_rank_has_a_copy_of(self, wrapper):
    self._compare(_OPTIMIZERS["adagrad"], _WRAPPERS[wrapper], spread=False)

  def test_by_hand_with_filter_variables(self):
    """Does what SOK scripts do: allreduces dense gradients, divides those of tables."""

    class ByHand(object):

      def minimize(self, loss, var_list):
        optimizer = _train.AdagradOptimizer(.2)
        ours, others = sok.filter_variables(var_list)
        gradients = tf.gradients(loss, ours + others)
        scaled = [
            tf.IndexedSlices(g.values / hvd.size(), g.indices)
            for g in gradients[:len(ours)]
        ]
        averaged = [hvd.allreduce(g, op=hvd.Average) for g in gradients[len(ours):]]
        return optimizer.apply_gradients(zip(scaled + averaged, ours + others))

    self._compare(_OPTIMIZERS["adagrad"], lambda unused: ByHand())

  @parameterized.parameters("function", "hook")
  def test_broadcast_skips_what_is_spread(self, how):
    if how == "hook" and not hasattr(hvd, "BroadcastGlobalVariablesHook"):
      self.skipTest("Horovod has no hook where TensorFlow has no Estimator (2.16 and later)")
    with tf.Graph().as_default():
      spread = _variable("spread", seed=10 + hvd.rank())
      copied = _variable("copied", seed=20 + hvd.rank())
      dense = tf.compat.v1.get_variable(
          "dense", initializer=tf.constant([float(hvd.rank() + 1)]))
      ids = tf.SparseTensor([[0, 0]], tf.constant([1], tf.int64), [1, 1])
      output = sok.lookup_sparse([spread], [ids])[0]
      row = tf.nn.embedding_lookup(copied, [3, 4])
      trained = tf.reduce_sum(row * (1. + hvd.rank()))
      train = _train.AdagradOptimizer(.5).minimize(trained, var_list=[copied])
      fetches = [dense, row, copied.total_count()]
      if how == "hook":
        with tf.compat.v1.train.MonitoredTrainingSession(
            hooks=[hvd.BroadcastGlobalVariablesHook(0)]) as session:
          value, rows, count = session.run(fetches)
          session.run(output)
        expected = np.random.RandomState(20).normal(0, 1, [_ROWS, _DIM])[3:5]
        self.assertEqual(count[0], 0)
      else:
        broadcast = hvd.broadcast_global_variables(0)
        with tf.compat.v1.Session() as session:
          session.run(tf.compat.v1.global_variables_initializer())
          session.run(train)
          before = session.run(row)
          session.run(broadcast)
          value, rows, count = session.run(fetches)
          session.run(output)
          gathered = session.run(hvd.allgather(
              tf.compat.v1.placeholder_with_default(before, [2, _DIM])))
        expected = gathered[:2]
        self.assertEqual(count[0], 2)
      self.assertEqual(value[0], 1.)
      np.testing.assert_allclose(rows, expected, rtol=1e-6)

  def test_gradient_of_a_local_lookup_of_a_spread_table_is_refused(self):
    if hvd.size() == 1:
      self.skipTest("needs several ranks")
    with tf.Graph().as_default():
      table = _variable("mixed")
      ids = tf.SparseTensor([[0, 0]], tf.constant([1], tf.int64), [1, 1])
      output = sok.lookup_sparse([table], [ids])[0]
      loss = tf.reduce_sum(output) + tf.reduce_sum(
          tf.nn.embedding_lookup(table, [1, 2]))
      with self.assertRaisesRegex(ValueError, "mixed.*spread over ranks"):
        tf.gradients(loss, [table])
      loss = tf.reduce_sum(output) + tf.reduce_sum(
          tf.nn.embedding_lookup_sparse(table, ids, None, combiner="sum"))
      with self.assertRaisesRegex(ValueError, "mixed.*spread over ranks"):
        tf.gradients(loss, [table])

  def test_wrong_arguments(self):
    with self.assertRaisesRegex(TypeError, "expected a tf.train or tf.keras"):
      sok.DistributedOptimizer("adagrad")
    with self.assertRaisesRegex(ValueError, "backward_passes_per_step"):
      sok.DistributedOptimizer(_OPTIMIZERS["sgd"](), backward_passes_per_step=2)
    if hvd.size() > 1:
      with self.assertRaisesRegex(ValueError, "Adasum"):
        sok.DistributedOptimizer(_OPTIMIZERS["sgd"](), op=hvd.Adasum)


if __name__ == "__main__":
  hvd.init()
  sok.init()
  # After a failure, a rank that continued would wait for the others.
  absltest.main(failfast=True)
