# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Readers of Norm and Raw files by the C++ library, without Python's lock.

A batch's arrays use the library's memory without a copy. The library reuses the memory
when all of the batch's arrays are gone.
"""

import ctypes
import os
import threading

import numpy as np

from hugectr.data import batches
from hugectr.data import errors

_LIBRARY = "libhugectr_reader.so"

# Largest number of finished batches that wait.
_DEPTH = 4

# Milliseconds after which a thread that waits for a batch checks for signals.
_LOOK = 100

_lock = threading.Lock()
_loaded = None

_INT = ctypes.c_int64
_INTS = ctypes.POINTER(_INT)


class _Options(ctypes.Structure):
  """hugectr_options of c_api.h."""
  _fields_ = [("label_dim", _INT), ("dense_dim", _INT), ("slots", _INT), ("inputs", _INTS),
              ("num_inputs", _INT), ("batch_size", _INT), ("repeat", _INT), ("rank", _INT),
              ("ranks", _INT), ("threads", _INT), ("depth", _INT), ("tile", _INT)]


class _Raw(ctypes.Structure):
  """hugectr_raw of c_api.h."""
  _fields_ = [("path", ctypes.c_char_p), ("samples", _INT), ("is_float", _INT),
              ("sizes", _INTS), ("offsets", _INTS), ("is_shuffled", _INT), ("seed", _INT),
              ("first_pass", _INT)]


class _Keys(ctypes.Structure):
  """hugectr_keys of c_api.h."""
  _fields_ = [("keys", ctypes.c_void_p), ("num_keys", _INT), ("splits", ctypes.c_void_p),
              ("num_splits", _INT), ("has_one_key", _INT)]


class _Batch(ctypes.Structure):
  """hugectr_batch of c_api.h."""
  _fields_ = [("handle", ctypes.c_void_p), ("size", _INT), ("global_size", _INT),
              ("labels", ctypes.c_void_p), ("dense", ctypes.c_void_p)]


class _Piece(ctypes.Structure):
  """hugectr_piece of c_api.h."""
  _fields_ = [("count", _INT),
              ("labels", ctypes.POINTER(ctypes.c_void_p)), ("labels_stride", _INT),
              ("dense", ctypes.POINTER(ctypes.c_void_p)), ("dense_stride", _INT),
              ("keys", ctypes.POINTER(ctypes.c_void_p)), ("added", _INTS)]


def library_path():
  """Returns the path of the library.

  In a wheel it is in this module's folder; in a program run by Bazel, in the reader's
  folder of the source tree layout.

  Raises:
    ImportError: it is in neither folder.
  """
  folder = os.path.dirname(os.path.abspath(__file__))
  addon = os.path.dirname(os.path.dirname(os.path.dirname(folder)))
  candidates = [os.path.join(folder, _LIBRARY), os.path.join(addon, "reader", _LIBRARY)]
  for path in candidates:
    if os.path.exists(path):
      return path
  raise ImportError("%s was not found (looked at: %s). Remedy: install the wheel, or build "
                    "//addons/hugectr/reader:%s and run through Bazel." %
                    (_LIBRARY, ", ".join(candidates), _LIBRARY))


def _load():
  """Returns the library; loads it once."""
  global _loaded
  with _lock:
    if _loaded is None:
      library = ctypes.CDLL(library_path())
      pointer = ctypes.c_void_p
      for name, result, arguments in (
          ("error", ctypes.c_char_p, []),
          ("open_norm", pointer, [ctypes.POINTER(_Options), ctypes.POINTER(ctypes.c_char_p),
                                  _INT, _INT, _INT]),
          ("open_raw", pointer, [ctypes.POINTER(_Options), ctypes.POINTER(_Raw)]),
          ("next", ctypes.c_int, [pointer, _INT, ctypes.POINTER(_Batch),
                                  ctypes.POINTER(_Keys)]),
          ("open_pool", pointer, [ctypes.POINTER(_Options)]),
          ("close_pool", None, [pointer]),
          ("join", ctypes.c_int, [pointer, ctypes.POINTER(_Piece), _INT, _INT,
                                  ctypes.POINTER(_Batch), ctypes.POINTER(_Keys)]),
          ("first_outside", _INT, [pointer, _INT, _INT]),
          ("ready", _INT, [pointer]), ("release", None, [pointer]),
          ("close", None, [pointer])):
        function = getattr(library, "hugectr_" + name)
        function.restype, function.argtypes = result, arguments
      _loaded = library
    return _loaded


class _Owner(object):
  """A batch of the library, released when no array uses it."""

  def __init__(self, handle, release):
    self._handle = handle
    self._release = release

  def __del__(self):
    self._release(self._handle)


class _Memory(object):
  """Memory of a batch with NumPy's array interface."""

  def __init__(self, owner, place, shape, kind, is_read_only=False):
    self._owner = owner
    self.__array_interface__ = {"data": (place, is_read_only), "shape": shape,
                                "typestr": kind, "version": 3}


