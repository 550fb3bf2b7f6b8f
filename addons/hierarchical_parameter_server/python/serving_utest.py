# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests one server per rank of a Horovod job:

  horovodrun -np 2 -H localhost:2 python serving_utest.py
"""

import os
import shutil
import sys
import tempfile

# Python puts the real folder of the program first in sys.path. The package next to it
# in the source tree lacks the compiled library.
sys.path[:] = [p for p in sys.path
               if p != os.path.dirname(os.path.realpath(__file__))]

# pylint: disable=wrong-import-position
import horovod.tensorflow as hvd
import tensorflow as tf
from absl.testing import absltest
from absl.testing import parameterized
import numpy as np

import hierarchical_parameter_server as hps
from hierarchical_parameter_server import testing

_ROWS, _DIM, _BATCH = 500, 8, 16


def _gathered(array):
  """Returns the arrays of all ranks, concatenated; waits for all ranks."""
  with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    return session.run(hvd.allgather(tf.constant(array)))


def _of_rank_0(text):
  """Returns rank 0's text; waits for all ranks."""
  data = np.zeros([1, 512], np.uint8)
  data[0, :len(text)] = np.frombuffer(text.encode(), np.uint8)
  return bytes(_gathered(data)[0]).rstrip(b"\0").decode()


def _session():
  """Returns a session with this rank's GPU, if there is one."""
  config = tf.compat.v1.ConfigProto()
  config.gpu_options.visible_device_list = str(hvd.local_rank())
  return tf.compat.v1.Session(config=config)


class ServingUtest(parameterized.TestCase):

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    hvd.init()

  def setUp(self):
    super().setUp()
    hps.stop()
    self.folder = _of_rank_0(tempfile.mkdtemp() if hvd.rank() == 0 else "")
    self.rows = np.random.RandomState(3).normal(size=[_ROWS, _DIM]).astype(np.float32)
    if hvd.rank() == 0:
      testing.write_table(os.path.join(self.folder, "t"), np.arange(_ROWS), self.rows)
    _of_rank_0("")

  def tearDown(self):
    hps.stop()
    _of_rank_0("")
    if hvd.rank() == 0:
      shutil.rmtree(self.folder)
    super().tearDown()

  def config(self, **more):
    """Writes this rank's configuration; returns its path."""
    return testing.write_config(
        os.path.join(self.folder, "ps%d.json" % hvd.rank()),
        [testing.model("m", ["t"], [_DIM], [.5], max_batch_size=_BATCH)], **more)

  def layer(self, path, kind=hps.LookupLayer):
    return kind(
        model_name="m", table_id=0, emb_vec_size=_DIM, emb_vec_dtype=tf.float32,
        ps_config_file=path, global_batch_size=_BATCH * hvd.size())

  @parameterized.parameters("parallel_hash_map", "multi_process_hash_map")
  def test_every_rank_has_its_rows(self, kind):
    # All ranks start at once, even if they share the table's index.
    path = self.config(volatile_db={"type": kind})
    ids = np.random.RandomState(hvd.rank()).randint(0, _ROWS + 10, [_BATCH, 3])
    expected = np.where((ids < _ROWS)[..., None], self.rows[np.minimum(ids, _ROWS - 1)],
                        np.float32(.5))
    with tf.Graph().as_default(), _session() as session:
      rows = self.layer(path)(tf.constant(ids, tf.int64))
      total = hvd.allreduce(tf.reduce_sum(rows), average=False)
      for _ in range(3):
        found, summed = session.run([rows, total])
        np.testing.assert_array_equal(found, expected)
    self.assertAlmostEqual(summed / _gathered([expected.sum()]).sum(), 1, delta=1e-4)
    # Counts only this rank's lookups.
    table = hps.metrics()["models"][0]["tables"][0]
    self.assertEqual((table["lookups"], table["keys"]), (3, 3 * ids.size))

  def test_ranks_share_the_batch(self):
    path = self.config()
    with tf.Graph().as_default(), _session() as session:
      for batch, message in ((
          _BATCH * hvd.size() + 1, "expected a multiple of the %d replicas, got %d" %
          (hvd.size(), _BATCH * hvd.size() + 1)), (
              (_BATCH + 1) * hvd.size(), "is %d samples on each of %d replicas" %
              (_BATCH + 1, hvd.size()))):
        init = hps.Init(ps_config_file=path, global_batch_size=batch)
        with self.assertRaisesRegex(tf.errors.InvalidArgumentError, message):
          session.run(init)
      good = hps.Init(ps_config_file=path, global_batch_size=_BATCH * hvd.size())
      self.assertEqual(session.run(good), b"OK")

  def test_rows_pushed_to_one_rank_stay_on_that_rank(self):
    hps.start(self.config(), _BATCH * hvd.size())
    if hvd.rank() == 0:
      hps.push_rows("m", "table0", [4], np.full([1, _DIM], 9))
    _of_rank_0("")
    with tf.Graph().as_default(), _session() as session:
      found = session.run(self.layer("")(tf.constant([4], tf.int64)))
    np.testing.assert_array_equal(
        found[0], np.full([_DIM], 9) if hvd.rank() == 0 else self.rows[4])

  def test_a_head_is_trained_above_a_table_that_stays(self):
    random = np.random.RandomState(10 + hvd.rank())
    path = self.config()
    with tf.Graph().as_default(), _session() as session:
      ids = tf.compat.v1.sparse_placeholder(tf.int64, [None, None])
      pooled = self.layer(path, hps.SparseLookupLayer)(ids, sp_weights=None, combiner="mean")
      score = tf.compat.v1.layers.dense(pooled, 1)
      loss = tf.reduce_mean((score - 1.)**2)
      optimizer = hvd.DistributedOptimizer(tf.compat.v1.train.GradientDescentOptimizer(.05))
      train = optimizer.minimize(loss)
      session.run(tf.compat.v1.global_variables_initializer())
      session.run(hvd.broadcast_global_variables(0))
      places = np.stack([np.arange(_BATCH), np.zeros(_BATCH)], 1).astype(np.int64)
      losses = [
          session.run([loss, train], {
              ids: tf.compat.v1.SparseTensorValue(
                  places, random.randint(0, _ROWS, [_BATCH]), [_BATCH, 1])
          })[0] for _ in range(60)
      ]
      self.assertLess(np.mean(losses[-10:]), .5 * np.mean(losses[:3]))
      kernel, = [v for v in tf.compat.v1.trainable_variables() if "kernel" in v.name]
      found = _gathered(session.run(kernel)[None])
    for other in found:
      np.testing.assert_array_equal(other, found[0])


if __name__ == "__main__":
  absltest.main()
