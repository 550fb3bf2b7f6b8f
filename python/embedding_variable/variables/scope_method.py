# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""DeepRec's `VariableScope.get_embedding_variable` and the options that it takes."""

from embedding_variable.tf_names import dtypes
from embedding_variable.tf_names import variable_scope
from embedding_variable.variables import config_pb2
from embedding_variable.variables import creation
from embedding_variable.variables import options


class EmbeddingVariableConfig(object):
  """Options of one embedding variable in one flat object.

  `tf.get_embedding_variable` takes the same options as an `EmbeddingVariableOption`.
  Arguments become attributes of their names.

  Args:
    steps_to_live: as `GlobalStepEvict`'s; None: off.
    l2_weight_threshold: as `L2WeightEvict`'s; -1.0: off.
    filter_strategy: `CounterFilter`, `CBFFilter` or None.
    ht_type: ignored, as `EmbeddingVariableOption` does.
    storage_type, storage_path, storage_size, layout: as `StorageOption`'s.
    storage_cache_strategy: as `StorageOption`'s cache_strategy.
    default_value_dim, default_value_no_permission: as `InitializerOption`'s.
    ckpt_to_load_from, tensor_name_in_ckpt, always_load_from_specific_ckpt: as
      `CheckpointOption`'s.
    init_data_source: as `get_embedding_variable`'s; must be None to create a variable.
    handle_name: ignored; the variable's name names its handle.
    steps_to_live_l2reg, l2reg_theta, l2reg_lambda, emb_index, slot_index, block_num,
      primary, slot_num: must be None to create a variable.
  """

  def __init__(self,
               steps_to_live=None,
               steps_to_live_l2reg=None,
               l2reg_theta=None,
               l2reg_lambda=None,
               l2_weight_threshold=-1.0,
               ht_type=None,
               filter_strategy=None,
               ckpt_to_load_from=None,
               tensor_name_in_ckpt=None,
               always_load_from_specific_ckpt=False,
               init_data_source=None,
               handle_name=None,
               emb_index=None,
               slot_index=None,
               block_num=None,
               primary=None,
               slot_num=None,
               storage_type=config_pb2.StorageType.DRAM,
               storage_path=None,
               storage_size=None,
               storage_cache_strategy=config_pb2.CacheStrategy.LFU,
               layout=None,
               default_value_dim=4096,
               default_value_no_permission=.0):
    self.steps_to_live = steps_to_live
    self.steps_to_live_l2reg = steps_to_live_l2reg
    self.l2reg_theta = l2reg_theta
    self.l2reg_lambda = l2reg_lambda
    self.l2_weight_threshold = l2_weight_threshold
    self.ht_type = ht_type
    self.filter_strategy = filter_strategy
    self.ckpt_to_load_from = ckpt_to_load_from
    self.tensor_name_in_ckpt = tensor_name_in_ckpt
    self.always_load_from_specific_ckpt = always_load_from_specific_ckpt
    self.init_data_source = init_data_source
    self.handle_name = handle_name
    self.emb_index = emb_index
    self.slot_index = slot_index
    self.block_num = block_num
    self.primary = primary
    self.slot_num = slot_num
    self.storage_type = storage_type
    self.storage_path = storage_path
    self.storage_size = storage_size
    self.storage_cache_strategy = storage_cache_strategy
    self.layout = layout
    self.default_value_dim = default_value_dim
    self.default_value_no_permission = default_value_no_permission


# Attributes that describe internals of DeepRec (slots, blocks), or have no counterpart.
_MUST_BE_NONE = ("steps_to_live_l2reg", "l2reg_theta", "l2reg_lambda", "emb_index",
                 "slot_index", "block_num", "primary", "slot_num")


