# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Draws the layers of a model, SVG or PNG, from the data at the top to the loss."""

import collections
import warnings
import xml.sax.saxutils

_BOX_WIDTH, _BOX_HEIGHT, _GAP_X, _GAP_Y, _EDGE = 210, 46, 24, 44, 20

_COLOURS = {"data": "#e8eef7", "embedding": "#e6f4ea", "layer": "#ffffff",
            "loss": "#fdecea"}


def _boxes(model):
  """Returns [(kind, name, type, bottoms, {top: shape as text})]."""
  data = model.data
  tops = {data.label_top: "[batch, %d]" % data.label_dim,
          data.dense_top: "[batch, %d]" % data.dense_dim}
  tops.update((s.top, "%d slots" % s.slot_num) for s in data.sparse)
  found = [("data", data.name, data.format, [], tops)]
  for e in model.embeddings:
    shape = "[batch, %d, %d]" % (e.bottom.slot_num, e.vec_size)
    found.append(("embedding", e.name, e.type, [e.bottom.top], {e.top: shape}))
  for layer in model.layers:
    found.append(("layer", layer.name, layer.type, layer.bottoms,
                  dict(zip(layer.tops, map(str, layer.out_shapes)))))
  loss = model.loss
  found.append(("loss", loss.name, loss.type, loss.bottoms, {}))
  return found


def _places(boxes):
  """Returns [(column, row)]: a box stands below all that it takes tensors from."""
  maker, rows, counts, places = {}, [], {}, []
  for k, (_, _, _, bottoms, tops) in enumerate(boxes):
    row = 1 + max([rows[maker[b]] for b in bottoms] or [-1])
    rows.append(row)
    places.append((counts.get(row, 0), row))
    counts[row] = counts.get(row, 0) + 1
    maker.update((top, k) for top in tops)
  widest = max(counts.values())
  # Rows are centred.
  return [(column + (widest - counts[row]) / 2.0, row) for column, row in places], maker


# Points are (x, y), y downwards. boxes: list of (corner, kind, name, type). arrows: list of
# four points of a curve. labels: list of (point, text).
_Drawing = collections.namedtuple("Drawing", ["width", "height", "boxes", "arrows", "labels"])


def _drawing(model):
  boxes = _boxes(model)
  places, maker = _places(boxes)

  def corner(k):
    column, row = places[k]
    return (_EDGE + column * (_BOX_WIDTH + _GAP_X), _EDGE + row * (_BOX_HEIGHT + _GAP_Y))

  drawn, arrows, labels = [], [], []
  for k, (kind, name, type_name, bottoms, _) in enumerate(boxes):
    x, y = corner(k)
    drawn.append(((x, y), kind, name, type_name))
    for bottom in bottoms:
      from_x, from_y = corner(maker[bottom])
      x1, y1 = from_x + _BOX_WIDTH / 2, from_y + _BOX_HEIGHT
      x2 = x + _BOX_WIDTH / 2
      arrows.append([(x1, y1), (x1, y1 + _GAP_Y / 2), (x2, y - _GAP_Y / 2), (x2, y)])
      labels.append(((x1 + (x2 - x1) * .3, y1 + 15),
                     "%s %s" % (bottom, boxes[maker[bottom]][4][bottom])))
  width = 2 * _EDGE + max(c + 1 for c, _ in places) * (_BOX_WIDTH + _GAP_X)
  height = 2 * _EDGE + (1 + max(r for _, r in places)) * (_BOX_HEIGHT + _GAP_Y)
  return _Drawing(width, height, drawn, arrows, labels)


