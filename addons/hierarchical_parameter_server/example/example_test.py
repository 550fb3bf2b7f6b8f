# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The examples run and check themselves."""

import os
import subprocess
import sys

from absl.testing import absltest


class ExampleTest(absltest.TestCase):

  def run_example(self, name):
    here = os.path.dirname(os.path.abspath(__file__))
    done = subprocess.run(
        [sys.executable, "-W", "ignore", os.path.join(here, name),
         "--folder=" + os.path.join(self.create_tempdir().full_path, "here")],
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path),
                 TF_CPP_MIN_LOG_LEVEL="2"),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
    self.assertEqual(done.returncode, 0, done.stdout)
    return done.stdout

  def test_basic_workflow(self):
    self.assertIn("largest difference", self.run_example("basic_workflow.py"))

  def test_sok_training_to_inference(self):
    self.assertIn("largest difference", self.run_example("sok_training_to_inference.py"))

  def test_pretrained_embeddings(self):
    self.assertRegex(self.run_example("pretrained_embeddings.py"),
                     "after; 17 trained weights")


if __name__ == "__main__":
  absltest.main()
