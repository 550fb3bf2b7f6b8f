# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Redis and RocksDB under a graph, in TensorFlow's own process: their libraries are opened
beside TensorFlow's."""

import os
import shutil
import socket
import subprocess
import time

from absl.testing import absltest
import numpy as np
import tensorflow as tf

import hierarchical_parameter_server as hps
from hierarchical_parameter_server import testing

_KEYS = np.arange(5000, dtype=np.int64) * 3
_ROWS = (np.arange(8)[None, :] * 100000 + _KEYS[:, None]).astype(np.float32)


class DatabasesTest(absltest.TestCase):

  def setUp(self):
    super().setUp()
    hps.stop()
    self.folder = self.create_tempdir().full_path
    testing.write_table(os.path.join(self.folder, "t"), _KEYS, _ROWS)

  def tearDown(self):
    hps.stop()
    super().tearDown()

  def start(self, **databases):
    hps.start(
        testing.write_config(
            os.path.join(self.folder, "ps.json"),
            [testing.model("m", ["t"], [8], defaults=[-1.], most=1000)],
            supportlonglong=True, **databases))

  def assert_served(self):
    ids = np.random.RandomState(1).randint(0, 15000, [4000])
    with tf.Graph().as_default():
      layer = hps.LookupLayer(
          model_name="m", table_id=0, emb_vec_size=8, emb_vec_dtype=tf.float32)
      rows = layer(tf.constant(ids, tf.int64))
      with tf.compat.v1.Session() as session:
        got = session.run(rows)
    expected = np.where((ids % 3 == 0)[:, None], _ROWS[ids // 3], np.float32(-1.))
    np.testing.assert_array_equal(got, expected)

  def start_rocks_db(self, **databases):
    try:
      self.start(
          persistent_db={
              "type": "rocks_db",
              "path": os.path.join(self.folder, "store")
          }, **databases)
    except tf.errors.FailedPreconditionError as error:
      if "librocksdb" not in str(error):
        raise
      self.skipTest(str(error))

  def test_rocks_db_alone_and_when_it_is_opened_again(self):
    self.start_rocks_db(volatile_db={"type": "disabled"})
    self.assert_served()
    hps.stop()
    self.start(
        volatile_db={"type": "disabled"},
        persistent_db={
            "type": "rocks_db",
            "path": os.path.join(self.folder, "store"),
            "read_only": True
        })
    self.assert_served()

  def redis(self):
    """Starts a server; returns its part of a configuration."""
    if shutil.which("redis-server") is None:
      self.skipTest("there is no redis-server (package redis-server)")
    with socket.socket() as probe:
      probe.bind(("127.0.0.1", 0))
      port = probe.getsockname()[1]
    server = subprocess.Popen(
        ["redis-server", "--port", str(port), "--save", "", "--dir", self.folder],
        stdout=subprocess.DEVNULL)
    self.addCleanup(server.wait)
    self.addCleanup(server.kill)
    until = time.time() + 20
    while time.time() < until:
      try:
        socket.create_connection(("127.0.0.1", port), 1).close()
        break
      except OSError:
        time.sleep(.02)
    return {"type": "redis_cluster", "address": "127.0.0.1:%d" % port}

  def test_redis_alone(self):
    self.start(volatile_db=self.redis())
    self.assert_served()

  def test_redis_above_rocks_db(self):
    self.start_rocks_db(
        volatile_db=dict(
            self.redis(), initial_cache_rate=.3, cache_missed_embeddings=True))
    for _ in range(3):
      self.assert_served()

  def test_a_server_that_is_not_there_is_named(self):
    with self.assertRaisesRegex(tf.errors.InternalError, "127.0.0.1:1: connect"):
      self.start(
          volatile_db={
              "type": "redis_cluster",
              "address": "127.0.0.1:1",
              "timeout_ms": 200
          })


if __name__ == "__main__":
  absltest.main()
