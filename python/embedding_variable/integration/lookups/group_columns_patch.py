# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Patch: one op looks up all embedding columns of a group.

Why: stock layers get dense tensors from their columns one after the other, each with a
lookup of its own. The first column of a group now looks up for all of them, and the
others use its results.
"""

import contextlib
import copy
import threading

from tensorflow.python.feature_column import feature_column as fc_v1
from tensorflow.python.feature_column import feature_column_v2 as fc
from tensorflow.python.ops import variable_scope

from embedding_variable.feature_column import groups
from embedding_variable.integration import patching
from embedding_variable.integration.lookups import feature_column_patch
from embedding_variable.lookup import group
from embedding_variable.lookup import stock_semantics
from embedding_variable.tf_names import feature_column_v2
from embedding_variable.tf_names import ops
from embedding_variable.variables import variable as ev

# pylint: disable=protected-access

_RESULTS = "_embedding_variable_group_results"

# .columns: those of the running input_layer call.
_calls = threading.local()


def install():
  """Replaces the methods that return an embedding column's tensor to layers."""
  patching.wrap(fc_v1, "_internal_input_layer", _input_layer)
  patching.wrap(fc.EmbeddingColumn, "_get_dense_tensor", _get_dense_tensor)
  patching.wrap(fc.EmbeddingColumn, "get_dense_tensor", _get_dense_tensor_v2)


def _fewest():
  """Returns the smallest number of columns of a group that are looked up as one."""
  return 1 if group.is_over_ranks() else 2


def _input_layer(stock):
  """Makes the list of all columns of `tf.feature_column.input_layer` available."""

  def input_layer(features, feature_columns, *args, **kwargs):
    columns = feature_columns
    if isinstance(columns, (fc_v1._FeatureColumn, feature_column_v2.FeatureColumn)):
      columns = [columns]
    elif not isinstance(columns, dict):
      # An iterator can be read only once.
      columns = feature_columns = list(columns)
    outer = getattr(_calls, "columns", [])
    _calls.columns = list(columns)
    try:
      return stock(features, feature_columns, *args, **kwargs)
    finally:
      _calls.columns = outer

  return input_layer


@contextlib.contextmanager
def _scope_of(scope, parent, name):
  """Enters `parent/name` as stock code will, without marking the scope as used.

  Args:
    scope: `VariableScope` of another column of the layer.
    parent: string, name of the layer's scope.
    name: string.
  """
  own = copy.copy(scope)
  own._name = "/".join(filter(None, [parent, name]))
  store = variable_scope.get_variable_scope_store()
  before = store.variable_scope_count(own._name)
  with variable_scope._pure_variable_scope(own):
    yield
  store.variable_scopes_count[own._name] = before


def _get_dense_tensor(stock):
  """Handles embedding columns in `tf.feature_column.input_layer`."""

  def get_dense_tensor(self, inputs, weight_collections=None, trainable=None, *args,
                       **kwargs):
    members = groups.members(self, getattr(_calls, "columns", []))
    scope = variable_scope.get_variable_scope()
    parent, _, name = scope.name.rpartition("/")
    results = inputs.__dict__.setdefault(_RESULTS, {})
    # If stock code has made this scope's name unique, it will do so for the others, so
    # the names of their variables are not known yet.
    if len(members) < _fewest() or (self not in results and name != self._var_scope_name):
      return stock(self, inputs, weight_collections, trainable, *args, **kwargs)
    if self not in results:
      weights, ids = [], []
      for member in members:
        with _scope_of(scope, parent, member._var_scope_name):
          weights.append(
              feature_column_patch.get_weights(member, weight_collections, trainable))
        ids.append(member.categorical_column._get_sparse_tensors(
            inputs, weight_collections, trainable))
      results.update(zip(members, _look_up(members, weights, ids)))
    if name != self._var_scope_name:
      raise ValueError(
          "column '%s': its group was looked up with variables of the scope '%s', but its "
          "own scope is '%s'; put it into no group" %
          (self.name, "/".join(filter(None, [parent, self._var_scope_name])), scope.name))
    return results[self]

  return get_dense_tensor


def _get_dense_tensor_v2(stock):
  """Handles embedding columns in `DenseFeatures` layers."""

  def get_dense_tensor(self, transformation_cache, state_manager, *args, **kwargs):
    layer = getattr(state_manager, "_layer", None)
    members = groups.members(self, getattr(layer, "_feature_columns", None) or [])
    if len(members) < _fewest():
      return stock(self, transformation_cache, state_manager, *args, **kwargs)
    results = transformation_cache.__dict__.setdefault(_RESULTS, {})
    if self not in results:
      weights = [state_manager.get_variable(m, name="embedding_weights")
                 for m in members]
      ids = [m.categorical_column.get_sparse_tensors(transformation_cache, state_manager)
             for m in members]
      results.update(zip(members, _look_up(members, weights, ids)))
    return results[self]

  return get_dense_tensor


def _look_up(columns, weights, ids):
  """Returns the results that each embedding column's own lookup would have returned.

  Args:
    columns: list of embedding columns.
    weights: list of their embedding variables, whole or partitioned.
    ids: list of their `IdWeightPair`s.
  """
  with ops.name_scope("group_embedding_lookup"):
    safe = []
    for column, table, pair in zip(columns, weights, ids):
      feature_column_patch.init_from_checkpoint(column, table)
      safe.append(stock_semantics.SafeIds(ev.parts_of(table)[0].op.name, pair.id_tensor,
                                          pair.weight_tensor, column.combiner))
    rows = group.lookup(weights, [s.ids for s in safe], [s.weights for s in safe],
                        [c.combiner for c in columns])
    return [s.restore_shape(r, c.dimension, "%s_weights" % c.name)
            for s, r, c in zip(safe, rows, columns)]
