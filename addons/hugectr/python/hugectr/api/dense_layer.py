# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""DenseLayer: one layer, as a clause of a configuration."""

import collections

from hugectr.api import enums
from hugectr.api import printing
from hugectr.config import schema_check

_WHERE = "hugectr.DenseLayer"

DenseLayerComputeConfig = collections.namedtuple("DenseLayerComputeConfig",
                                                 ["async_wgrad", "fuse_wb"])
DenseLayerComputeConfig.__doc__ = """Settings of upstream's kernels, without effect."""
DenseLayerComputeConfig.__new__.__defaults__ = (False, False)

DenseLayerSwitches = collections.namedtuple("DenseLayerSwitches", ["fuse_wb"])
DenseLayerSwitches.__doc__ = """Version 3.7's DenseLayerComputeConfig, without effect."""
DenseLayerSwitches.__new__.__defaults__ = (False,)

# Every argument besides type and names, with the type of its enumeration.
_ARGUMENTS = dict.fromkeys((
    "factor", "eps", "dropout_rate", "elu_alpha", "num_output", "num_layers", "leading_dim",
    "time_step", "batchsize", "SeqLength", "vector_size", "selected", "selected_slots",
    "ranges", "indices", "weight_dims", "projection_dim", "out_dim", "axis",
    "max_sequence_len", "max_sequence_len_from", "max_sequence_len_to",
    "num_attention_heads", "transpose_b", "target_weight_vec", "use_regularizer", "lambda",
    "num_outputs", "use_bias", "activations", "biases", "dense_layer_switches",
    "compute_config", "shape", "dim", "index"))
_ARGUMENTS.update(
    gamma_init_type=enums.Initializer_t, beta_init_type=enums.Initializer_t,
    weight_init_type=enums.Initializer_t, bias_init_type=enums.Initializer_t,
    regularizer_type=enums.Regularizer_t, pos_type=enums.FcPosition_t,
    act_type=enums.Activation_t)


class DenseLayer(object):
  """A layer, between embeddings and losses, or a loss.

  Args:
    layer_type: member of Layer_t.
    bottom_names: list of names of tensors.
    top_names: list of names.
    **arguments: those of any layer; docs/hugectr_layers.md lists which layer has which.
      One that the layer does not use is reported once.

  Raises:
    TypeError: there is no such argument.
  """

  def __init__(self, layer_type, bottom_names, top_names, **arguments):
    self.type = enums.check(_WHERE, "layer_type", layer_type, enums.Layer_t)
    self.bottoms = [bottom_names] if isinstance(bottom_names, str) else list(bottom_names)
    self.tops = [top_names] if isinstance(top_names, str) else list(top_names)
    where = "%s '%s' (%s)" % (_WHERE, ", ".join(map(str, self.tops)), self.type)
    for name in arguments:
      if name not in _ARGUMENTS:
        raise TypeError("%s: there is no argument '%s'%s" % (
            where, name, schema_check.suggestion(name, _ARGUMENTS)))
    self._given = {}
    for name, value in arguments.items():
      kind = _ARGUMENTS[name]
      if kind is not None and not isinstance(value, (list, tuple)):
        value = enums.check(where, name, value, kind)
      self._given[name] = list(value) if isinstance(value, tuple) else value
    self._used = set()
    self._clause = {}
    _OF_TYPE.get(self.type, lambda layer: None)(self)
    for name in self._given:
      if name not in self._used:
        printing.once("%s: %s has no effect" % (where, name))

  def get(self, name, default):
    """Returns an argument, and counts it as used."""
    self._used.add(name)
    return self._given.get(name, default)

  def put(self, key, value):
    """Adds a key to the clause."""
    self._clause[key] = value

  def put_initializers(self, into, **keys):
    """Adds initializers to a dict: key=argument."""
    for key, name in keys.items():
      value = self.get(name, "Default")
      if value != "Default":
        into[key] = value

  def clause(self):
    """Returns the clause of a configuration."""
    is_list = len(self.bottoms) != 1 or self.type.startswith("FusedReshapeConcat") or (
        self.type.endswith("Loss"))
    bottom = self.bottoms if is_list else self.bottoms[0]
    top = self.tops if len(self.tops) > 1 else self.tops[0] if self.tops else []
    return dict(self._clause, type=self.type, bottom=bottom, top=top)


