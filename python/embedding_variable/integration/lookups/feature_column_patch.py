# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Patch: feature columns create embedding variables for columns that request them.

Why: embedding columns and linear models create the variable deep inside stock code as a
dense `[buckets, dim]`. Each such place is run under a custom getter that creates an
embedding variable instead; multihash columns create their two variables there.
"""

import contextlib
import threading

from tensorflow.python.feature_column import feature_column as fc_v1
from tensorflow.python.feature_column import feature_column_v2 as fc
from tensorflow.python.framework import dtypes
from tensorflow.python.ops import embedding_ops
from tensorflow.python.ops import variable_scope
from tensorflow.python.ops import variables
from tensorflow.python.training import checkpoint_utils

from embedding_variable.feature_column import categorical
from embedding_variable.feature_column import groups
from embedding_variable.feature_column import multihash_column
from embedding_variable import graph_state
from embedding_variable import tf_names
from embedding_variable.integration import patching
from embedding_variable.lookup import adaptive
from embedding_variable.tf_names import ops
from embedding_variable.variables import creation
from embedding_variable.variables import multihash
from embedding_variable.variables import variable as ev

# pylint: disable=protected-access

# .masks: the adaptive_mask_tensors of the running input_layer calls, innermost last.
_calls = threading.local()


def install():
  """Replaces the methods that create embedding weights, and functions that use them."""
  for module, name, wrapper in (
      (fc_v1, "input_layer", _input_layer), (fc, "embedding_column", _embedding_column),
      (fc_v1, "linear_model", _without_fusion),
      (fc, "shared_embedding_columns", _without_fusion)):
    patching.wrap(module, name, wrapper)
  patching.wrap(fc.EmbeddingColumn, "_old_get_dense_tensor_internal",
                _under_getter)
  patching.wrap(fc.IndicatorColumn, "_transform_id_weight_pair", _transform_indicator)
  patching.wrap(fc_v1._FCLinearWrapper, "build", _build_linear)
  patching.wrap(fc._StateManagerImpl, "create_variable", _create_variable)
  # 2.x has it in Keras.
  for module in [fc] + tf_names.keras_modules("feature_column.dense_features_v2"):
    if hasattr(module, "_StateManagerImplV2"):
      patching.wrap(module._StateManagerImplV2, "create_variable", _create_variable_v2)
  patching.wrap(fc_v1._SharedEmbeddingColumn, "_get_dense_tensor_internal",
                _shared_dense_tensor)
  stock = fc.SharedEmbeddingColumnCreator.__dict__["embedding_weights"]
  if not getattr(stock.fget, "_is_patched", False):
    fc.SharedEmbeddingColumnCreator.embedding_weights = property(
        _shared_weights(stock.fget))


def _transform_indicator(stock):

  def transform_id_weight_pair(self, id_weight_pair, *args, **kwargs):
    column = categorical.find(self.categorical_column)
    if column is not None:
      raise ValueError(
          "indicator_column of '%s': its ids are unbounded, so the indicator would have "
          "no width. Use embedding_column, or a categorical column with a number of "
          "buckets" % column.name)
    return stock(self, id_weight_pair, *args, **kwargs)

  return transform_id_weight_pair


@contextlib.contextmanager
def getter_scope(column, scope=None):
  """Context in which dense tables become embedding variables of the column.

  Args:
    column: a `categorical.TableColumn`.
    scope: the `VariableScope` that tables are created in; None: the current one.

  Raises:
    ValueError: the column is adaptive, and no mask is available.
  """
  _reject_adaptive(column)
  scope = scope or variable_scope.get_variable_scope()
  outer = scope.custom_getter
  make = creation.make_getter(column.ev_option, column.partition_num)

  def custom_getter(getter, *args, **kwargs):
    if outer is None:
      return make(getter, *args, **kwargs)

    def through_outer(*inner_args, **inner_kwargs):
      return outer(getter, *inner_args, **inner_kwargs)

    return make(through_outer, *args, **kwargs)

  scope.set_custom_getter(custom_getter)
  try:
    yield
  finally:
    scope.set_custom_getter(outer)


def _reject_adaptive(column):
  if column.hash_bucket_size is not None:
    raise ValueError(
        "column '%s': an adaptive column works in an embedding_column in "
        "tf.feature_column.input_layer(..., adaptive_mask_tensors={'%s': mask}) only" %
        (column.key, column.key))


def _input_layer(stock):
  """Lets `tf.feature_column.input_layer` take masks for adaptive columns."""

  def input_layer(features, feature_columns, *args, **kwargs):
    masks = kwargs.pop("adaptive_mask_tensors", None) or {}
    outer = getattr(_calls, "masks", [])
    _calls.masks = outer + [masks]
    try:
      return stock(features, feature_columns, *args, **kwargs)
    finally:
      _calls.masks = outer

  return input_layer


def _embedding_column(stock):
  """Lets `tf.feature_column.embedding_column` take DeepRec's arguments and join groups."""

  def embedding_column(categorical_column, dimension, *args, do_fusion=None,
                       coalesced_scope=None, **kwargs):
    # Ignored: DeepRec's fused lookup is a single op in this package anyway.
    del do_fusion, coalesced_scope
    if multihash_column.find(categorical_column) is not None:
      categorical_column, dimension = multihash_column.with_lengths(
          categorical_column, dimension)
    column = stock(categorical_column, dimension, *args, **kwargs)
    groups.mark(column)
    return column

  return embedding_column


