# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The dense parameters of a model, in the order of the model files."""

import collections
import re

import tensorflow.compat.v1 as tf

from hugectr.layers import initializers
from hugectr.layers import seeds

# A layer's running mean and variance; optimizers do not change them.
Running = collections.namedtuple("Running", ["layer", "mean", "variance"])


class Parameters(object):
  """Creates each parameter once, so that training and evaluation share it.

  Attributes:
    trained: list of variables, from the bottom layer to the top one; within a layer in
      the order of its file: W, b; each cross layer's w, b; gamma, beta.
    running: list of Running, from the bottom layer to the top one.
  """

  def __init__(self):
    self.trained = []
    self.running = []
    self._made = {}

  def _variable(self, layer, what, shape, initializer, trainable):
    # Scope names allow few characters.
    name = "%s/%s" % (re.sub(r"[^A-Za-z0-9_.\\/-]", "_", layer).lstrip("_-/\\") or "layer",
                      what)
    return tf.Variable(
        lambda: initializer(shape, seeds.of(layer, what)), name=name, trainable=trainable,
        use_resource=True)

  def get(self, layer, what, shape, initializer):
    """Returns the variable of a layer by its name; the first call creates it.

    Args:
      layer: string, the layer's name.
      what: string, the parameter's name, such as "weight".
      shape: list of ints.
      initializer: function (shape, seed) -> tensor.
    """
    key = (layer, what)
    if key not in self._made:
      self._made[key] = self._variable(layer, what, shape, initializer, True)
      self.trained.append(self._made[key])
    return self._made[key]

  def running_values(self, layer, width):
    """Returns the Running of a layer; initially mean `[width]` is 0 and variance is 1."""
    if layer not in self._made:
      found = Running(
          layer,
          self._variable(layer, "running_mean", [width],
                         initializers.zeros, False),
          self._variable(layer, "running_variance", [width],
                         initializers.ones, False))
      self._made[layer] = found
      self.running.append(found)
    return self._made[layer]
