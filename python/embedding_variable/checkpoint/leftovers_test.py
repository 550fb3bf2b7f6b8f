# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests the removal of leftovers of saves."""

import os

from absl.testing import absltest

from embedding_variable.checkpoint import leftovers

_OURS = ("m.ckpt-7.partial_part_rank00012_tables1.index",
         "m.ckpt.partial.index", "m.ckpt-7.partial.data-00000-of-00002",
         "m.ckpt-7.partial_part_tables0.data-00000-of-00001",
         "m.ckpt-7.partial_temp_0123456789abcdef0123456789abcdef/part.index",
         "m.ckpt_part_rest.index", "m.ckpt-7_part_tables0.data-00000-of-00001",
         "m.ckpt-12_part_rest.data-00000-of-00001.tempstate123456",
         "m.ckpt-7_temp_0123456789abcdef0123456789abcdef/part-00000-of-00001.index")
_OTHERS = ("m.ckpt-7.index", "m.ckpt-7.data-00000-of-00002", "m.ckpt-7.meta",
           "m.ckpt-7.commit.index", "m.ckpt-7.partial.notes", "checkpoint",
           "other.ckpt-7_part_rest.index", "m.ckpt-7_part_of_mine",
           "m.ckpt-7_temp_notes/x", "m-ckpt_part_rest.index")


class LeftoversTest(absltest.TestCase):

  def setUp(self):
    super(LeftoversTest, self).setUp()
    self._folder = self.create_tempdir().full_path
    self._path = os.path.join(self._folder, "m.ckpt")

  def _make(self, names):
    for name in names:
      path = os.path.join(self._folder, name)
      os.makedirs(os.path.dirname(path), exist_ok=True)
      with open(path, "w") as f:
        f.write(name)

  def _files(self):
    return sorted(
        os.path.relpath(os.path.join(folder, name), self._folder)
        for folder, _, names in os.walk(self._folder) for name in names)

  def test_the_next_save_removes_them_and_nothing_else(self):
    self._make(_OURS + _OTHERS)
    with leftovers.removed(self._path):
      self.assertEqual(self._files(), sorted(_OTHERS))
      self._make(_OURS)
    # A successful save has nothing to remove.
    self.assertEqual(self._files(), sorted(_OURS + _OTHERS))

  def test_a_save_that_fails_removes_its_own(self):
    with self.assertRaises(ValueError):
      with leftovers.removed(self._path):
        self._make(_OURS + _OTHERS)
        raise ValueError
    self.assertEqual(self._files(), sorted(_OTHERS))

  def test_a_rank_removes_only_its_part(self):
    delta = ".incremental_checkpoint/m.ckpt-7-0123abcd-00002.partial_part_rank%05d_tables0.index"
    part = "m.ckpt-7.partial_part_rank%05d_tables1.data-00000-of-00001"
    others = _OURS + _OTHERS + (delta % 11, part % 11)
    for ours in ((), (part % 2, delta % 2)):
      with self.assertRaises(ValueError):
        with leftovers.removed_part(self._path, 2):
          self._make(others + ours)
          raise ValueError
      self.assertEqual(self._files(), sorted(others))
    with leftovers.removed_part(self._path, 12):
      pass
    self.assertEqual(self._files(), sorted(others))

  def test_those_of_deltas_go_with_the_next_full_save(self):
    deltas = ".incremental_checkpoint/m.ckpt%s-0123abcd-100002%s"
    kept = [deltas % (step, end) for step in ("", "-7")
            for end in (".index", ".data-00000-of-00001", ".commit.index")]
    kept += [deltas % ("-7-of-mine", ".partial.index")]
    temporary = ".partial_temp_%032x/part-00000-of-00001.index" % 7
    self._make(kept + [deltas % (step, end) for step in ("", "-7")
                       for end in (".partial.index", temporary)])
    under_way = deltas % ("-8", temporary)
    delta = os.path.join(self._folder, deltas % ("-8", ""))
    with leftovers.removed(delta):
      self._make([under_way])
      with leftovers.removed(self._path):
        self.assertEqual(self._files(), sorted(kept + [under_way]))
    with leftovers.removed(self._path):
      self.assertEqual(self._files(), sorted(kept))

  def test_not_those_of_a_running_save(self):
    with leftovers.removed(self._path):
      self._make(_OURS)
      with self.assertRaises(ValueError):
        with leftovers.removed(self._path):
          raise ValueError
      self.assertEqual(self._files(), sorted(_OURS))
      # A save of another series does not remove them.
      with leftovers.removed(os.path.join(self._folder, "other.ckpt")):
        self.assertEqual(self._files(), sorted(_OURS))

  def test_a_folder_that_does_not_exist_yet(self):
    with leftovers.removed(os.path.join(self._folder, "new", "m.ckpt")):
      pass


if __name__ == "__main__":
  absltest.main()
