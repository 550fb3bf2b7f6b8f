# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests Redis and RocksDB inside TensorFlow's process, where their libraries are loaded
next to TensorFlow's.
"""

import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request

from absl.testing import absltest
import numpy as np
import tensorflow as tf

import hierarchical_parameter_server as hps
from hierarchical_parameter_server import testing
from hierarchical_parameter_server.checkpoint_format import packed_rows

_KEYS = np.arange(5000, dtype=np.int64) * 3
_ROWS = (np.arange(8)[None, :] * 100000 + _KEYS[:, None]).astype(np.float32)


class DatabasesTest(absltest.TestCase):

  def setUp(self):
    super().setUp()
    hps.stop()
    self.folder = self.create_tempdir().full_path
    testing.write_table(os.path.join(self.folder, "t"), _KEYS, _ROWS)
    self.row_type, self.rows = "float32", _ROWS

  def tearDown(self):
    hps.stop()
    super().tearDown()

  def start(self, **databases):
    hps.start(
        testing.write_config(
            os.path.join(self.folder, "ps.json"),
            [testing.model("m", ["t"], [8], defaults=[-1.], most=1000,
                           row_type_per_table=[self.row_type])],
            supportlonglong=True, **databases))

  def assert_served(self):
    ids = np.random.RandomState(1).randint(0, 15000, [4000])
    with tf.Graph().as_default():
      layer = hps.LookupLayer(
          model_name="m", table_id=0, emb_vec_size=8, emb_vec_dtype=tf.float32)
      rows = layer(tf.constant(ids, tf.int64))
      with tf.compat.v1.Session() as session:
        got = session.run(rows)
    expected = np.where((ids % 3 == 0)[:, None], self.rows[ids // 3], np.float32(-1.))
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

  def test_packed_rows_in_rocks_db(self):
    # Numbers that float16 lacks; differences that uint8 has.
    self.rows = np.sqrt(_KEYS[:, None] + np.arange(8)[None, :]).astype(np.float32)
    testing.write_table(os.path.join(self.folder, "t"), _KEYS, self.rows)
    for self.row_type in ("float16", "uint8"):
      shutil.rmtree(os.path.join(self.folder, "store"), ignore_errors=True)
      exact = self.rows
      self.rows = packed_rows.unpack(
          packed_rows.pack(_KEYS, exact, self.row_type, "t"), self.row_type, 8)
      self.assertFalse((self.rows == exact).all())
      np.testing.assert_allclose(self.rows, exact, rtol=1e-3, atol=3e-3)
      self.start_rocks_db(volatile_db={"type": "hash_map", "initial_cache_rate": 0.5})
      self.assert_served()
      hps.stop()
      right, self.row_type = self.row_type, "float32"
      with self.assertRaisesRegex(tf.errors.InvalidArgumentError,
                                  "has rows of 8 numbers of type %s, expected 8 floats" % right):
        self.start_rocks_db(volatile_db={"type": "disabled"})
      hps.stop()
      self.row_type = right
      self.start_rocks_db(volatile_db={"type": "disabled"})
      self.assert_served()
      hps.stop()
      self.rows = exact

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
    """Starts a server; returns its section of a configuration."""
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
    self.server = server
    return {"type": "redis_cluster", "address": "127.0.0.1:%d" % port}

  def kill_redis(self):
    self.server.kill()
    self.server.wait()

  def test_redis_alone(self):
    self.start(volatile_db=self.redis())
    self.assert_served()

  def test_redis_above_rocks_db(self):
    self.start_rocks_db(
        volatile_db=dict(
            self.redis(), initial_cache_rate=.3, cache_missed_embeddings=True))
    for _ in range(3):
      self.assert_served()

  def test_a_missing_server_is_named(self):
    with self.assertRaisesRegex(tf.errors.UnavailableError, "127.0.0.1:1: connect"):
      self.start(
          volatile_db={
              "type": "redis_cluster",
              "address": "127.0.0.1:1",
              "timeout_ms": 200
          })

  def http(self, path):
    """Returns (code, text) of the metrics or health page."""
    server = hps.serve_metrics(0)
    try:
      answer = urllib.request.urlopen("http://127.0.0.1:%d%s" % (server.server_port, path))
      return answer.status, answer.read().decode()
    except urllib.error.HTTPError as e:
      return e.code, e.read().decode()
    finally:
      server.shutdown()
      server.server_close()

  def lookup(self):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      layer = hps.LookupLayer("m", 0, 8, tf.float32)
      return session.run(layer(tf.constant([0, 3, 1], tf.int64)))

  def test_a_redis_that_is_killed_is_unavailable(self):
    redis = dict(self.redis(), lookup_timeout_ms=200, breaker_failures=1,
                 breaker_pause_ms=3600000)
    self.start(volatile_db=redis)
    self.assert_served()
    self.assertEqual(self.http("/healthz"), (200, "ok\n"))
    self.kill_redis()
    with self.assertRaisesRegex(tf.errors.UnavailableError, "in 200 ms"):
      self.lookup()
    begin = time.time()
    for _ in range(3):
      with self.assertRaisesRegex(tf.errors.UnavailableError, "redis_cluster is unavailable"):
        self.lookup()
    self.assertLess(time.time() - begin, 20)
    code, text = self.http("/healthz")
    self.assertEqual(code, 503)
    self.assertRegex(text, "the volatile tier, redis_cluster, is unavailable, and lookups fail: ")
    tier = hps.metrics()["tiers"]["volatile"]
    self.assertEqual((tier["away"], tier["failures"], tier["skipped"]), (True, 1, 3))
    self.assertIsNone(hps.metrics()["tiers"]["persistent"])
    self.assertIn('hps_tier_away{tier="volatile",type="redis_cluster"} 1',
                  self.http("/metrics")[1])

  def test_lookups_may_go_on_without_redis(self):
    self.start(volatile_db=dict(self.redis(), lookup_timeout_ms=200, breaker_failures=1,
                                on_unavailable="skip"))
    self.assert_served()
    self.kill_redis()
    for _ in range(2):
      np.testing.assert_array_equal(self.lookup(), np.full([3, 8], -1.))
    code, text = self.http("/healthz")
    self.assertEqual(code, 200)
    self.assertRegex(text, "is unavailable, and lookups skip it: ")
    self.assertIn('hps_unavailable_rows_total{model="m",table="table0"} 6',
                  self.http("/metrics")[1])

  def test_check_reaches_the_tiers(self):
    config = testing.write_config(
        os.path.join(self.folder, "ps.json"), [testing.model("m", ["t"], [8])],
        volatile_db=dict(self.redis(), timeout_ms=300),
        persistent_db={"type": "mapped_files"})
    self.assertIsNone(hps.check(config)["tiers"])
    tier, = hps.check(config, connect=True)["tiers"]
    self.assertEqual((tier["tier"], tier["error"]), ("volatile_db", ""))
    self.kill_redis()
    tier, = hps.check(config, connect=True)["tiers"]
    self.assertRegex(tier["what"], r"^redis_cluster 127\.0\.0\.1:\d+$")
    self.assertIn("refused", tier["error"])


if __name__ == "__main__":
  absltest.main()
