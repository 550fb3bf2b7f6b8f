# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The option objects of an embedding variable.

Constructors have DeepRec's arguments, order and defaults, and set DeepRec's attributes.
Every object owns its values: defaults are not shared between objects. Options are
checked when a variable is created with them.
"""

import inspect
import numbers
import os
import re
import sys
import zlib

from embedding_variable.checkpoint_format import tensor_names
from embedding_variable.ops import handle_ops
from embedding_variable.tf_names import dtypes
from embedding_variable.tf_names import tf
from embedding_variable.tf_names import tf_logging as logging
from embedding_variable.variables import config_pb2
from embedding_variable.variables import evict_options
from embedding_variable.variables import number_checks
from embedding_variable.variables import storages

GlobalStepEvict = evict_options.GlobalStepEvict
L2WeightEvict = evict_options.L2WeightEvict

# Value of `StorageOption.storage_type` for GPU memory if there is a GPU.
AUTO = storages.AUTO.name

_GIB = 1024**3
_TIERS = 4
_DEFAULT_ROWS = 4096

# Types of values in rows, and ways to round to the narrower ones.
_VALUE_TYPES = (dtypes.float32, dtypes.float16, dtypes.bfloat16)
STOCHASTIC, NEAREST = "stochastic", "nearest"

_COUNTER_TYPES = (dtypes.uint8, dtypes.uint16, dtypes.uint32, dtypes.uint64)


class InitializerOption(object):
  """The values that a key has before its first gradient is applied.

  Args:
    initializer: initializer of the default rows, or None for the `initializer` argument
      of `get_embedding_variable`.
    default_value_dim: int, number of default rows. A new key copies row `floormod(key,
      default_value_dim)`. Values below 1, which some of DeepRec's scripts have, mean
      4096 and log a warning.
    default_value_no_permission: float. A lookup of a key that a filter has not admitted
      returns a row filled with it.

  Raises:
    ValueError: `default_value_dim` is not an integer.
  """

  def __init__(self,
               initializer=None,
               default_value_dim=_DEFAULT_ROWS,
               default_value_no_permission=.0):
    if not number_checks.is_int(default_value_dim, -sys.maxsize):
      raise ValueError(
          "InitializerOption: default_value_dim: expected an integer, got %r" %
          (default_value_dim,))
    if default_value_dim < 1:
      logging.warning("InitializerOption: default_value_dim: expected at least 1, got %d; "
                      "using %d", default_value_dim, _DEFAULT_ROWS)
      default_value_dim = _DEFAULT_ROWS
    self.initializer = initializer
    self.default_value_dim = default_value_dim
    self.default_value_no_permission = default_value_no_permission


class CounterFilter(object):
  """Gives a key its row at its `filter_freq`-th occurrence in training batches.

  Occurrences are counted exactly. With `filter_freq` 0 there is no filter.
  """

  def __init__(self, filter_freq=0):
    self.filter_freq = filter_freq


class CBFFilter(object):
  """Gives a key its row at about its `filter_freq`-th occurrence in training batches.

  Occurrences are counted in a counting Bloom filter, which has a fixed size:
  `ceil(max_element_size * |ln p| / ln(2)^2)` counters, where p is
  `false_positive_probability`. A key that shares all of its `ceil(|log2 p|)` counters
  with others may get its row early, but never late.

  Args:
    filter_freq: int; 0: no filter.
    max_element_size: int, expected number of keys. 0: keys are counted exactly, as by
      `CounterFilter`.
    false_positive_probability: float in (0, 1).
    counter_type: `tf.uint8`, `tf.uint16`, `tf.uint32` or `tf.uint64`; must be able to
      hold `filter_freq`. Other integer types become `tf.uint64`, as in DeepRec.

  Raises:
    ValueError: only one of `max_element_size` and `false_positive_probability` is
      positive.
    TypeError: `counter_type` is not an integer type.
  """

  def __init__(self,
               filter_freq=0,
               max_element_size=0,
               false_positive_probability=-1.0,
               counter_type=dtypes.uint64):
    if (max_element_size > 0) != (false_positive_probability > 0):
      raise ValueError(
          "CBFFilter: max_element_size and false_positive_probability: expected "
          "positive together, got %r and %r" %
          (max_element_size, false_positive_probability))
    counter_type = dtypes.as_dtype(counter_type)
    if not counter_type.is_integer:
      raise TypeError("CBFFilter: counter_type: expected one of %s, got %s" %
                      ([t.name for t in _COUNTER_TYPES], counter_type.name))
    if counter_type not in _COUNTER_TYPES:
      counter_type = dtypes.uint64
    self.filter_freq = filter_freq
    self.max_element_size = max_element_size
    self.false_positive_probability = false_positive_probability
    self.counter_type = counter_type


class StorageOption(object):
  """The memory or files that hold the rows, and their limits.

  Args:
    storage_type: number of `config_pb2.StorageType`: DRAM (CPU memory; so are None and
      DEFAULT), HBM (GPU memory), HBM_DRAM (GPU and CPU memory), DRAM_SSDHASH (CPU
      memory and SSD) or HBM_DRAM_SSDHASH (all three). The types of persistent memory mean
      DRAM, those of LevelDB DRAM_SSDHASH; the first variable with such a type logs a
      warning. Or the string
      "auto": HBM if the process can use a GPU when the variable is initialised, else
      DRAM; the choice is logged.
    storage_path: directory for rows on an SSD, used by one variable; created if needed.
    storage_size: list of at most four ints, the maximum bytes of rows in each memory;
      missing ones are 1 GiB. The slowest memory has no maximum. DRAM_SSDHASH uses the
      first entry, for CPU memory; HBM_DRAM the first, for GPU memory; HBM_DRAM_SSDHASH
      the first two, for GPU and CPU memory. The list is copied.
    cache_strategy: number of `config_pb2.CacheStrategy`: which rows are evicted when a
      capacity is reached, and which move to slower memories.
    layout: accepted for compatibility.
    max_capacity: int >= 1, most rows of the table; None: no limit.
    max_capacity_bytes: int >= 1, most bytes of rows, slots and index; None: no limit.
      With both, the smaller number of rows applies.

  Raises:
    ValueError: `storage_size` is not a list, a storage type that needs a path has none,
      or a capacity is below 1.
  """

  def __init__(self,
               storage_type=None,
               storage_path=None,
               storage_size=None,
               cache_strategy=config_pb2.CacheStrategy.LFU,
               layout=None,
               max_capacity=None,
               max_capacity_bytes=None):
    for argument, value in (("max_capacity", max_capacity),
                            ("max_capacity_bytes", max_capacity_bytes)):
      if value is not None and not number_checks.is_int(value, 1):
        raise ValueError("StorageOption: %s: expected an integer of at least 1, got %r"
                         % (argument, value))
    size = [_GIB] if storage_size is None else storage_size
    if not isinstance(size, (list, tuple)):
      raise ValueError("StorageOption: storage_size: expected a list, got %r" %
                       (storage_size,))
    if len(size) > _TIERS:
      raise ValueError("StorageOption: storage_size has %d entries, at most %d" %
                       (len(size), _TIERS))
    self.storage_type = storage_type
    self.storage_path = storage_path
    self.storage_size = list(size) + [_GIB] * (_TIERS - len(size))
    self.cache_strategy = cache_strategy
    self.layout = layout
    self.max_capacity = max_capacity
    self.max_capacity_bytes = max_capacity_bytes
    if storage_type in storages.NEED_PATH and storage_path is None:
      raise ValueError("StorageOption: storage type %s needs a storage_path" %
                       config_pb2.StorageType.Name(storage_type))
    if storage_path is not None:
      os.makedirs(storage_path, exist_ok=True)


class CheckpointOption(object):
  """DeepRec's option to load a variable from a checkpoint at creation.

  Not supported: creating a variable with any of its values set raises an error. Restore
  with `tf.train.Saver` or `tf.train.init_from_checkpoint`.
  """

  def __init__(self,
               ckpt_to_load_from=None,
               tensor_name_in_ckpt=None,
               always_load_from_specific_ckpt=False,
               init_data_source=None):
    self.ckpt_to_load_from = ckpt_to_load_from
    self.tensor_name_in_ckpt = tensor_name_in_ckpt
    self.always_load_from_specific_ckpt = always_load_from_specific_ckpt
    self.init_data_source = init_data_source


class EmbeddingVariableOption(object):
  """All options of one embedding variable.

  Args:
    ht_type: accepted for compatibility; there is one kind of hash table.
    ht_partition_num: accepted for compatibility.
    evict_option: `GlobalStepEvict`, `L2WeightEvict` or None: which rows are evicted
      when the variable is saved. Its attribute is `evict`.
    ckpt: `CheckpointOption` or None.
    filter_option: `CounterFilter`, `CBFFilter` or None: which keys get a row. Its
      attribute is `filter_strategy`.
    storage_option: `StorageOption`; None: the default one.
    init_option: `InitializerOption`; None: the default one. Its attribute is `init`.
    value_dtype: `tf.float32`, `tf.float16` or `tf.bfloat16`, the type in which rows keep
      their values, or None for that of `get_embedding_variable`, else float32. Lookups,
      gradients, slots and arithmetic are float32. Not an option of DeepRec.
    value_rounding: how an update rounds values to a narrower type: "stochastic", to one
      of the two neighbours, the nearer the likelier, so that small steps are kept on
      average; or "nearest", which drops steps below half of the neighbours' distance.
      No effect with float32.
  """

  def __init__(self,
               ht_type="",
               ht_partition_num=1000,
               evict_option=None,
               ckpt=None,
               filter_option=None,
               storage_option=None,
               init_option=None,
               value_dtype=None,
               value_rounding=STOCHASTIC):
    self.ht_type = ht_type
    self.ht_partition_num = ht_partition_num
    self.evict = evict_option
    self.ckpt = ckpt
    self.filter_strategy = filter_option
    self.storage_option = storage_option or StorageOption()
    self.init = init_option or InitializerOption()
    self.value_dtype = value_dtype
    self.value_rounding = value_rounding


_CLASSES = (EmbeddingVariableOption, InitializerOption, CounterFilter, CBFFilter,
            StorageOption, CheckpointOption, GlobalStepEvict, L2WeightEvict)

# Arguments whose attribute has another name.
_ATTRIBUTES = {"evict_option": "evict", "filter_option": "filter_strategy",
               "init_option": "init"}


def to_config(option):
  """Returns an option object as a dict of plain values, for a file.

  It has the arguments of the constructor, and the name of the class as "option".

  Args:
    option: `EmbeddingVariableOption`, or a part of one.

  Raises:
    TypeError: `option` is something else.
  """
  cls = next((c for c in _CLASSES if isinstance(option, c)), None)
  if cls is None:
    raise TypeError("expected an EmbeddingVariableOption, got %r" % (option,))
  config = {"option": cls.__name__}
  for name in inspect.signature(cls).parameters:
    value = getattr(option, _ATTRIBUTES.get(name, name))
    if isinstance(value, _CLASSES):
      value = to_config(value)
    elif name == "initializer" and value is not None:
      value = tf.keras.initializers.serialize(tf.keras.initializers.get(value))
    elif name == "counter_type":
      value = value.name
    elif name == "value_dtype" and value is not None:
      value = dtypes.as_dtype(value).name
    config[name] = value
  return config


def from_config(config):
  """Returns the option object of a result of `to_config`."""
  arguments = dict(config)
  kind = arguments.pop("option")
  cls = next(c for c in _CLASSES if c.__name__ == kind)
  for name, value in arguments.items():
    if isinstance(value, dict):
      arguments[name] = (tf.keras.initializers.deserialize(value)
                         if name == "initializer" else from_config(value))
    elif name == "value_dtype" and value is not None:
      arguments[name] = dtypes.as_dtype(value)
  return cls(**arguments)


def _unsupported(name, option, value):
  raise NotImplementedError(
      "embedding variable '%s': this version does not have %s (got %s)" %
      (name, option, value))


def check_supported(name, option):
  """Raises unless this version supports `option`.

  Args:
    name: the variable's name, for messages.
    option: an `EmbeddingVariableOption`.

  Raises:
    TypeError: `option`, or a part of it, is of another class.
    ValueError: invalid numbers.
    NotImplementedError: a feature that this version does not have.
  """
  if not isinstance(option, EmbeddingVariableOption):
    raise TypeError(
        "embedding variable '%s': ev_option: expected an EmbeddingVariableOption, "
        "got %r" % (name, option))
  strategy = option.filter_strategy
  if strategy is not None:
    if not isinstance(strategy, (CounterFilter, CBFFilter)):
      raise TypeError(
          "embedding variable '%s': filter_option: expected a CounterFilter or a "
          "CBFFilter, got %r" % (name, strategy))
    _check_filter(name, strategy)
  evict_options.check(name, option.evict)
  if not isinstance(option.init, InitializerOption):
    raise TypeError(
        "embedding variable '%s': init_option: expected an InitializerOption, got %r" %
        (name, option.init))
  if (not isinstance(option.init.default_value_no_permission, numbers.Real) or
      isinstance(option.init.default_value_no_permission, bool)):
    raise ValueError(
        "embedding variable '%s': default_value_no_permission: expected a number, got %r" %
        (name, option.init.default_value_no_permission))
  if option.ht_type is not None and not isinstance(option.ht_type, str):
    raise ValueError("embedding variable '%s': ht_type: expected a string, got %r" %
                     (name, option.ht_type))
  if option.ht_partition_num is not None and not number_checks.is_int(
      option.ht_partition_num, 0):
    raise ValueError(
        "embedding variable '%s': ht_partition_num: expected an integer of at least 0, "
        "got %r" % (name, option.ht_partition_num))
  _check_storage(name, option.storage_option)
  _check_values(name, option)
  ckpt = option.ckpt
  if ckpt is not None and (ckpt.ckpt_to_load_from or ckpt.tensor_name_in_ckpt or
                           ckpt.always_load_from_specific_ckpt or
                           ckpt.init_data_source):
    _unsupported(name, "loading through CheckpointOption", vars(ckpt))


def _check_filter(name, strategy):
  """Raises unless a key can reach the filter's threshold."""
  freq = strategy.filter_freq
  if freq is not None and (not number_checks.is_int(freq, 0) or freq >= 2**32):
    raise ValueError(
        "embedding variable '%s': filter_freq: expected an integer in [0, 2^32), got "
        "%r" % (name, freq))
  if not freq or not isinstance(strategy, CBFFilter):
    return
  if strategy.max_element_size > 0 and not strategy.false_positive_probability < 1:
    raise ValueError(
        "embedding variable '%s': false_positive_probability: expected a number in (0, 1), got "
        "%r" % (name, strategy.false_positive_probability))
  if strategy.max_element_size > 0 and freq > strategy.counter_type.max:
    raise ValueError(
        "embedding variable '%s': counters of type %s cannot reach filter_freq=%d" %
        (name, strategy.counter_type.name, freq))


