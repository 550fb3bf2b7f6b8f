# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""DeepRec's switch between group lookups in one process and over ranks.

  distributed.enable_distributed_strategy("collective")

initializes Horovod and SparseOperationKit. Group lookups after it are lookups over the
ranks, with rows spread over them. Weights are honoured, and each table has its own
combiner.
"""

import importlib

from embedding_variable.deeprec import notices
from embedding_variable.lookup import group
from embedding_variable.variables import variable as ev

STRATEGIES = ("collective",)


def enable_distributed_strategy(strategy="collective"):
  """Makes group lookups of this process lookups over the ranks of its Horovod job.

  Affects `group_embedding_lookup_sparse` and columns of `group_embedding_column_scope`.
  Calls `hvd.init()`, and `sok.init()` unless the process has called it after
  `hvd.init()`: arguments of such a call stay in effect.

  Args:
    strategy: "collective".

  Raises:
    ValueError: another strategy.
    ImportError: Horovod or SparseOperationKit is not installed.
  """
  if strategy not in STRATEGIES:
    raise ValueError("enable_distributed_strategy: strategy: expected 'collective', got %r" %
                     (strategy,))
  notices.stands_in("distributed strategy collective", "sok.lookup_sparse over Horovod's "
                    "ranks")
  group.set_lookup(initialize())


def initialize():
  """Initializes Horovod, and SparseOperationKit unless it is initialized.

  Returns:
    A function for `group.set_lookup`: the lookup over ranks.

  Raises:
    ImportError: one of them is not installed.
  """
  horovod, sok = _import("horovod.tensorflow"), _import("sparse_operation_kit")
  horovod.init()
  # A second call would reset the settings of the first one.
  if not sok.initialization.is_initialized():
    sok.init()

  def lookup(params, sp_ids, sp_weights, combiners, output_dtype=None):
    for table in params:
      if not ev.is_embedding_variable(table):
        raise TypeError(
            "group lookup over ranks: table '%s' is partitioned, and rows are spread over "
            "ranks already; create it without a partitioner" % table.name)
      if getattr(table, "target_gpu", None) is None:
        table.target_gpu = -1
    return sok.lookup_sparse(params, sp_ids, sp_weights=sp_weights, combiners=combiners,
                             output_dtype=output_dtype)

  return lookup


def enable_group_embedding(fusion_type="collective"):
  """Name of `enable_distributed_strategy` in DeepRec's earlier releases."""
  enable_distributed_strategy(fusion_type)


def _import(name):
  try:
    return importlib.import_module(name)
  except ImportError as e:
    raise ImportError("group lookups over ranks need %s: %s" % (name, e))
