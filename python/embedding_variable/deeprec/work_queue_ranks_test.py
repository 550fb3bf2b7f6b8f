# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of rank 0's server of work queues, with another rank's client in this process."""

import concurrent.futures
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import tensorflow as tf

from embedding_variable.deeprec import work_queue_ranks

# pylint: disable=protected-access


class _Horovod(object):
  """Rank 0's Horovod. Rank 1 calls the queue as soon as it has the address."""

  def __init__(self, queue, call):
    self._queue, self._call = queue, call
    self._pool = concurrent.futures.ThreadPoolExecutor(1)
    self.answer = None

  def rank(self):
    return 0

  def broadcast_object(self, values, root, session, name):
    del root, session, name
    client = work_queue_ranks._Client(values[0], values[1], 1)
    self.answer = self._pool.submit(client.call, (self._queue, 1), self._call)
    # Rank 0 goes on after rank 1's call has arrived.
    concurrent.futures.wait([self.answer], timeout=.5)
    return values


class RanksStateTest(parameterized.TestCase):

  def setUp(self):
    super(RanksStateTest, self).setUp()
    self.enter_context(tf.Graph().as_default())
    self.enter_context(mock.patch.object(work_queue_ranks, "_server", None))
    self.enter_context(mock.patch.dict(work_queue_ranks._states, clear=True))
    self.enter_context(mock.patch.dict(work_queue_ranks._created, clear=True))

  def _state(self, horovod, works=("w",)):
    """Returns rank 0's queue "q"."""
    self.enter_context(
        mock.patch.object(work_queue_ranks, "_horovod", lambda: horovod))
    return work_queue_ranks.RanksState("q", list(works), 1, False, None, 1)

  def test_a_rank_may_take_before_rank_0_has_the_queue(self):
    horovod = _Horovod("q", "take")
    state = self._state(horovod)
    with tf.Session() as session:
      session.run(state.initialize())
    self.assertEqual(horovod.answer.result(60), "w")

  @parameterized.parameters(("size", 0), ("is_initialized", False), ("finish", None))
  def test_other_calls_do_not_wait_until_the_queue_is_filled(self, call, expected):
    horovod = _Horovod("q", call)
    self._state(horovod)
    self.assertEqual(horovod.answer.result(60), expected)

  def test_queues_of_one_name_in_two_graphs(self):
    horovod = _Horovod("q", "size")
    trained = self._state(horovod, ["a", "b", "c"])
    with tf.Session() as session:
      session.run(trained.initialize())
    with tf.Graph().as_default():
      evaluated = self._state(horovod, ["x"])
      with tf.Session() as session:
        session.run(evaluated.initialize())
    _, client = work_queue_ranks._connect(horovod)
    # Rank 1 has created the same queues.
    with mock.patch.dict(work_queue_ranks._created, clear=True):
      ranks_1 = [work_queue_ranks._new_key("q") for _ in range(2)]
    self.assertEqual([client.call(key, "take") for key in ranks_1], ["a", "x"])
    self.assertEqual([client.call(key, "size") for key in ranks_1], [2, 0])

  def test_a_queue_that_rank_0_does_not_create(self):
    self.enter_context(mock.patch.object(work_queue_ranks, "_WAIT_LIMIT", .1))
    horovod = _Horovod("other", "take")
    self._state(horovod)
    with self.assertRaisesRegex(
        RuntimeError, "work queue 'other': rank 0 did not create the work queue"):
      horovod.answer.result(60)


if __name__ == "__main__":
  absltest.main()
