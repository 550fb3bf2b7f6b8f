# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Optimizer slots of an embedding variable.

A slot is a column of the table's rows, which the engine creates at first use. The
optimizer holds a `SlotView` for it: the table, the column, and the initial value of the
column in new rows.
"""

import contextlib
import threading

import numpy as np

from embedding_variable.ops import checkpoint_ops
from embedding_variable.ops import handle_ops
from embedding_variable.ops import row_ops
from embedding_variable.tf_names import array_ops
from embedding_variable.tf_names import control_flow_ops
from embedding_variable.tf_names import dtypes
from embedding_variable.tf_names import math_ops
from embedding_variable.tf_names import ops
from embedding_variable.tf_names import tensor_util
from embedding_variable.tf_names import trackable


# Ends the column of a slot with one number per row (kernels/engine/base/slot_name.h).
_PER_ROW = "@row"


def width(column, dim):
  """Returns the numbers that a slot's column has in each row of a table of that dim."""
  return 1 if column.endswith(_PER_ROW) else dim


class SlotView(trackable.Trackable):
  """Stands for the slot variable that an optimizer would have created.

  It is in no collection: the table's rows, slots included, are saved and initialised
  with the embedding variable.

  Attributes:
    primary: the embedding variable.
    column: string, name of the column ("Adagrad", "Adam_1", "RowWiseAdagrad@row"); the
      checkpoint's tensors are `<variable>/<column>-values` and so on.
    initial: float, initial value of the column in a new row.
    dim: int, numbers of the column in each row: the table's dim, or 1.
  """

  def __init__(self, primary, column, initial):
    self.primary = primary
    self.column = column
    self.initial = float(initial)
    self.dim = width(column, primary.dim)
    self._in_graph_mode = True
    self._initializer = None
    self._graph_key = primary._graph_key  # pylint: disable=protected-access
    self._element = primary.element_of_slot(column, self.initial)

  @property
  def name(self):
    return "%s/%s:0" % (self.primary.op.name, self.column)

  @property
  def op(self):
    return self.primary.op

  @property
  def handle(self):
    return self.primary.handle

  @property
  def graph(self):
    return self.primary.graph

  @property
  def device(self):
    return self.primary.device

  @property
  def dtype(self):
    return dtypes.float32

  @property
  def shape(self):
    """`[dim]`; for a table of fixed size `[rows, dim]`, like the table's shape."""
    return self.primary.shape[:-1].concatenate([self.dim])

  def get_shape(self):
    return self.shape

  @property
  def trainable(self):
    return False

  @property
  def initializer(self):
    """The op that resets this column to its initial value in every row.

    No-op before the table is initialised, since new rows start with that value.
    """
    if self._initializer is None:
      with ops.device(self.device), ops.name_scope("SlotInitializer"):
        self._initializer = control_flow_ops.cond(
            handle_ops.is_initialized(self.handle), self._reset,
            control_flow_ops.no_op)
        if isinstance(self._initializer, ops.Tensor):
          self._initializer = self._initializer.op
    return self._initializer

  def _reset(self):
    """Writes all rows back without this column, which then starts anew."""
    others = self.primary.slot_columns
    others.pop(self.column)
    ensured = row_ops.ensure_slots(self.handle, list(others), list(others.values()))
    with ops.control_dependencies([ensured]):
      table = checkpoint_ops.export_table(self.handle, list(others))
    return checkpoint_ops.import_table(
        self.handle, table.keys, table.values, table.versions, table.frequencies,
        table.slots, list(others), list(others.values()))

  def is_initialized(self, name=None):
    """Returns a bool scalar: whether the table is initialized."""
    return self.primary.is_initialized(name)

  def sparse_read(self, indices, name=None):
    """Returns the slot's rows, float32 `indices.shape + [dim]`; inserts nothing."""
    with ops.name_scope(name, "SlotRead"):
      ids = self.primary.convert_ids(indices)
      flat = math_ops.cast(array_ops.reshape(ids, [-1]), dtypes.int64)
      keys, inverse, _ = row_ops.unique(flat)
      _, slots = row_ops.read_rows(self.handle, keys, [self.column],
                                   [self.initial])
      rows = array_ops.gather(slots[0], inverse)
      rows = array_ops.reshape(
          rows, array_ops.concat([array_ops.shape(ids), [self.dim]], 0))
      rows.set_shape(ids.shape.concatenate([self.dim]))
      return rows

  def value(self):
    """Returns float32 `[rows, dim]`, the slot of a table of fixed size.

    Raises:
      NotImplementedError: any other table has no dense value.
    """
    return self.primary.value_of_slot(self.column, self.initial)

  def read_value(self):
    """Returns the same as `value`."""
    return self.value()

  def _as_graph_element(self):
    """Returns the tensor that `session.run` fetches: the dense value; int64 `[2]`, the
    number of keys and dim, for a table without a dense value.
    """
    return self._element

  def eval(self, session=None):
    """Returns the same as `session.run`."""
    return self._element.eval(session=session)

  def __repr__(self):
    return "<SlotView '%s' of %r>" % (self.name, self.primary)


