# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Draws the layers of a model, SVG or PNG, from the data at the top to the loss.

A box shows the names of the tensors that it outputs. Edges have no text.
"""

import collections
import unicodedata
import warnings
import xml.sax.saxutils

from hugectr.commands import graphviz
from hugectr.commands import layout
from hugectr.config import model as models

_COLOURS = {"data": "#e8eef7", "embedding": "#e6f4ea", "layer": "#ffffff",
            "loss": "#fdecea"}

# Longest text that is shown; an SVG has the full text as a tooltip.
_MOST = 40

# Widths of a bold, normal and small character, and the padding of a text.
_BOLD, _NORMAL, _SMALL, _ROOM = 8.2, 7.2, 6.2, 16

# Distances from the top of a box: its two lines, the line above its tensors, the
# tensors.
_TITLE_Y, _TYPE_Y, _RULE_Y, _TENSOR_Y = 17, 34, 44, 59

# kind: a key of _COLOURS. bottoms: names of tensors. tops: list of (tensor's name,
# text).
_Box = collections.namedtuple("_Box", ["kind", "name", "type", "bottoms", "tops"])

# A text centred at (x, y). weight: "bold" or "normal".
_Text = collections.namedtuple("_Text", ["x", "y", "text", "weight", "is_small"])

# placed: layout.Placed. boxes: list of _Box. widths: floats. edges: list of
# layout.Edge. texts: list of _Text. rules: list of (x1, y1, x2, y2), lines within
# boxes.
_Drawing = collections.namedtuple("_Drawing", ["placed", "boxes", "widths", "edges", "texts",
                                               "rules"])


def shown(text):
  """Returns a text as the picture shows it: on one line, truncated if it is too long."""
  text = str(text).replace("\n", r"\n")
  return text if len(text) <= _MOST else text[:_MOST - 1] + "\u2026"


def _width(text, character):
  """Returns the width of a text; East Asian characters count twice."""
  return character * sum(2 if unicodedata.east_asian_width(c) in "WF" else 1
                         for c in shown(text))


def _boxes(model):
  """Returns the _Box of the data, of each embedding and layer, and of the loss."""
  data = model.data
  tops = [(data.label_top, "%s [batch, %d]" % (data.label_top, data.label_dim)),
          (data.dense_top, "%s [batch, %d]" % (data.dense_top, data.dense_dim))]
  tops += [(s.top, "%s, %d slots" % (s.top, s.slot_num)) for s in data.sparse]
  found = [_Box("data", data.name, data.format, [], tops)]
  for e in model.embeddings:
    found.append(_Box("embedding", e.name, e.type, [e.bottom.top], [
        (e.top, "%s [batch, %d, %d]" % (e.top, e.bottom.slot_num, models.top_width(e)))]))
  for layer in model.layers:
    found.append(_Box("layer", layer.name, layer.type, layer.bottoms, [
        (top, "%s %s" % pair) for top, pair in zip(
            layer.tops, zip(layer.tops, layer.out_shapes))]))
  for loss in model.losses:
    found.append(_Box("loss", loss.name, loss.type, loss.bottoms,
                      [(loss.tops[0], loss.tops[0])]))
  return found


def _drawing(model):
  """Returns the _Drawing of a model."""
  boxes = _boxes(model)
  cells = [max(_width(text, _SMALL) for _, text in b.tops) + _ROOM for b in boxes]
  widths = [max(_width(b.name, _BOLD) + _ROOM, _width(b.type, _NORMAL) + _ROOM,
                cell * len(b.tops)) for b, cell in zip(boxes, cells)]
  maker = {top: (k, cell) for k, b in enumerate(boxes)
           for cell, (top, _) in enumerate(b.tops)}
  edges = [layout.Edge(maker[bottom][0], maker[bottom][1], k)
           for k, b in enumerate(boxes) for bottom in b.bottoms]
  sizes = [layout.Box(width, len(b.tops)) for b, width in zip(boxes, widths)]
  dot = graphviz.program()
  placed = graphviz.place(dot, sizes, edges) if dot else layout.place(sizes, edges)
  texts, rules = [], []
  for b, width, (x, y) in zip(boxes, widths, placed.corners):
    texts.append(_Text(x + width / 2., y + _TITLE_Y, b.name, "bold", False))
    texts.append(_Text(x + width / 2., y + _TYPE_Y, b.type, "normal", False))
    rules.append((x, y + _RULE_Y, x + width, y + _RULE_Y))
    for k, (_, text) in enumerate(b.tops):
      left = x + width * k / len(b.tops)
      texts.append(_Text(left + width / len(b.tops) / 2., y + _TENSOR_Y, text, "normal",
                         True))
      if k:
        rules.append((left, y + _RULE_Y, left, y + layout.HEIGHT))
  return _Drawing(placed, boxes, widths, edges, texts, rules)


def _svg_text(text):
  """Returns the SVG element of a _Text."""

  def escaped(value):
    return xml.sax.saxutils.escape(str(value))

  short = shown(text.text)
  tooltip = "" if short == text.text else "<title>%s</title>" % escaped(text.text)
  return ('<text x="%.0f" y="%.0f" text-anchor="middle" font-weight="%s" font-size="%d">%s%s'
          "</text>" % (text.x, text.y, text.weight, 10 if text.is_small else 12, tooltip,
                       escaped(short)))


def svg(model):
  """Returns the picture, an SVG document.

  Args:
    model: the config's Model.

  Raises:
    RuntimeError: Graphviz is installed and fails.
  """
  drawing = _drawing(model)
  boxes, lines = [], []
  for b, width, (x, y) in zip(drawing.boxes, drawing.widths, drawing.placed.corners):
    boxes.append('<rect x="%.0f" y="%.0f" width="%.0f" height="%d" rx="6" fill="%s" '
                 'stroke="#555"/>' % (x, y, width, layout.HEIGHT, _COLOURS[b.kind]))
  for rule in drawing.rules:
    boxes.append('<line x1="%.0f" y1="%.0f" x2="%.0f" y2="%.0f" stroke="#bbb"/>' % rule)
  for points in drawing.placed.curves:
    numbers = ["%.1f %.1f" % point for point in points]
    lines.append('<path d="M%s C%s" fill="none" stroke="#777" marker-end="url(#arrow)"/>' %
                 (numbers[0], " ".join(numbers[1:])))
  head = ('<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" '
          'font-family="sans-serif" font-size="12">\n<defs><marker id="arrow" '
          'viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" '
          'orient="auto"><path d="M0 0 L10 5 L0 10 z" fill="#777"/></marker></defs>\n'
          '<rect width="100%%" height="100%%" fill="white"/>' %
          (drawing.placed.width, drawing.placed.height))
  return "\n".join([head] + lines + boxes + [_svg_text(t) for t in drawing.texts] +
                   ["</svg>\n"])


# Pixels per unit of the SVG, and per inch.
_DOTS_PER_UNIT, _DOTS_PER_INCH = 1.5, 108


def font_size(text):
  """Returns the font size of a _Text in a PNG, in units of the picture.

  Smaller than in the SVG, since matplotlib's font is wider than most.
  """
  return 8.5 if text.is_small else 9.8


def write_png(model, path):
  """Writes the picture as a PNG, by matplotlib.

  Args:
    model: the config's Model.
    path: string.

  Raises:
    RuntimeError: matplotlib is not installed, or Graphviz is installed and fails.
    OSError: the file cannot be written.
  """
  try:
    # pylint: disable=g-import-not-at-top
    from matplotlib import figure as figures, patches, path as paths
    from matplotlib.backends import backend_agg
  except ImportError:
    raise RuntimeError("check: matplotlib, which draws a PNG, is not installed: install it, "
                       "or give --plot a path that ends with .svg")
  drawing = _drawing(model)
  scale = _DOTS_PER_UNIT / _DOTS_PER_INCH
  width, height = drawing.placed.width, drawing.placed.height
  figure = figures.Figure(figsize=(width * scale, height * scale), dpi=_DOTS_PER_INCH,
                          facecolor="white")
  backend_agg.FigureCanvasAgg(figure)
  axes = figure.add_axes([0, 0, 1, 1])
  axes.set_xlim(0, width)
  axes.set_ylim(height, 0)
  axes.set_axis_off()
  for points in drawing.placed.curves:
    curve = paths.Path(points, [paths.Path.MOVETO] + [paths.Path.CURVE4] * (len(points) - 1))
    axes.add_patch(patches.FancyArrowPatch(path=curve, arrowstyle="-|>", mutation_scale=8,
                                           color="#777"))
  # One point is 1/72 inch.
  unit = scale * 72
  for b, box_width, (x, y) in zip(drawing.boxes, drawing.widths, drawing.placed.corners):
    axes.add_patch(patches.FancyBboxPatch(
        (x + 6, y + 6), box_width - 12, layout.HEIGHT - 12,
        boxstyle="round,pad=6,rounding_size=6", facecolor=_COLOURS[b.kind],
        edgecolor="#555"))
  for x1, y1, x2, y2 in drawing.rules:
    axes.plot([x1, x2], [y1, y2], color="#bbb", linewidth=.8)
  for text in drawing.texts:
    # Escape dollar signs, which would start a formula.
    axes.text(text.x, text.y, shown(text.text).replace("$", r"\$"), ha="center",
              fontweight=text.weight, fontsize=font_size(text) * unit)
  with warnings.catch_warnings():
    # A character that the font lacks is drawn as a box.
    warnings.simplefilter("ignore", UserWarning)
    figure.savefig(path, dpi=_DOTS_PER_INCH, format="png")


def write(model, path):
  """Writes the picture: a PNG if the path ends with .png, else an SVG.

  Raises:
    RuntimeError, OSError: as in write_png.
  """
  if path.lower().endswith(".png"):
    write_png(model, path)
  else:
    with open(path, "w", encoding="utf-8") as f:
      f.write(svg(model))