def _inner_product(layer):
  clause = {"num_output": layer.get("num_output", 1)}
  layer.put_initializers(clause, weight_init="weight_init_type", bias_init="bias_init_type")
  layer.put("fc_param", clause)


def _fused_inner_product(layer):
  _inner_product(layer)
  if layer.get("act_type", "Relu") == "Non":
    layer.type = "InnerProduct"


def _normalization(name):
  def fill(layer):
    clause = {"eps": layer.get("eps", 1e-5)}
    if name == "bn_param":
      clause["factor"] = layer.get("factor", 1.0)
    layer.put_initializers(clause, gamma_init="gamma_init_type", beta_init="beta_init_type")
    layer.put(name, clause)

  return fill


def _multi_cross(layer):
  clause = {"num_layers": layer.get("num_layers", 0),
            "projection_dim": layer.get("projection_dim", 0)}
  layer.put_initializers(clause, weight_init="weight_init_type", bias_init="bias_init_type")
  layer.put("mc_param", clause)


def _reshape(layer):
  if layer.get("selected", False) or "selected_slots" in layer._given:  # pylint: disable=protected-access
    layer.put("selected", layer.get("selected_slots", []))
  elif layer.get("shape", []):
    layer.put("shape", layer.get("shape", []))
  else:
    layer.put("leading_dim", layer.get("leading_dim", 1))
    if layer.get("time_step", 0):
      layer.put("time_step", layer.get("time_step", 0))


def _weight_multiply(layer):
  layer.put("weight_dims", layer.get("weight_dims", []))
  layer.put_initializers(layer._clause, weight_init="weight_init_type")  # pylint: disable=protected-access


def _gru(layer):
  clause = {"num_output": layer.get("num_output", 1), "batchsize": layer.get("batchsize", 1),
            "SeqLength": layer.get("SeqLength", 1),
            "vector_size": layer.get("vector_size", 1), "gives": "last"}
  layer.put_initializers(clause, weight_init="weight_init_type", bias_init="bias_init_type")
  layer.put("gru_param", clause)


def _mlp(layer):
  clause = {"num_outputs": layer.get("num_outputs", [])}
  if layer.get("activations", []):
    clause["activations"] = [
        enums.check(_WHERE + " activations", "an item", a, enums.Activation_t)
        for a in layer.get("activations", [])]
  else:
    clause["act_type"] = layer.get("act_type", "Relu")
  if layer.get("biases", []):
    clause["biases"] = [bool(b) for b in layer.get("biases", [])]
  else:
    clause["use_bias"] = bool(layer.get("use_bias", True))
  layer.put_initializers(clause, weight_init="weight_init_type", bias_init="bias_init_type")
  layer.put("mlp_param", clause)


def _softmax(layer):
  if len(layer.bottoms) > 1:
    layer.put("factor", layer.get("factor", 1.0))


def _attention(layer):
  if layer.get("transpose_b", False):
    layer.put("transpose_b", True)
  layer.put("num_attention_heads", layer.get("num_attention_heads", 1))


def _sequence_mask(layer):
  if len(layer.bottoms) == 1:
    layer.put("max_sequence_len", layer.get("max_sequence_len", 1))
  else:
    for name in ("max_sequence_len_from", "max_sequence_len_to"):
      layer.put(name, layer.get(name, 1))


def _loss(layer):
  if layer.get("use_regularizer", False):
    layer.put("regularizer", layer.get("regularizer_type", "L1"))
    layer.put("lambda", layer.get("lambda", 0))
  if layer.type == "MultiCrossEntropyLoss":
    layer.put("target_weight", layer.get("target_weight_vec", []))


