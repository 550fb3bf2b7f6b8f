# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Includes between folders form no cycle, and docs/architecture.md has a current
picture."""

from absl.testing import absltest

import include_picture
import tree


def _folders():
  texts = {path: tree.read(path) for path in tree.files() if include_picture.is_drawn(path)}
  return include_picture.arrows(texts)


class IncludePictureTest(absltest.TestCase):

  def test_folders_have_no_cycle(self):
    self.assertGreater(len(_folders()), 20)
    for cycle in include_picture.cycles(_folders()):
      for folder in cycle:
        # Allowed: the row homes, their interface and their factory; their targets have no
        # cycle.
        self.assertStartsWith(folder, "kernels/engine/rows", cycle)

  def test_the_page_shows_the_tree(self):
    page = tree.read(include_picture.PAGE)
    drawn = include_picture.with_picture(page, include_picture.picture(_folders()))
    self.assertMultiLineEqual(
        page, drawn, "the folders have changed; run: " + include_picture.COMMAND)


if __name__ == "__main__":
  absltest.main()
