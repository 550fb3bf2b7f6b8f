# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Places the boxes of a picture in layers, from top to bottom, and routes its edges.

Boxes of a layer have one height. An edge that passes a layer gets its own position in
it, like a box without width, and bends only between two layers. So it crosses no box.
"""

import collections

HEIGHT = 66

# Distances: between two boxes of a layer, beside an edge that passes a layer, between
# two layers.
_GAP, _EDGE_GAP, _LAYER_GAP = 28, 14, 46
# Margin of the picture.
_MARGIN = 20

# Iterations that improve the order within layers, and the positions.
_ORDER_SWEEPS, _PLACE_SWEEPS = 24, 60

# Weight of an edge that passes a layer, relative to a box, against bends.
_STIFFNESS = 4.0

# width: float, at least 1. cells: int, number of equal parts of the lower side; edges
# start in their middles.
Box = collections.namedtuple("Box", ["width", "cells"])

# source, target: numbers of boxes, source < target. cell: cell of the source.
Edge = collections.namedtuple("Edge", ["source", "cell", "target"])

# corners: list of (x, y), upper left, y downwards. curves: for each edge a list of
# points: its start, then three for each cubic Bezier curve. width, height: size of
# the picture.
Placed = collections.namedtuple("Placed", ["corners", "curves", "width", "height"])


class _Node(object):
  """A box, or the position of an edge in a layer that it passes.

  Attributes:
    box: int, or None. layer: int. width: float. x: float, its left side.
    above, below: lists of _Link.
  """

  def __init__(self, box, layer, width):
    self.box, self.layer, self.width = box, layer, width
    self.x = 0.
    self.above, self.below = [], []


class _Link(object):
  """Connects nodes of neighbouring layers.

  Attributes:
    upper, lower: _Node. out, into: floats, x relative to them.
  """

  def __init__(self, upper, out, lower):
    self.upper, self.out, self.lower, self.into = upper, out, lower, lower.width / 2.
    upper.below.append(self)
    lower.above.append(self)


def _layers_of(count, edges):
  """Returns the layer of each box: one more than the deepest of its sources."""
  sources = [[] for _ in range(count)]
  for edge in edges:
    sources[edge.target].append(edge.source)
  found = []
  for box in range(count):
    found.append(1 + max([found[s] for s in sources[box]] or [-1]))
  return found


def _linked(boxes, edges):
  """Returns (layers, chains): lists of _Node, and for each edge its list of _Link."""
  of_box = [_Node(box, layer, boxes[box].width)
            for box, layer in enumerate(_layers_of(len(boxes), edges))]
  layers = [[] for _ in range(1 + max(node.layer for node in of_box))]
  for node in of_box:
    layers[node.layer].append(node)
  chains = []
  for edge in edges:
    node, last, chain = of_box[edge.source], of_box[edge.target], []
    out = node.width * (edge.cell + .5) / boxes[edge.source].cells
    while node.layer + 1 < last.layer:
      passing = _Node(None, node.layer + 1, 0.)
      layers[passing.layer].append(passing)
      chain.append(_Link(node, out, passing))
      node, out = passing, 0.
    chain.append(_Link(node, out, last))
    chains.append(chain)
  return layers, chains


def _crossings(layers):
  """Returns the number of crossing pairs of links, for the present order of nodes."""
  total = 0
  for upper, lower in zip(layers, layers[1:]):
    at = {node: k for k, node in enumerate(lower)}
    ends = [at[link.lower] for node in upper for link in sorted(
        node.below, key=lambda link: (link.out, at[link.lower]))]
    total += sum(b < a for k, a in enumerate(ends) for b in ends[k + 1:])
  return total


def _wish(node, at, own, down):
  """Returns the best position of a node in its layer: the mean of its neighbours' positions.

  Args:
    node: _Node.
    at: dict from each node of the neighbouring layer to its position, a float.
    own: dict from each node of its own layer to its position.
    down: bool, whether the neighbouring layer is the one above.
  """
  if down:
    places = [at[k.upper] + k.out / (k.upper.width + 1.) for k in node.above]
  else:
    places = [at[k.lower] - k.out / (node.width + 1.) for k in node.below]
  return sum(places) / len(places) if places else own[node]


def _order(layers):
  """Orders the nodes of each layer so that few links cross."""
  best, fewest = None, None
  for sweep in range(_ORDER_SWEEPS):
    down = sweep % 2 == 0
    for fixed, moved in (zip(layers, layers[1:]) if down else
                         zip(layers[::-1], layers[-2::-1])):
      at = {node: float(k) for k, node in enumerate(fixed)}
      own = {node: float(k) for k, node in enumerate(moved)}
      wishes = {node: _wish(node, at, own, down) for node in moved}
      moved.sort(key=wishes.__getitem__)
    count = _crossings(layers)
    if fewest is None or count < fewest:
      best, fewest = [list(layer) for layer in layers], count
  for layer, nodes in zip(layers, best):
    layer[:] = nodes


def _distance(left, right):
  """Returns the minimum distance between the left sides of two neighbouring nodes."""
  passing = left.box is None or right.box is None
  return left.width + (_EDGE_GAP if passing else _GAP)


def _settle(layer, wishes, weights):
  """Places a layer's nodes in order and without overlap, close to their wishes.

  Minimizes the sum of weight * (x - wish)^2: nodes that would overlap form a block,
  which is placed at the mean of its nodes' wishes.
  """
  begins = [0.]
  for left, right in zip(layer, layer[1:]):
    begins.append(begins[-1] + _distance(left, right))
  blocks = []  # [weight, weighted sum of (wish - begin), nodes]
  for begin, wish, weight in zip(begins, wishes, weights):
    blocks.append([weight, weight * (wish - begin), 1])
    while len(blocks) > 1 and blocks[-2][1] / blocks[-2][0] > blocks[-1][1] / blocks[-1][0]:
      last = blocks.pop()
      blocks[-1] = [a + b for a, b in zip(blocks[-1], last)]
  at = 0
  for weight, total, nodes in blocks:
    for k in range(at, at + nodes):
      layer[k].x = total / weight + begins[k]
    at += nodes


def _spread_ends(layer):
  """Spreads the ends of the links at a box, in the order of their starts."""
  for node in layer:
    if node.box is not None:
      links = sorted(node.above, key=lambda link: link.upper.x + link.out)
      for k, link in enumerate(links, 1):
        link.into = node.width * k / (len(links) + 1.)


def _place(layers):
  """Sets x of every node."""
  for layer in layers:
    _settle(layer, [0.] * len(layer), [1.] * len(layer))
  for sweep in range(_PLACE_SWEEPS):
    # The first sweeps use one side only, which moves whole branches.
    whole = sweep >= 8
    for layer in layers if sweep % 2 == 0 else layers[::-1]:
      _spread_ends(layer)
      wishes, weights = [], []
      for node in layer:
        found = []
        if whole or sweep % 2 == 0:
          found += [(k.upper.x + k.out - k.into, k.upper.box) for k in node.above]
        if whole or sweep % 2 == 1:
          found += [(k.lower.x + k.into - k.out, k.lower.box) for k in node.below]
        strength = [_STIFFNESS if box is None and node.box is None else 1.
                    for _, box in found]
        if found:
          wishes.append(sum(s * x for s, (x, _) in zip(strength, found)) / sum(strength))
          weights.append(sum(strength))
        else:
          wishes.append(node.x)
          weights.append(.1)
      _settle(layer, wishes, weights)
  for layer in layers:
    _spread_ends(layer)


def place(boxes, edges):
  """Returns the Placed of boxes and edges.

  Args:
    boxes: list of Box.
    edges: list of Edge.
  """
  layers, chains = _linked(boxes, edges)
  _order(layers)
  _place(layers)
  left = min(node.x for layer in layers for node in layer) - _MARGIN
  right = max(node.x + node.width for layer in layers for node in layer) + _MARGIN

  def top(layer):
    return _MARGIN + layer * (HEIGHT + _LAYER_GAP)

  corners = [None] * len(boxes)
  for node in (node for layer in layers for node in layer):
    if node.box is not None:
      corners[node.box] = (node.x - left, top(node.layer))
  curves = []
  for chain in chains:
    curve = []
    for link in chain:
      x1, y1 = link.upper.x + link.out - left, top(link.upper.layer) + HEIGHT
      x2, y2 = link.lower.x + link.into - left, top(link.lower.layer)
      if curve:
        # Straight down past the boxes of the layer.
        above = curve[-1]
        curve += [above, (x1, y1), (x1, y1)]
      else:
        curve.append((x1, y1))
      middle = (y1 + y2) / 2.
      curve += [(x1, middle), (x2, middle), (x2, y2)]
    curves.append(curve)
  return Placed(corners, curves, right - left, top(len(layers)) - _LAYER_GAP + _MARGIN)