def value_dtype(name, option):
  """Returns the type in which rows keep values.

  Args:
    name: string, the variable's name, for messages.
    option: `EmbeddingVariableOption`.

  Raises:
    ValueError: another type.
  """
  given = option.value_dtype
  if given is None:
    return dtypes.float32
  try:
    found = dtypes.as_dtype(given)
  except TypeError:
    found = None
  if found not in _VALUE_TYPES:
    raise ValueError("embedding variable '%s': value_dtype: expected float32, float16 or "
                     "bfloat16, got %s" % (name, found.name if found else repr(given)))
  return found


def _check_values(name, option):
  """Raises unless rows may keep values of this type."""
  if option.value_rounding not in (STOCHASTIC, NEAREST):
    raise ValueError("embedding variable '%s': value_rounding: expected '%s' or '%s', got %r" %
                     (name, STOCHASTIC, NEAREST, option.value_rounding))
  value_dtype(name, option)


def to_table_options(name, option):
  """Returns the `handle_ops.TableOptions` for a checked `EmbeddingVariableOption`.

  Args:
    name: string, the variable's full name; each part of a partitioned variable has its
      own directory for files.
    option: `EmbeddingVariableOption`.
  """
  table = {}
  dtype = value_dtype(name, option)
  if dtype != dtypes.float32:
    # The same seed for all parts, so that the bits do not depend on their number.
    whole, _ = tensor_names.split_part(name)
    table.update(value_dtype=dtype, value_rounding=option.value_rounding,
                 value_seed=zlib.crc32(whole.encode()))
  strategy = option.filter_strategy
  if strategy is not None and strategy.filter_freq:
    is_bloom = isinstance(strategy, CBFFilter) and strategy.max_element_size > 0
    table.update(
        filter="bloom" if is_bloom else "counter",
        filter_freq=strategy.filter_freq,
        no_permission=float(option.init.default_value_no_permission))
    if is_bloom:
      table.update(
          max_element_size=int(strategy.max_element_size),
          false_positive_probability=float(strategy.false_positive_probability),
          counter_bits=8 * strategy.counter_type.size)
  table.update(evict_options.policy_of(option.evict))
  asked = option.storage_option
  table.update(
      max_rows=asked.max_capacity or 0,
      max_bytes=asked.max_capacity_bytes or 0,
      cache_strategy=config_pb2.CacheStrategy.Name(asked.cache_strategy))
  storage = storages.of_type(asked.storage_type)
  table.update(storage=storage.name)
  table.update((attribute, int(size)) for _, attribute, size in zip(
      storage.bounded_memories, ("memory_bytes", "second_memory_bytes"),
      asked.storage_size))
  if storage.has_files:
    part = re.search(r"/(part_\d+)$", name)
    path = os.path.abspath(asked.storage_path)
    table.update(storage_path=os.path.join(path, part.group(1)) if part else path)
  return handle_ops.TableOptions(**table)