def _to_tensor(slot, dtype=None, name=None, as_ref=False):
  del name
  if as_ref:
    return slot.handle  # needed by colocate_with
  if dtype is not None and dtypes.as_dtype(dtype) != dtypes.float32:
    return NotImplemented
  return slot.value()


ops.register_tensor_conversion_function(SlotView, _to_tensor)

_local = threading.local()


@contextlib.contextmanager
def _set(name):
  """Context in which the flag is set in this thread."""
  before = getattr(_local, name, False)
  setattr(_local, name, True)
  try:
    yield
  finally:
    setattr(_local, name, before)


def ordinary_slots():
  """Context in which slots are ordinary variables even if their shape is that of a row."""
  return _set("ordinary")


def wants_ordinary():
  """Returns whether `ordinary_slots` is open in this thread."""
  return getattr(_local, "ordinary", False)


def per_row_slots():
  """Context in which slots of tables have one number per row, whatever their shape."""
  return _set("per_row")


def wants_per_row():
  """Returns whether `per_row_slots` is open in this thread."""
  return getattr(_local, "per_row", False)


def a_row_shown():
  """Context in which a table of fixed size without rows has one row in its shape.

  Optimizers create a slot's initial value in the variable's shape. A constant without
  elements would not contain its value.
  """
  return _set("a_row")


def shows_a_row():
  """Returns whether `a_row_shown` is open in this thread."""
  return getattr(_local, "a_row", False)


def create_slots(optimizer, variables):
  """Makes an optimizer create its slots of variables.

  Args:
    optimizer: any object with `_create_slots`.
    variables: list of variables.
  """
  with a_row_shown():
    optimizer._create_slots(variables)  # pylint: disable=protected-access


def create(primary, name, initial):
  """Creates the next slot with a name: `name`, `name_1`, ... numbered as in TensorFlow.

  In `per_row_slots`, the slot has one number per row.

  Args:
    primary: an embedding variable.
    name: string, the optimizer's name.
    initial: float.

  Returns:
    A `SlotView`.
  """
  columns = primary.slot_columns
  end = _PER_ROW if wants_per_row() else ""
  column, number = name + end, 0
  while column in columns:
    number += 1
    column = "%s_%d%s" % (name, number, end)
  primary.add_slot_column(column, initial)
  return SlotView(primary, column, initial)


def constant_of(primary, value, slot_name):
  """Returns the single number that fills a slot's initial value.

  Args:
    primary: the embedding variable, for messages.
    value: initializer (object, class or function), tensor or array.
    slot_name: string, for messages.

  Raises:
    ValueError: the value is unknown when the graph is built, or not the same in all
      elements.
  """
  if callable(value):
    # In a graph of its own, since only the number is needed.
    with ops.Graph().as_default():
      constant = _call(value, [primary.dim])
  else:
    constant = value
  if isinstance(constant, ops.Tensor):
    constant = tensor_util.constant_value(constant)
  if constant is None:
    raise ValueError(
        "embedding variable '%s': the initial value of optimizer slot '%s': expected a "
        "constant that is known at graph construction, got %r" %
        (primary.op.name, slot_name, value))
  constant = np.asarray(constant, dtype=np.float32)
  if constant.size == 0 or not np.all(constant == constant.flat[0]):
    raise ValueError(
        "embedding variable '%s': the initial value of optimizer slot '%s': expected "
        "the same in all elements, got %r" % (primary.op.name, slot_name, constant))
  return float(constant.flat[0])


def _call(initializer, shape):
  """Returns the initializer's tensor, or None if it is not a plain one."""
  if isinstance(initializer, type):
    initializer = initializer()
  for kwargs in ({"dtype": dtypes.float32}, {}):
    try:
      value = initializer(shape, **kwargs)
    except TypeError:
      continue
    return _folded(value) if isinstance(value, ops.Tensor) else value
  return None


def _folded(tensor):
  """Returns the value of a constant or of a product of constants; None for others."""
  value = tensor_util.constant_value(tensor)
  if value is None and tensor.op.type == "Mul":
    # Ftrl of TensorFlow 2.x multiplies ones by its initial value.
    factors = [_folded(factor) for factor in tensor.op.inputs]
    if not any(factor is None for factor in factors):
      value = factors[0] * factors[1]
  return value
