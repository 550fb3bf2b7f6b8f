# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The arguments of inference, and the server's configuration that they make."""

import numbers
import re

from hugectr.api import enums
from hugectr.api import printing

_WHERE = "hugectr.inference.InferenceParams"

_MODEL = re.compile(r"^[A-Za-z0-9_-]{1,120}$")

# The configuration's names of enumerations' members.
_NAMES = {
    "Disabled": "disabled", "HashMap": "hash_map", "ParallelHashMap": "parallel_hash_map",
    "MultiProcessHashMap": "multi_process_hash_map", "RedisCluster": "redis_cluster",
    "RocksDB": "rocks_db", "EvictRandom": "evict_random",
    "EvictLeastUsed": "evict_least_used", "EvictOldest": "evict_oldest", "Null": "none",
    "KafkaMessageQueue": "kafka_message_queue",
}

# Arguments of InferenceParams that the server's configuration has under another name,
# or under the same one; without a default: not written unless given.
_OF_SERVER = {
    "number_of_worker_buffers_in_pool": "num_of_worker_buffer_in_pool",
    "number_of_refresh_buffers_in_pool": "num_of_refresher_buffer_in_pool",
    "cache_refresh_percentage_per_iteration": "cache_refresh_percentage_per_iteration",
    "refresh_delay": "refresh_delay", "refresh_interval": "refresh_interval",
    "thread_pool_size": "thread_pool_size", "use_static_table": "use_static_table",
    "embedding_cache_type": "embedding_cache_type", "init_ec": "init_ec",
    "use_context_stream": "use_context_stream",
    "use_hctr_cache_implementation": "use_hctr_cache_implementation",
    "fuse_embedding_table": "fuse_embedding_table", "enable_pagelock": "enable_pagelock",
    "fp8_quant": "fp8_quant",
}

# Arguments without effect, with upstream's defaults: the model's JSON has the shapes.
_WITHOUT_EFFECT = {
    "use_algorithm_search": True, "use_cuda_graph": True, "scaler": 1.0,
    "maxnum_des_feature_per_sample": 26, "network_file": "", "label_dim": 1, "slot_num": 10,
}


class _Section(object):
  """A section of the server's configuration.

  Args:
    type: member of the section's enumeration.
    **values: keys of the section; see docs/inference_databases.md.

  Raises:
    TypeError: an argument is unknown, or a member of another enumeration.
  """

  _KIND, _DEFAULT, _MEMBERS, _KEYS = None, None, (), ()

  def __init__(self, type=None, **values):  # pylint: disable=redefined-builtin
    where = "hugectr.inference." + self.__class__.__name__
    self.type = self._DEFAULT if type is None else type
    name = enums.check(where, "type", self.type, self._KIND)
    if name not in self._MEMBERS:
      raise TypeError("%s: type: expected one of %s, got %s" % (
          where, ", ".join(self._MEMBERS), self.type))
    unknown = sorted(set(values) - set(self._KEYS))
    if unknown:
      raise TypeError("%s: unknown arguments %s; it takes type, %s" % (
          where, ", ".join(unknown), ", ".join(self._KEYS)))
    if "overflow_policy" in values:
      values["overflow_policy"] = _NAMES[enums.check(
          where, "overflow_policy", values["overflow_policy"],
          enums.DatabaseOverflowPolicy_t)]
    self._values = values

  @property
  def is_default(self):
    """bool, whether no argument was given."""
    return self.type == self._DEFAULT and not self._values

  def section(self):
    """Returns the section as a dict."""
    return dict(self._values, type=_NAMES[self.type.name])


