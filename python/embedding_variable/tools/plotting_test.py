# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests the picture of `inspect --plot` (nothing overlaps or is cut), and users' names."""

import collections
import itertools

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np

from embedding_variable.checkpoint_format import names
from embedding_variable.tools import histogram
from embedding_variable.tools import inspecting
from embedding_variable.tools import plotting

_Table = collections.namedtuple("_Table", ["name", "rows", "nbytes"])
_Checkpoint = collections.namedtuple("_Checkpoint", ["prefix"])

_COLUMN = "input_layer/C%d_embedding/embedding_weights"


def _facts(name, rows=50000, versions=True):
  random = np.random.RandomState(rows)
  return inspecting.Facts(
      _Table(name, rows, 100 * rows),
      histogram.of_frequencies(random.zipf(1.5, rows).clip(0, 10**9)),
      histogram.of_versions(random.randint(-1, 10**8, rows)) if versions else None)


class PlottingTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    try:
      self.pyplot = plotting._pyplot()
    except plotting.errors.CheckpointError as e:
      self.skipTest(str(e))

  @parameterized.parameters(
      (1, "users%d", 700), (26, _COLUMN, 2300),
      (60, "a/layer/the_long_name_of_a_feature_of_users_and_items_%d/weights", 3600))
  def test_nothing_overlaps_or_is_cut(self, number, name, height):
    all_facts = [_facts(name % (i + 1), 3 + 999 * i) for i in range(number)]
    figure = plotting.draw(self.pyplot, _Checkpoint("/a/model.ckpt-300"), all_facts)
    self.addCleanup(self.pyplot.close, figure)
    figure.set_dpi(100)
    renderer = figure.canvas.get_renderer()
    boxes = [axis.get_tightbbox(renderer) for axis in figure.axes]
    boxes.append(figure._suptitle.get_window_extent(renderer))
    self.assertLessEqual(figure.bbox.height, height)
    for box in boxes:
      self.assertTrue(0 <= box.x0 and box.x1 <= figure.bbox.width and 0 <= box.y0 and
                      box.y1 <= figure.bbox.height, box)
    for one, other in itertools.combinations(boxes, 2):
      self.assertFalse(one.overlaps(other), "%s overlaps %s" % (one, other))

  def test_heading_has_totals(self):
    all_facts = [_facts(_COLUMN % i, 1000 * i) for i in (1, 2, 10)]
    figure = plotting.draw(self.pyplot, _Checkpoint("/a/model.ckpt-300"), all_facts)
    self.addCleanup(self.pyplot.close, figure)
    self.assertEqual(
        figure._suptitle.get_text(), "model.ckpt-300: 3 variables, 13,000 rows, 1.2 MiB\n"
        "names are input_layer/*_embedding/embedding_weights")
    self.assertEqual([a.get_title().split("\n")[0] for a in figure.axes[2::2]],
                     ["C1", "C2", "C10"])


class ChartsTest(absltest.TestCase):

  def test_the_largest_of_many_have_charts(self):
    all_facts = [_facts("t%d" % i, 10 + i) for i in range(60)]
    small, left_out = plotting.charts(all_facts)
    self.assertEqual(left_out, 12)
    self.assertEqual([f.table.name for f, kind in small if kind == "version"],
                     ["t%d" % i for i in range(12, 60)])

  def test_a_column_that_no_table_has_is_left_out(self):
    small, _ = plotting.charts([_facts("a", 10, versions=False), _facts("b", 10, False)])
    self.assertEqual([kind for _, kind in small], ["frequency"] * 2)

  def test_frequencies_of_all_tables(self):
    def facts(values):
      return inspecting.Facts(None, values and histogram.of_frequencies(np.array(values)), None)
    self.assertEqual(
        plotting.total_frequencies([facts([2, 3, 9]), facts([1, 2, 100]), facts(None)]),
        [("1", 1), ("2-3", 3), ("4-7", 0), ("8-15", 1), ("16-31", 0), ("32-63", 0),
         ("64-127", 1)])


class NamesTest(parameterized.TestCase):

  def test_numbers_in_names_are_in_order(self):
    self.assertEqual(sorted(["C10", "C2", "b", "C2/x", "10", "9"], key=names.natural),
                     ["9", "10", "C2", "C2/x", "C10", "b"])

  @parameterized.parameters(
      (["a/x/w", "a/y/w"], ["x", "y"], "a/*/w"),
      ([_COLUMN % 1, _COLUMN % 2], ["C1", "C2"], "input_layer/*_embedding/embedding_weights"),
      (["a", "a/b"], ["a", "a/b"], "*"), (["a/b"], ["a/b"], "*"),
      (["a/b", "a/c/d"], ["b", "c/d"], "a/*"))
  def test_shorten(self, full, short, pattern):
    self.assertEqual(names.shorten(full), (short, pattern))

  @parameterized.parameters(
      ("C1", [_COLUMN % 1]), ("C1_embedding", [_COLUMN % 1]), ("users", ["users"]),
      ("w", ["users/w"]), ("embedding_weights", [_COLUMN % 1, _COLUMN % 2, _COLUMN % 10]),
      ("C3", []), ("sers", []), ("input_layer/C2", [_COLUMN % 2]))
  def test_matching(self, name, expected):
    known = [_COLUMN % 10, _COLUMN % 2, _COLUMN % 1, "users", "users/w"]
    self.assertEqual(names.matching(name, known), expected)

  def test_close(self):
    known = [_COLUMN % i for i in range(1, 27)]
    self.assertEqual(names.close("c11", known), [_COLUMN % 11])
    self.assertEqual(names.close("C_2", known)[0], _COLUMN % 2)
    self.assertEqual(names.close("usres", ["users", "items"]), ["users"])
    self.assertEqual(names.close("zzz", known), [])

  def test_listed(self):
    self.assertEqual(names.listed(["a", "b"]), "'a', 'b'")
    self.assertEndsWith(names.listed(map(str, range(26))), "'7' and 18 more")

  def test_cut(self):
    self.assertEqual(plotting.cut("abc", 3), "abc")
    self.assertEqual(plotting.cut("feature_of_users_12", 10), "fea\u2026ers_12")


if __name__ == "__main__":
  absltest.main()
