# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Trains with lookups; the last rank misbehaves after a few steps.

  failing_job.py none|raise|extra|extra_and_wait|other_lookup|other_dtype|other_carrier|
                 wait [LIMIT]

LIMIT: the exchange timeout in seconds after those steps. At the start ranks may be
further apart.
"""

import os
import sys
import time

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

from sparse_operation_kit import experiment as sok
from sparse_operation_kit import settings

_STEPS = 5


def main(mode, limit=None):
  hvd.init()
  wrong = hvd.rank() == hvd.size() - 1
  if wrong and mode == "other_carrier":
    del os.environ["SOK_EXCHANGE"]
  sok.init(exchange_dtype=tf.bfloat16 if wrong and mode == "other_dtype" else None)
  names = ["a", "b"]
  if wrong and mode == "other_lookup":
    names = ["b", "a"]
  tables = {n: tf.get_embedding_variable(n, embedding_dim=4) for n in sorted(names)}
  ids = tf.SparseTensor([[0, 0], [0, 1]], np.array([1, 2]), [1, 2])
  outputs = sok.lookup_sparse([tables[n] for n in names], [ids, ids])
  train = tf.compat.v1.train.AdagradOptimizer(.1).minimize(
      tf.add_n([tf.reduce_sum(o) for o in outputs]))
  with tf.compat.v1.Session() as session:
    session.run(tf.compat.v1.global_variables_initializer())
    for step in range(1000):
      session.run(train)
      if step == _STEPS:
        if limit is not None:
          settings.set_exchange_timeout(limit)
        print("trained", flush=True)
        if mode == "none":
          break
        if mode == "raise" and wrong:
          raise ArithmeticError("a bug in this rank's input")
        if mode.startswith("extra"):
          if wrong:
            session.run(outputs)
            print("got more than all others", flush=True)
          elif mode == "extra_and_wait":
            time.sleep(1000)
          break
      time.sleep(.05)
  print("ended", flush=True)


if __name__ == "__main__":
  main(*sys.argv[1:])
