# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tables on two parameter servers with two workers, as servers in one process.

Data between servers is serialized into messages, as between processes. Workers have two
CPU devices and use the second one, which parameter servers do not have.
"""

import os
import socket
import threading

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
from sparse_operation_kit import experiment as sok
import tensorflow as tf

from tensorflow.python.training import session_manager

import embedding_variable as ev

_NUM_PS = _NUM_WORKERS = 2
_fc = tf.feature_column

_cluster = None
_workers = []
_servers = []


def setUpModule():
  """Starts the servers; they run until the process ends."""
  global _cluster
  sockets = [socket.socket() for _ in range(_NUM_PS + _NUM_WORKERS)]
  for s in sockets:
    s.bind(("localhost", 0))
  tasks = ["localhost:%d" % s.getsockname()[1] for s in sockets]
  _cluster = tf.train.ClusterSpec({"ps": tasks[:_NUM_PS], "worker": tasks[_NUM_PS:]})
  for s in sockets:
    s.close()
  _servers.extend(tf.train.Server(_cluster, "ps", i) for i in range(_NUM_PS))
  _workers.extend(
      tf.train.Server(_cluster, "worker", i,
                      config=tf.ConfigProto(device_count={"CPU": 2}))
      for i in range(_NUM_WORKERS))


def _on_worker(task):
  """Returns the device function of a worker's graph; None for a single process."""
  if task is None:
    return None
  return tf.train.replica_device_setter(
      cluster=_cluster, worker_device="/job:worker/task:%d/cpu:1" % task)


def _target(task):
  return "" if task is None else _workers[task].target


def _sparse(ids):
  """Returns a SparseTensor whose sample b has the single id `ids[b]`."""
  count = tf.size(ids, out_type=tf.int64)
  rows = tf.range(count)
  return tf.SparseTensor(tf.stack([rows, tf.zeros_like(rows)], 1), ids, [count, 1])


def _table(name, dim=2, **kwargs):
  return tf.get_embedding_variable(
      name, dim, initializer=tf.constant_initializer(.5), **kwargs)


def _many_lookups(ids):
  """Looks up tables on all parameter servers by every function; returns the outputs."""
  two = tf.fixed_size_partitioner(2)
  a, b, c = _table("a"), _table("b", 3), _table("c", 2, partitioner=two)
  d = _table("d", 4, ev_option=tf.EmbeddingVariableOption(
      filter_option=tf.CounterFilter(filter_freq=2)))
  sparse = _sparse(ids)
  weights = tf.SparseTensor(
      sparse.indices, tf.cast(ids, tf.float32) + 1, sparse.dense_shape)
  column = _fc.categorical_column_with_embedding("ids", dtype=tf.int64)
  return ev.lookup_sparse(
      [c, b, a, d], [sparse] * 4, [None, weights, None, weights]) + sok.lookup_sparse(
          [d, a, b], [sparse] * 3, combiners=["sum", "mean", "sum"]) + [
              tf.nn.embedding_lookup_sparse(a, sparse, weights, combiner="mean"),
              tf.nn.safe_embedding_lookup_sparse(b, sparse, default_id=3),
              tf.nn.embedding_lookup_sparse(c, sparse, None, combiner="sqrtn"),
              tf.nn.embedding_lookup(a, ids),
              tf.nn.embedding_lookup(c, ids),
              _fc.input_layer({"ids": tf.expand_dims(ids, 1)},
                              [_fc.embedding_column(
                                  column, 2, initializer=tf.constant_initializer(.5))]),
          ]


def _one_lookup(ids):
  """Looks up a table of its own, so that the gradient has the lookup's keys."""
  return ev.lookup_sparse([_table("a"), _table("b", 3), _table("c", 2)],
                          [_sparse(ids)] * 3)


def _in_control_flow(ids):
  """Looks up in a conditional and in a loop."""
  a, b = _table("a"), _table("b", 2)
  chosen = tf.cond(
      tf.size(ids) > 2,
      lambda: tf.nn.embedding_lookup_sparse(a, _sparse(ids), None, combiner="sum"),
      lambda: tf.nn.embedding_lookup_sparse(b, _sparse(ids), None, combiner="sum"))
  _, total = tf.while_loop(
      lambda i, _: i < 3,
      lambda i, x: [i + 1, x + tf.reduce_sum(tf.nn.embedding_lookup_sparse(
          b, _sparse(ids + i), None, combiner="sum"))],
      [tf.constant(0, tf.int64), tf.constant(0.)])
  return [chosen, tf.reshape(total, [1])]


