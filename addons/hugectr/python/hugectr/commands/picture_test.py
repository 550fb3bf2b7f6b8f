# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests pictures of models: no edge crosses a box, and no text overlaps another or its box."""

import itertools
import os
import random
import shutil
import stat
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
from matplotlib import figure as figures
from matplotlib.backends import backend_agg

from hugectr.commands import graphviz
from hugectr.commands import layout
from hugectr.commands import picture
from hugectr.config import model as models

_EXAMPLES = os.path.join(os.environ["TEST_SRCDIR"], os.environ["TEST_WORKSPACE"],
                         "addons/hugectr/example")
_NAMES = ("criteo_parquet", "dcn", "deepfm", "dlrm", "wdl")


def _model(name):
  return models.read(os.path.join(_EXAMPLES, name + ".json"))[0]


def _points(curve, steps=24):
  """Returns points on the cubic Bezier curves of an edge."""
  found = []
  for k in range(0, len(curve) - 1, 3):
    p = curve[k:k + 4]
    for t in (step / float(steps) for step in range(steps + 1)):
      weights = ((1 - t) ** 3, 3 * (1 - t) ** 2 * t, 3 * (1 - t) * t ** 2, t ** 3)
      found.append(tuple(sum(w * q[axis] for w, q in zip(weights, p)) for axis in (0, 1)))
  return found


def _overlap(a, b):
  """Returns whether two rectangles (left, top, right, bottom) share more than a side."""
  return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def _drawn(model):
  with mock.patch.object(graphviz, "program", return_value=None):
    return picture._drawing(model)  # pylint: disable=protected-access


