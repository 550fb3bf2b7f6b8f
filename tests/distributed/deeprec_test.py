# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs DeepRec's stand-ins on two ranks."""

import os

from absl.testing import absltest

import ranks

_JOB = os.path.join(os.path.dirname(os.path.abspath(__file__)), "deeprec_job.py")


class DeeprecTest(absltest.TestCase):

  def test_two_ranks(self):
    result = ranks.run(2, _JOB, self.create_tempdir().full_path)
    self.assertEqual(result.returncode, 0, result.output[-6000:])
    self.assertEqual(result.output.count("done"), 2, result.output[-6000:])


if __name__ == "__main__":
  absltest.main()