def _sum_of_squares(outputs):
  return tf.add_n([tf.reduce_sum(tf.square(x)) for x in outputs])


def _minus_sum(outputs):
  """Returns a loss whose gradient is -1 for any rows."""
  return -tf.add_n([tf.reduce_sum(x) for x in outputs])


class _Model(object):
  """One worker's graph and session; with task None, those of a single process."""

  def __init__(self, task, scope, lookups, optimizer, loss=_sum_of_squares, clip=False):
    self.graph = tf.Graph()
    with self.graph.as_default(), tf.device(_on_worker(task)), \
        tf.variable_scope(scope):
      self.ids = tf.placeholder(tf.int64, [None])
      self.outputs = lookups(self.ids)
      self.loss = loss(self.outputs)
      made = optimizer()
      pairs = made.compute_gradients(self.loss)
      if clip:
        grads, _ = tf.clip_by_global_norm([g for g, _ in pairs], 1.)
        pairs = [(g, v) for g, (_, v) in zip(grads, pairs)]
      self.train = made.apply_gradients(
          pairs, global_step=tf.train.get_or_create_global_step())
      self.init = tf.global_variables_initializer()
    self.session = tf.Session(_target(task), self.graph,
                              tf.ConfigProto(allow_soft_placement=True))

  def step(self, ids):
    """Trains; returns the lookups' results."""
    return self.session.run([self.outputs, self.train], {self.ids: ids})[0]


def _in_threads(function, arguments):
  """Calls a function concurrently, once with each argument."""
  errors = []

  def call(argument):
    try:
      function(argument)
    except Exception as e:  # pylint: disable=broad-except
      errors.append(e)

  threads = [threading.Thread(target=call, args=[a]) for a in arguments]
  for thread in threads:
    thread.start()
  for thread in threads:
    thread.join()
  if errors:
    raise errors[0]


class ParameterServersTest(parameterized.TestCase):

  def _scope(self):
    """Returns a unique name for this test's variables, which the servers keep."""
    return self._testMethodName

  @parameterized.parameters(
      (_many_lookups, lambda: tf.train.AdamOptimizer(.1)),
      (_many_lookups, lambda: tf.train.ProximalGradientDescentOptimizer(.1)),
      (_many_lookups, lambda: tf.train.AdagradOptimizer(.1), True),
      (_one_lookup, lambda: tf.train.AdagradOptimizer(.1)),
      (_in_control_flow, lambda: tf.train.AdagradOptimizer(.1)))
  def test_trains_as_one_process(self, lookups, optimizer, clip=False):
    args = self._scope(), lookups, optimizer, _sum_of_squares, clip
    models = [_Model(task, *args) for task in (0, 1)]
    alone = _Model(None, *args)
    tables = models[0].graph.get_collection("embedding_variables")
    self.assertLen({v.device for v in tables}, _NUM_PS)
    for model in (models[0], alone):
      model.session.run(model.init)
    for k in range(6):
      ids = [3, k, 7, 3, -k][:2 + 3 * (k % 2)]
      for got, want in zip(models[k % 2].step(ids), alone.step(ids)):
        np.testing.assert_array_equal(got, want)

  @parameterized.parameters((tf.train.GradientDescentOptimizer,),
                            # Updates row by row with its own code.
                            (tf.train.ProximalGradientDescentOptimizer,))
  def test_concurrent_workers(self, optimizer):
    models = [_Model(task, self._scope(), _one_lookup, lambda: optimizer(1.), _minus_sum)
              for task in (0, 1)]
    models[0].session.run(models[0].init)
    ids = list(range(10))
    _in_threads(lambda model: [model.step(ids) for _ in range(25)], models)
    for rows in models[0].session.run(models[0].outputs, {models[0].ids: ids}):
      np.testing.assert_array_equal(rows, np.full(rows.shape, 50.5))

  def test_ops_of_a_new_table_are_where_it_is(self):
    with tf.Graph().as_default(), tf.device(_on_worker(0)):
      variable = _table("v")
      self.assertStartsWith(variable.device, "/job:ps/")
      for op in [variable.initializer] + variable.handle.consumers():
        self.assertEqual(op.device, variable.device, op.name)

  def test_restores_from_checkpoints_of_all_servers(self):
    directory = self.create_tempdir().full_path
    first, second = [_Model(task, self._scope(), _many_lookups,
                            lambda: tf.train.AdagradOptimizer(.1)) for task in (0, 1)]
    first.session.run(first.init)
    first.step([3, -1, 4])
    second.step([1, 3, 5])
    ids = [-1, 1, 2, 3, 4, 5]
    for sharded in (False, True):
      path = os.path.join(directory, "sharded" if sharded else "whole")
      with first.graph.as_default():
        saver = tf.train.Saver(sharded=sharded)
      want = first.session.run(first.outputs, {first.ids: ids})
      saver.save(first.session, path)
      second.step(ids)
      saver.restore(first.session, path)
      got = second.session.run(second.outputs, {second.ids: ids})
      alone = _Model(None, self._scope(), _many_lookups,
                     lambda: tf.train.AdagradOptimizer(.1))
      with alone.graph.as_default():
        tf.train.Saver().restore(alone.session, path)
      one_process = alone.session.run(alone.outputs, {alone.ids: ids})
      for wanted, *others in zip(want, got, one_process):
        for other in others:
          np.testing.assert_array_equal(other, wanted)


