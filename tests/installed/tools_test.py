# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The installed wheel's command line, and serving with its library alone."""

import os
import subprocess
import sys

from absl.testing import absltest
import numpy as np
import tensorflow as tf

import embedding_variable as ev


def _tool(*args):
  """Returns (exit status, standard output and error) of a command."""
  done = subprocess.run(
      [sys.executable, "-W", "ignore", "-m", "embedding_variable"] + list(args),
      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
  return done.returncode, done.stdout


class ToolsTest(absltest.TestCase):

  def setUp(self):
    super().setUp()
    tf.compat.v1.reset_default_graph()
    self.directory = self.create_tempdir().full_path
    self.prefix = os.path.join(self.directory, "model")
    self.table = tf.get_embedding_variable("users", embedding_dim=4)
    self.ids = tf.compat.v1.placeholder(tf.int64, [None])
    self.rows = tf.nn.embedding_lookup(self.table, self.ids)
    self.train = tf.compat.v1.train.AdagradOptimizer(0.1).minimize(
        tf.reduce_sum(self.rows))

  def save(self, session, keys):
    session.run(tf.compat.v1.global_variables_initializer())
    session.run(self.train, {self.ids: keys})
    tf.compat.v1.train.Saver().save(session, self.prefix)

  def test_inspect_export_and_diff(self):
    with tf.compat.v1.Session() as session:
      self.save(session, [1, -2, 3])
      values = session.run(self.rows, {self.ids: [-2]})
    status, text = _tool("inspect", self.prefix)
    self.assertEqual(status, 0, text)
    self.assertRegex(text, r"users +1 +3 +0 +4 +int64 +Adagrad")
    out = os.path.join(self.directory, "users.npz")
    status, text = _tool("export", self.prefix, "users", "--to", "npz", "--out", out)
    self.assertEqual(status, 0, text)
    arrays = np.load(out)
    np.testing.assert_array_equal(arrays["values"][arrays["keys"] == -2], values)
    self.assertEqual(_tool("diff", self.prefix, self.prefix)[0], 0)

  def test_a_missing_library_is_named(self):
    with tf.compat.v1.Session() as session:
      self.save(session, [1])
    for library, args in (
        ("matplotlib", ["inspect", self.prefix, "--plot", self.prefix + ".png"]),
        ("pyarrow", ["export", self.prefix, "users", "--to", "parquet"])):
      try:
        __import__(library)
      except ImportError:
        status, text = _tool(*args)
        self.assertEqual(status, 2, text)
        self.assertIn("pip install " + library, text)

  def test_a_saved_model_serves_with_the_library_alone(self):
    export = os.path.join(self.directory, "export")
    with tf.compat.v1.Session() as session:
      session.run(tf.compat.v1.global_variables_initializer())
      session.run(self.train, {self.ids: [1, 2]})
      expected = session.run(self.rows, {self.ids: [1, 5]})
      tf.compat.v1.saved_model.simple_save(session, export, {"ids": self.ids},
                                           {"rows": self.rows})
    script = """
import sys
import tensorflow as tf
tf.load_op_library(sys.argv[1])
assert "embedding_variable" not in sys.modules
with tf.compat.v1.Session(graph=tf.Graph()) as session:
  model = tf.compat.v1.saved_model.load(session, ["serve"], sys.argv[2])
  signature = model.signature_def["serving_default"]
  rows = session.run(signature.outputs["rows"].name,
                     {signature.inputs["ids"].name: [1, 5]})
print(rows.tolist())
"""
    found = subprocess.check_output(
        [sys.executable, "-W", "ignore", "-c", script, ev.library_path(), export],
        stderr=subprocess.DEVNULL, universal_newlines=True)
    self.assertEqual(found.strip().splitlines()[-1], str(expected.tolist()))


if __name__ == "__main__":
  absltest.main()