class PictureTest(parameterized.TestCase):

  def check(self, boxes, edges, placed, slack=0.):
    """Checks that boxes do not overlap and edges touch only the boxes they connect."""
    places = [(x, y, x + box.width, y + layout.HEIGHT)
              for box, (x, y) in zip(boxes, placed.corners)]
    for a, b in itertools.combinations(places, 2):
      self.assertFalse(_overlap(a, b), (a, b))
    for left, top, right, bottom in places:
      self.assertTrue(left >= 0 and top >= 0 and right <= placed.width and
                      bottom <= placed.height)
    for edge, curve in zip(edges, placed.curves):
      source, target = places[edge.source], places[edge.target]
      begin = source[0] + boxes[edge.source].width * (edge.cell + .5) / boxes[
          edge.source].cells
      self.assertAlmostEqual(curve[0][0], begin, delta=.1 + slack)
      self.assertAlmostEqual(curve[0][1], source[3], delta=.1 + slack)
      x, y = curve[-1]
      self.assertBetween(x, target[0] - slack, target[2] + slack)
      self.assertBetween(y, target[1] - slack, target[1] + (slack and layout.HEIGHT))
      for x, y in _points(curve):
        for left, top, right, bottom in places:
          self.assertFalse(left + slack + .01 < x < right - slack - .01 and
                           top + slack + .01 < y < bottom - slack - .01,
                           "%s at (%.1f, %.1f)" % (edge, x, y))

  @parameterized.parameters(*_NAMES)
  def test_edges_of_samples_cross_no_box(self, name):
    drawing = _drawn(_model(name))
    sizes = [layout.Box(w, len(b.tops)) for w, b in zip(drawing.widths, drawing.boxes)]
    self.check(sizes, drawing.edges, drawing.placed)

  @parameterized.parameters(range(12))
  def test_edges_of_any_graph_cross_no_box(self, seed):
    rng = random.Random(seed)
    boxes = [layout.Box(rng.choice([60., 150., 300.]), rng.randint(1, 4))
             for _ in range(rng.randint(2, 40))]
    edges = []
    for target in range(1, len(boxes)):
      for _ in range(rng.choice([0, 1, 1, 2, 3])):
        source = rng.randrange(max(0, target - rng.choice([1, 4, 40])), target)
        edges.append(layout.Edge(source, rng.randrange(boxes[source].cells), target))
    self.check(boxes, edges, layout.place(boxes, edges))

  def test_a_graph_that_needs_no_crossing_has_none(self):
    boxes = [layout.Box(100., 4)] + [layout.Box(100., 1)] * 8
    # Two steps to four ends, in an order that must be changed.
    edges = ([layout.Edge(0, cell, box) for cell, box in enumerate((3, 1, 4, 2))] +
             [layout.Edge(box, 0, box + 4) for box in (1, 2, 3, 4)])
    placed = layout.place(boxes, edges)
    for first in (0, 4):
      layer = edges[first:first + 4]
      begins = [placed.curves[first + k][0][0] for k in range(4)]
      ends = [placed.corners[edge.target][0] for edge in layer]
      self.assertEqual(sorted(range(4), key=begins.__getitem__),
                       sorted(range(4), key=ends.__getitem__))

  @parameterized.parameters(*_NAMES)
  def test_texts_stay_in_their_cells(self, name):
    model = _model(name)
    model = model._replace(layers=[
        model.layers[0]._replace(name="a name of so many letters that it is cut somewhere"),
        model.layers[1]._replace(name="\u5c42" * 12)] + model.layers[2:])
    drawing = _drawn(model)
    figure = figures.Figure()
    renderer = backend_agg.FigureCanvasAgg(figure).get_renderer()
    unit = 72. / figure.dpi  # Points per unit of the picture, at one pixel per unit.
    found = []
    for text in drawing.texts:
      artist = figure.text(0, 0, picture.shown(text.text), fontweight=text.weight,
                           fontsize=picture.font_size(text) * unit)
      # The font has no East Asian characters; they are as wide as high.
      wide = sum(ord(c) > 0x2fff for c in text.text)
      width = (wide * 12 if wide else artist.get_window_extent(renderer).width)
      found.append((text.x - width / 2., text.y - 10, text.x + width / 2., text.y + 3))
      homes = [(x, x + w) for (x, y), w in zip(drawing.placed.corners, drawing.widths)
               if y < text.y < y + layout.HEIGHT and x < text.x < x + w]
      self.assertLen(homes, 1, text)
      self.assertBetween(found[-1][0], homes[0][0] + 2, text.x, text)
      self.assertBetween(found[-1][2], text.x, homes[0][1] - 2, text)
    for a, b in itertools.combinations(found, 2):
      self.assertFalse(_overlap(a, b), (a, b))

  def test_a_long_name_is_cut_and_whole_in_the_tooltip(self):
    model = _model("dcn")
    name = "x" * 300
    model = model._replace(layers=[model.layers[0]._replace(name=name)] + model.layers[1:])
    with mock.patch.object(graphviz, "program", return_value=None):
      text = picture.svg(model)
    self.assertIn("<title>%s</title>%s\u2026</text>" % (name, "x" * 39), text)

  def test_dot_places_samples(self):
    if shutil.which("dot") is None:
      self.skipTest("Graphviz is not installed")
    for name in _NAMES:
      drawing = picture._drawing(_model(name))  # pylint: disable=protected-access
      sizes = [layout.Box(w, len(b.tops)) for w, b in zip(drawing.widths, drawing.boxes)]
      self.check(sizes, drawing.edges, drawing.placed, slack=1.5)

  def program(self, script):
    path = self.create_tempfile(content="#!/bin/sh\n" + script).full_path
    os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
    return path

  def test_dot_is_asked_and_its_answer_read(self):
    asked = self.create_tempdir().full_path + "/asked"
    # Output of Graphviz 2.43, without labels. Edges are in Graphviz's order.
    dot = self.program("""cat > %s
cat <<'END'
graph 1 2 2.5
node b0 1.0 2.04167 2.0 0.91667 <x> solid none black lightgrey
node b1 0.5 0.45833 1.0 0.91667 <x> solid none black lightgrey
edge b0 b1 4 1.5 1.58 1.5 1.3 0.9 1.2 0.7 0.92 solid "#000001"
edge b0 b1 4 0.5 1.58 0.5 1.3 0.5 1.2 0.5 0.92 solid "#000000"
stop
END
""" % asked)
    boxes = [layout.Box(144., 2), layout.Box(72., 1)]
    edges = [layout.Edge(0, 0, 1), layout.Edge(0, 1, 1)]
    placed = graphviz.place(dot, boxes, edges)
    self.assertEqual((placed.width, placed.height), (184., 220.))
    self.check(boxes, edges, placed, slack=1.)
    with open(asked) as f:
      text = f.read()
    self.assertIn('b0:p1:s -> b1 [color="#000001"];', text)
    self.assertIn('PORT="p1" FIXEDSIZE="true" WIDTH="72" HEIGHT="22"', text)

  @parameterized.parameters(
      ("cat > /dev/null; echo no plugin >&2; exit 3", "non-zero exit status 3.*no plugin"),
      (None, "No such file"))
  def test_dot_that_fails_is_a_sentence(self, script, expected):
    dot = self.program(script) if script else "/no/dot"
    with mock.patch.object(graphviz, "program", return_value=dot):
      with self.assertRaisesRegex(RuntimeError, "check: %s, Graphviz's .*failed: .*%s.*Remedy" %
                                  (dot, expected)):
        picture.svg(_model("dcn"))


if __name__ == "__main__":
  absltest.main()