class Shape(object):
  """The contents of a sample, and how batches are cut; shared by all readers of a source.

  Args:
    data: config's Data.
    layouts: list of batches.InputLayout.
    batch_size: int of at least 1, samples of all ranks together.
    repeat: bool, whether the data starts again at its end, within a batch.
    rank: int.
    ranks: int.
    threads: int of at least 1, reading threads.
    tile: int, bytes per read of a thread; 0: a fast default.
  """

  def __init__(self, data, layouts, batch_size, repeat, rank, ranks, threads, tile=0):
    self.layouts = list(layouts)
    self.label_dim = data.label_dim
    self.dense_dim = data.dense_dim
    self.slots = sum(s.slot_num for s in data.sparse)
    self._inputs = _ints([n for layout in self.layouts for n in layout])
    self.options = _Options(
        self.label_dim, self.dense_dim, self.slots, self._inputs, len(self.layouts),
        batch_size, bool(repeat), rank, ranks, threads, _DEPTH, tile)


def _batch_of(shape, batch, keys):
  """Converts a batch of the library, a _Batch and its _Keys, to a batches.Batch."""
  owner = _Owner(batch.handle, _load().hugectr_release)
  size, inputs = batch.size, []

  def array(place, dims, kind, is_read_only=False):
    return np.asarray(_Memory(owner, place, dims, kind, is_read_only))

  for layout, found in zip(shape.layouts, keys):
    dims = (layout.count, size + 1) if layout.is_slot_major else (found.num_splits,)
    inputs.append(batches.Keys(
        array(found.keys, (found.num_keys,), "<i8"),
        # Splits of samples with one key per slot are shared between batches.
        array(found.splits, dims, "<i8", bool(found.has_one_key))))
  return batches.Batch(size, array(batch.labels, (size, shape.label_dim), "<f4"),
                       array(batch.dense, (size, shape.dense_dim), "<f4"), inputs,
                       batch.global_size)


def _place(array):
  """Returns the address of an array's data."""
  return array.__array_interface__["data"][0]


def _places(arrays, kind):
  """Returns (addresses of the arrays' data, objects that keep them alive)."""
  arrays = [np.ascontiguousarray(a, kind) for a in arrays]
  return (ctypes.c_void_p * len(arrays))(*[_place(a) for a in arrays]), arrays


def _float_places(numbers):
  """Describes float32 [N, width] or batches.FloatColumns by columns.

  Returns (start of each column, distance of consecutive samples, objects that keep them
  alive).
  """
  if isinstance(numbers, batches.FloatColumns):
    places, arrays = _places(numbers.columns, np.float32)
    return places, 1, arrays
  rows = np.ascontiguousarray(numbers, np.float32)
  width = rows.shape[1]
  places = [_place(rows) + rows.itemsize * k for k in range(width)]
  return (ctypes.c_void_p * width)(*places), width, rows


def first_outside(keys, size):
  """Returns the position of the first key outside [0, size); None if there is none.

  Args:
    keys: int64 [N], contiguous.
    size: int.
  """
  found = _load().hugectr_first_outside(_place(keys), len(keys), size)
  return None if found < 0 else found


