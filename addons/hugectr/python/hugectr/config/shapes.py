# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Computes the output shape of each type of layer, and reports wrong input shapes.

A Shape omits the batch: a tensor has the shape `batch * rows` by `dims`. `rows` is 1
except after a Reshape whose last axis is shorter than a sample.
"""

import collections


class Shape(collections.namedtuple("Shape", ["rows", "dims"])):
  """rows: int; dims: tuple of ints, the axes after the first."""

  def __str__(self):
    first = "batch" if self.rows == 1 else "batch * %d" % self.rows
    return "[%s]" % ", ".join([first] + [str(d) for d in self.dims])

  @property
  def width(self):
    """int, numbers per row."""
    product = 1
    for d in self.dims:
      product *= d
    return product


class ShapeError(ValueError):
  """The bottoms do not fit a layer; the text has no path."""


def flat(width, rows=1):
  return Shape(rows, (width,))


def _need(holds, sentence, *args):
  if not holds:
    raise ShapeError(sentence % args)


def _rank(shape, rank, what="the bottom"):
  _need(len(shape.dims) == rank - 1, "%s must have %d axes, got %s", what, rank, shape)


def _same(shapes, params):
  del params
  for shape in shapes[1:]:
    _need(shape == shapes[0], "bottoms must have one shape, got %s and %s", shapes[0],
          shape)
  return [shapes[0]]


def _unchanged(shapes, params):
  del params
  return [shapes[0]]


def _two_of_a_shape(shapes, params):
  _need(len(shapes) == 2, "expected 2 bottoms, got %d", len(shapes))
  return _same(shapes, params)


def _inner_product(shapes, params):
  shape, = shapes
  return [Shape(shape.rows, shape.dims[:-1] + (params["fc_param"]["num_output"],))]


def _flat_only(shapes, params):
  del params
  _rank(shapes[0], 2)
  return [shapes[0]]


def _interaction(shapes, params):
  del params
  _need(len(shapes) == 2, "expected 2 bottoms, got %d", len(shapes))
  mlp, vectors = shapes
  _rank(mlp, 2, "the first bottom")
  _rank(vectors, 3, "the second bottom")
  _need(mlp.dims[0] == vectors.dims[1] and mlp.rows == vectors.rows,
        "the first bottom %s and the vectors of the second %s must be of one length",
        mlp, vectors)
  n = 1 + vectors.dims[0]
  return [flat(mlp.dims[0] + n * (n - 1) // 2 + 1, mlp.rows)]


def concat_axis(shapes, params):
  """Returns the axis that Concat joins, where the batch is axis 0."""
  return params.get("axis", 1)


def _concat(shapes, params):
  first = shapes[0]
  axis = concat_axis(shapes, params) - 1
  for shape in shapes:
    _need(len(shape.dims) == len(first.dims) and shape.rows == first.rows and
          len(shape.dims) <= 2, "bottoms must agree in all axes but one, got %s and %s",
          first, shape)
    _need(axis < len(shape.dims), "there is no axis %d in %s", axis + 1, shape)
    _need(shape.dims[:axis] + shape.dims[axis + 1:] ==
          first.dims[:axis] + first.dims[axis + 1:],
          "bottoms must agree in all axes but %d, got %s and %s", axis + 1, first, shape)
  dims = list(first.dims)
  dims[axis] = sum(s.dims[axis] for s in shapes)
  return [Shape(first.rows, tuple(dims))]


def _slice(shapes, params):
  shape, = shapes
  _rank(shape, 2)
  tops = []
  for first, end in params["ranges"]:
    _need(first < end <= shape.dims[0], "range [%d, %d) is not within the %d columns of "
          "the bottom", first, end, shape.dims[0])
    tops.append(flat(end - first, shape.rows))
  return tops


def _reshape(shapes, params):
  shape, = shapes
  if "selected" in params:
    _need("leading_dim" not in params,
          "expected either leading_dim or selected, got both")
    _rank(shape, 3)
    for slot in params["selected"]:
      _need(slot < shape.dims[0], "slot %d is selected, and the bottom has %d slots",
            slot, shape.dims[0])
    return [flat(len(params["selected"]) * shape.dims[1], shape.rows)]
  _need("leading_dim" in params, "expected leading_dim or selected")
  last, total = params["leading_dim"], shape.rows * shape.width
  _need(total % last == 0, "leading_dim, the last axis of what the layer gives, must "
        "divide the %d numbers of a sample (bottom %s), got %d", total, shape, last)
  return [flat(last, total // last)]


def _multiply(shapes, params):
  shape, = shapes
  _rank(shape, 2)
  slots, floats = params["weight_dims"]
  _need(shape.dims[0] == slots, "weight_dims[0] must be the width of the bottom, %d, "
        "got %d", shape.dims[0], slots)
  return [flat(slots * floats, shape.rows)]


def _fm_order_2(shapes, params):
  shape, = shapes
  _rank(shape, 2)
  _need(shape.dims[0] % params["out_dim"] == 0, "out_dim must divide the width of the "
        "bottom, %d, got %d", shape.dims[0], params["out_dim"])
  return [flat(params["out_dim"], shape.rows)]


def _reduce(shapes, params):
  shape, = shapes
  axis = params["axis"]
  _need(axis <= len(shape.dims), "there is no axis %d in %s", axis, shape)
  dims = list(shape.dims)
  dims[axis - 1] = 1
  return [Shape(shape.rows, tuple(dims))]


def _scale(shapes, params):
  shape, = shapes
  _rank(shape, 2)
  factor = params["scale_param"].get("factor", 1)
  if params["scale_param"].get("axis", 1) == 0:
    return [flat(shape.dims[0] * factor, shape.rows)]
  return [flat(shape.dims[0], shape.rows * factor)]


def _gru(shapes, params):
  shape, = shapes
  clause = params["gru_param"]
  steps, floats = clause["SeqLength"], clause["vector_size"]
  _need(shape.dims in ((steps * floats,), (steps, floats)), "expected a bottom of SeqLength "
        "vectors of vector_size floats, [batch, %d] or [batch, %d, %d], got %s",
        steps * floats, steps, floats, shape)
  return [flat(steps * clause["num_output"], shape.rows)]


def _gather(shapes, params):
  shape, = shapes
  for index in params["indices"]:
    _need(index < shape.dims[-1], "index %d is not below %d, the last axis of the bottom %s",
          index, shape.dims[-1], shape)
  return [Shape(shape.rows, shape.dims[:-1] + (len(params["indices"]),))]


def labels_of_row(loss_type, logits):
  """Returns how many labels a loss needs for one row of logits (a Shape)."""
  return logits.dims[0] if loss_type == "MultiCrossEntropyLoss" else 1


def _loss(width):
  """Returns the shape function of a loss whose logits have `width` columns (None: any).

  After a Reshape a sample may have several rows of logits. Its labels are then those of
  all rows side by side, or those of one row, which apply to each row.
  """

  def infer(shapes, params):
    _need(len(shapes) == 2, "expected 2 bottoms, logits and label, got %d", len(shapes))
    logits, label = shapes
    _rank(logits, 2, "the first bottom")
    if width is not None:
      _need(logits.dims[0] == width, "the first bottom must be [batch, %d], got %s",
            width, logits)
    expected = labels_of_row(params["type"], logits)
    fitting = sorted({expected, expected * logits.rows})
    _need(label.dims[0] in fitting, "the label must be %s, got %s",
          " or ".join("[batch, %d]" % n for n in fitting), label)
    weights = params.get("target_weight")
    _need(weights is None or len(weights) == expected,
          "target_weight must have %d numbers, got %d", expected, len(weights or ()))
    return [Shape(0, ())]

  return infer


LOSSES = {
    "BinaryCrossEntropyLoss": _loss(1),
    "CrossEntropyLoss": _loss(2),
    "MultiCrossEntropyLoss": _loss(None),
}

# Functions from the bottoms' Shapes and the layer's dict to the tops' Shapes.
OF_TYPE = dict(
    LOSSES,
    InnerProduct=_inner_product, FusedInnerProduct=_inner_product,
    MultiCross=_flat_only, Interaction=_interaction, Concat=_concat, Slice=_slice,
    Reshape=_reshape, ReLU=_unchanged, ELU=_unchanged, Sigmoid=_unchanged,
    Softmax=_unchanged, Dropout=_unchanged, BatchNorm=_flat_only,
    LayerNorm=_unchanged, Multiply=_multiply, WeightMultiply=_multiply,
    FmOrder2=_fm_order_2, ReduceSum=_reduce, ReduceMean=_reduce, Add=_same,
    Sub=_two_of_a_shape, DotProduct=_same, ElementwiseMultiply=_same, Cast=_unchanged,
    PReLU_Dice=_flat_only, Scale=_scale, GRU=_gru, Gather=_gather)

# Types with several bottoms. For the others, a list with one name equals the name.
_MANY = {"Interaction", "Concat", "Add", "Sub", "DotProduct", "ElementwiseMultiply"}


def takes_many(layer_type):
  """Returns whether layers of a type have several bottoms."""
  return layer_type in _MANY or layer_type in LOSSES