class SyncReplicasTest(absltest.TestCase):

  def test_means_over_workers(self):
    # Worker 0's gradients are 1 for each occurrence of a key, worker 1's are 3.
    least = np.iinfo(np.int64).min
    ids = [[7, least, 3, 7], [3, 11, 7, least]]
    rounds, keys = 3, [3, 7, 11, least]
    want = .5 - rounds * np.array([(1 + 3) / 2, (2 + 3) / 2, 3, (1 + 3) / 2])
    directory = self.create_tempdir().full_path
    barrier = threading.Barrier(_NUM_WORKERS, timeout=60)
    found = {}

    def work(task):
      with tf.Graph().as_default(), tf.device(_on_worker(task)):
        step = tf.train.get_or_create_global_step()
        tables = [_table("sync_a"), _table("sync_b"),
                  _table("sync_c", partitioner=tf.fixed_size_partitioner(2))]
        wanted = tf.placeholder_with_default(tf.constant(ids[task], tf.int64), [None])
        outputs = ev.lookup_sparse(tables[::2], [_sparse(wanted)] * 2,
                                   combiners=["sum"] * 2)
        outputs.append(tf.nn.embedding_lookup(tables[1], wanted))
        loss = (1 + 2 * task) * tf.add_n([tf.reduce_sum(x) for x in outputs])
        optimizer = tf.train.SyncReplicasOptimizer(
            tf.train.GradientDescentOptimizer(1.), _NUM_WORKERS)
        train = optimizer.minimize(loss, step)
        chief = task == 0
        with tf.train.MonitoredTrainingSession(
            _target(task), chief, directory if chief else None,
            hooks=[optimizer.make_session_run_hook(chief, num_tokens=0)],
            config=tf.ConfigProto(allow_soft_placement=True),
            stop_grace_period_secs=1) as session:
          for _ in range(rounds):
            session.run(train)
            # Each worker takes one token per round.
            barrier.wait()
          found[task] = session.run([step] + outputs, {wanted: keys})
          barrier.wait()

    # Workers that start before the chief has initialized would retry only after 30 s.
    manager = session_manager.SessionManager
    original = manager.__init__
    with absltest.mock.patch.object(
        manager, "__init__", lambda *args, **kwargs: original(
            *args, **dict(kwargs, recovery_wait_secs=1))):
      _in_threads(work, range(_NUM_WORKERS))
    for task in range(_NUM_WORKERS):
      self.assertEqual(found[task][0], rounds)
      for rows in found[task][1:]:
        np.testing.assert_array_equal(rows, np.stack([want, want], 1))
    saved = tf.train.load_checkpoint(tf.train.latest_checkpoint(directory))
    self.assertCountEqual(
        keys, [k for part in range(2)
               for k in saved.get_tensor("sync_c/part_%d-keys" % part)])


if __name__ == "__main__":
  absltest.main()
