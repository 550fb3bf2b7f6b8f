# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The installed parameter server serves tables, with and without its Python package."""

import json
import os
import subprocess
import sys

from absl.testing import absltest
import numpy as np
import tensorflow as tf

import hierarchical_parameter_server as hps

_OPEN = """
import sys
import tensorflow as tf
tf.load_op_library(sys.argv[1])
with tf.Session() as session:
  tf.saved_model.load(session, [tf.saved_model.SERVING], sys.argv[2])
  print(session.run("rows:0", {"ids:0": [[3, 99]]}).tolist())
"""


class HpsTest(absltest.TestCase):

  def setUp(self):
    super().setUp()
    self.folder = self.create_tempdir().full_path
    self.rows = np.arange(40, dtype=np.float32).reshape([10, 4])
    table = os.path.join(self.folder, "t")
    os.makedirs(table)
    np.arange(10, dtype=np.int64).tofile(os.path.join(table, "key"))
    self.rows.tofile(os.path.join(table, "emb_vector"))
    self.config = os.path.join(self.folder, "ps.json")
    with open(self.config, "w") as f:
      json.dump({"models": [{
          "model": "m", "sparse_files": ["t"], "embedding_vecsize_per_table": [4],
          "maxnum_catfeature_query_per_table_per_sample": [2],
          "default_value_for_each_table": [-1.], "deployed_device_list": [0],
          "max_batch_size": 8}]}, f)

  def run_program(self, *arguments):
    done = subprocess.run(
        [sys.executable, "-I", "-W", "ignore"] + list(arguments), cwd=self.folder,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        universal_newlines=True, env=dict(os.environ, TF_CPP_MIN_LOG_LEVEL="2"))
    self.assertEqual(done.returncode, 0, done.stdout)
    return done.stdout

  def test_serves_and_a_saved_model_needs_the_library_alone(self):
    saved = os.path.join(self.folder, "saved")
    expected = np.stack([self.rows[3], -np.ones(4)])[None]
    with tf.Graph().as_default(), tf.Session() as session:
      ids = tf.placeholder(tf.int64, [None, 2], "ids")
      rows = tf.identity(
          hps.LookupLayer("m", 0, 4, tf.float32, self.config, 8)(ids), "rows")
      np.testing.assert_array_equal(session.run(rows, {ids: [[3, 99]]}), expected)
      tf.saved_model.simple_save(session, saved, {"ids": ids}, {"rows": rows})
    program = os.path.join(self.folder, "open.py")
    with open(program, "w") as f:
      f.write(_OPEN)
    output = self.run_program(program, hps.library_path(), saved)
    self.assertIn(str(expected.tolist()), output)

  def test_the_program_checks(self):
    output = self.run_program("-m", "hierarchical_parameter_server", "check", self.config)
    self.assertIn("0 errors, 0 notes", output)


if __name__ == "__main__":
  absltest.main()