class VolatileDatabaseParams(_Section):
  """The tier of rows in host memory or in Redis; arguments as in the JSON's volatile_db."""

  _KIND, _DEFAULT = enums.DatabaseType_t, enums.DatabaseType_t.ParallelHashMap
  _MEMBERS = ("Disabled", "HashMap", "ParallelHashMap", "MultiProcessHashMap",
              "RedisCluster")
  _KEYS = (
      "address", "user_name", "password", "num_partitions", "allocation_rate",
      "shared_memory_size", "shared_memory_name", "shared_memory_auto_remove",
      "num_node_connections", "max_batch_size", "enable_tls", "tls_ca_certificate",
      "tls_client_certificate", "tls_client_key", "tls_server_name_identification",
      "overflow_margin", "overflow_policy", "overflow_resolution_target",
      "initialize_after_startup", "initial_cache_rate", "cache_missed_embeddings",
      "update_filters")


class PersistentDatabaseParams(_Section):
  """The tier of rows on a disk; arguments as in the JSON's persistent_db."""

  _KIND, _DEFAULT = enums.DatabaseType_t, enums.DatabaseType_t.Disabled
  _MEMBERS = ("Disabled", "RocksDB")
  _KEYS = ("path", "num_threads", "read_only", "max_batch_size",
           "initialize_after_startup", "update_filters")


class UpdateSourceParams(_Section):
  """A queue of rows that the running server reads; arguments as in the JSON's update_source."""

  _KIND, _DEFAULT = enums.UpdateSourceType_t, enums.UpdateSourceType_t.Null
  _MEMBERS = ("Null", "KafkaMessageQueue")
  _KEYS = ("brokers", "metadata_refresh_interval_ms", "receive_buffer_size",
           "poll_timeout_ms", "max_batch_size", "failure_backoff_ms", "max_commit_interval")


def table_names(where, names):
  """Returns embeddings' names in the server, which allows 120 letters, digits, _ and -.

  Raises:
    ValueError: two embeddings would have one name.
  """
  found = {}
  served = [re.sub(r"[^A-Za-z0-9_-]", "_", name)[:120] for name in names]
  for name, in_server in zip(names, served):
    other = found.setdefault(in_server, name)
    if other != name:
      raise ValueError(
          "%s: the embeddings '%s' and '%s' would have one name in the server, which allows "
          "120 letters, digits, _ and -: give one another name" % (where, other, name))
  return served


def _databases(where, volatile_db, persistent_db, update_source):
  """Returns the configuration's sections of databases that were given."""
  found = {}
  for name, value, kind in (("volatile_db", volatile_db, VolatileDatabaseParams),
                            ("persistent_db", persistent_db, PersistentDatabaseParams),
                            ("update_source", update_source, UpdateSourceParams)):
    if value is not None and not isinstance(value, kind):
      raise TypeError("%s: %s: expected a hugectr.inference.%s, got %r" %
                      (where, name, kind.__name__, value))
    if value is not None and not value.is_default:
      found[name] = value.section()
  return found


def _paths(name, value):
  paths = [value] if isinstance(value, str) else value
  if not isinstance(paths, (list, tuple)) or not all(isinstance(p, str) and p for p in paths):
    raise TypeError("%s: %s: expected a path or a list of paths, got %r" %
                    (_WHERE, name, value))
  return list(paths)


