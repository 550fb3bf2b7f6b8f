# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The test cases that .bazelrc excludes under sanitizers exist."""

import re

from absl.testing import absltest

import tree


class SanitizerFiltersTest(absltest.TestCase):

  def test_every_name_in_a_filter_is_in_a_test(self):
    filters = re.findall(r"--test_filter=-(\S+)", tree.read(".bazelrc"))
    self.assertLen(filters, 2)
    sources = "".join(tree.read(path) for path in tree.files("_test.cc"))
    for name in set(re.findall(r"\w+", " ".join(filters))):
      self.assertIn(name, sources)


if __name__ == "__main__":
  absltest.main()