def _without_fusion(stock):
  """Lets functions of `tf.feature_column` take DeepRec's `do_fusion`, which affects
  only speed.
  """

  def function(*args, do_fusion=None, **kwargs):
    del do_fusion
    return stock(*args, **kwargs)

  return function


def init_from_checkpoint(column, weights):
  """Initializes an embedding column's table from the checkpoint that it names, if any."""
  if column.ckpt_to_load_from is not None:
    checkpoint_utils.init_from_checkpoint(
        column.ckpt_to_load_from,
        {column.tensor_name_in_ckpt: ev.parts_of(weights)
         if isinstance(weights, variables.PartitionedVariable) else weights})


def _under_getter(stock):
  """Handles embedding columns in `tf.feature_column.input_layer`."""

  def method(self, sparse_tensors, weight_collections, trainable, *args, **kwargs):
    column = categorical.find(self)
    if multihash_column.find(self) is not None:
      return self._get_dense_tensor_internal_helper(
          sparse_tensors, _multihash_weights(self, weight_collections, trainable))
    if column is None:
      return stock(self, sparse_tensors, weight_collections, trainable, *args, **kwargs)
    if column.hash_bucket_size is not None:
      return _adaptive_tensor(self, column, sparse_tensors, weight_collections, trainable)
    with getter_scope(column):
      return stock(self, sparse_tensors, weight_collections, trainable, *args, **kwargs)

  return method


def get_weights(self, weight_collections, trainable):
  """Gets or creates the table of an embedding column in the current variable scope."""
  column = categorical.find(self)
  with getter_scope(column):
    return variable_scope.get_variable(
        name="embedding_weights", shape=(column._num_buckets, self.dimension),
        dtype=dtypes.float32, initializer=self.initializer,
        trainable=self.trainable and trainable, collections=weight_collections)


def _multihash_weights(self, weight_collections, trainable):
  """Returns the variable of an embedding column over a multihash column."""
  column = multihash_column.find(self)
  if self.ckpt_to_load_from is not None:
    raise ValueError("column '%s': ckpt_to_load_from names one tensor, and a multihash "
                     "column has two variables" % column.key)
  return multihash.get_multihash_variable(
      "embedding_weights", column.shapes, column.complementary_strategy,
      column.operation, initializer=self.initializer,
      trainable=self.trainable and trainable, collections=weight_collections,
      partitioner=column.partitioner)


def _adaptive_tensor(self, column, sparse_tensors, weight_collections, trainable):
  """Returns the dense tensor of an embedding column over an adaptive column."""
  masks = (getattr(_calls, "masks", None) or [{}])[-1]
  if column.key not in masks or isinstance(self.categorical_column,
                                           fc.SequenceCategoricalColumn):
    _reject_adaptive(column)
  if self.ckpt_to_load_from is not None:
    raise ValueError("column '%s': ckpt_to_load_from names one tensor, and an adaptive "
                     "column has two tables" % column.key)
  common = dict(dtype=dtypes.float32, initializer=self.initializer,
                trainable=self.trainable and trainable)
  shared = variable_scope.get_variable(
      "embedding_weights_hash", shape=(column.hash_bucket_size, self.dimension),
      collections=weight_collections, **common)
  own = column._replace(hash_bucket_size=None)
  with getter_scope(own):
    weights = variable_scope.get_variable(
        "embedding_weights", shape=(own.num_buckets, self.dimension),
        collections=weight_collections, **common)
  return adaptive.safe_adaptive_embedding_lookup_sparse(
      shared, weights, sparse_tensors.id_tensor, masks[column.key],
      sparse_tensors.weight_tensor, self.combiner, name="%s_weights" % self.name,
      max_norm=self.max_norm)


def _build_linear(stock):
  """Handles categorical columns in `tf.feature_column.linear_model`."""

  def build(self, *args, **kwargs):
    column = self._feature_column
    column = categorical.find(column) if isinstance(
        column, fc_v1._CategoricalColumn) else None
    if column is None:
      return stock(self, *args, **kwargs)
    # The layer reopens its own scope for each variable.
    with getter_scope(column, self._scope):
      return stock(self, *args, **kwargs)

  return build