class InferenceParams(object):
  """A trained model's files, and how the parameter server holds its rows.

  Args:
    model_name: string of letters, digits, _ and -, at most 120: name of the model in the
      server.
    max_batchsize: int, largest number of samples of a prediction.
    hit_rate_threshold: number in [0, 1]. If the GPU cache has this share of a batch's
      keys, other keys get the default value, and enter the cache later. 1.0: all rows
      are exact.
    dense_model_file: path of `<prefix>_dense_<iter>.model`.
    sparse_model_files: list of paths of `<prefix><i>_sparse_<iter>.model`, one per
      embedding in the order of the JSON; [] for a model without embeddings.
    device_id: int, the GPU to use among those that the process sees.
    use_gpu_embedding_cache: bool, whether a GPU caches rows. Without a GPU it has no
      effect.
    cache_size_percentage: number in [0, 1], share of the rows in that cache.
    i64_input_key: bool, whether keys of Norm files and of flat model files have 64 bits.
    use_mixed_precision: bool, whether layers compute in float16 on a GPU.
    default_value_for_each_table: list of numbers, elements of the row of a key that the
      model has no row for; one number applies to all tables.
    deployed_devices: list of device numbers; this process uses device_id.
    non_trainable_params_file: path of BatchNorm's running values; "":
      `<dense_model_file>.ntp.json`.
    embedding_table_names: list of names in the server; (): the embeddings' names.
    embedding_vecsize_per_table: list of ints; must be the JSON's numbers.
    maxnum_catfeature_query_per_table_per_sample: list of ints, largest numbers of keys of
      a sample. The JSON's are used where they are larger.
    volatile_db: VolatileDatabaseParams.
    persistent_db: PersistentDatabaseParams.
    update_source: UpdateSourceParams.
    **more: upstream's other arguments. Settings of the cache are written to the server's
      configuration; the others have no effect, and a value other than upstream's default
      is reported once.

  Raises:
    TypeError, ValueError: an argument is unknown or invalid.
  """

  def __init__(self, model_name, max_batchsize, hit_rate_threshold=1.0, dense_model_file="",
               sparse_model_files=(), device_id=0, use_gpu_embedding_cache=True,
               cache_size_percentage=0.2, i64_input_key=False, use_mixed_precision=False,
               default_value_for_each_table=(0.0,), deployed_devices=None,
               non_trainable_params_file="", embedding_table_names=(),
               embedding_vecsize_per_table=(),
               maxnum_catfeature_query_per_table_per_sample=(), volatile_db=None,
               persistent_db=None, update_source=None, **more):
    if not isinstance(model_name, str) or not _MODEL.match(model_name):
      raise ValueError("%s: model_name: expected 1 to 120 letters, digits, _ or -, got %r" %
                       (_WHERE, model_name))
    for name, value, least in (("max_batchsize", max_batchsize, 1),
                               ("device_id", device_id, 0)):
      if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < least:
        raise ValueError("%s: %s: expected an integer of at least %d, got %r" %
                         (_WHERE, name, least, value))
    for name, value in (("hit_rate_threshold", hit_rate_threshold),
                        ("cache_size_percentage", cache_size_percentage)):
      if isinstance(value, bool) or not isinstance(value, numbers.Real) or (
          not 0 <= value <= 1):
        raise ValueError("%s: %s: expected a number in [0, 1], got %r" % (_WHERE, name, value))
    self.model_name, self.max_batchsize = model_name, int(max_batchsize)
    self.hit_rate_threshold = float(hit_rate_threshold)
    self.dense_model_file = dense_model_file
    self.sparse_model_files = _paths("sparse_model_files", sparse_model_files)
    self.device_id = int(device_id)
    self.use_gpu_embedding_cache = bool(use_gpu_embedding_cache)
    self.cache_size_percentage = float(cache_size_percentage)
    self.i64_input_key = bool(i64_input_key)
    self.use_mixed_precision = bool(use_mixed_precision)
    self.default_value_for_each_table = [float(v) for v in default_value_for_each_table]
    self.non_trainable_params_file = non_trainable_params_file
    self.embedding_table_names = list(embedding_table_names)
    self.embedding_vecsize_per_table = list(embedding_vecsize_per_table)
    self.maxnum_catfeature_query_per_table_per_sample = list(
        maxnum_catfeature_query_per_table_per_sample)
    self.databases = _databases(_WHERE, volatile_db, persistent_db, update_source)
    self._more(more, deployed_devices)

  def _more(self, more, deployed_devices):
    unknown = sorted(set(more) - set(_OF_SERVER) - set(_WITHOUT_EFFECT))
    if unknown:
      raise TypeError("%s: unknown arguments %s" % (_WHERE, ", ".join(unknown)))
    without = {name: (more[name], default) for name, default in _WITHOUT_EFFECT.items()
               if name in more}
    if deployed_devices is not None:
      without["deployed_devices"] = (list(deployed_devices), [self.device_id])
    printing.without_effect(_WHERE, without)
    self._of_server = {_OF_SERVER[name]: value for name, value in more.items()
                       if name in _OF_SERVER}

  def clause(self, name, folders, names, widths, most_keys):
    """Returns the model's clause of the server's configuration.

    Args:
      name: string, the model's name in the server.
      folders, names: lists of strings, of the tables.
      widths, most_keys: lists of ints, floats of a row and keys of a sample.
    """
    defaults = self.default_value_for_each_table
    if len(defaults) == 1:
      defaults = defaults * len(folders)
    for what, values in (("default_value_for_each_table", defaults),
                         ("embedding_table_names", self.embedding_table_names),
                         ("embedding_vecsize_per_table", self.embedding_vecsize_per_table),
                         ("maxnum_catfeature_query_per_table_per_sample",
                          self.maxnum_catfeature_query_per_table_per_sample)):
      if values and len(values) != len(folders):
        raise ValueError("%s: %s: expected %d values, one per table (%s), got %d" % (
            _WHERE, what, len(folders), ", ".join(names), len(values)))
    for table, expected, given in zip(names, widths, self.embedding_vecsize_per_table):
      if expected != given:
        raise ValueError("%s: embedding_vecsize_per_table: table '%s' has rows of %d in the "
                         "JSON, got %d" % (_WHERE, table, expected, given))
    given = self.maxnum_catfeature_query_per_table_per_sample or most_keys
    found = {
        "model": name, "sparse_files": folders,
        "embedding_table_names": self.embedding_table_names or names,
        "embedding_vecsize_per_table": widths,
        "maxnum_catfeature_query_per_table_per_sample": [max(m) for m in zip(given,
                                                                             most_keys)],
        "default_value_for_each_table": defaults,
        # The process sees one GPU.
        "deployed_device_list": [0], "max_batch_size": self.max_batchsize,
        "gpucache": self.use_gpu_embedding_cache}
    if self.use_gpu_embedding_cache:
      found.update(gpucacheper=self.cache_size_percentage,
                   hit_rate_threshold=self.hit_rate_threshold)
    found.update(self._of_server)
    return found