def svg(model):
  """Returns the picture, an SVG document.

  Args:
    model: config's Model.
  """
  drawing = _drawing(model)

  def escaped(text):
    return xml.sax.saxutils.escape(str(text))

  boxes, lines, labels = [], [], []
  for (x, y), kind, name, type_name in drawing.boxes:
    boxes.append('<rect x="%.0f" y="%.0f" width="%d" height="%d" rx="6" fill="%s" '
                 'stroke="#555"/>' % (x, y, _BOX_WIDTH, _BOX_HEIGHT, _COLOURS[kind]))
    for text, dy, weight in ((name, 19, "bold"), (type_name, 36, "normal")):
      boxes.append('<text x="%.0f" y="%.0f" text-anchor="middle" font-weight="%s">%s'
                   "</text>" % (x + _BOX_WIDTH / 2, y + dy, weight, escaped(text)))
  for points in drawing.arrows:
    lines.append('<path d="M%.0f %.0f C%.0f %.0f %.0f %.0f %.0f %.0f" fill="none" '
                 'stroke="#888" marker-end="url(#arrow)"/>' %
                 tuple(number for point in points for number in point))
  for (x, y), text in drawing.labels:
    labels.append('<text x="%.0f" y="%.0f" fill="#555" font-size="10" '
                  'text-anchor="middle">%s</text>' % (x, y, escaped(text)))
  head = ('<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" '
          'font-family="sans-serif" font-size="12">\n<defs><marker id="arrow" '
          'viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" '
          'orient="auto"><path d="M0 0 L10 5 L0 10 z" fill="#888"/></marker></defs>\n'
          '<rect width="100%%" height="100%%" fill="white"/>' %
          (drawing.width, drawing.height))
  return "\n".join([head] + lines + boxes + labels + ["</svg>\n"])


# Dots of an SVG's unit, and of an inch.
_DOTS_PER_UNIT, _DOTS_PER_INCH = 1.5, 108


def write_png(model, path):
  """Writes the picture as a PNG, by matplotlib.

  Args:
    model: config's Model.
    path: string.

  Raises:
    RuntimeError: matplotlib is not installed.
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
  figure = figures.Figure(figsize=(drawing.width * scale, drawing.height * scale),
                          dpi=_DOTS_PER_INCH, facecolor="white")
  backend_agg.FigureCanvasAgg(figure)
  axes = figure.add_axes([0, 0, 1, 1])
  axes.set_xlim(0, drawing.width)
  axes.set_ylim(drawing.height, 0)
  axes.set_axis_off()
  for points in drawing.arrows:
    curve = paths.Path(points, [paths.Path.MOVETO] + [paths.Path.CURVE4] * 3)
    axes.add_patch(patches.FancyArrowPatch(path=curve, arrowstyle="-|>", mutation_scale=8,
                                           color="#888"))
  # Points of 1/72 inch. Letters are smaller than the SVG's: this font is wider.
  unit = scale * 72
  for (x, y), kind, name, type_name in drawing.boxes:
    axes.add_patch(patches.FancyBboxPatch(
        (x + 6, y + 6), _BOX_WIDTH - 12, _BOX_HEIGHT - 12,
        boxstyle="round,pad=6,rounding_size=6", facecolor=_COLOURS[kind],
        edgecolor="#555"))
    # A name may have a dollar sign, which would begin a formula.
    for text, dy, weight in ((name, 19, "bold"), (type_name, 36, "normal")):
      axes.text(x + _BOX_WIDTH / 2, y + dy, text.replace("$", r"\$"), ha="center",
                fontweight=weight, fontsize=9.5 * unit)
  for (x, y), text in drawing.labels:
    axes.text(x, y, text.replace("$", r"\$"), ha="center", color="#555",
              fontsize=8.5 * unit)
  with warnings.catch_warnings():
    # A letter that the font lacks is a box.
    warnings.simplefilter("ignore", UserWarning)
    figure.savefig(path, dpi=_DOTS_PER_INCH, format="png")


def write(model, path):
  """Writes the picture: a PNG if the path ends with .png, else an SVG.

  Raises:
    RuntimeError, OSError: as write_png.
  """
  if path.lower().endswith(".png"):
    write_png(model, path)
  else:
    with open(path, "w", encoding="utf-8") as f:
      f.write(svg(model))
