# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests the layers with a cache, the stand-in for a GPU's.

Repeats all of `layers_test` with caches that hold part of the rows, and compares
lookups of skewed ids with tf.nn.embedding_lookup(_sparse).
"""

import os
import sys

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

_HERE = os.path.dirname(os.path.abspath(__file__))
_load_op_library = tf.load_op_library


def _load_with_stand_in(path):
  addon = os.path.dirname(os.path.dirname(_HERE))
  return _load_op_library(os.path.join(addon, "tf", "testing", os.path.basename(path)))


# Must be set before the package loads its library. `tf` may be tensorflow.compat.v1.
for _module in (tf, sys.modules["tensorflow"]):
  _module.load_op_library = _load_with_stand_in

import hierarchical_parameter_server as hps  # pylint: disable=wrong-import-position
from hierarchical_parameter_server import testing  # pylint: disable=wrong-import-position
import layers_test  # pylint: disable=wrong-import-position

_ROWS, _DIM = 4000, 12
testing.IN_EVERY_MODEL["gpucache"] = True


class LayersTest(layers_test.LayersTest):

  def test_the_cache_is_used(self):
    layer = self.layer()
    for _ in range(2):
      self.run_graph(lambda: (layer(tf.constant([1, 2, 3], tf.int64)), None))
    table = hps.metrics()["models"][0]["tables"][0]
    self.assertEqual((table["from_cache"], table["from_volatile"]), (3, 3))
    self.assertEqual(table["cache"]["rows"], 3)
    self.assertEqual(hps.notes(), [])


class CachedLayersTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    hps.stop()
    self.folder = self.create_tempdir().full_path
    self.random = np.random.RandomState(3)
    self.rows = self.random.normal(size=(_ROWS, _DIM)).astype(np.float32)
    testing.write_table(os.path.join(self.folder, "t"), np.arange(_ROWS), self.rows)

  def tearDown(self):
    hps.stop()
    super().tearDown()

  def layer(self, kind, share, **more):
    config = testing.write_config(
        os.path.join(self.folder, "ps.json"),
        [testing.model("m", ["t"], [_DIM], [0.25], gpucacheper=share, **more)])
    return kind(model_name="m", table_id=0, emb_vec_size=_DIM, emb_vec_dtype=tf.float32,
                ps_config_file=config, global_batch_size=8)

  def skewed(self, count):
    # pylint: disable=no-member
    return np.minimum(self.random.zipf(1.2, size=count) - 1, _ROWS - 1)

  def cache(self):
    return hps.metrics()["models"][0]["tables"][0]["cache"]

  @parameterized.parameters(0.01, 0.1, 1.0)
  def test_acceptance_02_parity_under_a_skewed_stream(self, share):
    with tf.Graph().as_default(), tf.Session() as session:
      dense = self.layer(hps.LookupLayer, share)
      sparse = self.layer(hps.SparseLookupLayer, share)
      ids = tf.placeholder(tf.int64, [None, 6])
      table = tf.constant(self.rows)
      where = tf.where(tf.equal(ids % 5, ids % 5))
      sp_ids = tf.SparseTensor(where, tf.reshape(ids, [-1]), tf.shape(ids, out_type=tf.int64))
      fetched = [(dense(ids), tf.nn.embedding_lookup(table, ids))] + [
          (sparse(sp_ids, sp_weights=None, combiner=combiner),
           tf.nn.embedding_lookup_sparse(table, sp_ids, None, combiner=combiner))
          for combiner in ("sum", "mean", "sqrtn")]
      for _ in range(15):
        for ours, stock in session.run(fetched, {ids: self.skewed(600).reshape(-1, 6)}):
          np.testing.assert_array_equal(ours, stock)
    cache = self.cache()
    self.assertGreater(cache["hits"], 0)
    if share == 1.0:
      self.assertEqual((cache["rows"], cache["misses"], cache["evicted"]), (_ROWS, 0, 0))
    else:
      self.assertGreater(cache["misses"], 0)
      if share == 0.01:
        self.assertGreater(cache["evicted"], 0)

  @parameterized.parameters(0.01, 1.0)
  def test_acceptance_10_pushed_rows_show_in_the_cache(self, share):
    layer = self.layer(hps.LookupLayer, share)
    with tf.Graph().as_default(), tf.Session() as session:
      ids = tf.placeholder(tf.int64, [None])
      rows = layer(ids)
      for step in range(10):
        asked = self.skewed(300)
        np.testing.assert_array_equal(session.run(rows, {ids: asked}), self.rows[asked])
        changed = np.unique(np.concatenate([asked[:20], self.skewed(20)]))
        self.rows[changed] = step + self.random.normal(size=(len(changed), _DIM))
        hps.push_rows("m", "table0", changed, self.rows[changed])
        np.testing.assert_array_equal(session.run(rows, {ids: asked}), self.rows[asked])
      self.assertGreater(self.cache()["refreshed"], 0)
      # A reload restores the files' rows and removes the others.
      testing.write_table(os.path.join(self.folder, "t"), np.arange(_ROWS), self.rows + 1)
      hps.reload_model("m")
      np.testing.assert_array_equal(session.run(rows, {ids: asked}),
                                    (self.rows + 1)[asked])

  def test_a_threshold_below_one_answers_at_once(self):
    layer = self.layer(hps.LookupLayer, 0.5, hit_rate_threshold=0.5)
    with tf.Graph().as_default(), tf.Session() as session:
      ids = tf.placeholder(tf.int64, [None])
      rows = layer(ids)
      first = np.arange(100)
      np.testing.assert_array_equal(session.run(rows, {ids: first}), self.rows[first])
      more = np.arange(150)
      got = session.run(rows, {ids: more})
      np.testing.assert_array_equal(got[:100], self.rows[:100])
      np.testing.assert_array_equal(got[100:], 0.25)
      for _ in range(1000):  # Rows are cached in the background.
        if hps.metrics()["models"][0]["tables"][0]["cache"]["rows"] == 150:
          break
        session.run(rows, {ids: first})
      np.testing.assert_array_equal(session.run(rows, {ids: more}), self.rows[more])

  def test_a_cache_that_keeps_the_most_used_and_is_refreshed(self):
    layer = self.layer(hps.LookupLayer, 0.02, embedding_cache_policy="lfu",
                       refresh_interval=.001)
    with tf.Graph().as_default(), tf.Session() as session:
      ids = tf.placeholder(tf.int64, [None])
      rows = layer(ids)
      for _ in range(2000):
        asked = self.skewed(300)
        np.testing.assert_array_equal(session.run(rows, {ids: asked}), self.rows[asked])
        refreshed = hps.metrics()["models"][0]["tables"][0]["refresh"]
        if refreshed["walks"] > 2:
          break
    self.assertGreater(refreshed["walks"], 2)
    self.assertGreater(refreshed["rows"], 0)
    self.assertEqual((refreshed["failures"], refreshed["last_failure"]), (0, ""))
    self.assertEqual(self.cache()["policy"], "lfu")
    from hierarchical_parameter_server import prometheus  # pylint: disable=g-import-not-at-top
    text = prometheus.text(hps.metrics())
    self.assertRegex(text, r'hps_cache_refresh_walks_total\{model="m",table="table0"\} [1-9]')
    self.assertIn('hps_cache_refresh_failures_total{model="m",table="table0"} 0\n', text)
    self.assertEqual(hps.notes(), [])

  def test_prometheus_and_check_report_the_cache(self):
    layer = self.layer(hps.LookupLayer, 0.1)
    with tf.Graph().as_default(), tf.Session() as session:
      session.run(layer(tf.constant([1, 2], tf.int64)))
      session.run(layer(tf.constant([1, 2], tf.int64)))
    from hierarchical_parameter_server import prometheus  # pylint: disable=g-import-not-at-top
    text = prometheus.text(hps.metrics())
    labels = '{model="m",table="table0"} '
    self.assertIn("hps_cache_hits_total" + labels + "2\n", text)
    self.assertIn("hps_cache_misses_total" + labels + "2\n", text)
    self.assertNotIn("hps_cache_refresh_walks_total" + labels, text)
    plan = hps.check(os.path.join(self.folder, "ps.json"))["plan"]
    self.assertEqual(plan["tables"][0]["cached_rows"], _ROWS // 10)
    self.assertIn("hps_cache_bytes%s%d\n" % (labels, self.cache()["device_bytes"]), text)
    self.assertLess(abs(plan["device_bytes"] / self.cache()["device_bytes"] - 1), 0.05)


if __name__ == "__main__":
  absltest.main()
