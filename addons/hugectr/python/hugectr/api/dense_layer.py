# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""DenseLayer: one layer, as a clause of a configuration."""

import collections

from hugectr.api import enums
from hugectr.api import printing
from hugectr.config import schema_check
from hugectr.layers import network

_WHERE = "hugectr.DenseLayer"

DenseLayerComputeConfig = collections.namedtuple("DenseLayerComputeConfig",
                                                 ["async_wgrad", "fuse_wb"])
DenseLayerComputeConfig.__doc__ = """Settings of upstream's kernels, without effect."""
DenseLayerComputeConfig.__new__.__defaults__ = (False, False)

DenseLayerSwitches = collections.namedtuple("DenseLayerSwitches", ["fuse_wb"])
DenseLayerSwitches.__doc__ = """Version 3.7's DenseLayerComputeConfig, without effect."""
DenseLayerSwitches.__new__.__defaults__ = (False,)

# Arguments with an enumeration.
_ENUMERATIONS = dict(
    gamma_init_type=enums.Initializer_t, beta_init_type=enums.Initializer_t,
    weight_init_type=enums.Initializer_t, bias_init_type=enums.Initializer_t,
    regularizer_type=enums.Regularizer_t, pos_type=enums.FcPosition_t,
    act_type=enums.Activation_t)

# Arguments of upstream's kernels, which no type uses.
_WITHOUT_EFFECT = {"compute_config", "dense_layer_switches", "pos_type"}

# Every argument besides type and names.
_ARGUMENTS = sorted(_WITHOUT_EFFECT.union(
    *[kind.all_arguments() for kind in network.OF_TYPE.values()]))


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
      kind = _ENUMERATIONS.get(name)
      if kind is not None and not isinstance(value, (list, tuple)):
        value = enums.check(where, name, value, kind)
      self._given[name] = list(value) if isinstance(value, tuple) else value
    self._used = set()
    self._clause = {}
    network.OF_TYPE[self.type].fill(self)
    for name in self._given:
      if name not in self._used:
        printing.once("%s: %s has no effect" % (where, name))

  def get(self, name, default):
    """Returns an argument, and counts it as used."""
    self._used.add(name)
    return self._given.get(name, default)

  def has(self, name):
    """Returns whether an argument was given."""
    return name in self._given

  def get_activations(self):
    """Returns the argument `activations`, checked."""
    return [enums.check(_WHERE + " activations", "an item", a, enums.Activation_t)
            for a in self.get("activations", [])]

  def put(self, key, value):
    """Adds a key to the clause, or "key.key" to a nested object."""
    section, _, name = key.rpartition(".")
    into = self._clause.setdefault(section, {}) if section else self._clause
    into[name] = value

  def clause(self):
    """Returns the clause of a configuration."""
    kind = network.OF_TYPE[self.type]
    is_list = len(self.bottoms) != 1 or kind.least_bottoms == 1 or kind.is_loss
    bottom = self.bottoms if is_list else self.bottoms[0]
    top = self.tops if len(self.tops) > 1 else self.tops[0] if self.tops else []
    return dict(self._clause, type=self.type, bottom=bottom, top=top)


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
