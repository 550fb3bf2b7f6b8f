# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Patch: adds DeepRec's names where DeepRec's scripts use them.

Why: a script uses `tf.get_embedding_variable`, or imports
`tensorflow.python.ops.kv_variable_ops`. `tf` and `tf.compat.v1` are two objects, and a
module is found through `sys.modules` and through its parent's attribute. Existing names
(of a DeepRec build) are unchanged.
"""

import importlib
import sys

import tensorflow as tf

from tensorflow.python.feature_column import feature_column_lib
from tensorflow.python.feature_column import feature_column_v2
from tensorflow.python.feature_column import sequence_feature_column
from tensorflow.python.framework import ops as framework_ops
from tensorflow.python.ops import embedding_ops
from tensorflow.python.ops import variable_scope
from tensorflow.python.ops import variables

from embedding_variable.checkpoint import incremental_saver
from embedding_variable.feature_column import categorical
from embedding_variable.feature_column import groups
from embedding_variable.feature_column import multihash_column
from embedding_variable.integration import patching
from embedding_variable.lookup import adaptive
from embedding_variable.lookup import embedding_lookup
from embedding_variable.lookup import fused
from embedding_variable.lookup import group
from embedding_variable.optimizers import own
from embedding_variable.variables import config_pb2
from embedding_variable.variables import creation
from embedding_variable.variables import dynamic_dimension
from embedding_variable.variables import multihash
from embedding_variable.variables import options
from embedding_variable.variables import scope_method
from embedding_variable.variables import variable as ev

_OPTIONS = (
    options.EmbeddingVariableOption, options.InitializerOption,
    options.GlobalStepEvict, options.L2WeightEvict, options.CounterFilter,
    options.CBFFilter, options.StorageOption, options.CheckpointOption
)

_FEATURE_COLUMNS = (categorical.categorical_column_with_embedding,
                    categorical.categorical_column_with_adaptive_embedding,
                    multihash_column.categorical_column_with_multihash,
                    groups.group_embedding_column_scope,
                    categorical.sequence_categorical_column_with_embedding)

_CREATORS = (creation.get_embedding_variable,
             dynamic_dimension.get_dynamic_dimension_embedding_variable,
             multihash.get_multihash_variable)

# DeepRec's collections. This package puts initializers of embedding variables into the
# general collection, so the two for them are empty.
_COLLECTIONS = {
    "EMBEDDING_VARIABLES": ev.EMBEDDING_VARIABLES,
    "EMBEDDING_VARIABLE_RESTORE_DEPENDENCY": "embedding_variable_restore_dependency",
    "EV_INIT_VAR_OPS": "ev_init_var_ops",
    "EV_INIT_SLOT_OPS": "ev_init_slot_ops",
}

_LOOKUPS = (group.group_embedding_lookup, group.group_embedding_lookup_sparse,
            fused.fused_embedding_lookup_sparse,
            fused.fused_safe_embedding_lookup_sparse,
            adaptive.adaptive_embedding_lookup_sparse,
            adaptive.safe_adaptive_embedding_lookup_sparse)


# The module of `tf.compat.v1` in 2.x.
_API_OF_2X = "tensorflow._api.v2.compat.v1"


def install():
  """Adds the names."""
  for owner in _owners():
    for function in _CREATORS:
      patching.add_name(owner, function.__name__, function)
    for cls in _OPTIONS:
      patching.add_name(owner, cls.__name__, cls)
    for _, cls in own.OPTIMIZERS:
      patching.add_name(owner.train, cls.__name__, cls)
    for function in _FEATURE_COLUMNS:
      patching.add_name(owner.feature_column, function.__name__, function)
    for function in _LOOKUPS:
      patching.add_name(owner.nn, function.__name__, function)
  for function in _LOOKUPS:
    patching.add_name(embedding_ops, function.__name__, function)
  for name, value in _COLLECTIONS.items():
    patching.add_name(framework_ops.GraphKeys, name, value)
  for function in _CREATORS:
    patching.add_name(variable_scope, function.__name__, function)
  for cls in _OPTIONS:
    patching.add_name(variables, cls.__name__, cls)
  patching.add_name(variables, "EmbeddingVariableConfig",
                    scope_method.EmbeddingVariableConfig)
  patching.add_name(variable_scope.VariableScope, "get_embedding_variable",
                    scope_method.get_embedding_variable)
  for function in _FEATURE_COLUMNS[:-1]:
    for module in (feature_column_v2, feature_column_lib):
      patching.add_name(module, function.__name__, function)
  patching.add_name(sequence_feature_column,
                    "sequence_categorical_column_with_embedding",
                    categorical.sequence_categorical_column_with_embedding)
  patching.add_module("tensorflow.python.ops.kv_variable_ops", {
      "EmbeddingVariable": ev.EmbeddingVariable,
      "lookup_tier": embedding_lookup.lookup_tier,
  })
  patching.add_module("tensorflow.python.ops.group_embedding_lookup_ops", {
      "group_embedding_lookup": group.group_embedding_lookup,
      "group_embedding_lookup_sparse": group.group_embedding_lookup_sparse,
  })
  patching.add_module("tensorflow.python.training.incremental_saver", {
      "IncrementalSaver": incremental_saver.IncrementalSaver,
      "_get_incremental_saver": incremental_saver._get_incremental_saver,  # pylint: disable=protected-access
  })
  for module, cls in own.OPTIMIZERS:
    patching.add_module("tensorflow.python.training." + module, {cls.__name__: cls})
  patching.add_module("tensorflow.core.framework.embedding.config_pb2", vars(config_pb2))


def _owners():
  """Returns the modules in which a script may look for names of TensorFlow 1.x."""
  owners = [tf, tf.compat.v1]
  if _API_OF_2X in sys.modules:
    # `import tensorflow.compat.v1` may execute that module a second time.
    owners += [importlib.import_module("tensorflow.compat.v1"), sys.modules[_API_OF_2X]]
    owners += [v1.compat.v1 for v1 in owners[1:]]
  return [owner for i, owner in enumerate(owners)
          if not any(owner is other for other in owners[:i])]
