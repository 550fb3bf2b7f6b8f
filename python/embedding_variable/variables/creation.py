# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""`get_embedding_variable`.

Variables are created by stock `tf.get_variable` with a variable creator of our own, so
names, scopes, reuse, custom getters and collections work as in TensorFlow.
"""

import collections as collections_lib
import contextlib
import copy
import inspect
import os

import numpy as np

from embedding_variable import graph_state
from embedding_variable import tf_names
from embedding_variable.checkpoint_format import tensor_names
from embedding_variable.tf_names import array_ops
from embedding_variable.tf_names import context
from embedding_variable.tf_names import dtypes
from embedding_variable.tf_names import init_ops
from embedding_variable.tf_names import ops
from embedding_variable.tf_names import partitioned_variables
from embedding_variable.tf_names import tensor_shape
from embedding_variable.tf_names import tf_logging as logging
from embedding_variable.tf_names import variable_scope
from embedding_variable.tf_names import variables
from embedding_variable.variables import constant_initializers
from embedding_variable.variables import default_seed
from embedding_variable.variables import options
from embedding_variable.variables import variable as ev

# Number of buckets of a partitioned variable: a key is in part `key % 1000 % n`.
NUM_BUCKETS = 1000

_KEY_DTYPES = (dtypes.int64, dtypes.int32)

_PARTITIONED = "_partitioned_embedding_variables"


def get_embedding_variable(name,
                           embedding_dim,
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
                           ev_option=None):
  """Gets an existing embedding variable, or creates one.

  If the variable exists, `ev_option`, `value_dtype`, `initializer`, `trainable` and
  `collections` of this call have no effect, and a warning reports those that differ from
  the variable's. In
  eager execution every call creates a new table.

  An embedding variable is a hash table from integer keys to rows of floats. A lookup
  inserts nothing: a key without a row reads a default row, and gets a row of its own
  when its first gradient is applied. Guide: docs/embedding_variables.md.

  Example:

    users = tf.get_embedding_variable("users", embedding_dim=16)
    rows = tf.nn.embedding_lookup(users, tf.constant([-7, 2**62], tf.int64))  # [2, 16]

  Args:
    name: string; prefixed with the variable scope's name.
    embedding_dim: length of a row, an int >= 1 or a list with one such int.
    key_dtype: `tf.int64` or `tf.int32`.
    value_dtype: `tf.float32`, or `tf.float16` or `tf.bfloat16` for rows whose values take
      half of the memory (`EmbeddingVariableOption`); None: that of `ev_option`, else
      float32. Lookups and gradients are float32.
    initializer: initializer, array or tensor, for the default rows.
      `ev_option.init.initializer` takes precedence over it. Without either, the
      variable scope's is used, or else `tf.truncated_normal_initializer()`. It runs
      once and fills `ev_option.init.default_value_dim` default rows (or a single one
      if all rows are the same).
    regularizer: must be None. A scope's regularizer is not applied, with a warning.
    trainable: bool.
    collections: list of collections, or None for GLOBAL_VARIABLES. The variable is also
      in `embedding_variables`. No effect in eager execution, with a warning.
    caching_device: must be None.
    partitioner: None (then the variable scope's), or a partitioner such as
      `tf.fixed_size_partitioner(n)`, which creates n tables `name/part_i`; a key is in
      part `key % 1000 % n`.
    validate_shape: accepted for compatibility.
    custom_getter: as in `tf.get_variable`.
    constraint: must be None.
    steps_to_live: deprecated; use `GlobalStepEvict(steps_to_live)` in `ev_option`.
    init_data_source: must be None.
    ev_option: `EmbeddingVariableOption` (filter, eviction, storage, default rows), or
      None for the defaults.

  Returns:
    An `EmbeddingVariable`, or with a partitioner a `PartitionedVariable` of them.

  Raises:
    ValueError: wrong dim or key type, an unsupported argument, a call inside a
      `tf.function`, eager mode on TensorFlow 1.15, or the errors of `tf.get_variable`
      for names and reuse.
    NotImplementedError: a feature that this version does not have, or the scope of a
      `tf.distribute` strategy that mirrors variables.
  """
  del validate_shape
  _check_mode(name)
  scope = variable_scope.get_variable_scope()
  full_name = scope.name + "/" + name if scope.name else name
  dim = _check_dim(full_name, embedding_dim)
  key_dtype = dtypes.as_dtype(key_dtype)
  if key_dtype not in _KEY_DTYPES:
    raise ValueError("embedding variable '%s': key_dtype: expected int64 or int32, "
                     "got %s" % (full_name, key_dtype.name))
  for argument, value in (("regularizer", regularizer),
                          ("caching_device", caching_device),
                          ("constraint", constraint)):
    if value is not None:
      raise ValueError("embedding variable '%s': %s has no meaning for a table "
                       "and must be None" % (full_name, argument))
  has_option = bool(ev_option or steps_to_live)
  ev_option = ev_option or options.EmbeddingVariableOption()
  ev_option = with_old_arguments(full_name, steps_to_live, init_data_source, ev_option)
  ev_option = _with_value_dtype(full_name, value_dtype, ev_option)
  options.check_supported(full_name, ev_option)
  if scope.regularizer is not None:
    logging.log_first_n(
        logging.WARN, "embedding variable '%s': the variable scope's regularizer "
        "is not applied; a table has no dense value", 1, full_name)
  table = _Table(full_name, dim, key_dtype,
                 _choose_initializer(full_name, scope, initializer, ev_option),
                 ev_option,
                 _Asked(has_option, initializer is not None, trainable, collections,
                        value_dtype is not None))

  def get(part_name):
    with _no_partitioner(scope):
      return variable_scope.get_variable(
          part_name, shape=[dim], dtype=dtypes.float32,
          initializer=table.make_rows, regularizer=variable_scope.no_regularizer,
          trainable=trainable, collections=collections, use_resource=True,
          custom_getter=custom_getter)

  partitioner = partitioner or scope.partitioner
  if partitioner is None and scope.reuse:
    known = _partitioned_variables().get(full_name)
    if known is not None:
      return known
  return table.get(name, get, partitioner)


def _check_mode(name):
  """Raises ValueError if no table can be created in the current mode.

  Args:
    name: string, of the variable.
  """
  with ops.init_scope():
    if not context.executing_eagerly():
      return
  if not tf_names.has_eager_tables():
    raise ValueError(
        "embedding variable '%s': on TensorFlow 1.15, tf.get_embedding_variable works in "
        "graph mode only. Call tf.compat.v1.disable_eager_execution() when the program "
        "starts, or create the variable in `with tf.Graph().as_default()`" % name)
  if not context.executing_eagerly():
    raise ValueError(
        "embedding variable '%s': it is created inside a tf.function, where each trace "
        "would create another table. Create it outside of the function" % name)


def make_getter(ev_option, partition_num=None, key_dtype=dtypes.int64):
  """Returns a custom getter that replaces dense `[rows, dim]` variables by embedding
  variables.

  For code that creates a dense table and cannot be configured otherwise, such as
  feature columns.

  Args:
    ev_option: `EmbeddingVariableOption`.
    partition_num: int, number of parts; None or 0: use the scope's partitioner.
    key_dtype: `tf.int64` or `tf.int32`.
  """

  def custom_getter(getter, name, shape=None, initializer=None, regularizer=None,
                    partitioner=None, dtype=None, use_resource=None,
                    validate_shape=None, caching_device=None, **kwargs):
    del regularizer, dtype, use_resource, validate_shape, caching_device
    dim = _check_dim(name, tensor_shape.TensorShape(shape)[-1])
    options.check_supported(name, ev_option)
    scope = variable_scope.get_variable_scope()
    table = _Table(name, dim, key_dtype,
                   _choose_initializer(name, scope, initializer, ev_option),
                   ev_option,
                   _Asked(True, initializer is not None, kwargs.get("trainable", True),
                          kwargs.get("collections"), False))

    def get(part_name):
      return getter(
          name=part_name, shape=[dim], dtype=dtypes.float32,
          initializer=table.make_rows, use_resource=True, partitioner=None, **kwargs)

    if partition_num:
      partitioner = partitioned_variables.fixed_size_partitioner(partition_num)
    return table.get(name, get, partitioner)

  return custom_getter


@contextlib.contextmanager
def _no_partitioner(scope):
  """Disables the scope's partitioner, which would split the row, not the table."""
  partitioner = scope.partitioner
  scope.set_partitioner(None)
  try:
    yield
  finally:
    scope.set_partitioner(partitioner)


def _partitioned_variables():
  """Returns the default graph's PartitionedVariables of tables, by full name."""
  return graph_state.of(ops.get_default_graph()).setdefault(_PARTITIONED, {})


# Arguments of a call that gets a table. The first two and the last are whether it has such
# an argument.
_Asked = collections_lib.namedtuple(
    "_Asked", ["ev_option", "initializer", "trainable", "collections", "value_dtype"])


class _Table(object):
  """A table to get or create, whole or in parts."""

  def __init__(self, full_name, dim, key_dtype, initializer, ev_option, asked):
    self._asked = asked
    self._created = None
    self._full_name = full_name
    self._dim = dim
    self._key_dtype = key_dtype
    self._ev_option = ev_option
    self.make_rows = _DefaultRows(full_name, dim, initializer,
                                  ev_option.init.default_value_dim)

  def get(self, name, get, partitioner):
    """Gets or creates the table.

    Args:
      name: string, the name that `get` takes for the table.
      get: function from a name to a variable, which calls stock code.
      partitioner: partitioner or None.
    """
    if partitioner is None:
      return self._get_single(name, get)
    num_parts = _number_of_parts(self._full_name, partitioner, self._dim)
    parts = [
        self._get_single(tensor_names.part(name, i), get) for i in range(num_parts)
    ]
    store = variable_scope._get_default_variable_store()  # pylint: disable=protected-access
    extra = tensor_names.part(self._full_name, num_parts)
    if extra in store._vars:  # pylint: disable=protected-access
      raise ValueError(
          "embedding variable '%s': %d parts were requested, but it exists with "
          "more (%s)" % (self._full_name, num_parts, extra))
    known = _partitioned_variables().get(self._full_name)
    if known is not None and list(known) == parts:
      return known
    for i, part in enumerate(parts):
      part._set_save_slice_info(  # pylint: disable=protected-access
          variables.Variable.SaveSliceInfo(self._full_name, [num_parts], [i], [1]))
    partitioned = variables.PartitionedVariable(
        name=self._full_name, shape=[num_parts], dtype=dtypes.float32,
        variable_list=parts, partitions=[num_parts])
    if context.executing_eagerly():
      return partitioned  # a graph would keep its tables
    _partitioned_variables()[self._full_name] = partitioned
    return partitioned

  def _get_single(self, name, get):
    """Gets or creates one table through stock code."""
    with variable_scope.variable_creator_scope(self._create):
      variable = get(name)
    if not ev.is_embedding_variable(variable):
      raise ValueError("'%s' is already the name of a variable that is not an embedding "
                       "variable: %r" % (name, variable))
    if variable.key_dtype != self._key_dtype:
      raise ValueError(
          "Trying to share embedding variable %s, but specified key_dtype %s and "
          "found %s" %
          (variable.op.name, self._key_dtype.name, variable.key_dtype.name))
    if variable is not self._created:
      self._report_without_effect(variable)
    return variable

  def _report_without_effect(self, variable):
    """Logs, once for a variable, which arguments differ from those that created it."""
    # pylint: disable=protected-access
    asked, first = self._asked, variable._created_by
    differ = []
    if first is not None and asked.ev_option and not self._has_options_of(first):
      differ.append("ev_option")
    if asked.value_dtype and variable.table_options.value_dtype != options.value_dtype(
        self._full_name, self._ev_option):
      differ.append("value_dtype")
    if first is not None and (asked.initializer or self._ev_option.init.initializer) and (
        not self.make_rows.has_initializer_of(first.make_rows)):
      differ.append("initializer")
    if variable.trainable and not asked.trainable:
      differ.append("trainable=False")
    if any(all(v is not variable for v in ops.get_collection_ref(c))
           for c in asked.collections or ()):
      differ.append("collections")
    if differ and not variable._reported_without_effect:
      variable._reported_without_effect = True
      logging.warning(
          "embedding variable '%s' exists, so %s of another call that gets it has no "
          "effect. Give the same arguments in all calls", variable.op.name,
          " and ".join(differ))

  def _has_options_of(self, other):
    mine, others = self._ev_option, other._ev_option
    return (mine.init.default_value_dim == others.init.default_value_dim and
            options.to_table_options(self._full_name, mine) ==
            options.to_table_options(self._full_name, others))

  def _create(self, unused_next_creator, **kwargs):
    """Variable creator: creates a table in place of a stock variable."""
    init = kwargs["initial_value"]

    def default_rows():
      # A custom getter may have replaced our initializer by its own.
      rows = init() if callable(init) else init
      rows = ops.convert_to_tensor(rows, dtype=dtypes.float32)
      return rows if rows.shape.ndims == 2 else self.make_rows.to_row(rows)

    variable = ev.EmbeddingVariable(
        kwargs["name"], self._dim, default_rows,
        options.to_table_options(kwargs["name"], self._ev_option)._replace(
            key_dtype=self._key_dtype,
            record_frequency=_env_flag("TF_RECORD_FREQ"),
            record_version=_env_flag("TF_RECORD_VERSION")),
        trainable=kwargs.get("trainable", True),
        collections=kwargs.get("collections"))
    # pylint: disable=protected-access
    variable._ev_option = self._ev_option
    if not context.executing_eagerly():  # where no later call gets it
      variable._created_by = self
    self._created = variable
    return variable


def _check_dim(name, embedding_dim):
  """Returns the row length as an int >= 1."""
  dim = embedding_dim
  if isinstance(dim, tensor_shape.TensorShape):
    dim = dim.as_list()
  if isinstance(dim, (list, tuple)):
    if len(dim) != 1:
      raise ValueError("embedding variable '%s': embedding_dim: expected one number, "
                       "got %r" % (name, embedding_dim))
    dim = dim[0]
  if isinstance(dim, tensor_shape.Dimension):
    dim = dim.value
  try:
    is_int = dim is not None and not isinstance(dim, bool) and int(dim) == dim
  except (TypeError, ValueError):
    is_int = False
  if not is_int or dim < 1:
    raise ValueError("embedding variable '%s': embedding_dim: expected an integer of "
                     "at least 1, got %r" % (name, embedding_dim))
  return int(dim)


def _with_value_dtype(name, value_dtype, ev_option):
  """Returns the options with the argument `value_dtype`, unless it is None.

  Raises:
    ValueError: the options have another type.
  """
  if value_dtype is None:
    return ev_option
  extended = copy.copy(ev_option)
  extended.value_dtype = value_dtype
  asked = options.value_dtype(name, extended)
  if ev_option.value_dtype is not None:
    known = options.value_dtype(name, ev_option)
    if known != asked:
      raise ValueError("embedding variable '%s': value_dtype is %s, but that of ev_option is "
                       "%s" % (name, asked.name, known.name))
  return extended


def with_old_arguments(name, steps_to_live, init_data_source, ev_option):
  """Returns the options, extended by DeepRec's deprecated arguments.

  Args:
    name: string, of the variable or column, for messages.
    steps_to_live: int or None.
    init_data_source: must be None.
    ev_option: `EmbeddingVariableOption`.

  Raises:
    ValueError: the arguments contradict the options.
    NotImplementedError: `init_data_source` is given.
  """
  if init_data_source is not None:
    raise NotImplementedError(
        "embedding variable '%s': this version does not have init_data_source (got "
        "%r)" % (name, init_data_source))
  if not steps_to_live:
    return ev_option
  evict = ev_option.evict
  if isinstance(evict, options.L2WeightEvict) and evict.l2_weight_threshold > 0:
    raise ValueError("embedding variable '%s': steps_to_live and L2WeightEvict "
                     "exclude each other" % name)
  known = getattr(evict, "steps_to_live", None)
  if known and known != steps_to_live:
    raise ValueError(
        "embedding variable '%s': steps_to_live is given twice, %r and %r in "
        "GlobalStepEvict" % (name, steps_to_live, known))
  logging.log_first_n(
      logging.WARN, "embedding variable '%s': steps_to_live is deprecated; use "
      "EmbeddingVariableOption(evict_option=GlobalStepEvict(...))", 1, name)
  ev_option = copy.copy(ev_option)
  ev_option.evict = options.GlobalStepEvict(steps_to_live)
  return ev_option


def _choose_initializer(name, scope, initializer, ev_option):
  """Selects the initializer by DeepRec's order of precedence."""
  chosen = ev_option.init.initializer
  if chosen is not None:
    if initializer is not None:
      logging.warning("embedding variable '%s': the initializer of InitializerOption "
                      "is used, the initializer argument is not", name)
    return chosen
  if initializer is not None:
    return initializer
  if scope.initializer is not None:
    return scope.initializer
  return init_ops.truncated_normal_initializer()


class _DefaultRows(object):
  """Callable used as an initializer; creates the table of default rows."""

  def __init__(self, name, dim, initializer, num_rows):
    self._name = name
    self._dim = dim
    self._initializer = initializer
    self._num_rows = num_rows

  def __call__(self, shape=None, dtype=None, partition_info=None):
    """Returns float32 `[R, dim]`; ignores `shape`, which stock code passes as `[dim]`."""
    del shape, dtype, partition_info
    initializer = self._initializer
    if inspect.isclass(initializer):
      initializer = initializer()
    if not callable(initializer):
      return self.to_row(initializer)
    initializer = default_seed.seeded(initializer)
    rows = constant_initializers.num_default_rows(
        initializer, self._num_rows, self._dim)
    value = ops.convert_to_tensor(
        _call_initializer(initializer, [rows, self._dim]), dtype=dtypes.float32)
    if not value.shape.is_compatible_with([rows, self._dim]):
      raise ValueError(
          "embedding variable '%s': the initializer: expected a result of shape %s, got %s" %
          (self._name, [rows, self._dim], value.shape))
    return value

  def has_initializer_of(self, other):
    """Returns whether two initializers are the same, or of one kind and configuration."""
    mine, others = self._initializer, other._initializer
    if mine is others or type(mine) is not type(others):
      return mine is others
    if hasattr(mine, "get_config"):
      return repr(mine.get_config()) == repr(others.get_config())
    if hasattr(mine, "__code__"):
      return mine.__code__ is others.__code__
    return isinstance(mine, ops.Tensor) or np.array_equal(mine, others)

  def to_row(self, value):
    """Returns a constant as the only default row, `[1, dim]`."""
    value = ops.convert_to_tensor(value, dtype=dtypes.float32)
    if value.shape.ndims == 0:
      return array_ops.fill([1, self._dim], value)
    if not (value.shape.is_compatible_with([self._dim]) or
            value.shape.is_compatible_with([1, self._dim])):
      raise ValueError(
          "embedding variable '%s': a constant initial value: expected a scalar or of "
          "shape [%d], got %s" % (self._name, self._dim, value.shape))
    return array_ops.reshape(value, [1, self._dim])


def _call_initializer(initializer, shape):
  """Calls an initializer with those of (shape, dtype) that its signature accepts."""
  try:
    signature = inspect.signature(initializer)
  except (TypeError, ValueError):
    return initializer(shape, dtype=dtypes.float32)
  parameters = signature.parameters
  any_keyword = any(p.kind == p.VAR_KEYWORD for p in parameters.values())
  if not parameters:
    return initializer()
  if "dtype" in parameters or any_keyword:
    return initializer(shape, dtype=dtypes.float32)
  return initializer(shape)


def _env_flag(name):
  """Returns whether the environment variable is set to "1", "true", "yes" or "on"."""
  return os.environ.get(name, "0").strip().lower() in ("1", "true", "yes", "on")


def _number_of_parts(name, partitioner, dim):
  """Returns the number of parts into which the partitioner splits the buckets."""
  partitions = partitioner(
      shape=tensor_shape.TensorShape([NUM_BUCKETS, dim]), dtype=dtypes.float32)
  if len(partitions) != 2 or partitions[1] != 1:
    raise ValueError(
        "embedding variable '%s': the partitioner must cut the first of two axes "
        "only, got %s" % (name, list(partitions)))
  return int(partitions[0])
