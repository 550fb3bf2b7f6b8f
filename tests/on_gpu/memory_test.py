# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""GPU memory of tables beside TensorFlow's: its size, and the errors if it runs out.

  python -m embedding_variable.gpu run DIR -- python tests/on_gpu/memory_test.py

The test fills a GPU, so nothing else may use it, and run.py does not run it. If
TensorFlow has no GPU, all cases are skipped.
"""

import os
import subprocess

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from absl.testing import absltest  # pylint: disable=wrong-import-position
import numpy as np  # pylint: disable=wrong-import-position
import tensorflow as tf  # pylint: disable=wrong-import-position

import embedding_variable as ev  # pylint: disable=wrong-import-position
from embedding_variable.variables import config_pb2  # pylint: disable=wrong-import-position

# The share of the GPU that TensorFlow allocates when its first session starts.
_FRACTION = .9

_DIM = 4096
_KEYS = 8192
_HOTNESS = 64


def _gpu_mib(what):
  first = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]
  return int(subprocess.check_output(
      ["nvidia-smi", "--query-gpu=memory." + what, "--format=csv,noheader,nounits",
       "--id=" + first]).split()[0])


class MemoryTest(absltest.TestCase):

  def setUp(self):
    super().setUp()
    with tf.Graph().as_default(), self._session() as session:
      if not any(d.device_type == "GPU" for d in session.list_devices()):
        self.skipTest("this TensorFlow has no GPU device")

  def _session(self):
    return tf.Session(config=tf.ConfigProto(gpu_options=tf.GPUOptions(
        per_process_gpu_memory_fraction=_FRACTION)))

  def _build(self):
    """Builds a table of wide rows in the default graph, and its training with new
    keys."""
    option = ev.EmbeddingVariableOption(storage_option=ev.StorageOption(
        storage_type=config_pb2.StorageType.HBM))
    with tf.device("/cpu:0"):
      self._ids = tf.placeholder(tf.int64, [_KEYS])
      splits = tf.constant(np.arange(0, _KEYS + 1, _HOTNESS), tf.int64)
      ids = tf.RaggedTensor.from_row_splits(self._ids, splits, validate=False).to_sparse()
    with tf.device("/gpu:0"):
      self._table = tf.get_embedding_variable(
          "wide", _DIM, initializer=tf.ones_initializer(), ev_option=option)
      pooled, = tf.nn.group_embedding_lookup_sparse([self._table], [ids], ["sum"])
      self._train = tf.train.AdagradOptimizer(.1).minimize(tf.reduce_sum(pooled))
      self._pooled = pooled

  def _keys(self, n):
    return np.arange(n * _KEYS, (n + 1) * _KEYS)

  def test_bytes_of_rows(self):
    with tf.Graph().as_default(), self._session() as session:
      self._build()
      session.run(tf.global_variables_initializer())
      session.run(self._train, {self._ids: self._keys(0)})
      before = _gpu_mib("used")
      steps = 4
      for n in range(1, 1 + steps):
        session.run(self._train, {self._ids: self._keys(n)})
      taken = _gpu_mib("used") - before
    # A value and Adagrad's slot.
    rows = steps * _KEYS * _DIM * 2 * 4 / 2.**20
    print("%d MiB of rows took %d MiB of GPU memory" % (rows, taken))
    self.assertBetween(taken, rows - 16, 1.1 * rows + 64)

  def test_a_card_that_is_full(self):
    with tf.Graph().as_default(), self._session() as session:
      self._build()
      session.run(tf.global_variables_initializer())
      enough = _gpu_mib("total") * 2**20 // (_KEYS * _DIM * 2 * 4) + 2
      error = None
      for n in range(enough):
        try:
          session.run(self._train, {self._ids: self._keys(n)})
        except tf.errors.ResourceExhaustedError as e:
          error = e.message
          break
      self.assertIsNotNone(error, "the GPU's memory was not exhausted")
      print(error)
      self.assertRegex(error, r"'wide'")
      self.assertRegex(error, r"needs \d+ bytes of device memory, \d+ of \d+ are free")
      # Existing rows are unchanged.
      self.assertGreater(n, 0)
      for k in (0, n - 1):
        pooled = session.run(self._pooled, {self._ids: self._keys(k)})
        self.assertTrue(np.all(pooled < _HOTNESS))
        self.assertTrue(np.all(pooled == pooled[0, 0]))
      # Training existing rows still works.
      session.run(self._train, {self._ids: self._keys(0)})
      # Emptying a table frees its memory, and the table can be filled again.
      full = _gpu_mib("used")
      session.run(self._table.initializer)
      self.assertLess(_gpu_mib("used"), full - .5 * n * _KEYS * _DIM * 8 / 2**20)
      session.run(self._train, {self._ids: self._keys(1)})


if __name__ == "__main__":
  absltest.main()
