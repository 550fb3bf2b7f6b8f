# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of stages."""

import collections
import time

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from embedding_variable.deeprec import graph_lists
from embedding_variable.deeprec import notices
from embedding_variable.deeprec import stages
from embedding_variable.deeprec import work_queue

_Pair = collections.namedtuple("_Pair", ["a", "b"])


def _numbers(count):
  iterator = tf.data.make_initializable_iterator(tf.data.Dataset.range(count))
  return iterator.get_next(), iterator.initializer


def _all(session, tensor):
  """Runs until the end; returns the values."""
  values = []
  try:
    while True:
      values.append(session.run(tensor))
  except tf.errors.OutOfRangeError:
    return values


def _session(init):
  scaffold = tf.train.Scaffold(local_init_op=init)
  return tf.train.MonitoredSession(tf.train.ChiefSessionCreator(scaffold),
                                   hooks=[stages.make_prefetch_hook()])


class StagesTest(parameterized.TestCase):

  def setUp(self):
    super(StagesTest, self).setUp()
    self.enter_context(tf.Graph().as_default())

  @parameterized.parameters(
      (lambda **kwargs: stages.staged(tf.constant(1), **kwargs), dict(
          num_clients=2, timeout_millis=9, use_stage_subgraph_thread_pool=True,
          stage_subgraph_thread_pool_id=1, stage_subgraph_stream_id=1)),
      (lambda **kwargs: stages.prefetch_join([tf.constant(1)], **kwargs), dict(
          num_clients=2, timeout_millis=9)),
      (lambda **kwargs: work_queue.WorkQueue(["a"], **kwargs), dict(
          num_clients=2, num_slices=3)))
  def test_arguments_without_effect_are_reported_once(self, function, arguments):
    notices._printed.clear()  # pylint: disable=protected-access
    for _ in range(2):
      with absltest.mock.patch.object(notices, "logging") as log:
        function()
        self.assertFalse(log.warning.called)
        function(**arguments)
      lines = [call[0][1] for call in log.warning.call_args_list]
      for name, value in arguments.items():
        self.assertTrue(any("(%s=%r)" % (name, value) in line for line in lines), name)
      # Reported already.
      arguments = {}

  @parameterized.parameters((1, 1), (1, 40), (4, 3))
  def test_delivers_every_batch_then_ends(self, num_threads, capacity):
    number, init = _numbers(50)
    staged = stages.staged(number, num_threads=num_threads, capacity=capacity)
    for _ in range(2):
      # A second session of the graph starts the threads anew.
      with _session(init) as session:
        values = _all(session, staged)
      if num_threads == 1:
        self.assertEqual(values, list(range(50)))
      self.assertCountEqual(values, range(50))

  def test_an_input_that_ends_first_does_not_end_the_others(self):
    few, init_few = _numbers(2)
    many, init_many = _numbers(60)
    staged = stages.prefetch_join([few, many + 100], capacity=1)
    with _session(tf.group(init_few, init_many)) as session:
      values = []
      try:
        while True:
          values.append(session.run(staged))
          time.sleep(.005)  # the stage is full most of the time
      except tf.errors.OutOfRangeError:
        pass
    self.assertCountEqual(values, [0, 1] + list(range(100, 160)))

  def test_a_full_stage_drops_nothing(self):
    number, init = _numbers(20)
    staged = stages.staged(number, timeout_millis=1)
    with _session(init) as session:
      time.sleep(.2)
      self.assertEqual(_all(session, staged), list(range(20)))

  def test_runs_ahead(self):
    number, init = _numbers(20)
    ran = tf.get_variable("ran", initializer=0, use_resource=True)
    with tf.control_dependencies([ran.assign_add(1)]):
      number = tf.identity(number)
    stages.staged(number, capacity=5)
    with _session(tf.group(init)) as session:
      until = time.time() + 30
      while session.run(ran) < 6 and time.time() < until:
        time.sleep(.01)
      time.sleep(.1)
      # Five are in the queue, and one waits for room.
      self.assertEqual(session.run(ran), 6)

  def test_structures(self):
    sparse = tf.SparseTensor([[0, 1]], tf.constant([7.]), [2, 3])
    features = {"s": sparse, "none": None, "pair": _Pair(
        tf.zeros([2, 3], tf.string), [tf.constant(1)])}
    staged = stages.staged(features)
    self.assertEqual(staged["pair"].a.shape.as_list(), [2, 3])
    self.assertEqual(staged["pair"].a.dtype, tf.string)
    self.assertIsNone(staged["none"])
    self.assertIsInstance(staged["pair"], _Pair)
    with _session(tf.no_op()) as session:
      found = session.run(staged["s"])
      np.testing.assert_equal(found.values, [7.])
      self.assertEqual(session.run(staged["pair"].b[0]), 1)

  def test_errors_reach_the_session(self):
    bad = tf.check_numerics(tf.constant(float("nan")), "it is not a number")
    staged = stages.staged(bad)
    with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "it is not a number"):
      with _session(tf.no_op()) as session:
        _all(session, staged)

  @parameterized.parameters((tf.errors.InvalidArgumentError,),
                            (tf.errors.INVALID_ARGUMENT,))
  def test_ignored_errors(self, ignored):
    number, init = _numbers(6)
    checked = tf.check_numerics(1. / tf.cast(number - 2, tf.float32), "")
    staged = stages.staged(checked, ignored_exception_types=[ignored])
    with _session(init) as session:
      np.testing.assert_allclose(_all(session, staged), [-.5, -1, 1, .5, 1 / 3.])

  def test_closed_errors(self):
    number, init = _numbers(6)
    checked = tf.check_numerics(1. / tf.cast(number - 2, tf.float32), "")
    staged = stages.staged(checked, closed_exception_types=[
        tf.errors.INVALID_ARGUMENT, tf.errors.OUT_OF_RANGE])
    with _session(init) as session:
      self.assertEqual(_all(session, staged), [-.5, -1])

  def test_feeds(self):
    number, init = _numbers(3)
    fed = tf.placeholder(tf.int64, [])
    staged = stages.staged(fed * 2, feed_dict={fed: number})
    values = iter([(5,), (6,)])
    other = stages.staged(fed * 2, feed_list=[fed], feed_generator=lambda _: values)
    with _session(init) as session:
      self.assertEqual(_all(session, staged), [0, 2, 4])
      self.assertEqual([session._tf_sess().run(other) for _ in range(2)], [10, 12])  # pylint: disable=protected-access

  def test_a_feed_generator_that_fails_at_first(self):
    fed, calls = tf.placeholder(tf.int64, []), []

    def generator(session):
      calls.append(session)
      if len(calls) == 1:
        raise KeyError("no data yet")
      return iter([(5,), (6,)])

    staged = stages.staged(fed * 2, feed_list=[fed], feed_generator=generator)
    runner, = graph_lists.of(tf.get_default_graph(), graph_lists.STAGES)
    with tf.Session() as session:
      coord = tf.train.Coordinator()
      with self.assertRaisesRegex(KeyError, "no data yet"):
        runner.create_threads(session, coord, start=True)
      runner.create_threads(session, coord, start=True)
      self.assertLen(calls, 2)
      self.assertEqual([session.run(staged) for _ in range(2)], [10, 12])
      coord.request_stop()

  def test_prefetch_join(self):
    a, init_a = _numbers(3)
    b, init_b = _numbers(5)
    joined = stages.prefetch_join([a, b + 100], capacity=2)
    with _session(tf.group(init_a, init_b)) as session:
      self.assertCountEqual(_all(session, joined), [0, 1, 2, 100, 101, 102, 103, 104])

  def test_a_session_without_the_hook_is_an_error(self):
    number, _ = _numbers(3)
    stages.staged(number)
    with self.assertRaisesRegex(ValueError, "make_prefetch_hook"):
      tf.train.MonitoredSession()

  def test_a_hook_without_a_stage_is_an_error(self):
    with self.assertRaisesRegex(tf.errors.NotFoundError, "no stage"):
      tf.train.MonitoredSession(hooks=[stages.make_prefetch_hook()])

  @parameterized.parameters(dict(num_threads=0), dict(capacity=0),
                            dict(feed_list=[1]))
  def test_wrong_arguments(self, **options):
    with self.assertRaises(ValueError):
      stages.staged(tf.constant(1), **options)

  def test_wrong_features(self):
    with self.assertRaisesRegex(ValueError, "no tensor"):
      stages.staged({"a": None})
    with self.assertRaisesRegex(TypeError, "feed_dict"):
      stages.staged(tf.constant(1), feed_dict={"p": 3})


if __name__ == "__main__":
  absltest.main()
