# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Layers that move numbers without changing them."""

import tensorflow.compat.v1 as tf

from hugectr.layers import layer as layer_lib
from hugectr.layers.shapes import Shape, flat, need, rank_is


class Concat(layer_lib.Layer):
  """Bottoms side by side."""
  runs_in_float16 = True
  least_bottoms = 2
  keys = {
      "axis": layer_lib.integer(
          "1 or 2 for bottoms of rank 3; unless given the last one of rank 2, and 1 of rank 3.",
          minimum=1, maximum=2)
  }
  arguments = {
      "axis": ("axis", 1)
  }

  @staticmethod
  def shape(shapes, params):
    first = shapes[0]
    axis = params.get("axis", 1) - 1
    for shape in shapes:
      need(len(shape.dims) == len(first.dims) and shape.rows == first.rows and
           len(shape.dims) <= 2, "bottoms: expected agreement in all axes but one, got %s and %s",
           first, shape)
      need(axis < len(shape.dims), "there is no axis %d in %s", axis + 1, shape)
      need(shape.dims[:axis] + shape.dims[axis + 1:] ==
           first.dims[:axis] + first.dims[axis + 1:],
           "bottoms: expected agreement in all axes but %d, got %s and %s", axis + 1, first, shape)
    dims = list(first.dims)
    dims[axis] = sum(s.dims[axis] for s in shapes)
    return [Shape(first.rows, tuple(dims))]

  @staticmethod
  def build(context, layer, *bottoms):
    """Returns the bottoms side by side."""
    return tf.concat(bottoms, layer.params.get("axis", 1))


class Slice(layer_lib.Layer):
  """Ranges of the last axis. Equal full ranges are copies."""
  runs_in_float16 = True
  keys = {
      "ranges": layer_lib.array(
          "[first, end) of the last axis for each top; they may overlap.",
          {"type": "array", "minItems": 2, "maxItems": 2,
           "items": {"type": "integer", "minimum": 0}}, minItems=1)
  }
  required = ("ranges",)
  other_arguments = ("ranges",)

  @staticmethod
  def shape(shapes, params):
    shape, = shapes
    tops = []
    for first, end in params["ranges"]:
      need(first < end <= shape.dims[-1], "range [%d, %d) is not within the %d columns of "
           "the bottom", first, end, shape.dims[-1])
      tops.append(Shape(shape.rows, shape.dims[:-1] + (end - first,)))
    return tops

  @staticmethod
  def build(context, layer, bottom):
    """Returns a list with one range of the last axis per top; a full range is no copy."""
    whole = [0, layer.in_shapes[0].dims[-1]]
    return [tf.identity(bottom) if list(r) == whole else bottom[..., r[0]:r[1]]
            for r in layer.params["ranges"]]

  @staticmethod
  def fill(given):
    given.put("ranges", [list(r) for r in given.get("ranges", [])])

  @staticmethod
  def tops(params):
    return len(params["ranges"])


