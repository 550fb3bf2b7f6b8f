# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The layer graph in TensorFlow."""

from hugectr.layers import attention
from hugectr.layers import context as contexts
from hugectr.layers import dense
from hugectr.layers import elementwise
from hugectr.layers import layer as layer_lib
from hugectr.layers import losses
from hugectr.layers import normalization
from hugectr.layers import recurrent
from hugectr.layers import reductions
from hugectr.layers import shaping

# Importing the modules has registered their types.
OF_TYPE = layer_lib.OF_TYPE
LOSSES = {name: kind for name, kind in OF_TYPE.items() if kind.is_loss}
_MODULES = (attention, dense, elementwise, losses, normalization, recurrent, reductions,
            shaping)


def build(model, tensors, parameters, is_training, has_float16=False,
          on_gpu=False):
  """Builds the layers of a model over its inputs.

  Args:
    model: config's Model.
    tensors: dict of tensors by name: the label, the dense features, and each
      embedding's top `[batch, slots, floats]`. The layers' tops are added to it.
    parameters: Parameters; missing ones are created.
    is_training: bool.
    has_float16: bool, as in Context. The loss is float32.
    on_gpu: bool, as in Context.

  Returns:
    (losses.Loss, list of ops that a training step runs in addition to the optimizers').
  """
  context = contexts.Context(parameters, is_training, has_float16, on_gpu)
  cast = {}  # by name and dtype, since several layers may use a tensor

  def bottom(name):
    key = (name, context.dtype)
    if key not in cast:
      cast[key] = context.cast(tensors[name])
    return cast[key]

  for layer in model.layers:
    # Labels stay in float32.
    context.begin(None if is_of_labels(model, layer) else layer.type)
    tops = OF_TYPE[layer.type].build(context, layer, *[bottom(b) for b in layer.bottoms])
    tensors.update(zip(layer.tops, tops if isinstance(tops, list) else [tops]))
  found = []
  for loss in model.losses:
    context.begin(loss.type)
    found.append(losses.of(context, loss, *[bottom(name) for name in loss.bottoms]))
  return losses.joined(model.losses, found), context.updates


def is_of_labels(model, layer):
  """Returns whether a layer is a Slice of the data's label, or of a part of it."""
  if layer.type != "Slice" or model.data is None:
    return False
  name, makers = layer.bottoms[0], {t: l for l in model.layers for t in l.tops}
  while name in makers and makers[name].type == "Slice":
    name = makers[name].bottoms[0]
  return name == model.data.label_top
