# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Rows sent by one process are served by another."""

import os
import subprocess
import sys
import time

from absl.testing import absltest
import numpy as np
import tensorflow as tf

import hierarchical_parameter_server as hps
from hierarchical_parameter_server import prometheus
from hierarchical_parameter_server import testing

_KEYS = np.arange(100, dtype=np.int64)


def _rows(version, keys=_KEYS, width=4):
  return (np.arange(width)[None, :] * 1000 + keys[:, None] + version * .25).astype(np.float32)


def _send(path, version):
  """The sending process, in the role of a training program."""
  with hps.Producer(type="directory", path=path) as producer:
    producer.send_all("m", ["table0"], [_KEYS], [_rows(version)])


class ProducerTest(absltest.TestCase):

  def setUp(self):
    super().setUp()
    hps.stop()
    self.folder = self.create_tempdir().full_path
    self.updates = os.path.join(self.folder, "updates")
    os.mkdir(self.updates)

  def tearDown(self):
    hps.stop()
    super().tearDown()

  def serve(self):
    testing.write_table(os.path.join(self.folder, "t"), _KEYS, _rows(0))
    path = testing.write_config(
        os.path.join(self.folder, "ps.json"),
        [testing.model("m", ["t"], [4], most=1000)],
        supportlonglong=True,
        update_source={
            "type": "directory",
            "path": self.updates,
            "poll_timeout_ms": 20
        })
    hps.start(path)

  def lookup(self):
    with tf.Graph().as_default():
      layer = hps.LookupLayer(
          model_name="m", table_id=0, emb_vec_size=4, emb_vec_dtype=tf.float32)
      rows = layer(tf.constant(_KEYS))
      with tf.compat.v1.Session() as session:
        return session.run(rows)

  def assert_served(self, version):
    until = time.time() + 30
    while time.time() < until:
      if np.array_equal(self.lookup(), _rows(version)):
        return
      time.sleep(.01)
    self.fail(str(hps.metrics()))

  def test_rows_of_another_process_are_served(self):
    self.serve()
    self.assert_served(0)
    for version in (1, 2):
      subprocess.check_call([sys.executable, __file__, self.updates, str(version)])
      self.assert_served(version)
    updates = hps.metrics()["updates"]
    self.assertLen(updates, 1)
    self.assertEqual(updates[0]["failures"], 0)

  def test_updates_are_counted_for_prometheus(self):
    self.serve()
    with hps.Producer(type="directory", path=self.updates) as producer:
      producer.send("m", "table0", _KEYS[:30], _rows(1, _KEYS[:30]))
      producer.flush()
      producer.send("m", "table0", _KEYS[:7], _rows(1, _KEYS[:7], width=5))
      producer.send("other", "table0", _KEYS[:2], _rows(1, _KEYS[:2]))
    with open(os.path.join(self.updates, "%020d.update" % 10**9), "w") as f:
      f.write("no update")
    until = time.time() + 30
    while time.time() < until:
      reader, = hps.metrics()["updates"]
      if reader["malformed"] and reader["delivered_rows"] + reader["rejected_rows"] == 39:
        break
      time.sleep(.01)
    lines = prometheus.text(hps.metrics()).splitlines()
    for name, value in (
        ("received_rows_total", 39), ("delivered_rows_total", 30),
        ("rejected_rows_total", 9), ("rejected_batches_total", 2),
        ("malformed_total", 1), ("failures_total", 0), ("pending_rows", 0),
        ("waiting", 0)):
      self.assertIn('hps_update_%s{group="%s"} %d' % (name, reader["group"], value), lines)
    self.assertIn("# TYPE hps_update_waiting gauge", lines)
    self.assertIn("# TYPE hps_update_delivered_rows_total counter", lines)
    # An unknown number is omitted, not 0.
    reader.update(waiting=-1, received_rows=50, group='a"b')
    text = prometheus.text({"models": [], "tiers": {}, "updates": [reader]})
    self.assertNotIn("hps_update_waiting{", text)
    self.assertIn('hps_update_pending_rows{group="a\\"b"} 11', text)

  def test_errors_are_named(self):
    with self.assertRaisesRegex(ValueError, "'kafka_message_queue' or 'directory'"):
      hps.Producer(type="post")
    with self.assertRaisesRegex(ValueError, "expected path and no brokers"):
      hps.Producer(type="directory", brokers="h:1")
    with self.assertRaisesRegex(tf.errors.NotFoundError, "no/such"):
      hps.Producer(type="directory", path=os.path.join(self.folder, "no/such/folder"))
    producer = hps.Producer(type="directory", path=self.updates)
    with self.assertRaisesRegex(ValueError, "expected integers, got float64"):
      producer.send("m", "table0", [.5], _rows(0, _KEYS[:1]))
    with self.assertRaisesRegex(ValueError, r"got \(2,\) and \(1, 4\)"):
      producer.send("m", "table0", [1, 2], _rows(0, _KEYS[:1]))
    with self.assertRaisesRegex(ValueError, "2 tables, got 1 and 1"):
      producer.send_all("m", ["a", "b"], [[1]], [[[1.]]])
    with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "hps_et.m m.t"):
      producer.send("m m", "t", [1], _rows(0, _KEYS[:1]))
    producer.send("m", "table0", [], np.zeros([0, 4]))
    producer.close()
    producer.close()
    with self.assertRaisesRegex(ValueError, "closed"):
      producer.flush()

  def test_a_missing_queue_is_an_error_in_time(self):
    try:
      producer = hps.Producer(brokers="127.0.0.1:1")
    except tf.errors.FailedPreconditionError as error:
      self.skipTest(str(error))
    producer.flush(.1)  # nothing to send
    producer.close()


if __name__ == "__main__":
  if len(sys.argv) == 3 and sys.argv[2].isdigit():
    _send(sys.argv[1], int(sys.argv[2]))
  else:
    absltest.main()
