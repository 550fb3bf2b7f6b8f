# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Draws the layers of a model as SVG, from the data at the top to the loss."""

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


def svg(model):
  """Returns the picture, an SVG document.

  Args:
    model: config's Model.
  """
  boxes = _boxes(model)
  places, maker = _places(boxes)

  def corner(k):
    column, row = places[k]
    return (_EDGE + column * (_BOX_WIDTH + _GAP_X), _EDGE + row * (_BOX_HEIGHT + _GAP_Y))

  def escaped(text):
    return xml.sax.saxutils.escape(str(text))

  lines, labels, drawn = [], [], []
  for k, (kind, name, type_name, bottoms, _) in enumerate(boxes):
    x, y = corner(k)
    drawn.append('<rect x="%.0f" y="%.0f" width="%d" height="%d" rx="6" fill="%s" '
                 'stroke="#555"/>' % (x, y, _BOX_WIDTH, _BOX_HEIGHT, _COLOURS[kind]))
    for text, dy, weight in ((name, 19, "bold"), (type_name, 36, "normal")):
      drawn.append('<text x="%.0f" y="%.0f" text-anchor="middle" font-weight="%s">%s'
                   "</text>" % (x + _BOX_WIDTH / 2, y + dy, weight, escaped(text)))
    for bottom in bottoms:
      from_x, from_y = corner(maker[bottom])
      x1, y1 = from_x + _BOX_WIDTH / 2, from_y + _BOX_HEIGHT
      x2 = x + _BOX_WIDTH / 2
      lines.append('<path d="M%.0f %.0f C%.0f %.0f %.0f %.0f %.0f %.0f" fill="none" '
                   'stroke="#888" marker-end="url(#arrow)"/>' %
                   (x1, y1, x1, y1 + _GAP_Y / 2, x2, y - _GAP_Y / 2, x2, y))
      shape = boxes[maker[bottom]][4][bottom]
      labels.append('<text x="%.0f" y="%.0f" fill="#555" font-size="10" '
                    'text-anchor="middle">%s %s</text>' %
                    (x1 + (x2 - x1) * .3, y1 + 15, escaped(bottom), escaped(shape)))
  width = 2 * _EDGE + max(c + 1 for c, _ in places) * (_BOX_WIDTH + _GAP_X)
  height = 2 * _EDGE + (1 + max(r for _, r in places)) * (_BOX_HEIGHT + _GAP_Y)
  head = ('<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" '
          'font-family="sans-serif" font-size="12">\n<defs><marker id="arrow" '
          'viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" '
          'orient="auto"><path d="M0 0 L10 5 L0 10 z" fill="#888"/></marker></defs>\n'
          '<rect width="100%%" height="100%%" fill="white"/>' % (width, height))
  return "\n".join([head] + lines + drawn + labels + ["</svg>\n"])