class ParameterServerConfig(object):
  """Models for `HPS`: their tables, and the databases that hold the rows.

  Args:
    emb_table_name: dict from a model's name to the names of its tables.
    embedding_vec_size: dict from a model's name to its tables' floats per row.
    max_feature_num_per_sample_per_emb_table: dict from a model's name to the largest
      numbers of keys of a sample.
    inference_params_array: list of InferenceParams, one per model.
    volatile_db, persistent_db, update_source: as in InferenceParams.

  Raises:
    TypeError, ValueError: an argument is invalid.
  """

  _WHERE = "hugectr.inference.ParameterServerConfig"

  def __init__(self, emb_table_name, embedding_vec_size,
               max_feature_num_per_sample_per_emb_table, inference_params_array,
               volatile_db=None, persistent_db=None, update_source=None):
    self.databases = _databases(self._WHERE, volatile_db, persistent_db, update_source)
    self._models = []
    for params in inference_params_array:
      if not isinstance(params, InferenceParams):
        raise TypeError("%s: inference_params_array: expected InferenceParams, got %r" %
                        (self._WHERE, params))
      folders = params.sparse_model_files
      of_model = []
      for name, value in (
          ("emb_table_name", emb_table_name), ("embedding_vec_size", embedding_vec_size),
          ("max_feature_num_per_sample_per_emb_table",
           max_feature_num_per_sample_per_emb_table)):
        found = list(value.get(params.model_name, ()))
        if len(found) != len(folders):
          raise ValueError("%s: %s: expected %d values for model '%s', one per file of "
                           "sparse_model_files, got %d" % (
                               self._WHERE, name, len(folders), params.model_name,
                               len(found)))
        of_model.append(found)
      self._models.append(params.clause(params.model_name, folders, *of_model))

  def configuration(self):
    """Returns the server's configuration as a dict."""
    return dict(self.databases, supportlonglong=True, models=self._models)
