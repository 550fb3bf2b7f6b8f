# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs the script for several ranks in the guide of TensorFlow 2.x."""

import os
import re

from absl.testing import absltest

import horovod_job

_GUIDE = os.path.join("docs", "tensorflow_2.md")
_FENCE = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


class EagerGuideTest(absltest.TestCase):

  def test_the_script_of_ranks(self):
    with open(_GUIDE) as f:
      script, = [s for s in _FENCE.findall(f.read()) if "hvd.init()" in s]
    folder = self.create_tempdir().full_path
    program = os.path.join(folder, "train.py")
    with open(program, "w") as f:
      f.write("import os\nos.chdir(%r)\n%s" % (folder, script))
    result = horovod_job.run(2, program, timeout=200)
    self.assertEqual(0, result.returncode, result.output[-5000:])
    files = os.listdir(os.path.join(folder, "ranks"))
    self.assertIn("checkpoint-1.index", files)


if __name__ == "__main__":
  absltest.main()
