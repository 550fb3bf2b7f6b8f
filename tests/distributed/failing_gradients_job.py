# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Trains dense layers on GPUs; the last rank misbehaves.

  failing_gradients_job.py wait|less|raise|other_shape [LIMIT]

LIMIT: the exchange timeout in seconds, set after some steps.
"""

import sys
import time

import horovod.tensorflow as hvd
import tensorflow as tf

from sparse_operation_kit import experiment as sok
from sparse_operation_kit import settings

_STEPS = 5


def main(mode, limit=None):
  hvd.init()
  wrong = hvd.rank() == hvd.size() - 1
  sok.init()
  shape = [4, 3 if wrong and mode == "other_shape" else 2]
  with tf.device("/gpu:0"):
    layer = tf.compat.v1.get_variable("layer", shape, use_resource=True)
  train = sok.DistributedOptimizer(
      tf.compat.v1.train.GradientDescentOptimizer(.1)).minimize(
          tf.reduce_sum(tf.square(layer)), var_list=[layer])
  with tf.compat.v1.Session(
      config=tf.compat.v1.ConfigProto(allow_soft_placement=True)) as session:
    session.run(tf.compat.v1.global_variables_initializer())
    for step in range(1000):
      session.run(train)
      if step == _STEPS:
        if limit is not None:
          settings.set_exchange_timeout(float(limit))
        print("trained", flush=True)
        if wrong and mode == "less":
          time.sleep(1000)
        if wrong and mode == "raise":
          raise ArithmeticError("a bug in this rank's input")
      time.sleep(.05)


if __name__ == "__main__":
  main(*sys.argv[1:])
