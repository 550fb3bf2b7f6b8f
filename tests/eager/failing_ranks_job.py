# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Trains an eager table over ranks; the last rank misbehaves after a few steps.

  failing_ranks_job.py eager|function|fit wait|raise|extra|other_table [LIMIT]

LIMIT: the exchange timeout in seconds after those steps.
"""

import sys
import time

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

import sparse_operation_kit as sok
from sparse_operation_kit import settings

_STEPS = 5


def main(mode, fault, limit=None):
  hvd.init()
  sok.init()
  wrong = hvd.rank() == hvd.size() - 1
  name = "other" if wrong and fault == "other_table" else "table"

  def after(step):
    if step == _STEPS:
      if limit is not None:
        settings.set_exchange_timeout(float(limit))
      print("trained", flush=True)
      if fault == "raise" and wrong:
        raise ArithmeticError("a bug in this rank's input")
    time.sleep(.05)

  if mode == "fit":
    layer = sok.layers.Embedding(4, combiner="sum", name=name)
    ids = tf.keras.Input([2], dtype="int64")
    model = tf.keras.Model(ids, tf.keras.layers.Dense(1)(layer(ids)))
    model.compile(hvd.DistributedOptimizer(tf.keras.optimizers.SGD(.1)), "mse")
    model.fit(np.zeros([4000, 2], np.int64), np.zeros([4000, 1]), batch_size=4, verbose=0,
              callbacks=[tf.keras.callbacks.LambdaCallback(
                  on_batch_end=lambda step, logs: after(step))])
    return
  table = tf.compat.v1.get_embedding_variable(name, 4)
  optimizer = tf.keras.optimizers.SGD(.1)
  ids = tf.ragged.constant([[1, 2], [hvd.rank()]], dtype=tf.int64)

  def step():
    with tf.GradientTape() as tape:
      loss = tf.reduce_sum(sok.lookup_sparse(table, ids, combiners="sum"))
    optimizer.apply_gradients([(tape.gradient(loss, table), table)])

  if mode == "function":
    step = tf.function(step)
  for number in range(1000):
    step()
    after(number)
    if number == _STEPS and fault == "extra":
      if wrong:
        step()
        print("got more than all others", flush=True)
      time.sleep(1000)


if __name__ == "__main__":
  main(*sys.argv[1:])
