# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Embedding variables for stock TensorFlow 1.15 and 2.x.

Importing this package installs them: `tf.get_embedding_variable` and the option classes
appear on `tf`, and stock lookups, optimizers, savers and feature columns work on them.

  import tensorflow as tf
  import embedding_variable

  table = tf.get_embedding_variable("user", embedding_dim=16)
  rows = tf.nn.embedding_lookup(table, ids)
"""

from embedding_variable import distribution as _distribution

# Must run before files of another distribution are imported.
_distribution.check_alone()

# pylint: disable=wrong-import-position
from embedding_variable import publish
from embedding_variable._lib import library_path
# Not part of the API: the addons read and write their files by these modules.
from embedding_variable.checkpoint_format import durable
from embedding_variable.checkpoint_format import publication_checks
from embedding_variable.checkpoint_format import publications
from embedding_variable.checkpoint_format import table_directories
from embedding_variable.checkpoint.export_since import apply_export
from embedding_variable.checkpoint.export_since import export_since
from embedding_variable.checkpoint.export_since import prepare_export
from embedding_variable.checkpoint.incremental import save_incremental
from embedding_variable.eager.checkpoint import restore
from embedding_variable.integration.install import install
from embedding_variable.lookup.pooled import lookup_sparse
from embedding_variable.ops.interaction_ops import dot_interaction
from embedding_variable.optimizers.group_ftrl import GroupFtrlOptimizer
from embedding_variable.optimizers.row_wise_adagrad import RowWiseAdagradOptimizer
from embedding_variable.summaries import summaries
from embedding_variable.variables.creation import get_embedding_variable
from embedding_variable.variables.creation import get_embedding_variable as get
from embedding_variable.variables.variable import EmbeddingVariable
from embedding_variable.variables.variable import is_embedding_variable
from embedding_variable.variables.options import CBFFilter
from embedding_variable.variables.options import CheckpointOption
from embedding_variable.variables.options import CounterFilter
from embedding_variable.variables.options import EmbeddingVariableOption
from embedding_variable.variables.options import GlobalStepEvict
from embedding_variable.variables.options import InitializerOption
from embedding_variable.variables.options import L2WeightEvict
from embedding_variable.variables.options import StorageOption

__version__ = _distribution.version()

install()
