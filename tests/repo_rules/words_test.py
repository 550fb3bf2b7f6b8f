# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Sources and pages keep the rules of wording that //tools/lint:word_rules has."""

from absl.testing import absltest

import tree
import word_rules


class WordsTest(absltest.TestCase):

  def test_the_tree_obeys(self):
    found = []
    for path in tree.files():
      text = tree.read(path)
      if text is not None:
        found += word_rules.violations(path, text)
    self.assertEmpty(found, "\n" + "\n".join(found))


if __name__ == "__main__":
  absltest.main()