def _to_option(name, config):
  """Returns the `EmbeddingVariableOption` of a config.

  Args:
    name: string, of the variable, for messages.
    config: `EmbeddingVariableConfig`.
  """
  for attribute in _MUST_BE_NONE:
    value = getattr(config, attribute)
    if value is not None:
      raise NotImplementedError(
          "embedding variable '%s': this version does not have %s of "
          "EmbeddingVariableConfig, which must be None, got %r" %
          (name, attribute, value))
  evict = None
  if config.steps_to_live:
    evict = options.GlobalStepEvict(config.steps_to_live)
  if config.l2_weight_threshold > 0:
    if evict is not None:
      raise ValueError("embedding variable '%s': steps_to_live and l2_weight_threshold "
                       "exclude each other" % name)
    evict = options.L2WeightEvict(config.l2_weight_threshold)
  checkpoint = None
  if config.ckpt_to_load_from or config.tensor_name_in_ckpt:
    checkpoint = options.CheckpointOption(
        config.ckpt_to_load_from, config.tensor_name_in_ckpt,
        config.always_load_from_specific_ckpt)
  return options.EmbeddingVariableOption(
      evict_option=evict,
      ckpt=checkpoint,
      filter_option=config.filter_strategy,
      storage_option=options.StorageOption(
          config.storage_type, config.storage_path, config.storage_size,
          config.storage_cache_strategy, config.layout),
      init_option=options.InitializerOption(
          default_value_dim=config.default_value_dim,
          default_value_no_permission=config.default_value_no_permission))


def get_embedding_variable(self,
                           var_store,
                           name,
                           shape=None,
                           dtype=None,
                           initializer=None,
                           regularizer=None,
                           reuse=None,
                           trainable=True,
                           collections=None,
                           caching_device=None,
                           partitioner=None,
                           validate_shape=True,
                           use_resource=None,
                           custom_getter=None,
                           constraint=None,
                           invalid_key=None,
                           evconfig=None,
                           synchronization=None,
                           aggregation=None,
                           ht_partition_num=1000):
  """Gets an existing embedding variable of a scope, or creates one.

  A method of `VariableScope`; `tf.get_embedding_variable` calls it on the current scope
  in DeepRec.

  Args:
    self: `VariableScope`.
    var_store: must be the graph's store of variables, `_get_default_variable_store()`.
    name: string; the scope's name is put before it.
    shape: int or list of one, length of a row.
    dtype: None or `value_dtype` of `tf.get_embedding_variable`.
    initializer, regularizer, trainable, collections, caching_device, partitioner,
      validate_shape, custom_getter, constraint: as of `tf.get_embedding_variable`.
    reuse: bool or `tf.AUTO_REUSE`; None: the scope's.
    use_resource, synchronization, aggregation, ht_partition_num: ignored.
    invalid_key: None or 2^63 - 1: keys are int64; -1: int32.
    evconfig: `EmbeddingVariableConfig`; None: the defaults.

  Returns, raises: as `tf.get_embedding_variable`.
  """
  del use_resource, synchronization, aggregation, ht_partition_num
  if var_store is not variable_scope._get_default_variable_store():  # pylint: disable=protected-access
    raise ValueError("embedding variable '%s': var_store: expected the default graph's "
                     "store of variables" % name)
  if invalid_key not in (None, -1, dtypes.int64.max):
    raise ValueError(
        "embedding variable '%s': invalid_key: expected None, 2^63 - 1 (int64 keys) or -1 "
        "(int32 keys), got %r" % (name, invalid_key))
  key_dtype = dtypes.int32 if invalid_key == -1 else dtypes.int64
  config = evconfig or EmbeddingVariableConfig()
  with variable_scope.variable_scope(self, reuse=reuse, auxiliary_name_scope=False):
    return creation.get_embedding_variable(
        name, shape, key_dtype=key_dtype, value_dtype=dtype, initializer=initializer,
        regularizer=regularizer, trainable=trainable, collections=collections,
        caching_device=caching_device, partitioner=partitioner,
        validate_shape=validate_shape, custom_getter=custom_getter,
        constraint=constraint, init_data_source=config.init_data_source,
        ev_option=_to_option(name, config))
