# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""How many threads TensorFlow has for one op once ranks are connected.

  horovodrun -np 2 -H localhost:2 python threads_utest.py

The first session of a process decides it for all that follow, so this program is one of
its own: no session comes before the one that is looked at.
"""

import os
import threading
import time

from absl.testing import absltest
import horovod.tensorflow as hvd
import tensorflow as tf

from sparse_operation_kit import experiment as sok
from sparse_operation_kit import settings

# More than any other reason to start threads has here.
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
      # It opened a session, to find the other ranks, and took what it was told.
      self.assertGreaterEqual(num_threads() - before, _MANY)
    ids = tf.SparseTensor([[0, 0]], tf.constant([hvd.rank()], tf.int64), [1, 1])
    output = sok.lookup_sparse(tf.get_embedding_variable("t", embedding_dim=2), ids)
    self.assertIn("sok_watch", [thread.name for thread in threading.enumerate()])
    # The thread that watches over waits has time to open a session, if it would.
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
