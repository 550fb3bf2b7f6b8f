# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The contents of an eager table as arrays: read, checked and replaced as a whole."""

import contextlib
import threading

import numpy as np

from embedding_variable.checkpoint_format import tensor_names
from embedding_variable.ops import checkpoint_ops
from embedding_variable.ops import handle_ops
from embedding_variable.ops import row_ops
from embedding_variable.tf_names import math_ops

DEFAULT_ROWS = tensor_names.DEFAULT_ROWS.name

# Columns with an element per key that has a row.
OF_KEYS = (tensor_names.KEYS, tensor_names.VALUES, tensor_names.VERSIONS,
           tensor_names.FREQS)

_OPTIONAL = (tensor_names.VERSIONS, tensor_names.FREQS) + tensor_names.FILTERED

_NONE = np.zeros([0], np.int64)


class TableRows(np.ndarray):
  """The rows of a table as an array `[N, dim]` that also has the keys of the rows.

  A copy of the whole array has them too, and so has one that was pickled. The result of
  arithmetic or of an index has not: its `contents` is None.

  Attributes:
    contents: dict, the other columns of the table as `read` returns them; or None.
  """

  contents = None

  def __new__(cls, contents):
    rows = np.array(contents[tensor_names.VALUES]).view(cls)
    rows.contents = {name: array for name, array in contents.items()
                     if name != tensor_names.VALUES}
    return rows

  @property
  def keys(self):
    """The keys of the rows, `[N]`; None if the array is not that of a whole table."""
    return None if self.contents is None else self.contents[tensor_names.KEYS]

  def copy(self, order="C"):
    """Returns a copy, which has the keys."""
    copied = super(TableRows, self).copy(order)
    copied.contents = self.contents
    return copied

  def __copy__(self):
    return self.copy()

  def __deepcopy__(self, memo):
    del memo
    return self.copy()

  def __reduce__(self):
    if self.contents is None:
      return np.array, (np.asarray(self),)
    return TableRows, (dict(self.contents, **{tensor_names.VALUES: np.asarray(self)}),)


def rows_of(table):
  """Returns the `TableRows` of an eager table."""
  return TableRows(read(table))


def replace_rows(table, rows):
  """Replaces the contents of a table by a `TableRows`, see `replace`.

  Raises:
    TypeError: `rows` has no keys.
    ValueError: as for `check`.
  """
  replace(table, contents_of(table, rows))


def contents_of(table, rows):
  """Returns the contents that a `TableRows` has, once they are checked.

  Raises:
    TypeError: `rows` has no keys.
    ValueError: as for `check`.
  """
  if getattr(rows, "keys", None) is None or not isinstance(rows, TableRows):
    raise TypeError(
        "embedding variable '%s': expected the array of a whole table, as get_weights() "
        "returns it, got %s without keys. To change single rows, call sok.assign" %
        (table.op.name, type(rows).__name__))
  contents = dict(rows.contents, **{tensor_names.VALUES: np.asarray(rows)})
  check(table, contents)
  return contents


def read(table):
  """Returns a dict of arrays: the contents of a table without slots, at one moment.

  The names are columns of checkpoints. Versions, frequencies and what a filter counts
  are missing if the table does not record them.
  """
  found = checkpoint_ops.export_table(table.handle)
  tensors = {
      tensor_names.KEYS: math_ops.cast(found.keys, table.key_dtype),
      tensor_names.VALUES: found.values,
      DEFAULT_ROWS: checkpoint_ops.default_rows(table.handle),
      tensor_names.VERSIONS: found.versions,
      tensor_names.FREQS: found.frequencies,
      tensor_names.KEYS_FILTERED: math_ops.cast(found.filtered.keys, table.key_dtype),
      tensor_names.VERSIONS_FILTERED: found.filtered.versions,
      tensor_names.FREQS_FILTERED: found.filtered.frequencies,
  }
  arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
  return {name: array for name, array in arrays.items()
          if name not in _OPTIONAL or len(array)}


def check(table, contents):
  """Raises ValueError unless a dict of arrays can be the contents of a table."""
  for name in (tensor_names.VALUES, DEFAULT_ROWS):
    shape = contents[name].shape
    if len(shape) != 2 or shape[1] != table.dim:
      raise ValueError("embedding variable '%s': expected %s of shape [N, %d], got %s" %
                       (table.op.name, name, table.dim, list(shape)))
  counts = [len(contents[name]) for name in (tensor_names.KEYS, tensor_names.VALUES)]
  if counts[0] != counts[1]:
    raise ValueError("embedding variable '%s': got %d keys and %d rows" %
                     (table.op.name, counts[0], counts[1]))


def columns(table):
  """Returns {slot: initial value} of all slots that an eager table has."""
  return dict(table.restored_columns, **table.slot_columns)


def replace(table, contents):
  """Replaces the contents of a table; keys that it had keep their slots.

  Args:
    table: eager embedding variable.
    contents: dict of arrays, as `read` returns it; all keys are this rank's.

  Raises:
    ValueError: as for `check`.
  """
  check(table, contents)
  handle, initials = table.handle, columns(table)
  keys = contents[tensor_names.KEYS].astype(np.int64)
  is_initialized = bool(handle_ops.is_initialized(handle))
  slots = []
  if initials and is_initialized:
    slots = row_ops.read_rows(handle, keys, list(initials), list(initials.values()))[1]
  if not is_initialized or not np.array_equal(
      checkpoint_ops.default_rows(handle).numpy(), contents[DEFAULT_ROWS]):
    handle_ops.initialize(handle, contents[DEFAULT_ROWS])
  checkpoint_ops.import_table(
      handle, keys, contents[tensor_names.VALUES],
      contents.get(tensor_names.VERSIONS, _NONE), contents.get(tensor_names.FREQS, _NONE),
      slots, list(initials)[:len(slots)], list(initials.values())[:len(slots)],
      clear=True)
  filtered = [contents.get(name, _NONE) for name in tensor_names.FILTERED]
  checkpoint_ops.import_filtered(handle, filtered[0].astype(np.int64), *filtered[1:])


_local = threading.local()


@contextlib.contextmanager
def dense_reads():
  """Context in which an eager table is converted to a tensor: its rows, `[N, dim]`."""
  before = reads_dense()
  _local.dense = True
  try:
    yield
  finally:
    _local.dense = before


def reads_dense():
  """Returns whether `dense_reads` is open in this thread."""
  return getattr(_local, "dense", False)
