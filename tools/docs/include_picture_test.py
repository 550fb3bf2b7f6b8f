# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of include_picture."""

import os

from absl.testing import absltest
from absl.testing import parameterized

import include_picture

_ENGINE = "kernels/engine/"


def _graph(**folders):
  """Returns a graph of engine folders; a="b c" means that a includes b and c."""
  return {_ENGINE + folder: {_ENGINE + other for other in others.split()}
          for folder, others in folders.items()}


class IncludePictureTest(parameterized.TestCase):

  @parameterized.parameters(
      (_ENGINE + "base/span.h", True),
      ("kernels/tf/ops/ops.cc", True),
      ("addons/sparse_operation_kit/exchange/gpu/copy.cu", True),
      (_ENGINE + "base/span_test.cc", False),
      (_ENGINE + "testing/oracle.h", False),
      (_ENGINE + "rows/testing/oracle.h", False),
      (_ENGINE + "base/BUILD", False),
      ("benchmarks/engine/a.cc", False),
  )
  def test_draws_sources_of_folders_only(self, path, drawn):
    self.assertEqual(include_picture.is_drawn(path), drawn)

  def test_reads_sources_of_a_tree(self):
    root = self.create_tempdir()
    for path in ("kernels/engine/base/a.h", "kernels/engine/base/a_test.cc", "docs/b.h"):
      root.create_file(path, content=path)
    self.assertEqual(include_picture.sources(root.full_path),
                     {"kernels/engine/base/a.h": "kernels/engine/base/a.h"})

  def test_arrows_are_includes_of_other_folders(self):
    texts = {
        _ENGINE + "base/a.h": "#include <vector>\n",
        _ENGINE + "ids/a.h": '#include "kernels/engine/base/a.h"\n',
        _ENGINE + "ids/b.cc": '#include "kernels/engine/ids/a.h"\n'
                              '#include "tensorflow/core/framework/op.h"\n',
    }
    self.assertEqual(include_picture.arrows(texts), _graph(base="", ids="base"))

  def test_a_layer_is_one_above_the_highest_folder_below(self):
    graph = _graph(a="b d", b="c", c="d", d="")
    self.assertEqual({os.path.basename(r): f for r, f in
                      include_picture.layers(graph).items()}, dict(a=3, b=2, c=1, d=0))

  def test_leaves_out_arrows_that_others_replace(self):
    graph = _graph(a="b d", b="d", d="")
    self.assertEqual(include_picture.direct(graph), _graph(a="b", b="d", d=""))

  def test_a_cycle_shares_a_layer_and_is_named(self):
    graph = _graph(a="b", b="c d", c="b", d="")
    self.assertEqual(include_picture.cycles(graph), [[_ENGINE + "b", _ENGINE + "c"]])
    self.assertEqual(include_picture.picture(graph), [
        "layer  folder    stands on",
        "    2  engine/a  engine/b",
        "    1  engine/b  engine/c, engine/d",
        "       engine/c  engine/b",
        "    0  engine/d",
        "a cycle: engine/b, engine/c",
    ])

  def test_long_lists_take_several_lines(self):
    below = ["folder_number_%02d" % i for i in range(12)]
    graph = _graph(a=" ".join(below), **{folder: "" for folder in below})
    lines = include_picture.picture(graph)
    self.assertLess(max(map(len, lines)), 120)
    for folder in below:
      self.assertIn("engine/" + folder, "".join(lines[1:5]))

  def test_replaces_what_is_between_the_markers(self):
    page = "a\n%s\nold\n%s\nb\n" % (include_picture._BEGIN, include_picture._END)
    once = include_picture.with_picture(page, ["new"])
    self.assertEqual(once, "a\n%s\n```text\nnew\n```\n%s\nb\n" %
                     (include_picture._BEGIN, include_picture._END))
    self.assertEqual(include_picture.with_picture(once, ["new"]), once)

  @parameterized.parameters(
      "", include_picture._BEGIN, include_picture._END + include_picture._BEGIN,
      2 * (include_picture._BEGIN + include_picture._END))
  def test_refuses_a_page_without_its_markers(self, page):
    with self.assertRaisesRegex(ValueError, "must have these lines once"):
      include_picture.with_picture(page, [])


if __name__ == "__main__":
  absltest.main()
