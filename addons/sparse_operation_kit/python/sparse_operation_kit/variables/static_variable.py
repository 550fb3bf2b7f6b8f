# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""sok.Variable: a table of fixed size, spread over ranks or on one of them.

It is an embedding variable that contains the keys 0, 1, ..., R - 1 from the start, so
lookups over ranks, fused optimizers and checkpoints are the same as for other tables.
In addition it has a shape, a dense value (the rows of this rank), and reports an error
for an id that is not a row.
"""

import numpy as np

import embedding_variable

from embedding_variable.eager import taped
from embedding_variable.ops import checkpoint_ops
from embedding_variable.ops import gather_ops
from embedding_variable.ops import row_ops
from embedding_variable.optimizers import slot_view
from embedding_variable.tf_names import array_ops
from embedding_variable.tf_names import control_flow_ops
from embedding_variable.tf_names import dtypes
from embedding_variable.tf_names import keras_initializers as initializers
from embedding_variable.tf_names import math_ops
from embedding_variable.tf_names import ops
from embedding_variable.tf_names import resource_variable_ops
from embedding_variable.tf_names import tensor_shape
from embedding_variable.variables import constant_initializers

from sparse_operation_kit import communication
from sparse_operation_kit.files import table_files
from sparse_operation_kit.variables import modes
from sparse_operation_kit.variables import rows


class _StaticVariable(embedding_variable.EmbeddingVariable):
  """A table `[R, D]`; this rank holds some of its rows."""

  def __init__(self, target_gpu, num_ranks, initial_value, shape, initializer, name,
               trainable, collections, dtype, constraint):
    name = name or modes.default_name("sok_static_Variable")
    if constraint is not None:
      raise ValueError("sok.Variable '%s': constraint has no meaning for a table and must "
                       "be None" % name)
    if dtype is not None and dtypes.as_dtype(dtype) != dtypes.float32:
      raise ValueError("sok.Variable '%s': dtype: expected float32, got %s" %
                       (name, dtypes.as_dtype(dtype).name))
    self._num_ranks = num_ranks
    self._rank = communication.rank()
    source = _rows_source(name, initial_value, shape, initializer)
    self._global_shape = tensor_shape.TensorShape(source.shape)
    num_rows, dim = source.shape
    owners = list(range(num_ranks)) if target_gpu == -1 else [target_gpu]
    # Local row i has key `first + stride * i`.
    self._stride = len(owners)
    self._first = owners.index(self._rank) if self._rank in owners else num_rows
    self._local_rows = len(range(self._first, num_rows, self._stride))
    super(_StaticVariable, self).__init__(
        name, dim, lambda: array_ops.zeros([1, dim]),
        trainable=trainable, collections=collections)
    self.target_gpu = target_gpu
    with ops.init_scope(), ops.name_scope(self.op.name + "/Rows/"), \
        ops.colocate_with(None, ignore_existing=True), ops.device(self.device):
      values = source.rows(self._first, self._stride, self._local_rows)
      initialized = [] if taped.is_eager(self.handle) else [self._initializer_op]
      with ops.control_dependencies(initialized):
        self._initializer_op = checkpoint_ops.import_table(
            self.handle, self._local_keys(), values, array_ops.zeros([0], dtypes.int64),
            array_ops.zeros([0], dtypes.int64), name="Assign")
      self._dense = None if taped.is_eager(self.handle) else self._gather_all()

  # Shape.

  @property
  def shape(self):
    """`[rows on this rank, D]`."""
    rows_shown = self._local_rows
    if slot_view.shows_a_row():
      rows_shown = max(1, rows_shown)
    return tensor_shape.TensorShape([rows_shown, self.dim])

  def get_shape(self):
    """`[rows on this rank, D]`."""
    return self.shape

  @property
  def global_shape(self):
    """`[R, D]`, the shape of the whole table."""
    return self._global_shape

  @property
  def num_gpus(self):
    """int, the number of ranks."""
    return self._num_ranks

  @property
  def global_gpu_id(self):
    """int, this rank."""
    return self._rank

  # Rows.

  def _local_keys(self):
    return self._first + self._stride * math_ops.range(
        ops.convert_to_tensor(self._local_rows, dtypes.int64))

  def _gather_all(self):
    value = gather_ops.gather(self.handle, self._local_keys(), name="Value")
    value.set_shape(self.shape)
    return value

  def value(self):
    """Returns float32 `[rows on this rank, D]`: the current rows."""
    with ops.colocate_with(None, ignore_existing=True), ops.device(self.device):
      return self._gather_all()

  def read_value(self):
    """Returns the result of `value`."""
    return self.value()

  def _AsTensor(self):  # pylint: disable=invalid-name
    return self.value()

  def _as_graph_element(self):
    return self._dense

  def eval(self, session=None):
    """Evaluates this rank's rows to an array."""
    return self._dense.eval(session=session)

  def _dense_var_to_tensor(self, dtype=None, name=None, as_ref=False):
    del name
    if as_ref:
      return self.handle  # For colocate_with.
    if dtype is not None and dtypes.as_dtype(dtype) != dtypes.float32:
      return NotImplemented
    return self.value()

  def element_of_slot(self, column, initial):
    """Returns float32 `[rows on this rank, D or 1]`: a slot's value in `session.run`.

    Args:
      column: string, the slot's column.
      initial: float, initial value of the column in new rows.
    """
    # No name of an op has the "@" of a column.
    scope = "%s/%s/" % (self.op.name, column.replace("@", "_"))
    with ops.init_scope(), ops.name_scope(scope):
      return self.value_of_slot(column, initial)

  def value_of_slot(self, column, initial):
    """Returns the current value of a slot, like `element_of_slot`."""
    with ops.colocate_with(None, ignore_existing=True), ops.device(self.device):
      _, slots = row_ops.read_rows(self.handle, self._local_keys(), [column], [initial],
                                   name="Value")
      slots[0].set_shape([self._local_rows, slot_view.width(column, self.dim)])
      return slots[0]

  def assign(self, value, use_locking=None, name=None, read_value=True):
    """Returns the op that sets this rank's rows; slots stay.

    Args:
      value: float32 `[rows on this rank, D]`.
      use_locking: accepted; row updates are always atomic.
      name: name of the op.
      read_value: if True, returns the rows after the update instead.
    """
    del use_locking
    value = ops.convert_to_tensor(value, dtype=dtypes.float32)
    value.shape.assert_is_compatible_with(self.shape)
    op = rows.write(self, self._local_keys(), value, name)
    if not read_value:
      return op
    with ops.control_dependencies([op]):
      return self.value()

  def assign_add(self, delta, use_locking=None, name=None, read_value=True):
    """Returns the op that adds to this rank's rows; arguments as in `assign`."""
    return self._assign_sum(delta, 1., name or "AssignAdd", read_value)

  def assign_sub(self, delta, use_locking=None, name=None, read_value=True):
    """Returns the op that subtracts from this rank's rows; arguments as in `assign`."""
    return self._assign_sum(delta, -1., name or "AssignSub", read_value)

  def _assign_sum(self, delta, sign, name, read_value):
    delta = ops.convert_to_tensor(delta, dtype=dtypes.float32)
    delta.shape.assert_is_compatible_with(self.shape)
    op = rows.subtract(self, self._local_keys(), -sign * delta, name)
    if not read_value:
      return op
    with ops.control_dependencies([op]):
      return self.value()

  @property
  def m_var_name(self):
    """string, the prefix of `sok.Saver`'s file names."""
    return table_files.saver_name(self)

  def convert_ids(self, ids):
    """Returns `ids` as integers; ids outside [0, R) raise an error at run time."""
    ids = super(_StaticVariable, self).convert_ids(ids)
    return self._checked(ids, self._global_shape.as_list()[0], "a row of the table")

  def _checked(self, ids, limit, what):
    message = "sok.Variable %s: an id is not %s: expected 0 <= id < %d, got" % (
        self.op.name, what, limit)
    # TensorFlow has the minimum of int64 on the CPU only.
    with ops.colocate_with(None, ignore_existing=True), ops.device("/cpu:0"):
      wide = math_ops.cast(ids, dtypes.int64)
      smallest, largest = math_ops.reduce_min(wide), math_ops.reduce_max(wide)
      right = math_ops.logical_and(smallest >= 0, largest < limit)
      checked = control_flow_ops.Assert(right, [message, smallest, "to", largest])
    with ops.control_dependencies([checked]):
      return array_ops.identity(ids)

  def sparse_read(self, indices, name=None, ev_init_value=None, counts=None):
    """Looks up rows of this rank by local row number; differentiable.

    Args:
      indices: integers of any shape in [0, rows on this rank).
      name: name of the op.
      ev_init_value: must be None, since every row exists.
      counts: as in `EmbeddingVariable.sparse_read`.

    Returns:
      float32 `indices.shape + [D]`.
    """
    if ev_init_value is not None:
      self._unsupported("every row exists, so ev_init_value is not supported")
    with ops.name_scope(name, "Gather"):
      resource_variable_ops.variable_accessed(self)
      ids = super(_StaticVariable, self).convert_ids(indices)
      ids = self._checked(ids, self._local_rows, "one of this rank's rows")
      if self._stride != 1:
        ids = self._first + self._stride * math_ops.cast(ids, dtypes.int64)
      return gather_ops.gather(self.handle, ids, counts=counts)

  def erase(self, keys):
    """Raises an error: the rows of this table are fixed."""
    del keys
    self._unsupported("its rows are fixed and cannot be erased")

  def __repr__(self):
    return "<sok.%s '%s' global_shape=%s shape=%s>" % (
        type(self).__name__, self.name, self.global_shape, self.shape)


