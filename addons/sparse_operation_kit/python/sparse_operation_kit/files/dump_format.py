# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The file format of SOK's dumped tables.

In a folder, for each table:

  <table>-key                    N keys
  <table>-weight                 N x D float32, row-major, in the order of the keys
  <table>-<optimizer>-<slot>     N x D float32, for each slot; N of a slot with
                                 one number per row
  <table>-default_rows           R x D float32: key k without a row reads row
                                 floormod(k, R). SOK does not write this file,
                                 and tables of fixed size have none
  <table>-sums                   sizes and checksums of the others; written by
                                 this package only (replaced_together.py)

<table> is the variable's name with each punctuation character replaced by "_". A file
is a header of 296 bytes, then the array in little-endian order:

  0    256 bytes  blank (reserved for a name)
"""

import collections
import os
import string
import struct

import numpy as np

from embedding_variable.checkpoint_format import replaced_together

HEADER_BYTES = 296
KEYS, ROWS, SLOT = 0, 1, 2

DTYPES = tuple(np.dtype(t) for t in (
    "<i4", "<i8", "<u4", "<u8", "<f2", "<f4", "<f8"))

_NAME_BYTES = 256
_SLOT_BYTES = 32
_NUMBER = struct.Struct(">I")

_TABLE_NAMES = str.maketrans({c: "_" for c in string.punctuation})

# Optimizer names in file names: the longest one contained in the class name is used.
_OPTIMIZERS = ("SGD", "Adamax", "Adadelta", "Adagrad", "Ftrl", "Adam", "RowWiseAdagrad")

# kind: KEYS, ROWS or SLOT. slot: string. dtype: type of the array. count: its length.
Header = collections.namedtuple("Header", ["kind", "slot", "dtype", "count"])


def table_name(variable_name):
  """Returns the prefix of a variable's file names."""
  return variable_name.translate(_TABLE_NAMES)


def optimizer_name(class_name):
  """Returns the name of an optimizer class in file names."""
  found = [name for name in _OPTIMIZERS if name in class_name]
  if found:
    return max(found, key=len)
  for ending in ("Optimizer",):
    if class_name.endswith(ending) and class_name != ending:
      return class_name[:-len(ending)]
  return class_name


def optimizer_names_to_load(class_name):
  """Returns the optimizer names to look for in file names, the right one first.

  Upstream uses the last name of its list that the class name contains, so it names
  files of Adamax after Adam.
  """
  names = [optimizer_name(class_name)]
  upstream = [name for name in _OPTIMIZERS if name in class_name][-1:]
  return names + [name for name in upstream if name not in names]


def key_path(folder, table):
  return os.path.join(folder, table + "-key")


def rows_path(folder, table):
  return os.path.join(folder, table + "-weight")


def default_rows_path(folder, table):
  return os.path.join(folder, table + "-default_rows")


def sums_path(folder, table):
  return os.path.join(folder, table + "-sums")


def slot_path(folder, table, optimizer, slot):
  return os.path.join(folder, "%s-%s-%s" % (table, optimizer, slot))


def header(kind, dtype, slot=""):
  """Returns the header of 296 bytes before an array.

  Raises:
    ValueError: the slot's name has more than 32 bytes.
  """
  name = slot.encode("utf-8")
  if len(name) > _SLOT_BYTES:
    raise ValueError("sok.dump: the name of slot '%s' has %d bytes, at most %d" %
                     (slot, len(name), _SLOT_BYTES))
  return (b" " * _NAME_BYTES + _NUMBER.pack(kind) + name.rjust(_SLOT_BYTES) +
          _NUMBER.pack(DTYPES.index(np.dtype(dtype).newbyteorder("<"))))


def read_header(path, kind):
  """Returns the Header of a file.

  Args:
    path: string.
    kind: KEYS, ROWS or SLOT, the expected kind.

  Raises:
    ValueError: the file does not exist or is of another kind.
  """
  try:
    size = os.path.getsize(path)
    with open(path, "rb") as f:
      data = f.read(HEADER_BYTES)
  except OSError as e:
    raise ValueError("sok.load: %s cannot be read: %s" % (path, e))
  if len(data) < HEADER_BYTES:
    raise ValueError("sok.load: %s has %d bytes, expected a header of %d" %
                     (path, len(data), HEADER_BYTES))
  found, = _NUMBER.unpack_from(data, _NAME_BYTES)
  if found != kind:
    raise ValueError("sok.load: %s is a file of type %d, expected type %d" %
                     (path, found, kind))
  index, = _NUMBER.unpack_from(data, HEADER_BYTES - _NUMBER.size)
  if index >= len(DTYPES):
    raise ValueError("sok.load: %s has dtype index %d, expected at most %d" %
                     (path, index, len(DTYPES) - 1))
  dtype = DTYPES[index]
  if (size - HEADER_BYTES) % dtype.itemsize:
    raise ValueError("sok.load: %s ends within a number: %d bytes of %s" %
                     (path, size - HEADER_BYTES, dtype.name))
  at = _NAME_BYTES + _NUMBER.size
  try:
    slot = data[at:at + _SLOT_BYTES].decode("utf-8").strip()
  except UnicodeDecodeError as e:
    raise ValueError("sok.load: %s: the name of its slot, at byte %d, is not UTF-8" %
                     (path, at + e.start))
  return Header(found, slot, dtype, (size - HEADER_BYTES) // dtype.itemsize)


def open_array(path, kind):
  """Returns a file's array, with one axis, as a memory map.

  Raises:
    ValueError: as in `read_header`.
  """
  found = read_header(path, kind)
  if not found.count:
    return np.zeros([0], found.dtype)
  return np.memmap(path, found.dtype, "r", HEADER_BYTES, (found.count,))


class Writer(replaced_together.Writer):
  """Writes one file under a temporary name beside its final path."""

  def __init__(self, path, kind, dtype, slot=""):
    super(Writer, self).__init__(path)
    self._dtype = np.dtype(dtype).newbyteorder("<")
    self.write(header(kind, dtype, slot))

  def append(self, array):
    """Appends numbers to the file."""
    self.write(np.ascontiguousarray(array, self._dtype).tobytes())
