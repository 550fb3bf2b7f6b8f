# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Ids without a row read the same on all ranks, and by any number of ranks."""

import os

from absl.testing import absltest

import ranks

_PROGRAM = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
                        "eager", "default_rows_job.py")


class EagerDefaultRowsTest(absltest.TestCase):

  def test_saved_by_two_ranks(self):
    folder = self.create_tempdir().full_path
    for num_ranks, action in ((2, "save"), (1, "check"), (3, "check")):
      result = ranks.run(num_ranks, _PROGRAM, action, folder)
      self.assertEqual(0, result.returncode, result.output[-5000:])


if __name__ == "__main__":
  absltest.main()