class DistributedVariable(_StaticVariable):
  """A table of fixed size; row i is on rank `i % ranks`, as its row `i // ranks`."""

  def __init__(self, initial_value=None, trainable=True, collections=None, name=None,
               dtype=None, constraint=None, shape=None, initializer=None):
    """Creates the table; the arguments are those of `sok.Variable`."""
    super(DistributedVariable, self).__init__(
        -1, communication.num_ranks(), initial_value, shape, initializer, name, trainable,
        collections, dtype, constraint)

  def key_map(self, indices):
    """Returns the local row numbers of rows of this rank: `indices // ranks`."""
    return math_ops.floordiv(indices, self.num_gpus)


class LocalizedVariable(_StaticVariable):
  """A table of fixed size on one rank; on other ranks its shape is `[0, D]`."""

  def __init__(self, initial_value=None, trainable=True, collections=None, name=None,
               dtype=None, constraint=None, shape=None, initializer=None, target_gpu=0):
    """Creates the table on rank `target_gpu`; other arguments as for `sok.Variable`.

    Raises:
      RuntimeError: the rank is outside the job.
    """
    super(LocalizedVariable, self).__init__(
        modes.target_of("localized:%d" % target_gpu), communication.num_ranks(),
        initial_value, shape, initializer, name, trainable, collections, dtype, constraint)

  def key_map(self, indices):
    """Returns `indices`, since local row numbers are equal to ids."""
    return indices