def _given_shape(shape, total, params):
  """Returns the Shape of a Reshape with `shape`."""
  first, rest = params["shape"][0], params["shape"][1:]
  need("leading_dim" not in params and "time_step" not in params,
       "expected either shape or leading_dim, got both")
  need(first == -1 and min(rest) > 0, "shape: expected -1, for the batch, then sizes of at "
       "least 1, got %s", params["shape"])
  found = Shape(1, tuple(rest))
  need(total % found.width == 0, "shape %s: expected a divisor of the %d numbers of a "
       "sample (bottom %s)", params["shape"], total, shape)
  return found._replace(rows=total // found.width)


class Reshape(layer_lib.Layer):
  """The same numbers with other axes, or some slots of [batch, slots, floats]."""
  runs_in_float16 = True
  keys = {
      "leading_dim": layer_lib.integer(
          "Size of the last axis of what it gives.",
          minimum=1),
      "selected": layer_lib.array(
          "Slots to keep, side by side.", {"type": "integer", "minimum": 0}, minItems=1),
      "time_step": layer_lib.integer(
          "Beside leading_dim: gives [batch, time_step, leading_dim].",
          minimum=1),
      "shape": layer_lib.array(
          "All axes, the first of which is -1, for the batch. Instead of leading_dim.",
          {"type": "integer", "minimum": -1}, minItems=2)
  }
  other_arguments = ("selected", "selected_slots", "shape", "leading_dim", "time_step",)

  @staticmethod
  def shape(shapes, params):
    shape, = shapes
    if "selected" in params:
      need("leading_dim" not in params,
           "expected either leading_dim or selected, got both")
      rank_is(shape, 3)
      for slot in params["selected"]:
        need(slot < shape.dims[0], "slot %d is selected, and the bottom has %d slots",
             slot, shape.dims[0])
      return [flat(len(params["selected"]) * shape.dims[1], shape.rows)]
    total = shape.rows * shape.width
    if "shape" in params:
      return [_given_shape(shape, total, params)]
    need("leading_dim" in params, "expected leading_dim, shape or selected")
    last = params["leading_dim"]
    if "time_step" in params:
      steps = params["time_step"]
      need(total % (last * steps) == 0, "time_step * leading_dim must divide the %d numbers "
           "of a sample (bottom %s), got %d * %d", total, shape, steps, last)
      return [Shape(total // (last * steps), (steps, last))]
    need(total % last == 0, "leading_dim, the last axis of what the layer gives, must "
         "divide the %d numbers of a sample (bottom %s), got %d", total, shape, last)
    return [flat(last, total // last)]

  @staticmethod
  def build(context, layer, bottom):
    """Returns the numbers with other axes, or the numbers of some slots side by side."""
    if "selected" in layer.params:
      bottom = tf.gather(bottom, layer.params["selected"], axis=1)
    return tf.reshape(bottom, (-1,) + layer.out_shapes[0].dims)

  @staticmethod
  def fill(given):
    if given.get("selected", False) or given.has("selected_slots"):
      given.put("selected", given.get("selected_slots", []))
    elif given.get("shape", []):
      given.put("shape", given.get("shape", []))
    else:
      given.put("leading_dim", given.get("leading_dim", 1))
      if given.get("time_step", 0):
        given.put("time_step", given.get("time_step", 0))


class Scale(layer_lib.Layer):
  """Repeats numbers: axis 0, each number of [rows, width] factor times in its row; axis 1,
  each row factor times.
  """
  runs_in_float16 = True
  keys = {
      "scale_param": layer_lib.section({
              "axis": layer_lib.one_of(
                  "0: [rows, width * factor]; 1: [rows * factor, width].",
                  [0, 1], default=1),
              "factor": layer_lib.integer("How often.", minimum=1, default=1)
          })
  }
  required = ("scale_param",)
  arguments = {
      "scale_param.axis": ("axis", 1),
      "scale_param.factor": ("factor", 1)
  }

  @staticmethod
  def shape(shapes, params):
    shape, = shapes
    rank_is(shape, 2)
    factor = params["scale_param"].get("factor", 1)
    if params["scale_param"].get("axis", 1) == 0:
      return [flat(shape.dims[0] * factor, shape.rows)]
    return [flat(shape.dims[0], shape.rows * factor)]

  @staticmethod
  def build(context, layer, bottom):
    """Repeats each number of a row (axis 0), or each row (axis 1), `factor` times.

    Args:
      context: Context.
      layer: Layer.
      bottom: `[rows, width]`.

    Returns:
      `[rows, width * factor]` or `[rows * factor, width]`.
    """
    clause = layer.params["scale_param"]
    factor, width = clause.get("factor", 1), layer.in_shapes[0].dims[0]
    if clause.get("axis", 1) == 0:
      return tf.reshape(tf.tile(bottom[:, :, tf.newaxis], [1, 1, factor]),
                        [-1, width * factor])
    return tf.reshape(tf.tile(bottom[:, tf.newaxis, :], [1, factor, 1]), [-1, width])


class Gather(layer_lib.Layer):
  """Some positions of the last axis, in the order of indices."""
  runs_in_float16 = True
  keys = {
      "indices": layer_lib.array(
          "Positions, from 0; one may be there twice.",
          {"type": "integer", "minimum": 0}, minItems=1)
  }
  required = ("indices",)
  arguments = {
      "indices": ("indices", [])
  }

  @staticmethod
  def shape(shapes, params):
    shape, = shapes
    for index in params["indices"]:
      need(index < shape.dims[-1], "index %d is not below %d, the last axis of the bottom %s",
           index, shape.dims[-1], shape)
    return [Shape(shape.rows, shape.dims[:-1] + (len(params["indices"]),))]

  @staticmethod
  def build(context, layer, bottom):
    """Returns some positions of the last axis, in the order of the indices."""
    return tf.gather(bottom, layer.params["indices"], axis=-1)


class Select(layer_lib.Layer):
  """Some positions of an axis, in the order of index."""
  runs_in_float16 = True
  keys = {
      "dim": layer_lib.integer("Axis; 0 would be the batch.", minimum=1),
      "index": layer_lib.array(
          "Positions, from 0; one may be there twice.",
          {"type": "integer", "minimum": 0}, minItems=1)
  }
  required = ("dim", "index",)
  arguments = {
      "dim": ("dim", 0),
      "index": ("index", [])
  }

  @staticmethod
  def shape(shapes, params):
    shape, = shapes
    axis = params["dim"]
    need(axis <= len(shape.dims), "there is no axis %d in %s", axis, shape)
    for index in params["index"]:
      need(index < shape.dims[axis - 1], "index %d is not below %d, axis %d of the bottom %s",
           index, shape.dims[axis - 1], axis, shape)
    dims = list(shape.dims)
    dims[axis - 1] = len(params["index"])
    return [Shape(shape.rows, tuple(dims))]

  @staticmethod
  def build(context, layer, bottom):
    """Returns some positions of an axis, in the order of `index`."""
    return tf.gather(bottom, layer.params["index"], axis=layer.params["dim"])


def _slots_and_width(shapes):
  """Returns (slots, sum of the floats, rows) of bottoms [batch, slots, floats]."""
  for shape in shapes:
    rank_is(shape, 3, "each bottom")
    need(shape.dims[0] == shapes[0].dims[0] and shape.rows == shapes[0].rows,
         "bottoms: expected the same slots, got %s and %s", shapes[0], shape)
  return shapes[0].dims[0], sum(s.dims[1] for s in shapes), shapes[0].rows


class FusedReshapeConcat(layer_lib.Layer):
  """Vectors of a slot side by side. Bottoms [batch, slots, floats] of the same slots; tops:
  [batch * (slots - 1), sum of floats] of all slots but the last, and [batch, sum of floats]
  of the last.
  """
  runs_in_float16 = True
  least_bottoms = 1

  @staticmethod
  def shape(shapes, params):
    slots, width, rows = _slots_and_width(shapes)
    need(slots > 1, "bottoms: expected at least 2 slots, got %s", shapes[0])
    return [flat(width, rows * (slots - 1)), flat(width, rows)]

  @staticmethod
  def build(context, layer, *bottoms):
    """Returns the vectors of each slot side by side: all slots but the last; the last.

    Args:
      context: Context.
      layer: Layer.
      *bottoms: `[rows, slots, floats]` each.

    Returns:
      List of `[rows * (slots - 1), sum of floats]` and `[rows, sum of floats]`.
    """
    both = tf.concat(bottoms, 2)
    width = layer.out_shapes[0].dims[0]
    return [tf.reshape(both[:, :-1], [-1, width]), both[:, -1]]

  @staticmethod
  def tops(params):
    return 2


class FusedReshapeConcatGeneral(layer_lib.Layer):
  """The same for all slots: [batch * slots, sum of floats]."""
  runs_in_float16 = True
  least_bottoms = 1

  @staticmethod
  def shape(shapes, params):
    slots, width, rows = _slots_and_width(shapes)
    return [flat(width, rows * slots)]

  @staticmethod
  def build(context, layer, *bottoms):
    """Returns the vectors of each slot side by side, `[rows * slots, sum of floats]`."""
    return tf.reshape(tf.concat(bottoms, 2), [-1, layer.out_shapes[0].dims[0]])