def _copied(**keys):
  """Returns a function that copies arguments: key=(argument, default)."""
  def fill(layer):
    for key, (name, default) in keys.items():
      layer.put(key, layer.get(name, default))

  return fill


_OF_TYPE = {
    "BatchNorm": _normalization("bn_param"),
    "BinaryCrossEntropyLoss": _loss,
    "Concat": _copied(axis=("axis", 1)),
    "CrossEntropyLoss": _loss,
    "Dropout": _copied(rate=("dropout_rate", 0.5)),
    "ELU": lambda layer: layer.put("elu_param", {"alpha": layer.get("elu_alpha", 1.0)}),
    "FmOrder2": _copied(out_dim=("out_dim", 0)),
    "FusedInnerProduct": _fused_inner_product,
    "GRU": _gru,
    "Gather": _copied(indices=("indices", [])),
    "InnerProduct": _inner_product,
    "LayerNorm": _normalization("ln_param"),
    "MLP": _mlp,
    "MultiCross": _multi_cross,
    "MultiCrossEntropyLoss": _loss,
    "MultiHeadAttention": _attention,
    "PReLU_Dice": lambda layer: layer.put("prelu_dice_param", {
        "alpha": layer.get("elu_alpha", 1.0), "eps": layer.get("eps", 1e-5)}),
    "ReduceMean": _copied(axis=("axis", 1)),
    "ReduceSum": _copied(axis=("axis", 1)),
    "Reshape": _reshape,
    "Scale": lambda layer: layer.put("scale_param", {
        "axis": layer.get("axis", 1), "factor": layer.get("factor", 1)}),
    "Select": _copied(dim=("dim", 0), index=("index", [])),
    "SequenceMask": _sequence_mask,
    "Slice": lambda layer: layer.put("ranges", [
        list(r) for r in layer.get("ranges", [])]),
    "Softmax": _softmax,
    "WeightMultiply": _weight_multiply,
}


class GroupDenseLayer(object):
  """Several InnerProduct layers, each followed by max(x, 0).

  Args:
    group_layer_type: GroupLayer_t.GroupFusedInnerProduct.
    bottom_name_list: list of one name, or the name.
    top_name_list: list of names, one per layer.
    num_outputs: list of ints, one per layer.
    last_act_type: member of Activation_t, that of the last layer.
    bottom_name: string, version 3.3's name of the bottom.

  Raises:
    TypeError, ValueError: an argument is invalid.
  """

  def __init__(self, group_layer_type=enums.GroupLayer_t.GroupFusedInnerProduct,
               bottom_name_list=None, top_name_list=(), num_outputs=(),
               last_act_type=enums.Activation_t.Relu, bottom_name=None):
    where = "hugectr.GroupDenseLayer"
    enums.check(where, "group_layer_type", group_layer_type, enums.GroupLayer_t)
    last = enums.check(where, "last_act_type", last_act_type, enums.Activation_t)
    bottoms = bottom_name if bottom_name_list is None else bottom_name_list
    bottoms = [bottoms] if isinstance(bottoms, str) else list(bottoms or [])
    if len(bottoms) != 1:
      raise ValueError("%s: expected one bottom, got %d" % (where, len(bottoms)))
    if len(top_name_list) != len(num_outputs) or len(num_outputs) < 2:
      raise ValueError("%s: expected at least 2 num_outputs and as many names in "
                       "top_name_list, got %d and %d" % (where, len(num_outputs),
                                                         len(top_name_list)))
    kinds = [enums.Layer_t.FusedInnerProduct] * len(num_outputs)
    if last == "Non":
      kinds[-1] = enums.Layer_t.InnerProduct
    self.layers = [
        DenseLayer(kind, [bottom], [top], num_output=width) for kind, bottom, top, width in
        zip(kinds, bottoms + list(top_name_list), top_name_list, num_outputs)]
