# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Patch: `tf.contrib`: feature columns, safe lookup, `init_from_checkpoint`.

Why: DeepRec's scripts use `tf.contrib.layers.sparse_column_with_embedding`. The table
of such a column is created deep inside stock code as a dense variable. And contrib has
its own safe lookup and `init_from_checkpoint`, which read and write variables whole.

Importing contrib takes seconds, which scripts without it should not spend: the patch is
applied when a script has imported contrib.
"""

from tensorflow.python.ops import embedding_ops
from tensorflow.python.ops import init_ops
from tensorflow.python.training import checkpoint_utils

from embedding_variable.feature_column import categorical
from embedding_variable.integration import patching
from embedding_variable.integration.lookups import embedding_ops_patch
from embedding_variable.integration.lookups import feature_column_patch
from embedding_variable.lookup import combiners
from embedding_variable.tf_names import ops
from embedding_variable.variables import variable as ev

# pylint: disable=protected-access


def install():
  """Arranges that modules are patched when they are imported."""
  patching.after_import("tensorflow.contrib.framework", _patch_framework)
  patching.after_import("tensorflow.contrib.layers", _patch_layers)


def _patch_framework(unused_module):
  from tensorflow.contrib.framework.python.framework import checkpoint_utils as contrib  # pylint: disable=g-import-not-at-top
  patching.wrap(contrib, "init_from_checkpoint", _init_from_checkpoint)
  patching.replace_exports()


def _init_from_checkpoint(stock):
  """Calls core's function for embedding variables: it takes the same arguments."""

  def init_from_checkpoint(checkpoint_dir, assignment_map, *args, **kwargs):
    if ev.all_in_graph():
      return checkpoint_utils.init_from_checkpoint(checkpoint_dir, assignment_map)
    return stock(checkpoint_dir, assignment_map, *args, **kwargs)

  return init_from_checkpoint


def _patch_layers(contrib_layers):
  # pylint: disable=g-import-not-at-top
  from tensorflow.contrib.layers.python.layers import embedding_ops as contrib_embedding
  from tensorflow.contrib.layers.python.layers import feature_column
  from tensorflow.contrib.layers.python.layers import feature_column_ops
  from embedding_variable.feature_column import contrib_columns
  # pylint: enable=g-import-not-at-top
  for owner in (contrib_layers, feature_column):
    if not hasattr(owner, "sparse_column_with_embedding"):
      owner.sparse_column_with_embedding = contrib_columns.sparse_column_with_embedding
  patching.wrap(contrib_embedding, "safe_embedding_lookup_sparse",
                _safe_embedding_lookup_sparse)
  patching.wrap(feature_column._EmbeddingColumn, "__new__", _new_embedding_column)
  patching.wrap(feature_column, "_embeddings_from_arguments", _embeddings_from_arguments)
  patching.wrap(feature_column_ops, "_create_embedding_lookup", _create_embedding_lookup)
  patching.wrap(feature_column_ops, "_create_joint_embedding_lookup",
                _create_joint_embedding_lookup)
  patching.replace_exports()


def _safe_embedding_lookup_sparse(stock):
  embedding_ops_patch.refuse_stock_of(stock)

  def safe_embedding_lookup_sparse(embedding_weights, sparse_ids, sparse_weights=None,
                                   combiner=None, default_id=None, name=None,
                                   partition_strategy="div", max_norm=None, *args,
                                   **kwargs):
    if embedding_weights is None or ev.parts_of(embedding_weights) is None:
      return stock(embedding_weights, sparse_ids, sparse_weights, combiner, default_id,
                   name, partition_strategy, max_norm, *args, **kwargs)
    return embedding_ops.safe_embedding_lookup_sparse(
        embedding_weights, sparse_ids, sparse_weights, combiner or combiners.DEFAULT, default_id,
        name, partition_strategy, max_norm)

  return safe_embedding_lookup_sparse


