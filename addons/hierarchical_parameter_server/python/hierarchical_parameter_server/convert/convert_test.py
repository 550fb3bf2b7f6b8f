# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""From a trained model to served rows."""

import os

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

import hierarchical_parameter_server as hps
from hierarchical_parameter_server import convert
from hierarchical_parameter_server import testing
import embedding_variable  # pylint: disable=unused-import
import sparse_operation_kit as sok

_DIM = 4


def _trained(folder):
  """Trains; returns (ids, prediction, dense weights, folders of what was saved)."""
  random = np.random.RandomState(1)
  ids = random.randint(-50, 50, size=[64, 3]).astype(np.int64)
  labels = random.normal(size=[64, 1]).astype(np.float32)
  with tf.Graph().as_default():
    users = tf.get_embedding_variable("users", embedding_dim=_DIM)
    weights = tf.get_variable("w", [3 * _DIM, 1])
    rows = tf.nn.embedding_lookup(users, tf.constant(ids))
    prediction = tf.matmul(tf.reshape(rows, [-1, 3 * _DIM]), weights)
    loss = tf.losses.mean_squared_error(labels, prediction)
    step = tf.train.AdagradOptimizer(0.1).minimize(loss)
    items = tf.get_variable("items", [7, 2])
    saver = tf.train.Saver()
    with tf.Session() as session:
      session.run(tf.global_variables_initializer())
      for _ in range(10):
        session.run(step)
      prefix = saver.save(session, os.path.join(folder, "model.ckpt"))
      sok.dump(os.path.join(folder, "dump"), users, session=session)
      found = session.run([prediction, weights, items])
  return [ids, prefix] + found


class ConvertTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    hps.stop()
    self.folder = self.create_tempdir().full_path

  def tearDown(self):
    hps.stop()
    super().tearDown()

  def served(self, table, ids, weights):
    config = testing.write_config(
        os.path.join(self.folder, "ps.json"),
        [testing.model("m", [table], [_DIM])])
    with tf.Graph().as_default(), tf.Session() as session:
      rows = hps.LookupLayer("m", 0, _DIM, tf.float32, config)(tf.constant(ids))
      return session.run(tf.matmul(tf.reshape(rows, [-1, 3 * _DIM]), weights))

  def test_acceptance_04_a_trained_model_predicts_the_same(self):
    ids, prefix, prediction, weights, items = _trained(self.folder)
    out = os.path.join(self.folder, "tables")
    self.assertEqual(convert.checkpoint_tables(prefix),
                     {"users": (len(np.unique(ids)), _DIM)})
    written = convert.from_checkpoint(prefix, out, dense=["items"])
    self.assertEqual(written, {"users": (len(np.unique(ids)), _DIM), "items": (7, 2)})
    np.testing.assert_allclose(
        self.served(os.path.join(out, "users"), ids, weights), prediction, atol=1e-6)
    hps.stop()
    found = np.fromfile(os.path.join(out, "items", "emb_vector"), np.float32)
    np.testing.assert_array_equal(found.reshape([7, 2]), items)
    np.testing.assert_array_equal(
        np.fromfile(os.path.join(out, "items", "key"), np.int64), np.arange(7))
    # The same from sok.dump.
    dumped = os.path.join(self.folder, "of_dump")
    written = convert.from_sok_dump(os.path.join(self.folder, "dump"), dumped)
    table, = written
    self.assertEqual(written[table], (len(np.unique(ids)), _DIM))
    np.testing.assert_allclose(
        self.served(os.path.join(dumped, table), ids, weights), prediction, atol=1e-6)

  def test_tables_in_parts(self):
    with tf.Graph().as_default(), tf.Session() as session:
      users = tf.get_embedding_variable(
          "users", embedding_dim=2, partitioner=tf.fixed_size_partitioner(3))
      rows = tf.nn.embedding_lookup(users, tf.range(100, dtype=tf.int64))
      step = tf.train.AdamOptimizer(0.1).minimize(tf.reduce_sum(rows**2))
      session.run(tf.global_variables_initializer())
      session.run(step)
      expected = session.run(rows)
      prefix = tf.train.Saver().save(session, os.path.join(self.folder, "model"))
    self.assertEqual(convert.checkpoint_tables(prefix), {"users": (100, 2)})
    convert.from_checkpoint(prefix, self.folder)
    keys = np.fromfile(os.path.join(self.folder, "users", "key"), np.int64)
    found = np.fromfile(os.path.join(self.folder, "users", "emb_vector"), np.float32)
    np.testing.assert_array_equal(found.reshape([100, 2])[np.argsort(keys)], expected)

  def test_legacy_files(self):
    np.arange(5, dtype=np.int64).tofile(os.path.join(self.folder, "v_keys.file"))
    rows = np.arange(15, dtype=np.float32)
    rows.tofile(os.path.join(self.folder, "v_values.file"))
    self.assertEqual(convert.from_legacy(self.folder, self.folder), {"v": (5, 3)})
    np.testing.assert_array_equal(
        np.fromfile(os.path.join(self.folder, "v", "emb_vector"), np.float32), rows)
    with open(os.path.join(self.folder, "v_values.file"), "ab") as f:
      f.write(b"1234")
    with self.assertRaisesRegex(ValueError, "16 floats for 5 keys are no whole rows"):
      convert.from_legacy(self.folder, self.folder)
    # The table that was there is there still.
    self.assertEqual(os.path.getsize(os.path.join(self.folder, "v", "key")), 40)
    self.assertCountEqual(os.listdir(os.path.join(self.folder, "v")),
                          ["key", "emb_vector"])

  @parameterized.parameters(
      (lambda f: convert.from_checkpoint(f + "/none", f), "cannot be read"),
      (lambda f: convert.from_sok_dump(f, f), "no file <table>-key"),
      (lambda f: convert.from_legacy(f, f), "no file <variable>_keys.file"),
      (lambda f: convert.from_legacy(f, f, "int16"), "want int64 or uint32"),
      (lambda f: convert.write_table(f, [1, 2], [[1.]]), "want 2 rows of floats"),
      (lambda f: convert.write_table(f, [1.5], [[1.]]), "integer keys, got float64"),
      (lambda f: convert.write_table(f, [], np.zeros([0, 2])), "without rows|integer"),
      (lambda f: convert.write_table(f, np.array([2**63], np.uint64), [[1.]]),
       "above the largest int64"),
  )
  def test_what_is_wrong_is_named(self, call, message):
    with self.assertRaisesRegex(ValueError, message):
      call(self.folder)


if __name__ == "__main__":
  absltest.main()