def _check_member(name, option, value, enum_name):
  """Raises unless `value` is a number of this enumeration of `config_pb2`."""
  enum = getattr(config_pb2, enum_name)
  if not number_checks.is_int(value, 0) or value not in enum.values():
    raise ValueError(
        "embedding variable '%s': %s: expected a value of %s (%s), got %r" %
        (name, option, enum_name, ", ".join(
            "%s %d" % item for item in enum.items()), value))


def _check_storage(name, storage):
  """Raises unless this storage type is supported."""
  if not isinstance(storage, StorageOption):
    raise TypeError(
        "embedding variable '%s': storage_option: expected a StorageOption, got %r" %
        (name, storage))
  _check_member(name, "cache_strategy", storage.cache_strategy, "CacheStrategy")
  if storage.layout is not None and not isinstance(storage.layout, str):
    raise ValueError("embedding variable '%s': layout: expected a string, got %r" %
                     (name, storage.layout))
  storage_type = storage.storage_type
  if storage_type not in (None, AUTO):
    _check_member(name, "storage_type", storage_type, "StorageType")
  _warn_of_stand_in(name, storage_type)
  memories = storages.of_type(storage_type).bounded_memories
  for k, (memory, size) in enumerate(zip(memories, storage.storage_size)):
    if not number_checks.is_int(size, 1):
      raise ValueError(
          "embedding variable '%s': storage_size[%d], the bytes of rows in %s: expected an "
          "integer of at least 1, got %r" % (name, k, memory, size))


_warned = set()


def _warn_of_stand_in(name, storage_type):
  """Logs, once per type, that rows are in other memory than the type's name suggests."""
  place = storages.STANDS_IN.get(storage_type)
  if place is not None and storage_type not in _warned:
    _warned.add(storage_type)
    logging.warning("embedding variable '%s': storage type %s: its rows are in %s", name,
                    config_pb2.StorageType.Name(storage_type), place)