def Variable(*args, **kwargs):  # pylint: disable=invalid-name
  """Creates a table of fixed size for model-parallel lookups.

  It trains with `sok.lookup_sparse`, `sok.all2all_dense_embedding` and any optimizer,
  without `sok.OptimizerWrapper`. As a tensor (`session.run(v)`, `v.value()`) it is the
  rows of this rank; `tf.nn.embedding_lookup(v, i)` takes local row numbers.

  Example:

    v = sok.Variable(np.ones([100, 16], np.float32))               # over all ranks
    w = sok.Variable(shape=[100, 16], initializer=tf.glorot_uniform_initializer(),
                     mode="localized:0")
    emb = sok.lookup_sparse([v, w], [ids, ids])                    # ids in [0, 100)

  Args:
    initial_value: array or tensor `[R, D]`, or a function without arguments that
      returns one; the same on all ranks. Each rank keeps its rows.
    trainable: bool.
    collections: list of collections, or None for GLOBAL_VARIABLES.
    name: string; None: `sok_static_Variable_<n>`.
    dtype: `tf.float32` or None.
    constraint: must be None.
    shape: `[R, D]`, with an initializer.
    initializer: function (shape, dtype), or a Keras initializer's name. It is called
      for the whole table and each rank keeps its rows. So with a seed the table does
      not depend on the number of ranks.
    mode: None or "distributed": row i is on rank `i % ranks`; "localized:<k>": all rows
      are on rank k.

  Returns:
    A `DistributedVariable` or a `LocalizedVariable`.

  Raises:
    RuntimeError: an unknown mode, or a rank outside the job.
    ValueError: there is no value or shape of rank 2, or dtype is not float32.
  """
  target = modes.target_of(kwargs.pop("mode", None))
  if target == -1:
    return DistributedVariable(*args, **kwargs)
  return LocalizedVariable(*args, target_gpu=target, **kwargs)


