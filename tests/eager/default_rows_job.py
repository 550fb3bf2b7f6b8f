# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Saves tables of random default rows, or checks that ids without a row read the same.

  default_rows_job.py save|check FOLDER
"""

import os
import random
import sys

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

import sparse_operation_kit as sok

# Ids with a row, and ids of all owners without one.
_TRAINED = [3, 4, 5]
_ABSENT = list(range(1000, 1012))


def _look_up(tables, ids):
  ids = tf.RaggedTensor.from_row_lengths(tf.constant(ids, tf.int64), [1] * len(ids))
  return sok.lookup_sparse(tables, [ids] * len(tables), combiners=["sum"] * len(tables))


def main(action, folder):
  hvd.init()
  sok.init()
  random.seed(hvd.rank())
  tables = [
      tf.compat.v1.get_embedding_variable("plain", 4),
      tf.compat.v1.get_embedding_variable(
          "keras", 4, initializer=tf.keras.initializers.RandomNormal()),
      sok.DynamicVariable(dimension=4, initializer="random", name="sok"),
  ]
  checkpoint = tf.train.Checkpoint(tables=tables)
  path = os.path.join(folder, "expected.npy")
  if action == "save":
    with tf.GradientTape() as tape:
      loss = tf.add_n([tf.reduce_sum(x) for x in _look_up(tables, _TRAINED)])
    sok.SGD(lr=1.).apply_gradients(zip(tape.gradient(loss, tables), tables))
    checkpoint.write(os.path.join(folder, "c"))
  else:
    checkpoint.read(os.path.join(folder, "c"))
  found = np.stack([x.numpy() for x in _look_up(tables, _TRAINED + _ABSENT)])
  if action == "save":
    np.testing.assert_array_equal(found, hvd.broadcast_object(found, 0))
    if hvd.rank() == 0:
      np.save(path, found)
  else:
    np.testing.assert_array_equal(np.load(path), found)


if __name__ == "__main__":
  main(*sys.argv[1:])
