# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""`get_dynamic_dimension_embedding_variable`: rows whose length each lookup chooses.

A row consists of blocks, each in an embedding variable of its own. A key has rows only
in the blocks in which it was trained, so a rare key that is looked up with one block
takes the memory of one.
"""

from embedding_variable.tf_names import dtypes
from embedding_variable.tf_names import variable_scope
from embedding_variable.variables import creation
from embedding_variable.variables import number_checks
from embedding_variable.variables import options
from embedding_variable.variables import variable as ev


def get_dynamic_dimension_embedding_variable(name,
                                             embedding_block_dimension,
                                             embedding_block_num,
                                             key_dtype=dtypes.int64,
                                             value_dtype=None,
                                             initializer=None,
                                             regularizer=None,
                                             trainable=True,
                                             collections=None,
                                             caching_device=None,
                                             partitioner=None,
                                             validate_shape=True,
                                             custom_getter=None,
                                             constraint=None,
                                             steps_to_live=None,
                                             init_data_source=None,
                                             ht_partition_num=1000,
                                             storage_type=None):
  """Gets or creates the embedding variables `name/block0`, `name/block1` and so on.

  Args:
    name: string; prefixed with the variable scope's name.
    embedding_block_dimension: int >= 1, length of a block of a row.
    embedding_block_num: int >= 1, blocks of the longest row.
    key_dtype: see `tf.get_embedding_variable`; applies to each block, as do the
      arguments below.
    value_dtype: see `tf.get_embedding_variable`.
    initializer: see `tf.get_embedding_variable`.
    regularizer: see `tf.get_embedding_variable`.
    trainable: see `tf.get_embedding_variable`.
    collections: see `tf.get_embedding_variable`.
    caching_device: see `tf.get_embedding_variable`.
    partitioner: see `tf.get_embedding_variable`.
    validate_shape: see `tf.get_embedding_variable`.
    custom_getter: see `tf.get_embedding_variable`.
    constraint: see `tf.get_embedding_variable`.
    steps_to_live: see `tf.get_embedding_variable`.
    init_data_source: see `tf.get_embedding_variable`.
    ht_partition_num: accepted for compatibility.
    storage_type: number of `config_pb2.StorageType`, or None.

  Returns:
    A `DynamicDimensionEmbeddingVariable`, for `tf.nn.embedding_lookup` and
      `embedding_lookup_sparse` with `blocknums`.

  Raises:
    ValueError: the number of blocks is not an int >= 1, or the errors of
      `tf.get_embedding_variable`.
  """
  del ht_partition_num
  if not number_checks.is_int(embedding_block_num, 1):
    raise ValueError("embedding variable '%s': embedding_block_num: expected an integer of "
                     "at least 1, got %r" % (name, embedding_block_num))
  option = options.EmbeddingVariableOption(
      storage_option=options.StorageOption(storage_type=storage_type))
  with variable_scope.variable_scope(name):
    blocks = [
        creation.get_embedding_variable(
            "block%d" % i, embedding_block_dimension, key_dtype=key_dtype,
            value_dtype=value_dtype, initializer=initializer, regularizer=regularizer,
            trainable=trainable, collections=collections,
            caching_device=caching_device, partitioner=partitioner,
            validate_shape=validate_shape, custom_getter=custom_getter,
            constraint=constraint, steps_to_live=steps_to_live,
            init_data_source=init_data_source, ev_option=option)
        for i in range(embedding_block_num)
    ]
    full_name = variable_scope.get_variable_scope().name
  return DynamicDimensionEmbeddingVariable(full_name, blocks)


class DynamicDimensionEmbeddingVariable(object):
  """Several embedding variables that are looked up as one.

  Attributes:
    name: string.
    blocks: list of embedding variables (or `PartitionedVariable`s of them).
    dim: int, length of a row with all blocks.
  """

  def __init__(self, name, blocks):
    self.name = name
    self.blocks = blocks
    self.dim = sum(ev.parts_of(b)[0].dim for b in blocks)

  @property
  def block_num(self):
    """int, number of blocks."""
    return len(self.blocks)

  def convert_ids(self, ids):
    """Returns `ids` as an int32 or int64 tensor; raises TypeError for other types."""
    return ev.parts_of(self.blocks[0])[0].convert_ids(ids)
