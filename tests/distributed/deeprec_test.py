# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs DeepRec's stand-ins on ranks."""

import os

from absl.testing import absltest
from absl.testing import parameterized

import horovod_job
import ranks

_HERE = os.path.dirname(os.path.abspath(__file__))


class DeeprecTest(parameterized.TestCase):

  @parameterized.parameters(
      (2, "deeprec_job.py"), (2, "deeprec_job.py", "memory"), (1, "collective_job.py"),
      (2, "collective_job.py"), (2, "collective_job.py", "memory"))
  def test_ranks(self, count, job, exchange="horovod"):
    result = ranks.run(count, os.path.join(_HERE, job), self.create_tempdir().full_path,
                       env=dict(horovod_job.environment(), SOK_EXCHANGE=exchange))
    self.assertEqual(result.returncode, 0, result.output[-6000:])
    self.assertEqual(result.output.count("done"), count, result.output[-6000:])


if __name__ == "__main__":
  absltest.main()
