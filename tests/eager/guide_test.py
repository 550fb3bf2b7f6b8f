# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs the complete scripts of eager execution and Keras in the README and the guides."""

import os
import re
import subprocess
import sys

from absl.testing import absltest

_FENCE = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)

_PAGES = ("README.md", "docs/keras.md", "docs/migration.md", "docs/tensorflow_2.md")

# Scripts of graph mode, and those that horovodrun starts (eager_guide_test).
_OTHERS = re.compile(r"tf\.Session|disable_v2_behavior|hvd\.init")


def scripts():
  """Returns [(page, script)] of blocks that import TensorFlow and are of eager execution."""
  found = []
  for page in _PAGES:
    with open(page) as f:
      found += [(page, block) for block in _FENCE.findall(f.read())
                if "import tensorflow" in block and not _OTHERS.search(block)]
  return found


class GuideTest(absltest.TestCase):

  def test_scripts_run(self):
    found = scripts()
    self.assertCountEqual({page for page, _ in found}, _PAGES)
    for page, script in found:
      with self.subTest(page):
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", script], cwd=self.create_tempdir().full_path,
            env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
        self.assertEqual(0, done.returncode, done.stdout[-3000:])


if __name__ == "__main__":
  absltest.main()
