# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""SparseEmbedding: the tables of a sparse input."""

import collections
import numbers

from hugectr.api import enums
from hugectr.api import optimizer as optimizers
from hugectr.api import printing
from hugectr.config import errors

_WHERE = "hugectr.SparseEmbedding"

HybridEmbeddingParam = collections.namedtuple(
    "HybridEmbeddingParam", [
        "max_num_frequent_categories", "max_num_infrequent_samples", "p_dup_max",
        "max_all_reduce_bandwidth", "max_all_to_all_bandwidth", "efficiency_bandwidth_ratio",
        "use_train_precompute_indices", "use_eval_precompute_indices", "communication_type",
        "hybrid_embedding_type"])
HybridEmbeddingParam.__doc__ = """Settings of HybridSparseEmbedding, without effect."""
HybridEmbeddingParam.__new__.__defaults__ = (None,) * len(HybridEmbeddingParam._fields)

# Optimizer states per number of a row.
_STATES = {"Adam": 2, "MomentumSGD": 1, "Nesterov": 1, "AdaGrad": 1, "SGD": 0, "Ftrl": 2,
           "RMSProp": 1}


class SparseEmbedding(object):
  """Rows of a sparse input, pooled per slot: `[batch, slot_num, embedding_vec_size]`.

  Args:
    embedding_type: member of Embedding_t. HybridSparseEmbedding is a table per slot, as
      LocalizedSlotSparseEmbeddingOneHot.
    workspace_size_per_gpu_in_mb: int, memory for rows and optimizer states. Tables grow
      beyond it.
    embedding_vec_size: int.
    combiner: "sum" or "mean"; version 3.0's 0 or 1.
    sparse_embedding_name: string, name of the output.
    bottom_name: string, name of a sparse input.
    slot_size_array: list of the number of keys per slot.
    optimizer: result of CreateOptimizer; None: the model's.
    hybrid_embedding_param: HybridEmbeddingParam, without effect.
    max_vocabulary_size_per_gpu: int, version 3.0's rows instead of the workspace.

  Raises:
    TypeError, ValueError: an argument is invalid.
    ConfigError: the combiner is "concat".
  """

  def __init__(self, embedding_type, workspace_size_per_gpu_in_mb=0, embedding_vec_size=None,
               combiner=None, sparse_embedding_name=None, bottom_name=None,
               slot_size_array=(), optimizer=None, hybrid_embedding_param=None,
               max_vocabulary_size_per_gpu=0):
    self.type = enums.check(_WHERE, "embedding_type", embedding_type, enums.Embedding_t)
    for name, value in (("embedding_vec_size", embedding_vec_size), ("combiner", combiner),
                        ("sparse_embedding_name", sparse_embedding_name),
                        ("bottom_name", bottom_name)):
      if value is None:
        raise TypeError("%s: %s is missing" % (_WHERE, name))
    if optimizer is not None and not isinstance(optimizer, optimizers.OptParams):
      raise TypeError("%s: '%s': optimizer: expected what CreateOptimizer returns, got %r" %
                      (_WHERE, sparse_embedding_name, optimizer))
    if combiner == "concat":
      raise errors.ConfigError("%s: '%s': combiner: expected \"sum\" or \"mean\", got \"concat\", "
                               "which only lookups of EmbeddingCollectionConfig have" %
                               (_WHERE, sparse_embedding_name))
    for name, value in (("workspace_size_per_gpu_in_mb", workspace_size_per_gpu_in_mb),
                        ("max_vocabulary_size_per_gpu", max_vocabulary_size_per_gpu)):
      if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 0:
        raise ValueError("%s: '%s': %s: expected an integer of at least 0, got %r" %
                         (_WHERE, sparse_embedding_name, name, value))
    if self.type != "HybridSparseEmbedding":
      printing.without_effect("%s '%s'" % (_WHERE, sparse_embedding_name), {
          "hybrid_embedding_param": (hybrid_embedding_param, None)})
    self.workspace = workspace_size_per_gpu_in_mb
    self.rows = max_vocabulary_size_per_gpu
    self.vec_size, self.combiner = embedding_vec_size, combiner
    self.name, self.bottom = sparse_embedding_name, bottom_name
    self.slot_size_array = list(slot_size_array)
    self.optimizer = optimizer

  def clause(self, params, solver, one_hot):
    """Returns the clause of a configuration.

    Args:
      params: OptParams of the model.
      solver: Solver.
      one_hot: bool, whether the input has one key per slot.
    """
    hparam = {"embedding_vec_size": self.vec_size, "combiner": self.combiner}
    rows = self.rows or self._rows(self.optimizer or params)
    if self.workspace:
      hparam["workspace_size_per_gpu_in_mb"] = self.workspace
    if rows:
      hparam["max_vocabulary_size_per_gpu"] = rows
    if self.slot_size_array:
      hparam["slot_size_array"] = self.slot_size_array
    kind = self.type
    if kind == "HybridSparseEmbedding":
      printing.once("%s: '%s': HybridSparseEmbedding is a table per slot in this package" %
                    (_WHERE, self.name))
      kind = "LocalizedSlotSparseEmbedding" + (
          "OneHot" if one_hot and self.slot_size_array else "Hash")
    found = {"type": kind, "bottom": self.bottom, "top": self.name,
             "sparse_embedding_hparam": hparam}
    if self.optimizer is not None and self.optimizer != params:
      found["optimizer"] = optimizers.clause(self.optimizer, solver)
    return found

  def _rows(self, params):
    """Returns how many rows the workspace holds; 0: unknown."""
    if not isinstance(self.vec_size, numbers.Integral) or self.vec_size < 1:
      return 0
    states = _STATES[params.type] + (
        params.type == "Adam" and params.update_type == "LazyGlobal")
    return self.workspace * 2**20 // ((1 + states) * 4 * self.vec_size)
