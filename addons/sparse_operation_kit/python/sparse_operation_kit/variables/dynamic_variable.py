# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""sok.DynamicVariable: an embedding variable with SOK's interface."""

import numbers

import embedding_variable
from embedding_variable.tf_names import array_ops
from embedding_variable.tf_names import dtypes
from embedding_variable.tf_names import math_ops
from embedding_variable.tf_names import ops
from embedding_variable.variables import constant_initializers
from embedding_variable.variables import default_seed

from sparse_operation_kit import communication
from sparse_operation_kit.files import table_files
from sparse_operation_kit.variables import dynamic_config
from sparse_operation_kit.variables import modes
from sparse_operation_kit.variables import rows

# Number of default rows drawn from an initializer object.
_DEFAULT_ROWS = 4096


class DynamicVariable(embedding_variable.EmbeddingVariable):
  """A table that grows as keys arrive: an embedding variable with SOK's interface.

  Any integer of the key type is a key. A lookup inserts nothing: a key without a row
  reads its default row. It gets a row when its first gradient is applied, or when
  `sok.assign`, `scatter_update` or `sok.load` writes it. `tf.train` and Keras
  optimizers, `tf.nn.embedding_lookup`, `sok.lookup_sparse` and `tf.train.Saver` work as
  on any embedding variable.

  Example:

    v = sok.DynamicVariable(dimension=16, initializer="random")
    emb = sok.lookup_sparse(v, ids, combiners="sum")         # [batch, 16]

  Attributes:
    target_gpu: int, rank that stores all rows; -1: rows are spread over all ranks.
  """

  def __init__(self, dimension, initializer=None, var_type=None, name=None,
               constraint=None, trainable=True, key_type=None, dtype=None, mode=None,
               **kwargs):
    """Creates the table in the default graph, or at once in eager execution.

    Args:
      dimension: int >= 1, length of a row.
      initializer: initial values of rows. A string: "random" (or ""; uniform in (-0.05,
        0.05) for "hbm" and "auto", standard normal for "hybrid"), "ones", "zeros", a
        number such as "0.5", and for "hybrid" also "normal" and "uniform" (in [0, 1)).
        Or a number, or an initializer such as `tf.glorot_uniform_initializer()`. None:
        "random". Random rows are drawn once, 4096 of them; key k starts with row
        floormod(k, 4096).
      var_type: "hbm": rows are in the memory of this process's GPU; initializing the
        table without a GPU raises an error. "hybrid" (or None): rows are in host memory;
        with max_hbm_for_vectors the most used ones are in GPU memory. Only "hybrid"
        tables can have a max_capacity, record the time of each row's last change (for
        `sok.incremental_model_dump`) and filter rare keys. "auto": as "hbm" if the
        process can use a GPU, else rows are in host memory; the choice is logged.
      name: string; None: `sok_dynamic_Variable_<n>`.
      constraint: must be None.
      trainable: bool.
      key_type: `tf.int64` or `tf.int32`; None: int64.
      dtype: `tf.float32` or None.
      mode: None or "distributed": key k is on rank floormod(k, number of ranks);
        "localized:<k>": all keys are on rank k.
      **kwargs: options in SOK's names.
        max_capacity ("hybrid" only): maximum number of rows per rank; without it there
        is no limit.
        evict_strategy: rows that are evicted first at max_capacity, and rows that
        leave GPU memory first: "kLru" (or "kEpochLru"; the default), those changed
        longest ago; "kLfu" (or "kEpochLfu"), those updated least often; "kFifo", those
        inserted first. Rows of the current step are evicted last. No effect if
        neither max_capacity nor max_hbm_for_vectors is given.
        filter_ratio ("hybrid" only): the probability that a lookup with
        use_low_frequency_filter=True admits a new key.
        max_hbm_for_vectors: GB (2^30 bytes) of GPU memory per rank for the most used
        rows with their optimizer slots; other rows are in host memory. Without it, or
        with 0, all rows are in host memory. With more than 0, initializing the table
        without a GPU raises an error. No effect unless var_type is "hybrid".
        init_capacity, max_load_factor, max_bucket_size, block_size, device_id and
        io_by_cpu are checked but have no effect: tables grow as needed.

    Raises:
      TypeError: an unknown argument, or an initializer of another kind.
      ValueError: an invalid value of an argument.
      NotImplementedError: a dtype that is not float32.
      RuntimeError: an unknown mode.
    """
    name = name or modes.default_name("sok_dynamic_Variable")
    if isinstance(dimension, bool) or not isinstance(
        dimension, numbers.Integral) or dimension < 1:
      raise ValueError("sok.DynamicVariable '%s': dimension: expected an integer of at "
                       "least 1, got %r" % (name, dimension))
    if constraint is not None:
      raise ValueError("sok.DynamicVariable '%s': constraint has no meaning for a table "
                       "and must be None" % name)
    backend, key_type = dynamic_config.check_backend(name, var_type, key_type, dtype)
    dynamic_config.check_keywords(name, backend, kwargs)
    target = modes.target_of(mode)
    text, initializer = _initializer(name, backend, initializer)
    dimension = int(dimension)
    super(DynamicVariable, self).__init__(
        name, dimension, lambda: _default_rows(name, initializer, dimension),
        dynamic_config.to_table_options(backend, key_type, kwargs), trainable=trainable)
    self.target_gpu = target
    self._mode = mode
    self._backend = backend
    self._config = dict(kwargs)
    self._initializer_text = text

  @property
  def size(self):
    """int32 `[2]` tensor: number of rows on this rank, and dimension.

    In a graph each access adds ops.
    """
    return math_ops.cast(self.total_count(), dtypes.int32)

  @property
  def indices(self):
    """`[N]` tensor of `key_type`: the keys on this rank, ascending.

    In a graph each access adds ops.
    """
    return rows.export(self)[0]

  @property
  def dimension(self):
    """int, length of a row."""
    return self.dim

  @property
  def key_type(self):
    """`tf.int64` or `tf.int32`."""
    return self.key_dtype

  @property
  def handle_dtype(self):
    """`tf.float32`, the type of the rows."""
    return dtypes.float32

  @property
  def backend_type(self):
    """"hbm", "hybrid" or "auto"."""
    return self._backend

  @property
  def config_dict(self):
    """dict of the keyword arguments of the constructor."""
    return dict(self._config)

  @property
  def mode(self):
    """None, "distributed" or "localized:<k>", as given to the constructor."""
    return self._mode

  @property
  def m_var_name(self):
    """string, the prefix of `sok.Saver`'s file names."""
    return table_files.saver_name(self)

  @property
  def num_gpus(self):
    """int, the number of ranks."""
    return communication.num_ranks()

  @property
  def initializer_str(self):
    """string, the initializer; "" for an initializer object."""
    return self._initializer_text

  @property
  def filter_ratio(self):
    """float in [0, 1]: probability that a filtering lookup admits a new key."""
    return float(self._config.get("filter_ratio", 1.))

  def key_map(self, indices):
    """Returns `indices`, since keys are used unchanged."""
    return indices

  def scatter_sub(self, sparse_delta, use_locking=False, name=None):
    """Returns the op that subtracts rows; keys without a row are inserted first.

    Args:
      sparse_delta: IndexedSlices; values of equal keys are summed.
      use_locking: accepted; row updates are always atomic.
      name: name of the op.
    """
    del use_locking
    return rows.subtract(self, sparse_delta.indices, sparse_delta.values, name)

  def scatter_add(self, sparse_delta, use_locking=False, name=None):
    """Returns the op that adds rows, like `scatter_sub`."""
    del use_locking
    return rows.subtract(self, sparse_delta.indices, -sparse_delta.values, name)

  def scatter_update(self, sparse_delta, use_locking=False, name=None):
    """Returns the op that writes rows; of equal keys the last one is written."""
    del use_locking
    return rows.write(self, sparse_delta.indices, sparse_delta.values, name)

  def __repr__(self):
    return "<sok.DynamicVariable '%s' dimension=%d key_type=%s var_type=%s>" % (
        self.name, self.dim, self.key_dtype.name, self._backend)


def _initializer(name, backend, initializer):
  """Returns (text, initializer)."""
  if isinstance(initializer, numbers.Real) and not isinstance(initializer, bool):
    initializer = repr(float(initializer))
  if initializer is None or isinstance(initializer, str):
    return initializer or "", dynamic_config.initializer_of(name, backend, initializer)
  if isinstance(initializer, type):
    initializer = initializer()
  if not callable(initializer):
    raise TypeError("sok.DynamicVariable '%s': initializer: expected a string, a number or "
                    "an initializer, got %r" % (name, initializer))
  return "", initializer


def _default_rows(name, initializer, dimension):
  """Returns float32 `[R, dimension]`."""
  initializer = default_seed.seeded(initializer)
  count = constant_initializers.num_default_rows(initializer, _DEFAULT_ROWS, dimension)
  value = ops.convert_to_tensor(
      initializer([count, dimension], dtype=dtypes.float32), dtype=dtypes.float32)
  if not value.shape.is_compatible_with([count, dimension]):
    raise ValueError("sok.DynamicVariable '%s': the initializer: expected a result of shape %s, "
                     "got %s" % (name, [count, dimension], value.shape))
  return array_ops.reshape(value, [count, dimension])