def _create_variable(stock):
  """Handles columns in `DenseFeatures`, `SequenceFeatures` and `LinearModel` layers."""

  def create_table(self, feature_column, name, shape, *args, **kwargs):
    with getter_scope(tuple(shape)[0].column):
      return stock(self, feature_column, name, shape, *args, **kwargs)

  return _for_tables(stock, create_table)


def _for_tables(stock, create_table):
  """Returns a function that creates tables by `create_table` and other variables by
  stock.
  """

  def create_variable(self, feature_column, name, shape, *args, **kwargs):
    rows = tuple(shape)[0]
    if _is_of_multihash(feature_column, rows):
      return _create_multihash(stock, self, feature_column, name, rows.column, *args,
                               **kwargs)
    make = create_table if isinstance(rows, categorical.TableSize) else stock
    return make(self, feature_column, name, shape, *args, **kwargs)

  return create_variable


def _is_of_multihash(feature_column, rows):
  """Returns whether these are the rows of an embedding column's multihash variable."""
  return (isinstance(rows, multihash_column.MultihashSize) and
          isinstance(feature_column, fc.EmbeddingColumn))


def _create_multihash(stock, self, feature_column, name, column, *args, **kwargs):
  """Creates both variables of a multihash column with its layer's creation function."""
  scope = variable_scope.get_variable_scope()
  with variable_scope.variable_scope(scope, auxiliary_name_scope=False,
                                     partitioner=column.partitioner or scope.partitioner):
    pair = [
        stock(self, feature_column, "%s/multhash_%s" % (name, letter), shape, *args,
              **kwargs) for letter, shape in zip("QR", column.shapes)
    ]
  if (column.partition_num or 1) > 1 and not isinstance(pair[0],
                                                        variables.PartitionedVariable):
    raise ValueError("column '%s': this layer makes variables without parts, and "
                     "partition_num is %d" % (column.key, column.partition_num))
  # A partitioned variable has no op of its own.
  full_name = getattr(pair[0], "op", pair[0]).name.rsplit("/", 1)[0]
  variable = multihash.MultiHashVariable(full_name, pair[0], pair[1], column.shapes,
                                         column.operation)
  self._cols_to_vars_map[feature_column][name] = variable
  return variable


def _create_variable_v2(stock):
  """The same for layers whose stock code does not use `tf.get_variable`."""

  def create_table(self, feature_column, name, shape, *args, **kwargs):
    # Stock includes the name scope in the variable's name, `tf.get_variable` does not.
    with variable_scope._pure_variable_scope(self._layer.name), \
        variable_scope._pure_variable_scope(feature_column.name):
      return fc._StateManagerImpl.create_variable(self, feature_column, name, shape,
                                                  *args, **kwargs)

  return _for_tables(stock, create_table)


def _shared_weights(stock):
  """Handles columns of `tf.feature_column.shared_embeddings` (v2)."""

  def embedding_weights(self):
    if not isinstance(self._num_buckets, categorical.TableSize):
      return stock(self)
    with getter_scope(self._num_buckets.column):
      return stock(self)

  embedding_weights._is_patched = True
  return embedding_weights


def _shared_dense_tensor(stock):
  """Handles columns of `tf.feature_column.shared_embedding_columns` (v1).

  Reimplements stock code, which compares the shared variable's shape with the dense
  one.
  """

  def get_dense_tensor(self, inputs, weight_collections=None, trainable=None, *args,
                       **kwargs):
    column = categorical.find(self)
    if column is None:
      return stock(self, inputs, weight_collections, trainable, *args, **kwargs)
    with ops.name_scope(None, default_name=self.name):
      tensors = self.categorical_column._get_sparse_tensors(
          inputs, weight_collections=weight_collections, trainable=trainable)
      key = "_shared_embedding_variables"
      shared = graph_state.of(ops.get_default_graph()).setdefault(key, {})
      name = self.shared_embedding_collection_name
      if name in shared:
        weights = shared[name]
      else:
        weights = get_weights(self, weight_collections, trainable)
        shared[name] = weights
        for part in ev.parts_of(weights):
          ops.add_to_collection(name, part)
      dims = {part.dim for part in ev.parts_of(weights)}
      if dims != {self.dimension}:
        raise ValueError(
            "shared embedding '%s' has the dimension %s, but column '%s' asks for "
            "%d" % (name, sorted(dims), self.name, self.dimension))
      init_from_checkpoint(self, weights)
      return embedding_ops.safe_embedding_lookup_sparse(
          embedding_weights=weights, sparse_ids=tensors.id_tensor,
          sparse_weights=tensors.weight_tensor, combiner=self.combiner,
          name="%s_weights" % self.name, max_norm=self.max_norm)

  return get_dense_tensor
