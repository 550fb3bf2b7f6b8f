# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The EmbeddingVariable object: a table of rows with the interface of a variable.

It derives from ResourceVariable, because stock `embedding_lookup` does not read such
variables as a whole. Its Python shape is `[dim]`, which stock optimizers use for slots;
its handle carries `[None, dim]`, which gradients in control flow need.
"""

import collections
import functools

from embedding_variable import graph_state
from embedding_variable import tf_names
from embedding_variable.ops import checkpoint_ops
from embedding_variable.ops import gather_ops
from embedding_variable.ops import handle_ops
from embedding_variable.ops import presence_ops
from embedding_variable.ops import row_ops
from embedding_variable.tf_names import attr_value_pb2
from embedding_variable.tf_names import compat
from embedding_variable.tf_names import constant_op
from embedding_variable.tf_names import context
from embedding_variable.tf_names import dtypes
from embedding_variable.tf_names import gen_logging_ops
from embedding_variable.tf_names import gen_resource_variable_ops
from embedding_variable.tf_names import math_ops
from embedding_variable.tf_names import ops
from embedding_variable.tf_names import ragged_tensor
from embedding_variable.tf_names import resource_variable_ops
from embedding_variable.tf_names import sparse_tensor
from embedding_variable.tf_names import training_util
from embedding_variable.tf_names import variables
from embedding_variable.variables import cache_strategies
from embedding_variable.variables import default_seed
from embedding_variable.variables import storages
from embedding_variable.variables import strategies

# Collection of every embedding variable of a graph.
EMBEDDING_VARIABLES = "embedding_variables"

HANDLE_OP = handle_ops.HANDLE_OP

_ID_DTYPES = (dtypes.int32, dtypes.int64)

# Attribute of a graph: its embedding variables by handle name. Each has one object,
# however many collections of an imported meta graph list it.
_REGISTRY = "_embedding_variables_by_handle"


# The result of `EmbeddingVariable.export`; the field names are DeepRec's.
Exported = collections.namedtuple("Exported", ["keys", "values", "versions", "freqs"])


def is_embedding_variable(value):
  """Returns whether `value` is an `EmbeddingVariable`, not a list of its parts."""
  return isinstance(value, EmbeddingVariable)


def all_in_graph():
  """Returns the embedding variables of the default graph."""
  return ops.get_collection(EMBEDDING_VARIABLES)


def parts_of(params):
  """Returns the list of embedding variables in `params`, or None.

  Args:
    params: an embedding variable, a `PartitionedVariable` or a list of them; None is
      returned for anything else.

  Raises:
    TypeError: a list mixes embedding variables with other things.
  """
  if isinstance(params, variables.PartitionedVariable):
    params = list(params)
  if is_embedding_variable(params):
    return [params]
  if not isinstance(params, (list, tuple)):
    return None
  count = sum(is_embedding_variable(p) for p in params)
  if not count:
    return None
  if count < len(params):
    raise TypeError(
        "embedding lookup over a list that mixes the embedding variable '%s' "
        "with other parameters" %
        next(p.op.name for p in params if is_embedding_variable(p)))
  return list(params)


@functools.lru_cache(maxsize=None)
def _eager_subclass(cls, eager):
  """Returns the class of eager variables that a class for graphs stands for."""
  if issubclass(eager, cls):
    return eager
  return type(cls)(cls.__name__, (cls, eager), {"__module__": cls.__module__})


def with_needed_records(options):
  """Returns `TableOptions` that record what their filter, eviction and capacity need."""
  bounded = options.max_rows or options.max_bytes
  return options._replace(
      record_frequency=bool(options.record_frequency or options.filter != "none" or
                            (bounded and cache_strategies.needs_frequency(
                                options.cache_strategy))),
      record_version=bool(options.record_version or options.steps_to_live or bounded))


class EmbeddingVariable(resource_variable_ops.ResourceVariable):
  """A variable that maps any integer to a row of `dim` floats.

  Created by `get_embedding_variable`. A lookup never inserts a key: an absent key reads
  its default row, row `floormod(key, R)` of the `[R, dim]` table that the initializer
  filled. A key is inserted when its first gradient is applied. With a filter, it is
  inserted by the update in which it reaches `filter_freq` occurrences; until then it
  reads `default_value_no_permission`.

  Attributes:
    target_gpu: rank that holds the table in `sparse_operation_kit` (-1: spread over
      all). Unused without it.
    versions_are_times: whether the version of a row is seconds since 1970 instead of
      the global step.
  """

  # The class for eager execution (eager_variable.py), which sets it.
  _eager_class = None

  def __new__(cls, *unused_args, **unused_kwargs):
    """Makes a variable of eager execution where that is on outside of functions."""
    eager = EmbeddingVariable._eager_class
    with ops.init_scope():
      if (eager is None or issubclass(cls, eager) or not context.executing_eagerly() or
          not tf_names.has_eager_tables()):
        return object.__new__(cls)
    return object.__new__(_eager_subclass(cls, eager))

  @classmethod
  def _variable_call(cls, *unused_args, **unused_kwargs):
    """Makes the metaclass of TensorFlow 2.x call `__init__` at once: no creator of the
    scope may replace the table.
    """
    return None

  def __init__(self,  # pylint: disable=super-init-not-called
               name,
               dim,
               default_rows,
               options=handle_ops.TableOptions(),
               trainable=True,
               collections=None):  # pylint: disable=redefined-outer-name
    """Creates the table's handle and its initializer in the default graph.

    Args:
      name: string, full name of the variable.
      dim: int >= 1, length of a row.
      default_rows: function without arguments that returns float32 `[R, dim]`.
      options: `handle_ops.TableOptions`. Frequencies are also recorded for a filter and
        for a capacity that evicts by frequency, versions for eviction by step and for a
        capacity.
      trainable: bool.
      collections: list of collection keys, or None for GLOBAL_VARIABLES.

    Raises:
      ValueError: in eager mode on TensorFlow 1.15.
      NotImplementedError: in the scope of a `tf.distribute` strategy that mirrors
        variables.
    """
    strategies.check(name)
    if collections is None:
      collections = [ops.GraphKeys.GLOBAL_VARIABLES]
    collections = list(collections)
    options = with_needed_records(options)
    if trainable and ops.GraphKeys.TRAINABLE_VARIABLES not in collections:
      collections.append(ops.GraphKeys.TRAINABLE_VARIABLES)
    if EMBEDDING_VARIABLES not in collections:
      collections.append(EMBEDDING_VARIABLES)
    self._maybe_initialize_trackable()
    with ops.init_scope():
      if context.executing_eagerly():
        raise ValueError(
            "embedding variable '%s': embedding variables work in graph mode "
            "only. Call tf.compat.v1.disable_eager_execution() when the program "
            "starts, or create the variable in `with tf.Graph().as_default()`" % name)
      with ops.name_scope(name) as scope:
        handle_name = ops.name_from_scope_name(scope)
        # The initial value is colocated with a handle that does not exist yet, as in
        # ResourceVariable.
        attr = attr_value_pb2.AttrValue(
            list=attr_value_pb2.AttrValue.ListValue(
                s=[compat.as_bytes("loc:@%s" % handle_name)]))
        with ops.get_default_graph()._attr_scope({"_class": attr}):  # pylint: disable=protected-access
          with ops.name_scope("Initializer"), ops.device(None):
            initial_value = default_seed.draw(handle_name, default_rows)
          handle = handle_ops.handle(
              handle_name, dim, name=scope, **options._asdict())
        if initial_value.op._get_control_flow_context() is not None:  # pylint: disable=protected-access
          raise ValueError(
              "embedding variable '%s': the initializer is a tensor from inside "
              "a loop or conditional; pass an initializer object instead" % name)
        # On the handle's device. An enclosing device function would otherwise add the
        # worker's device type, which a parameter server may not have.
        with ops.colocate_with(None, ignore_existing=True), ops.device(handle.device):
          with ops.name_scope("IsInitialized"):
            is_initialized = handle_ops.is_initialized(handle)
          with ops.name_scope("Assign") as n:
            initializer = handle_ops.initialize(handle, initial_value, name=n)
          with ops.name_scope("Read"):
            # Never run. Stock TensorFlow finds the handle of an imported variable by
            # walking back from such an op, even without this package.
            snapshot = gen_resource_variable_ops.read_variable_op(
                handle, dtypes.float32)
          with ops.name_scope("Shape"):
            shape_tensor = handle_ops.shape(handle)
    self._finish_init(
        handle, dim, trainable=trainable, initial_value=initial_value,
        initializer_op=initializer, is_initialized_op=is_initialized,
        graph_element=snapshot, shape_tensor=shape_tensor)
    ops.add_to_collections(collections, self)

  def _finish_init(self, handle, dim, shape_tensor, **kwargs):
    """Sets the attributes that created and imported variables share."""
    resource_variable_ops.BaseResourceVariable.__init__(
        self, shape=[dim], dtype=dtypes.float32, handle=handle,
        name=handle.op.name, unique_id=handle.op.name,
        handle_name=handle.op.name, distribute_strategy=strategies.current(), **kwargs)
    self._shape_tensor = shape_tensor
    self._set_options(dim, handle_ops.options_of(handle))
    registry = graph_state.of(handle.graph).setdefault(_REGISTRY, {})
    registry[handle.name] = self

  def _set_options(self, dim, options):
    """Sets the attributes that do not depend on a graph."""
    self._dim = dim
    self._options = options
    self._key_dtype = self._options.key_dtype
    self.versions_are_times = self._options.versions_are_times
    # Column name -> initial value, in order of creation.
    self._slot_columns = collections.OrderedDict()
    self._caching_device = None
    self.target_gpu = -1
    self._ev_option = None
    # The `_Table` that created it, for a warning if a later call has other arguments.
    self._created_by = None
    self._reported_without_effect = False

  @classmethod
  def from_definition(cls, variable_def, import_scope=None):
    """Returns the variable of a `VariableDef` whose ops are in the default graph.

    Args:
      variable_def: a `VariableDef` made by `to_proto`.
      import_scope: string, name scope that the graph was imported under.
    """
    graph = ops.get_default_graph()

    def element(name):
      return graph.as_graph_element(
          ops.prepend_name_scope(name, import_scope=import_scope))

    handle = element(variable_def.variable_name)
    known = graph_state.of(graph).get(_REGISTRY, {}).get(handle.name)
    if known is not None:
      return known
    dim = handle.op.get_attr("shape").dim[-1].size
    shape_tensor = next((c.outputs[0] for c in handle.consumers()
                         if c.type == "EvShape"), None)
    is_initialized = next((c.outputs[0] for c in handle.consumers()
                           if c.type == "EvIsInitialized"), None)
    if shape_tensor is None:
      with ops.device(handle.device):
        shape_tensor = handle_ops.shape(handle)
    slice_info = None
    if variable_def.HasField("save_slice_info_def"):
      slice_info = variables.Variable.SaveSliceInfo(
          save_slice_info_def=variable_def.save_slice_info_def,
          import_scope=import_scope)
    initial_value = None
    if variable_def.initial_value_name:
      initial_value = element(variable_def.initial_value_name)
    self = cls.__new__(cls)
    self._maybe_initialize_trackable()
    self._finish_init(
        handle, dim, trainable=variable_def.trainable,
        initial_value=initial_value,
        initializer_op=element(variable_def.initializer_name),
        is_initialized_op=is_initialized,
        graph_element=element(variable_def.snapshot_name),
        shape_tensor=shape_tensor, save_slice_info=slice_info)
    self._find_imported_slots()
    return self

  def _find_imported_slots(self):
    """Finds the slots in the update ops of an imported graph."""
    for op in self.handle.consumers():
      if op.type in ("EvReadRows", "EvWriteRows"):
        first, count = 0, None
      elif op.type in ("EvApply", "EvApplyPooled"):
        tables = list(op.inputs)[:op.get_attr("num_tables")]
        per_table = len(op.get_attr("slot_names")) // len(tables)
        first = [t is self.handle for t in tables].index(True) * per_table
        count = per_table
      else:
        continue
      names = op.get_attr("slot_names")
      end = len(names) if count is None else first + count
      for name, init in zip(names[first:end],
                            op.get_attr("slot_inits")[first:end]):
        self.add_slot_column(compat.as_str(name), init)

  # Content of the table.

  @property
  def dim(self):
    """int, length of a row."""
    return self._dim

  @property
  def key_dtype(self):
    """`tf.int64` or `tf.int32`."""
    return self._key_dtype

  @property
  def slot_columns(self):
    """Ordered dict: name of each optimizer slot's column -> its initial value."""
    return collections.OrderedDict(self._slot_columns)

  def add_slot_column(self, name, init):
    """Records that rows have a slot column, which the engine creates at first use."""
    self._slot_columns[name] = float(init)

  def element_of_slot(self, column, initial):
    """Returns the tensor that `session.run` fetches for a slot, the same as for this
    variable.

    Args:
      column: string, the slot's column.
      initial: float, initial value of the column in a new row.
    """
    del column, initial
    return self._as_graph_element()

  def value_of_slot(self, column, initial):
    """Raises an error: neither a slot nor this variable has a dense value."""
    del column, initial
    return self._no_dense_value()

  def total_count(self):
    """Returns int64 `[2]`: the number of keys that have a row, and dim.

    Keys that a filter counts and has not admitted have no row, so they are not
    included.
    """
    return self._on_device(handle_ops.shape)

  def get_dynamic_shape(self):
    """Returns int64 `[2]`: the number of keys that have a row, and dim.

    Keys that a filter counts and has not admitted have no row, so they are not
    included.
    """
    return self.total_count()

  def stats(self):
    """Returns int64 `[4]`: rows, index bytes, row bytes, rows inserted so far."""
    return self._on_device(handle_ops.stats)

  def get_frequency(self, ids):
    """Returns int64 of the shape of `ids`: occurrences of each id in training batches.

    For a key that the filter has not admitted, this is the filter's count. 0 for an
    absent key, and if frequencies are not recorded. They are recorded with a filter,
    with a capacity that evicts by frequency, and with `TF_RECORD_FREQ=1` in the
    environment at creation. Inserts nothing.
    """
    return gather_ops.get_meta(self.handle, self.convert_ids(ids))[0]

  def get_version(self, ids):
    """Returns int64 of the shape of `ids`: the global step of each id's last update.

    If `versions_are_times`, it is the time of that update, in seconds since 1970. -1
    for an absent key, and if versions are not recorded. They are recorded with
    `GlobalStepEvict`, with a capacity, with `TF_RECORD_VERSION=1` in the environment
    at creation, and if `versions_are_times`. Inserts nothing.
    """
    return gather_ops.get_meta(self.handle, self.convert_ids(ids))[1]

  def export(self):
    """Returns an `Exported` snapshot: (keys, values, versions, freqs) at one moment.

    Keys `[N]` of `key_dtype` in ascending order of (floormod(key, 1000), key), values
    float32 `[N, dim]`, versions and freqs int64 `[N]` (`[0]` if not recorded).
    """
    with ops.device(self.handle.device):
      table = checkpoint_ops.export_table(self.handle)
      keys = math_ops.cast(table.keys, self._key_dtype)
    return Exported(keys, table.values, table.versions, table.frequencies)

  def version_of_update(self, step):
    """Returns int64 scalar: the version for rows that an update changes now.

    Args:
      step: int64 scalar, the global step before its increment.
    """
    if not self.versions_are_times:
      return step
    # Reads the time when the update runs, not when the step began; on the CPU, since
    # only the CPU has a kernel for it.
    with ops.control_dependencies([step]), ops.colocate_with(
        None, ignore_existing=True), ops.device("/cpu:0"):
      return math_ops.cast(gen_logging_ops.timestamp(), dtypes.int64)

  def erase(self, keys):
    """Removes `keys` with their slots; returns int64 scalar, the number of keys found."""
    keys = math_ops.cast(self.convert_ids(keys), dtypes.int64)
    return row_ops.erase(self.handle, keys)

  def evict(self, steps_to_live=None, l2_weight_threshold=None, step=None):
    """Evicts rows with their slots now; returns int64 scalar, their number.

    Args:
      steps_to_live: int >= 1: evict rows that no update changed for more steps; for
        more seconds if `versions_are_times`. Default: that of `GlobalStepEvict`.
      l2_weight_threshold: float > 0: evict rows with `0.5 * sum(w^2)` below it.
        Default: that of `L2WeightEvict`. If only one of the two is given, the other is
        off.
      step: int64 scalar; default the graph's global step, or the seconds since 1970 if
        `versions_are_times`.

    Raises:
      ValueError: no rule is given, versions are not recorded, or there is no global
        step.
    """
    if steps_to_live is None and l2_weight_threshold is None:
      steps_to_live = self._options.steps_to_live
      l2_weight_threshold = self._options.l2_weight_threshold
    steps_to_live = steps_to_live or 0
    if l2_weight_threshold is None or l2_weight_threshold <= 0:
      l2_weight_threshold = -1.0
    if steps_to_live < 1 and l2_weight_threshold < 0:
      raise ValueError(
          "embedding variable '%s': evict() needs steps_to_live or "
          "l2_weight_threshold, since its options have neither GlobalStepEvict nor "
          "L2WeightEvict" % self.op.name)
    if steps_to_live and not self._options.record_version:
      raise ValueError(
          "embedding variable '%s': evict() by steps_to_live needs recorded versions: "
          "create the variable with GlobalStepEvict, a capacity, or TF_RECORD_VERSION=1 "
          "in the environment" % self.op.name)
    if step is None and self.versions_are_times and steps_to_live:
      step = self.version_of_update(constant_op.constant(0, dtypes.int64))
    if step is None:
      step = training_util.get_global_step(self.graph)
      if step is None and steps_to_live:
        raise ValueError("embedding variable '%s': evict() by steps_to_live needs a "
                         "global step" % self.op.name)
      step = 0 if step is None else step
    with ops.device(self.handle.device), \
        ops.colocate_with(None, ignore_existing=True):
      return handle_ops.evict(
          self.handle, math_ops.cast(step, dtypes.int64),
          steps_to_live=steps_to_live, l2_weight_threshold=l2_weight_threshold)

  def _on_device(self, op, **kwargs):
    """Returns an op of the handle, on the handle's device."""
    with ops.device(self.handle.device):
      return op(self.handle, **kwargs)

  def evicted_count(self):
    """Returns int64 scalar: rows evicted in this session, for any reason."""
    return self.policy_stats()[2]

  def policy_stats(self):
    """Returns int64 `[3]`: keys counted but not admitted, filter bytes, rows evicted."""
    return self._on_device(handle_ops.policy_stats)

  def overflows(self):
    """Returns int64 scalar, see `handle_ops.overflows`."""
    return self._on_device(handle_ops.overflows)

  def tier_stats(self):
    """Returns int64 `[6]`, see `handle_ops.tier_stats`: rows in the faster and the slower
    memory, hits, misses and more; `[12]` for a table in three memories.
    """
    pairs = storages.pairs_of_tiers(storages.of_name(self._options.storage))
    return self._on_device(handle_ops.tier_stats, pairs=pairs)

  def move_stats(self):
    """Returns int64 `[3]`, see `handle_ops.move_stats`: rows moved, bytes of the link."""
    return self._on_device(handle_ops.move_stats)

  def prefetch(self, ids):
    """Returns the op that moves the rows of ids from the SSD to memory, or from CPU
    memory or the SSD to GPU memory.

    Run it concurrently with a training step, for the ids of the next one. It changes no
    row, inserts nothing and counts nothing.

    Args:
      ids: int32 or int64 of any shape.
    """
    with ops.device(self.handle.device):
      return presence_ops.prefetch(self.handle, self.convert_ids(ids))

  def convert_ids(self, ids):
    """Returns `ids` as an int32 or int64 tensor.

    Python numbers and lists become `key_dtype`. NumPy arrays keep their type, which must
    be int32 or int64.

    Raises:
      TypeError: ids of another type, named with the variable.
    """
    if isinstance(ids, (ragged_tensor.RaggedTensor, sparse_tensor.SparseTensor)):
      ragged = isinstance(ids, ragged_tensor.RaggedTensor)
      raise TypeError(
          "embedding variable '%s': ids: expected a tensor of int32 or int64, got a %s. "
          "For a row per id call %s; for pooled rows call "
          "embedding_variable.lookup_sparse([v], [ids], combiners=['sum'])" %
          (self.op.name, type(ids).__name__,
           "tf.ragged.map_flat_values(tf.nn.embedding_lookup, v, ids)" if ragged else
           "tf.nn.embedding_lookup(v, ids.values)"))
    if not isinstance(ids, ops.Tensor):
      dtype = getattr(ids, "dtype", None)
      try:
        ids = ops.convert_to_tensor(
            ids, preferred_dtype=self._key_dtype,
            dtype=None if dtype is None else dtypes.as_dtype(dtype).base_dtype,
            name="ids")
      except (TypeError, ValueError) as e:
        raise TypeError("embedding variable '%s': ids are not integers: %s" %
                        (self.op.name, e))
    if ids.dtype.base_dtype not in _ID_DTYPES:
      raise TypeError(
          "embedding variable '%s': ids: expected int32 or int64, got %s" %
          (self.op.name, ids.dtype.base_dtype.name))
    return ids

  def sparse_read(self, indices, name=None, ev_init_value=None, counts=None):
    """Looks up rows; differentiable.

    Args:
      indices: int32 or int64 ids of any shape.
      name: name of the op.
      ev_init_value: float32 `indices.shape + [dim]`: absent keys read these instead of
        their default rows, and are inserted with them when the gradient is computed.
        It gets no gradient. Not together with an admission filter.
      counts: integers of the shape of `indices`: the number of occurrences that each id
        adds to the frequencies; None: 1 each.

    Returns:
      float32 `indices.shape + [dim]`.

    Raises:
      TypeError: ids are not integers.
      ValueError: `ev_init_value` or `counts` has another shape, or `ev_init_value` is
        used with a filter.
    """
    with ops.name_scope("Gather" if name is None else name) as name:
      resource_variable_ops.variable_accessed(self)
      ids = self.convert_ids(indices)
      if counts is not None:
        counts = ops.convert_to_tensor(counts, name="counts")
        self._check_goes_with_ids("counts", counts, ids.shape)
      rows = gather_ops.gather(self.handle, ids, counts=counts, name=name)
      if ev_init_value is None:
        return rows
      if self._options.filter != "none":
        raise ValueError("embedding variable '%s': ev_init_value would insert keys that "
                         "its filter has not admitted" % self.op.name)
      initial = ops.convert_to_tensor(ev_init_value, dtypes.float32,
                                      name="ev_init_value")
      self._check_goes_with_ids("ev_init_value", initial,
                                ids.shape.concatenate([self._dim]))
      return presence_ops.with_initial_rows(self.handle, ids, rows, initial)

  def _check_goes_with_ids(self, what, value, shape):
    """Raises ValueError unless a tensor can have the shape that the ids require."""
    if not value.shape.is_compatible_with(shape):
      raise ValueError("embedding variable '%s': %s: expected shape %s, got %s" %
                       (self.op.name, what, shape, value.shape))

  # Properties that DeepRec's scripts read.

  @property
  def table_options(self):
    """`handle_ops.TableOptions`."""
    return self._options

  @property
  def policy(self):
    """`table_options`, for the options that admit and evict keys."""
    return self._options

  @property
  def steps_to_live(self):
    """The steps of `GlobalStepEvict`, or None."""
    return self._options.steps_to_live or None

  @property
  def storage_type(self):
    """Number of `config_pb2.StorageType`: DRAM, HBM, DRAM_SSDHASH, HBM_DRAM or
    HBM_DRAM_SSDHASH. "auto" if it is chosen when the variable is initialised.
    """
    return storages.of_name(self._options.storage).reported

  @property
  def block_num(self):
    return 1

  @property
  def invalid_key(self):
    """DeepRec's reserved key. This package reserves no key."""
    return self._key_dtype.max if self._key_dtype == dtypes.int64 else -1

  def need_counts(self):
    """Whether frequencies are recorded, as a filter requires."""
    return self._options.record_frequency

  # Interface of a variable.

  def is_initialized(self, name=None):
    """Returns a bool scalar."""
    return self._on_device(handle_ops.is_initialized, name=name)

  def _as_graph_element(self):
    """Returns the tensor that `session.run(variable)` fetches: the number of keys, and
    dim.
    """
    return self._shape_tensor

  def eval(self, session=None):
    """Returns the same as `session.run(variable)`."""
    return self._shape_tensor.eval(session=session)

  def __bool__(self):
    return True

  __nonzero__ = __bool__

  def __repr__(self):
    return "<EmbeddingVariable '%s' dim=%d key_dtype=%s>" % (
        self.name, self._dim, self._key_dtype.name)

  def _serialize_to_tensors(self):
    """Raises: the `tf.train.Checkpoint` of TensorFlow 2.x calls it to save a variable."""
    raise NotImplementedError(
        "embedding variable '%s': tf.train.Checkpoint cannot save or restore a table on "
        "TensorFlow 2.x. Use tf.compat.v1.train.Saver" % self.op.name)

  def _restore_from_tensors(self, unused_tensors):
    self._serialize_to_tensors()

  def _dense_var_to_tensor(self, dtype=None, name=None, as_ref=False):
    del dtype, name
    if as_ref:
      return self.handle  # needed by colocate_with
    return self._no_dense_value()

  def _no_dense_value(self, *unused_args, **unused_kwargs):
    self._unsupported(
        "it has no dense value: it cannot be converted to a tensor, read whole or "
        "used in arithmetic. Look rows up with tf.nn.embedding_lookup, or call "
        "export()")

  def _no_assignment(self, *unused_args, **unused_kwargs):
    self._unsupported(
        "it cannot be assigned. Rows change through an optimizer, or by restoring "
        "a checkpoint")

  def _unsupported(self, what):
    raise NotImplementedError("embedding variable '%s': %s" % (self.op.name, what))

  value = _no_dense_value
  read_value = _no_dense_value
  initialized_value = _no_dense_value
  _read_variable_op = _no_dense_value
  gather_nd = _no_dense_value
  numpy = _no_dense_value
  count_up_to = _no_dense_value
  _AsTensor = _no_dense_value  # pylint: disable=invalid-name
  _ref = _no_dense_value
  assign = _no_assignment
  assign_add = _no_assignment
  assign_sub = _no_assignment
  load = _no_assignment
  _lazy_read = _no_assignment  # used by tf.scatter_add and similar functions
  scatter_add = _no_assignment
  scatter_sub = _no_assignment
  scatter_update = _no_assignment
  scatter_max = _no_assignment
  scatter_min = _no_assignment
  scatter_mul = _no_assignment
  scatter_div = _no_assignment
  scatter_nd_add = _no_assignment
  scatter_nd_sub = _no_assignment
  scatter_nd_update = _no_assignment
  batch_scatter_update = _no_assignment
  set_shape = _no_assignment
