# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests the exchanges of lookups between ranks: sok.init(exchange=...).

  horovodrun -np 2 -H localhost:2 python exchange_utest.py
"""

import os
import threading

from absl.testing import absltest
import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

from embedding_variable.variables import variable as embedding_variable
from sparse_operation_kit import experiment as sok


def ids_of(*keys):
  return tf.SparseTensor([[i, 0] for i in range(len(keys))],
                         tf.constant(keys, tf.int64), [len(keys), 1])


def types_of(graph):
  return {op.type for op in graph.get_operations()}


class _Keras(object):
  """A Keras optimizer with the minimize method of tf.train."""

  def __init__(self, optimizer):
    self._optimizer = optimizer

  def minimize(self, loss):
    tables = embedding_variable.all_in_graph()
    return self._optimizer.apply_gradients(zip(tf.gradients(loss, tables), tables))


class ExchangeUtest(absltest.TestCase):

  def setUp(self):
    super(ExchangeUtest, self).setUp()
    if hvd.size() == 1:
      self.skipTest("needs several ranks")

  # Runs first: a process keeps its carrier for life.
  def test_1_what_a_rank_cannot_have_is_an_error_on_all(self):
    if os.path.exists("/dev/nvidiactl"):
      self.skipTest("this machine has a GPU")
    with self.assertRaisesRegex(
        RuntimeError, "exchange='nccl': rank 0: an exchange by NCCL needs .*rank %d: " %
        (hvd.size() - 1)):
      sok.init(exchange="nccl")
    with tf.Graph().as_default() as graph:
      sok.lookup_sparse(tf.get_embedding_variable("t", embedding_dim=1), ids_of(1))
      self.assertIn("HorovodAlltoall", types_of(graph))

  def test_1_all_ranks_ask_for_the_same(self):
    with self.assertRaisesRegex(ValueError, "exchange: expected the same on all ranks"):
      sok.init(exchange="memory" if hvd.rank() == 0 else "auto")
    with self.assertRaisesRegex(ValueError, "expected one of .*'memory'.*, got 'pigeon'"):
      sok.init(exchange="pigeon")

  def _check_difference(self, words, combiner="sum", ids_type=tf.int64,
                        key_dtype=tf.int64,
                        optimizer=tf.train.GradientDescentOptimizer, lookups=1):
    """Rank 0 looks up and trains by the arguments, the other ranks by the defaults."""
    if hvd.rank() != 0:
      combiner, ids_type, key_dtype = "sum", tf.int64, tf.int64
      optimizer = tf.train.GradientDescentOptimizer
    with tf.Graph().as_default():
      table = tf.get_embedding_variable("users", embedding_dim=1, key_dtype=key_dtype)
      ids = tf.SparseTensor([[0, 0]], tf.constant([1], ids_type), [1, 1])
      # The optimizer is recorded in existing lookups; the second lookup is not trained.
      out = sok.lookup_sparse(table, ids, combiners=combiner)
      train = optimizer(.1).minimize(tf.reduce_sum(out))
      evaluated = sok.lookup_sparse(table, ids, combiners=combiner)
      with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        if words is None:
          session.run(train)
          session.run(evaluated)
          return
        mine, other = words if hvd.rank() == 0 else words[::-1]
        with self.assertRaisesRegex(
            tf.errors.InvalidArgumentError,
            "rank %s .*'users' .*%s, and this rank .*'users' .*%s" %
            ("[12]" if hvd.rank() == 0 else "0", other, mine)):
          session.run(train)

  def _check_differences(self):
    if hvd.size() > 2:
      return  # A rank that fails late would run into the names of the next case.
    self._check_difference(None)
    self._check_difference(("combiner 'mean'", "combiner 'sum'"), combiner="mean")
    self._check_difference(("ids of type int32", "ids of type int64"), ids_type=tf.int32)
    self._check_difference(("keys of type int32", "keys of type int64"),
                           key_dtype=tf.int32)
    self._check_difference(
        ("by AdagradOptimizer/Adagrad", "by GradientDescentOptimizer/SGD"),
        optimizer=tf.train.AdagradOptimizer)
    self._check_difference(
        ("by SGD/SGD", "by GradientDescentOptimizer/SGD"),
        optimizer=lambda rate: _Keras(tf.keras.optimizers.SGD(rate)))

  def test_1_what_differs_is_named(self):
    self._check_differences()

  def test_3_what_differs_is_named(self):
    sok.init(exchange="memory")
    self._check_differences()

  def test_2_lookups_go_by_it(self):
    sok.init(exchange="memory")
    sok.init(exchange="auto")
    with tf.Graph().as_default() as graph:
      table = tf.get_embedding_variable(
          "t", embedding_dim=2, initializer=tf.ones_initializer())
      out = sok.lookup_sparse(table, ids_of(hvd.rank(), 7))
      train = tf.train.GradientDescentOptimizer(1.).minimize(tf.reduce_sum(out))
      self.assertIn("SokCarry", types_of(graph))
      self.assertNotIn("HorovodAlltoall", types_of(graph))
      with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train)
        # Key 7 was in every rank's batch, the other key in this rank's only.
        np.testing.assert_array_equal(
            session.run(out), [[0, 0], [1 - hvd.size(), 1 - hvd.size()]])

  def test_3_refuses_another_exchange(self):
    for other in ("nccl", "horovod"):
      with self.assertRaisesRegex(RuntimeError,
                                  "='%s', but this process already uses 'memory'" % other):
        sok.init(exchange=other)

  def test_3_lookups_in_another_order_on_each_rank(self):
    sok.init(exchange="memory")
    lookups, steps = 4, 30
    with tf.Graph().as_default():
      table = tf.get_embedding_variable(
          "t", embedding_dim=1, initializer=tf.zeros_initializer())
      outs = [sok.lookup_sparse(table, ids_of(*range(i, i + 50)))
              for i in range(lookups)]
      totals = [tf.reduce_sum(out) for out in outs]
      optimizer = tf.train.GradientDescentOptimizer(1.)
      trains = [optimizer.minimize(-total) for total in totals]
      failures = []

      def run(session, i):
        try:
          for _ in range(steps):
            session.run(trains[i])
        except tf.errors.OpError as e:
          failures.append(e)

      with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        threads = [threading.Thread(target=run, args=(session, i))
                   for i in range(lookups)]
        for thread in threads if hvd.rank() == 0 else reversed(threads):
          thread.start()
        for thread in threads:
          thread.join()
        self.assertEmpty(failures)
        # All ranks are done when all have joined this sum.
        session.run(hvd.allreduce(tf.constant(0.), name="done"))
        np.testing.assert_array_equal(
            session.run(sok.lookup_sparse(table, ids_of(0, 1, 49, 51, 52)))[:, 0],
            np.array([1, 2, 4, 2, 1]) * steps * hvd.size())


if __name__ == "__main__":
  hvd.init()
  sok.init(exchange="horovod")
  # After a failure, a rank that continued would wait for the others.
  absltest.main(failfast=True)