def _new_embedding_column(stock):
  """Wraps the default initializer, which divides by the square root of the number of
  rows.
  """

  def new(cls, sparse_id_column, dimension, combiner="mean", initializer=None, *args,
          **kwargs):
    if initializer is None and categorical.find(sparse_id_column) is not None:
      initializer = init_ops.truncated_normal_initializer(stddev=dimension**-.5)
    return stock(cls, sparse_id_column, dimension, combiner, initializer, *args, **kwargs)

  return new


def _embeddings_from_arguments(stock):
  """Handles embedding columns in `input_from_feature_columns` and its sequence variant."""

  def embeddings_from_arguments(column, args, weight_collections, trainable,
                                output_rank=2, *rest, **kwargs):
    if not isinstance(args.vocab_size, categorical.TableSize):
      return stock(column, args, weight_collections, trainable, output_rank, *rest,
                   **kwargs)
    from tensorflow.contrib.layers.python.layers import layers  # pylint: disable=g-import-not-at-top
    ids, weights = [
        t if t is None else layers._inner_flatten(t, output_rank)
        for t in (args.input_tensor, args.weight_tensor)
    ]
    table = _table_of(column, args, weight_collections, trainable)
    feature_column_patch.init_from_checkpoint(column, table)
    return embedding_ops.safe_embedding_lookup_sparse(
        table, ids, weights, args.combiner, name=column.name + "weights",
        max_norm=args.max_norm)

  return embeddings_from_arguments


def _table_of(column, args, weight_collections, trainable):
  """Gets or creates the table of an embedding column; other columns may share it."""
  from tensorflow.contrib.framework.python.ops import variables  # pylint: disable=g-import-not-at-top
  shared = args.shared_embedding_name
  known = []
  if shared is not None:
    known = ops.get_default_graph().get_collection_ref(
        "SHARED_EMBEDDING_COLLECTION_" + shared.upper())
  if known:
    dims = {part.dim for part in ev.parts_of(known[0]) or ()}
    if dims != {args.dimension}:
      raise ValueError("column '%s': the shared embedding '%s' is %r, but the column asks "
                       "for an embedding variable of the dimension %d" %
                       (column.name, shared, known[0], args.dimension))
    return known[0]
  with feature_column_patch.getter_scope(args.vocab_size.column):
    table = variables.model_variable(
        shared or "weights", shape=[args.vocab_size, args.dimension],
        initializer=args.initializer, trainable=trainable and args.trainable,
        collections=weight_collections)
  if shared is not None:
    known.append(table)
  return table


def _create_embedding_lookup(stock):
  """Handles sparse columns in `weighted_sum_from_feature_columns`."""

  def create_embedding_lookup(column, columns_to_tensors, embedding_lookup_arguments,
                              *args, **kwargs):
    size = embedding_lookup_arguments.vocab_size
    if not isinstance(size, categorical.TableSize):
      return stock(column, columns_to_tensors, embedding_lookup_arguments, *args,
                   **kwargs)
    with feature_column_patch.getter_scope(size.column):
      return stock(column, columns_to_tensors, embedding_lookup_arguments, *args,
                   **kwargs)

  return create_embedding_lookup


def _create_joint_embedding_lookup(stock):
  """Handles `joint_weighted_sum_from_feature_columns`, which uses one table for all
  columns.
  """

  def create_joint_embedding_lookup(columns_to_tensors, embedding_lookup_arguments, *args,
                                    **kwargs):
    for arguments in embedding_lookup_arguments:
      if isinstance(arguments.vocab_size, categorical.TableSize):
        raise ValueError(
            "column '%s': a column with an embedding variable has no fixed number of "
            "rows, so other columns' rows cannot follow in the same table; use "
            "weighted_sum_from_feature_columns" % arguments.vocab_size.column.name)
    return stock(columns_to_tensors, embedding_lookup_arguments, *args, **kwargs)

  return create_joint_embedding_lookup
