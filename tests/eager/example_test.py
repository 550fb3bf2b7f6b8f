# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs examples/train_keras.py on a little data."""

import os
import subprocess
import sys

from absl.testing import absltest


class ExampleTest(absltest.TestCase):

  def test_it_trains_and_keeps_the_model(self):
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    output = subprocess.check_output(
        [sys.executable, os.path.join(root, "examples", "train_keras.py"),
         "--samples=2000", "--users=50", "--epochs=1"],
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)), text=True)
    self.assertIn("table tables_0: 50 rows of 16", output)
    self.assertIn("checkpoint: predictions are the same", output)
    self.assertIn("SavedModel: predictions are the same", output)


if __name__ == "__main__":
  absltest.main()