class Joiner(object):
  """Makes batches of Chunks. Not thread-safe.

  Args:
    shape: Shape.
  """

  def __init__(self, shape):
    self._shape = shape
    self._library = _load()
    self._pool = self._library.hugectr_open_pool(shape.options)

  def batch_of(self, chunks, global_size):
    """Concatenates Chunks into a batches.Batch.

    Args:
      chunks: list of batches.Chunk.
      global_size: int, samples of all ranks together.
    """
    if any(slot.offsets is not None for chunk in chunks for slot in chunk.slots):
      return batches.batch_of(batches.joined([batches.plain(c) for c in chunks]),
                              self._shape.layouts, global_size)
    pieces, held = (_Piece * len(chunks))(), []
    for piece, chunk in zip(pieces, chunks):
      piece.count = batches.size_of(chunk)
      piece.labels, piece.labels_stride, labels = _float_places(chunk.labels)
      piece.dense, piece.dense_stride, dense = _float_places(chunk.dense)
      piece.keys, keys = _places([s.keys for s in chunk.slots], np.int64)
      piece.added = _ints([s.added for s in chunk.slots])
      held.append((labels, dense, keys))
    batch, keys = _Batch(), (_Keys * len(self._shape.layouts))()
    if self._library.hugectr_join(self._pool, pieces, len(pieces), global_size, batch,
                                  keys) != 1:
      raise MemoryError(self._library.hugectr_error().decode("utf-8"))
    return _batch_of(self._shape, batch, keys)

  def __del__(self):
    self._library.hugectr_close_pool(self._pool)


def _ints(numbers):
  return (_INT * len(numbers))(*[int(n) for n in numbers])


class Reader(object):
  """Reads one source from its beginning, by threads that read ahead of the caller.

  Not thread-safe: one thread takes batches and closes the reader.

  Args:
    shape: Shape.
    handle: the library's reader, or None if it could not be opened.

  Raises:
    DataError: it could not be opened.

  Attributes:
    waits: int, number of `next` calls that had to wait for a batch.
  """

  def __init__(self, shape, handle):
    self._library = _load()
    self._shape = shape
    self._handle = handle
    self.waits = 0
    if handle is None:
      self._fail()

  def _fail(self):
    raise errors.DataError(self._library.hugectr_error().decode("utf-8"))

  def next(self):
    """Returns the next batches.Batch, waiting for it; None at the end of the data.

    Raises:
      DataError: the data cannot be read; every further call raises it too.
    """
    batch, keys = _Batch(), (_Keys * len(self._shape.layouts))()
    if not self._library.hugectr_ready(self._handle):
      self.waits += 1
    while True:
      found = self._library.hugectr_next(self._handle, _LOOK, batch, keys)
      if found == 1:
        return _batch_of(self._shape, batch, keys)
      if found == 0:
        return None
      if found < 0:
        self._fail()

  def close(self):
    """Stops the threads and waits for them. Arrays of batches stay valid."""
    handle, self._handle = self._handle, None
    if handle is not None:
      self._library.hugectr_close(handle)

  def __del__(self):
    self.close()


def open_norm(shape, paths, key_bytes, with_sums):
  """Returns a Reader of Norm files.

  Args:
    shape: Shape.
    paths: list of strings.
    key_bytes: 4 or 8.
    with_sums: bool, whether records have checksums.

  Raises:
    DataError: a file cannot be read, or its header does not match.
  """
  names = (ctypes.c_char_p * len(paths))(*[os.fsencode(p) for p in paths])
  return Reader(shape, _load().hugectr_open_norm(
      shape.options, names, len(paths), key_bytes, with_sums))


def open_raw(shape, path, samples, is_float, sizes, offsets, seed, first_pass=0):
  """Returns a Reader of a Raw file with blocks of one batch each.

  Args:
    shape: Shape.
    path: string.
    samples: int, number of samples in the file.
    is_float: bool, whether labels and dense features are float32.
    sizes: list of ints, number of keys per slot.
    offsets: list of ints, offsets to add to the keys of each slot.
    seed: int, seed of the order of blocks; None: the file's order.
    first_pass: int, number of previous passes: each pass has its own order.

  Raises:
    DataError: the file cannot be read, or has another size.
  """
  raw = _Raw(os.fsencode(path), samples, is_float, _ints(sizes), _ints(offsets),
             seed is not None, (seed or 0) % (1 << 32), first_pass)
  return Reader(shape, _load().hugectr_open_raw(shape.options, raw))


def chunks(reader):
  """Yields a reader's batches as Chunks. Its one input must be all slots, slot-major."""
  try:
    while True:
      batch = reader.next()
      if batch is None:
        return
      (keys, splits), slots, at = batch.inputs[0], [], 0
      for offsets in splits:
        mine = keys[at:at + offsets[-1]]
        at += offsets[-1]
        has_one = len(mine) == batch.size and (np.diff(offsets) == 1).all()
        slots.append(batches.Slot(mine, None if has_one else offsets))
      yield batches.Chunk(batch.labels, batch.dense, slots)
  finally:
    reader.close()
