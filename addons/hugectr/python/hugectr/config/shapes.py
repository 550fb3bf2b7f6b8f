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
  tops = []
  for first, end in params["ranges"]:
    _need(first < end <= shape.dims[-1], "range [%d, %d) is not within the %d columns of "
          "the bottom", first, end, shape.dims[-1])
    tops.append(Shape(shape.rows, shape.dims[:-1] + (end - first,)))
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
  total = shape.rows * shape.width
  if "shape" in params:
    return [_given_shape(shape, total, params)]
  _need("leading_dim" in params, "expected leading_dim, shape or selected")
  last = params["leading_dim"]
  if "time_step" in params:
    steps = params["time_step"]
    _need(total % (last * steps) == 0, "time_step * leading_dim must divide the %d numbers "
          "of a sample (bottom %s), got %d * %d", total, shape, steps, last)
    return [Shape(total // (last * steps), (steps, last))]
  _need(total % last == 0, "leading_dim, the last axis of what the layer gives, must "
        "divide the %d numbers of a sample (bottom %s), got %d", total, shape, last)
  return [flat(last, total // last)]


def _given_shape(shape, total, params):
  """Returns the Shape of a Reshape with `shape`."""
  first, rest = params["shape"][0], params["shape"][1:]
  _need("leading_dim" not in params and "time_step" not in params,
        "expected either shape or leading_dim, got both")
  _need(first == -1 and min(rest) > 0, "shape must be -1, for the batch, then sizes of at "
        "least 1, got %s", params["shape"])
  found = Shape(1, tuple(rest))
  _need(total % found.width == 0, "shape %s must have a divisor of the %d numbers of a "
        "sample (bottom %s)", params["shape"], total, shape)
  return found._replace(rows=total // found.width)


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
  times = 1 if clause.get("gives") == "last" else steps
  return [flat(times * clause["num_output"], shape.rows)]


def _gather(shapes, params):
  shape, = shapes
  for index in params["indices"]:
    _need(index < shape.dims[-1], "index %d is not below %d, the last axis of the bottom %s",
          index, shape.dims[-1], shape)
  return [Shape(shape.rows, shape.dims[:-1] + (len(params["indices"]),))]


def _softmax(shapes, params):
  _need(len(shapes) <= 2, "expected 1 bottom, or 2 with a mask, got %d", len(shapes))
  if len(shapes) == 1:
    _need("factor" not in params, "factor needs a mask as the second bottom")
  else:
    shape, mask = shapes
    _need(len(mask.dims) == len(shape.dims) and mask.rows == shape.rows and
          all(m in (1, d) for m, d in zip(mask.dims, shape.dims)), "the mask %s does not fit "
          "%s: each axis must have that size, or 1", mask, shape)
  return shapes[:1]


def mlp_layers(clause):
  """Returns [(width, activation, has_bias)] of an mlp_param.

  Raises:
    ShapeError: activations or biases have another length than num_outputs.
  """
  widths = clause["num_outputs"]
  acts = clause.get("activations", [clause.get("act_type", "Relu")] * len(widths))
  biases = clause.get("biases", [clause.get("use_bias", True)] * len(widths))
  for name, values in (("activations", acts), ("biases", biases)):
    _need(len(values) == len(widths), "mlp_param.%s must have %d items, one per layer, got "
          "%d", name, len(widths), len(values))
  return list(zip(widths, acts, biases))


def _mlp(shapes, params):
  shape, = shapes
  width, _, _ = mlp_layers(params["mlp_param"])[-1]
  return [Shape(shape.rows, shape.dims[:-1] + (width,))]


def _matrix_multiply(shapes, params):
  del params
  _need(len(shapes) == 2, "expected 2 bottoms, got %d", len(shapes))
  first, second = shapes
  _need(len(first.dims) in (2, 3) and len(first.dims) == len(second.dims), "bottoms must "
        "both have 3 or 4 axes, got %s and %s", first, second)
  _need(first.rows == second.rows and first.dims[:-2] == second.dims[:-2] and
        first.dims[-1] == second.dims[-2], "%s and %s cannot be multiplied", first, second)
  return [Shape(first.rows, first.dims[:-1] + second.dims[-1:])]


def _mixed_values(scores, value):
  """Returns the shape of the values in heads that scores in heads have mixed."""
  _rank(value, 4, "V")
  _need(scores.rows == value.rows and scores.dims[0] == value.dims[0] and
        scores.dims[2] == value.dims[1], "scores [batch, heads, m, n] need V [batch, heads, "
        "n, width], got %s and %s", scores, value)
  return Shape(scores.rows, (scores.dims[1], value.dims[0] * value.dims[2]))


def _attention(shapes, params):
  makes_scores = params.get("transpose_b", False)
  if makes_scores:
    _need(len(shapes) == 3, "expected 3 bottoms with transpose_b, got %d", len(shapes))
  _need(len(shapes) in (2, 3, 4), "expected Q, K, V and perhaps a mask, or 2 bottoms of an "
        "older form, got %d", len(shapes))
  if len(shapes) == 2 and len(shapes[0].dims) == 3:
    return [_mixed_values(*shapes)]
  query, key, value = shapes[:3] if len(shapes) > 2 else (shapes[0], shapes[1], shapes[1])
  for name, shape in (("Q", query), ("K", key), ("V", value)):
    _rank(shape, 3, name)
  heads = params.get("num_attention_heads", 1)
  _need(query.dims[1] % heads == 0, "num_attention_heads must divide the width %d, got %d",
        query.dims[1], heads)
  _need(query.rows == key.rows == value.rows and query.dims[1] == key.dims[1] and
        key.dims == value.dims, "Q, K and V must agree in width, K and V also in steps, got "
        "%s, %s and %s", query, key, value)
  if len(shapes) == 4:
    expected = Shape(query.rows, (1, query.dims[0], key.dims[0]))
    _need(shapes[3] == expected or shapes[3] == expected._replace(
        dims=(1, 1, key.dims[0])), "the mask must be %s, got %s", expected, shapes[3])
  scores = Shape(query.rows, (heads, query.dims[0], key.dims[0]))
  if makes_scores:
    return [scores, Shape(query.rows, (heads, key.dims[0], query.dims[1] // heads))]
  return [scores] if len(shapes) == 2 else [query]


def _sequence_mask(shapes, params):
  _need(len(shapes) <= 2, "expected 1 or 2 bottoms, got %d", len(shapes))
  for shape in shapes:
    _need(shape.dims == (1,), "lengths must be [batch, 1], got %s", shape)
  names = ["max_sequence_len"] if len(shapes) == 1 else [
      "max_sequence_len_from", "max_sequence_len_to"]
  for name in names:
    _need(name in params, "'%s' is missing, which %d bottom%s need%s", name, len(shapes),
          *(("", "s") if len(shapes) == 1 else ("s", "")))
  sizes = [params[name] for name in names]
  return [Shape(shapes[0].rows, (1,) + tuple(sizes if len(sizes) == 2 else [1] + sizes))]


def _select(shapes, params):
  shape, = shapes
  axis = params["dim"]
  _need(axis <= len(shape.dims), "there is no axis %d in %s", axis, shape)
  for index in params["index"]:
    _need(index < shape.dims[axis - 1], "index %d is not below %d, axis %d of the bottom %s",
          index, shape.dims[axis - 1], axis, shape)
  dims = list(shape.dims)
  dims[axis - 1] = len(params["index"])
  return [Shape(shape.rows, tuple(dims))]


def _slots_and_width(shapes):
  """Returns (slots, sum of the floats, rows) of bottoms [batch, slots, floats]."""
  for shape in shapes:
    _rank(shape, 3, "each bottom")
    _need(shape.dims[0] == shapes[0].dims[0] and shape.rows == shapes[0].rows,
          "bottoms must have the same slots, got %s and %s", shapes[0], shape)
  return shapes[0].dims[0], sum(s.dims[1] for s in shapes), shapes[0].rows


def _reshape_concat(shapes, params):
  del params
  slots, width, rows = _slots_and_width(shapes)
  _need(slots > 1, "bottoms must have at least 2 slots, got %s", shapes[0])
  return [flat(width, rows * (slots - 1)), flat(width, rows)]


def _reshape_concat_general(shapes, params):
  del params
  slots, width, rows = _slots_and_width(shapes)
  return [flat(width, rows * slots)]


def tops_of(clause):
  """Returns how many tops a layer has."""
  if clause["type"] == "Slice":
    return len(clause["ranges"])
  return 2 if clause["type"] == "FusedReshapeConcat" or clause.get("transpose_b") else 1


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
    Softmax=_softmax, Dropout=_unchanged, BatchNorm=_flat_only,
    LayerNorm=_unchanged, Multiply=_multiply, WeightMultiply=_multiply,
    FmOrder2=_fm_order_2, ReduceSum=_reduce, ReduceMean=_reduce, Add=_same,
    Sub=_two_of_a_shape, DotProduct=_same, ElementwiseMultiply=_same, Cast=_unchanged,
    PReLU_Dice=_flat_only, Scale=_scale, GRU=_gru, Gather=_gather, MLP=_mlp,
    MatrixMultiply=_matrix_multiply, MultiHeadAttention=_attention,
    SequenceMask=_sequence_mask, Select=_select, FusedReshapeConcat=_reshape_concat,
    FusedReshapeConcatGeneral=_reshape_concat_general)

# Types with several bottoms. For the others, a list with one name equals the name.
_MANY = {"Interaction", "Concat", "Add", "Sub", "DotProduct", "ElementwiseMultiply",
         "Softmax", "MatrixMultiply", "MultiHeadAttention", "SequenceMask",
         "FusedReshapeConcat", "FusedReshapeConcatGeneral"}


def takes_many(layer_type):
  """Returns whether layers of a type have several bottoms."""
  return layer_type in _MANY or layer_type in LOSSES
