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
      (2, "deeprec_job.py"), (2, "deeprec_job.py", "memory"), (2, "deeprec_job.py", "nccl"),
      (2, "deeprec_job.py", "nccl", "/gpu:0"),
      (1, "collective_job.py"), (2, "collective_job.py"),
      (2, "collective_job.py", "memory"))
  def test_ranks(self, count, job, exchange="horovod", *device):
    words, modules = [os.path.join(_HERE, job)], ranks.WITH_PACKAGE
    if exchange == "nccl":
      # With stand-ins for GPU and NCCL.
      words.insert(0, os.path.join(os.path.dirname(_HERE), "exchange_device",
                                   "test_gpu.py" if device else "test_device.py"))
      modules = ranks.WITHOUT_PACKAGE
    result = ranks.run(
        count, *words, self.create_tempdir().full_path, *device, modules=modules,
        env=dict(horovod_job.environment(), SOK_EXCHANGE=exchange))
    self.assertEqual(result.returncode, 0, result.output[-6000:])
    self.assertEqual(result.output.count("done"), count, result.output[-6000:])


if __name__ == "__main__":
  absltest.main()
