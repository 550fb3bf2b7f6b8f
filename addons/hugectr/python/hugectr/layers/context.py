# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a layer's ops need besides its bottoms."""


class Context(object):
  """One tower: the training graph, or the evaluation graph.

  Attributes:
    parameters: Parameters, shared by the towers.
    is_training: bool.
    updates: list of ops that a training step runs besides the optimizers': running
      values.
  """

  def __init__(self, parameters, is_training):
    self.parameters = parameters
    self.is_training = is_training
    self.updates = []
