# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The layer graph in TensorFlow."""

from hugectr.layers import attention
from hugectr.layers import context as contexts
from hugectr.layers import dense
from hugectr.layers import elementwise
from hugectr.layers import losses
from hugectr.layers import normalization
from hugectr.layers import recurrent
from hugectr.layers import reductions
from hugectr.layers import shaping

# Functions from a Context, the Layer and its bottoms to its top, or a list of tops.
OF_TYPE = {
    "Add": elementwise.add,
    "BatchNorm": normalization.batch_norm,
    "Cast": elementwise.cast,
    "Concat": shaping.concat,
    "DotProduct": elementwise.product,
    "Dropout": elementwise.dropout,
    "ELU": elementwise.elu,
    "ElementwiseMultiply": elementwise.product,
    "FmOrder2": reductions.fm_order_2,
    "FusedInnerProduct": dense.fused_inner_product,
    "FusedReshapeConcat": shaping.fused_reshape_concat,
    "FusedReshapeConcatGeneral": shaping.fused_reshape_concat_general,
    "GRU": recurrent.gru,
    "Gather": shaping.gather,
    "InnerProduct": dense.inner_product,
    "Interaction": reductions.interaction,
    "LayerNorm": normalization.layer_norm,
    "MLP": dense.mlp,
    "MatrixMultiply": attention.matrix_multiply,
    "MultiCross": dense.multi_cross,
    "MultiHeadAttention": attention.multi_head_attention,
    "Multiply": dense.multiply,
    "PReLU_Dice": normalization.prelu_dice,
    "ReLU": elementwise.relu,
    "ReduceMean": reductions.reduce_mean,
    "ReduceSum": reductions.reduce_sum,
    "Reshape": shaping.reshape,
    "Scale": shaping.scale,
    "Select": shaping.select,
    "SequenceMask": attention.sequence_mask,
    "Sigmoid": elementwise.sigmoid,
    "Slice": shaping.slices,
    "Softmax": elementwise.softmax,
    "Sub": elementwise.sub,
    "WeightMultiply": dense.multiply,
}


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
    tops = OF_TYPE[layer.type](context, layer, *[bottom(b) for b in layer.bottoms])
    tensors.update(zip(layer.tops, tops if isinstance(tops, list) else [tops]))
  found = []
  for loss in model.losses:
    context.begin(loss.type)
    found.append(losses.of(loss, *[bottom(name) for name in loss.bottoms]))
  return losses.joined(model.losses, found), context.updates


def is_of_labels(model, layer):
  """Returns whether a layer is a Slice of the data's label, or of a part of it."""
  if layer.type != "Slice" or model.data is None:
    return False
  name, makers = layer.bottoms[0], {t: l for l in model.layers for t in l.tops}
  while name in makers and makers[name].type == "Slice":
    name = makers[name].bottoms[0]
  return name == model.data.label_top
