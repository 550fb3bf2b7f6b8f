# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Sources, pages and commits follow the rules of wording in //tools/lint."""

from absl.testing import absltest

import commit_rules
import prose_rules
import tree
import word_rules


class WordsTest(absltest.TestCase):

  def test_the_tree_obeys(self):
    found = []
    for path in tree.files():
      text = tree.read(path)
      if text is not None:
        found += word_rules.violations(path, text)
        found += prose_rules.violations(path, text)
    self.assertEmpty(found, "\n" + "\n".join(found))

  def test_new_commits_obey(self):
    found = commit_rules.violations(tree.root())
    self.assertEmpty(found, "\n" + "\n".join(found))


if __name__ == "__main__":
  absltest.main()
