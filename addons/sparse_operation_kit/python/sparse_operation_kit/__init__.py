# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""SparseOperationKit (SOK) on stock TensorFlow 1.15 and 2.x.

  import sparse_operation_kit as sok       # or, the same thing:
  from sparse_operation_kit import experiment as sok

Importing the package puts DeepRec's names (`tf.get_embedding_variable` and its
option classes) on `tf` and `tf.compat.v1`.
"""

import sys

import embedding_variable
from embedding_variable.integration import patching

from sparse_operation_kit import layers
from sparse_operation_kit import optimizers
from sparse_operation_kit import version
from sparse_operation_kit.communication import set_comm_tool
from sparse_operation_kit.compat.layers import All2AllDenseEmbedding
from sparse_operation_kit.compat.layers import DistributedEmbedding
from sparse_operation_kit.compat.layers import Init
from sparse_operation_kit.compat.layers import OptimizerScope
from sparse_operation_kit.compat.layers import split_embedding_variable_from_others
from sparse_operation_kit.compat.saver import Saver
from sparse_operation_kit.exchange.dense_lookup import all2all_dense_embedding
from sparse_operation_kit.exchange.distributed_optimizer import DistributedOptimizer
from sparse_operation_kit.exchange.lookup import lookup_sparse
from sparse_operation_kit.files import checkpoint_job
from sparse_operation_kit.files.dump_load import dump
from sparse_operation_kit.files.dump_load import load
from sparse_operation_kit.files.incremental_dump import incremental_model_dump
from sparse_operation_kit.files.saver_hook import CheckpointSaverHook
from sparse_operation_kit.initialization import init
from sparse_operation_kit.optimizers import OptimizerWrapper
from sparse_operation_kit.optimizers import SGD
from sparse_operation_kit.variables.dynamic_variable import DynamicVariable
from sparse_operation_kit.variables.kinds import filter_variables
from sparse_operation_kit.variables.rows import assign
from sparse_operation_kit.variables.rows import export
from sparse_operation_kit.variables.rows import sparse_read_and_evict
from sparse_operation_kit.variables.static_variable import DistributedVariable
from sparse_operation_kit.variables.static_variable import LocalizedVariable
from sparse_operation_kit.variables.static_variable import Variable

embedding_variable.install()
checkpoint_job.register()

__version__ = embedding_variable.__version__
tf_version = version.tf_version()

# Scripts written when this interface was new import it from `experiment`.
experiment = sys.modules[__name__]
sys.modules[__name__ + ".experiment"] = experiment

# Scripts for SOK before 2.0 take this optimizer from here.
patching.add_module(__name__ + ".tf.keras.optimizers", {"LazyAdamOptimizer": optimizers.Adam})

__all__ = [
    "All2AllDenseEmbedding",
    "CheckpointSaverHook",
    "DistributedEmbedding",
    "DistributedOptimizer",
    "DistributedVariable",
    "DynamicVariable",
    "Init",
    "LocalizedVariable",
    "OptimizerScope",
    "OptimizerWrapper",
    "SGD",
    "Saver",
    "Variable",
    "all2all_dense_embedding",
    "assign",
    "dump",
    "experiment",
    "export",
    "filter_variables",
    "incremental_model_dump",
    "init",
    "layers",
    "load",
    "lookup_sparse",
    "set_comm_tool",
    "sparse_read_and_evict",
    "split_embedding_variable_from_others",
    "tf_version",
]