class _Given(object):
  """Source of rows: a given value."""

  def __init__(self, value):
    self._value = value
    self.shape = value.shape.as_list() if isinstance(value, ops.Tensor) else value.shape

  def rows(self, first, stride, count):
    del count
    return ops.convert_to_tensor(self._value[first::stride], dtype=dtypes.float32)


class _Drawn(object):
  """Source of rows: an initializer."""

  def __init__(self, initializer, shape):
    self._initializer = initializer
    self.shape = shape

  def rows(self, first, stride, count):
    num_rows, dim = self.shape
    if constant_initializers.size(self._initializer) == 1 or not count:
      # Equal rows: a rank does not need to generate the others.
      num_rows, first, stride = count, 0, 1
    if not num_rows:
      return array_ops.zeros([0, dim])
    value = ops.convert_to_tensor(
        self._initializer([num_rows, dim], dtypes.float32), dtype=dtypes.float32)
    value.shape.assert_is_compatible_with([num_rows, dim])
    return value[first::stride]


def _rows_source(name, initial_value, shape, initializer):
  """Returns a _Given or _Drawn, which has the table's shape and makes rows."""
  if (initial_value is None) == (initializer is None):
    raise ValueError("sok.Variable '%s': give either initial_value, or shape and "
                     "initializer" % name)
  if initial_value is None:
    dims = None if shape is None else tensor_shape.TensorShape(shape)
    if dims is None or dims.ndims != 2 or not dims.is_fully_defined():
      raise ValueError("sok.Variable '%s': shape: expected [rows, dim], got %s" %
                       (name, shape))
    if isinstance(initializer, str):
      initializer = initializers.get(initializer)
    if isinstance(initializer, type):
      initializer = initializer()
    source = _Drawn(initializer, dims.as_list())
  else:
    if callable(initial_value):
      initial_value = initial_value()
    if not isinstance(initial_value, ops.Tensor):
      initial_value = np.asarray(initial_value, dtype=np.float32)
    elif initial_value.dtype != dtypes.float32:
      raise ValueError("sok.Variable '%s': initial_value: expected float32, got %s" %
                       (name, initial_value.dtype.name))
    dims = tensor_shape.TensorShape(initial_value.shape)
    if dims.ndims != 2 or not dims.is_fully_defined():
      raise ValueError("sok.Variable '%s': initial_value: expected the shape [rows, dim], "
                       "got %s" % (name, dims))
    if shape is not None and not dims.is_compatible_with(shape):
      raise ValueError("sok.Variable '%s': initial_value has shape %s, but shape is %s" %
                       (name, dims, shape))
    source = _Given(initial_value)
  if source.shape[0] < 1 or source.shape[1] < 1:
    raise ValueError("sok.Variable '%s': needs at least one row and one column, got "
                     "shape %s" % (name, list(source.shape)))
  return source
