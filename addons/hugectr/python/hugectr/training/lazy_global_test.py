# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests the steps of update_type LazyGlobal where a float32 number ends."""

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow.compat.v1 as tf

from hugectr.training import lazy_global

_END = 2. ** 24
_BATCHES = ([0, 1], [1], [1, 2], [1], [0], [1, 2], [0], [1], [2], [0, 1])


def _train(optimizer, first):
  """Returns a table after training from a step number, and the last step number."""
  with tf.Graph().as_default(), tf.Session() as session:
    table = tf.get_variable("table", initializer=tf.ones([3, 2]), use_resource=True)
    ids = tf.placeholder(tf.int32, [None])
    train = optimizer.apply_gradients(
        [(tf.IndexedSlices(tf.fill([tf.size(ids), 2], .5), ids), table)])
    session.run(tf.global_variables_initializer())
    optimizer.step_variable().load(first, session)
    optimizer.get_slot(table, "time").load(np.full([3, 2], first, np.float32), session)
    for batch in _BATCHES:
      session.run(train, {ids: batch})
    return session.run([table, optimizer.step_variable()])


class LazyGlobalTest(parameterized.TestCase):

  @parameterized.parameters(
      lambda: lazy_global.LazyMomentum(.1, .9, False, "a"),
      lambda: lazy_global.LazyMomentum(.1, .9, True, "a"),
      lambda: lazy_global.LazyAdam(.1, .9, .999, 1e-7, "a"))
  def test_steps_are_right_beyond_the_last_number(self, make):
    expected, step = _train(make(), _END / 2 + 100)
    self.assertEqual(step, _END / 2 + 100 + len(_BATCHES))
    for before in (0, 1, 4, 9):
      rows, step = _train(make(), _END - before)
      np.testing.assert_array_equal(rows, expected, str(before))
      self.assertLess(step, _END)

  def test_frozen_rows_miss_no_step(self):
    times = np.float32([0, _END / 2, _END - 4, _END - 1])
    np.testing.assert_array_equal(
        lazy_global.later(times, 100., 103.), [3, _END / 2 + 3, _END - 1, _END / 2 + 2])
    np.testing.assert_array_equal(
        lazy_global.later(times[2:], _END - 1, _END / 2 + 1),
        [_END - 2, _END / 2 + 1])


if __name__ == "__main__":
  absltest.main()
