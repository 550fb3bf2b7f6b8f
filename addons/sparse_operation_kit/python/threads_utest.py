# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests how many threads TensorFlow has for one op once ranks are connected.

  horovodrun -np 2 -H localhost:2 python threads_utest.py

The first session of a process sets the number for all later ones. So this program has
one case, and opens no session before the one under test.
"""

import os
import threading
import time

from absl.testing import absltest
import horovod.tensorflow as hvd
import tensorflow as tf

from sparse_operation_kit import experiment as sok
from sparse_operation_kit import settings

# More threads than are started here for any other reason.
_MANY = 61


def num_threads():
  return len(os.listdir("/proc/self/task"))


class ThreadsUtest(absltest.TestCase):

  def test_the_first_session_decides_as_it_does_without_us(self):
    if hvd.size() == 1:
      self.skipTest("needs several ranks")
    before = num_threads()
    sok.init(intra_op_parallelism_threads=_MANY)
    own = settings.exchange_carrier() != "horovod"
    if own:
      # sok.init opened a session to connect the ranks, with the given number of
      # threads.
      self.assertGreaterEqual(num_threads() - before, _MANY)
    ids = tf.SparseTensor([[0, 0]], tf.constant([hvd.rank()], tf.int64), [1, 1])
    output = sok.lookup_sparse(tf.get_embedding_variable("t", embedding_dim=2), ids)
    self.assertIn("sok_watch", [thread.name for thread in threading.enumerate()])
    # Wait: the thread of watch.py could open a session in this time.
    time.sleep(3.)
    before = num_threads()
    config = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=_MANY)
    with tf.compat.v1.Session(config=config) as session:
      made = num_threads() - before
      if own:
        self.assertLess(made, _MANY)
      else:
        self.assertGreaterEqual(made, _MANY)
      session.run(tf.compat.v1.global_variables_initializer())
      self.assertEqual(session.run(output).shape, (1, 2))


if __name__ == "__main__":
  hvd.init()
  absltest.main()
