# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Includes between rooms form no cycle, and docs/architecture.md has a current
picture."""

from absl.testing import absltest

import house_picture
import tree


def _rooms():
  texts = {path: tree.read(path) for path in tree.files() if house_picture.is_drawn(path)}
  return house_picture.arrows(texts)


class HousePictureTest(absltest.TestCase):

  def test_rooms_have_no_cycle(self):
    self.assertGreater(len(_rooms()), 20)
    for cycle in house_picture.cycles(_rooms()):
      for room in cycle:
        # Allowed: the row homes, their interface and their factory; their targets have no
        # cycle.
        self.assertStartsWith(room, "kernels/engine/rows", cycle)

  def test_the_page_shows_the_tree(self):
    page = tree.read(house_picture.PAGE)
    drawn = house_picture.with_picture(page, house_picture.picture(_rooms()))
    self.assertMultiLineEqual(
        page, drawn, "the rooms have changed; run: " + house_picture.COMMAND)


if __name__ == "__main__":
  absltest.main()
