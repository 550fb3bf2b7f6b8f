# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""SparseOperationKit (SOK) on stock TensorFlow 1.15.

  import sparse_operation_kit as sok       # or, the same thing:
  from sparse_operation_kit import experiment as sok

Importing the package puts DeepRec's names (`tf.get_embedding_variable` and its
option classes) on `tf` and `tf.compat.v1`.
"""

import sys

import embedding_variable

from sparse_operation_kit.distributed_optimizer import DistributedOptimizer
from sparse_operation_kit.initialization import init
from sparse_operation_kit.lookup import lookup_sparse
from sparse_operation_kit.variables import filter_variables

embedding_variable.install()

# Scripts written when this interface was new import it from `experiment`.
experiment = sys.modules[__name__]
sys.modules[__name__ + ".experiment"] = experiment

__all__ = [
    "DistributedOptimizer",
    "experiment",
    "filter_variables",
    "init",
    "lookup_sparse",
]
