# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Raw files: no header; per sample labels, dense features, a key per slot, 4 bytes each.

All numbers are int32, little-endian, and a dense feature x is read as log(x + 1). With
`float_label_dense` labels and dense features are float32, read as they are.
"""

import functools
import os

import numpy as np

from hugectr.data import ahead
from hugectr.data import batches
from hugectr.data import errors

_BYTES = 4


class Source(object):
  """The samples of one file.

  Args:
    path: string.
    data: config's Data.
    samples: int, how many the configuration says that there are.
    batch_size: int, samples of a block.
    shuffle_seed: int, of the order of blocks, another one each time through; None: the
      file's order.
    threads: int, blocks that are read at a time.

  Raises:
    DataError: the file is not there, or has another size.
  """

  def __init__(self, path, data, samples, batch_size, shuffle_seed, threads):
    self._path = path
    self._data = data
    self._samples = samples
    self._batch_size = batch_size
    self._seed = shuffle_seed
    self._threads = threads
    self._is_float = bool(data.clause.get("float_label_dense"))
    self._slots = sum(s.slot_num for s in data.sparse)
    self._width = data.label_dim + data.dense_dim + self._slots
    self._offsets = np.zeros([self._slots], np.int64)
    if data.slot_sizes:
      self._offsets[1:] = np.cumsum(data.slot_sizes)[:-1]
    try:
      size = os.path.getsize(path)
    except OSError as e:
      raise errors.DataError("%s: cannot be read: %s" % (path, e))
    if size != samples * self._width * _BYTES:
      raise errors.DataError(
          "%s: %d bytes, expected %d samples of %d bytes: %d labels, %d dense features and "
          "%d keys of 4 bytes" % (path, size, samples, self._width * _BYTES,
                                  data.label_dim, data.dense_dim, self._slots))

  def _fail(self, first, row, column, sentence, *args):
    record = first + row
    raise errors.DataError("%s: record %d, byte %d: %s" % (
        self._path, record, (record * self._width + column) * _BYTES, sentence % args))

  def _read(self, first, count):
    """Returns samples [first, first + count) as a Chunk."""
    with open(self._path, "rb") as f:
      f.seek(first * self._width * _BYTES)
      numbers = np.fromfile(f, "<i4", count * self._width)
    if numbers.size != count * self._width:
      raise errors.DataError("%s: ends at byte %d, it has become shorter" % (
          self._path, (first * self._width + numbers.size) * _BYTES))
    numbers = numbers.reshape([count, self._width])
    labels = self._data.label_dim
    dense_end = labels + self._data.dense_dim
    dense = numbers[:, labels:dense_end]
    if self._is_float:
      floats = numbers.view("<f4")
      found = floats[:, :labels].astype(np.float32), floats[:, labels:dense_end].astype(
          np.float32)
    else:
      if dense.size and dense.min() < 0:
        row, column = np.argwhere(dense < 0)[0]
        self._fail(first, row, labels + column, "dense feature %d, which must not be "
                   "negative: its logarithm is taken", dense[row, column])
      found = (numbers[:, :labels].astype(np.float32),
               np.log1p(dense.astype(np.float32)))
    return batches.Chunk(*found, slots=self._keys(numbers, first, dense_end))

  def _keys(self, numbers, first, dense_end):
    slots = []
    for s in range(self._slots):
      keys = numbers[:, dense_end + s].astype(np.int64)
      size = self._data.slot_sizes[s] if self._data.slot_sizes else 1 << 31
      wrong = keys.view(np.uint64) >= np.uint64(size)
      if wrong.any():
        row = int(np.argmax(wrong))
        self._fail(first, row, dense_end + s, "key %d of slot %d is not in [0, %d)",
                   keys[row], s, size)
      slots.append(batches.Slot(keys + self._offsets[s], None))
    return slots

  def chunks(self):
    """Returns an iterator of the samples once, a Chunk per block.

    The blocks are in the file's order or shuffled; samples keep their order in a block.
    """
    firsts = np.arange(0, self._samples, self._batch_size)
    if self._seed is not None:
      # The last block may be short: it stays the last, so that batches are blocks.
      np.random.RandomState(self._seed % (1 << 32)).shuffle(
          firsts[:self._samples // self._batch_size])
      self._seed += 1
    return ahead.in_order(
        (functools.partial(self._read, int(first),
                           min(self._batch_size, self._samples - int(first)))
         for first in firsts), self._threads)


class Writer(object):
  """Writes a Raw file from chunks whose keys have no offsets.

  Args:
    path: string.
    data: config's Data.
  """

  def __init__(self, path, data):
    self._is_float = bool(data.clause.get("float_label_dense"))
    self._path = path
    self._file = open(path, "wb")

  def add(self, chunk):
    """Appends samples; raises DataError for what such a file cannot hold."""
    if any(s.offsets is not None for s in chunk.slots):
      raise errors.DataError("%s: a Raw file holds one key per slot, and there are lists of "
                             "keys" % self._path)
    keys = np.stack([s.keys for s in chunk.slots], axis=1)
    if keys.size and not 0 <= keys.min() <= keys.max() < 1 << 31:
      raise errors.DataError("%s: a Raw file holds keys in [0, 2147483648), and there are "
                             "%d to %d" % (self._path, keys.min(), keys.max()))
    floats = [chunk.labels, chunk.dense]
    if self._is_float:
      parts = [np.ascontiguousarray(f, "<f4").view("<i4") for f in floats]
    else:
      parts = []
      for values, exact in ((chunk.labels, chunk.labels.astype(np.float64)),
                            (chunk.dense, np.expm1(chunk.dense.astype(np.float64)))):
        whole = np.rint(exact)
        # A logarithm in float32 is a little off.
        if not np.allclose(exact, whole, rtol=1e-5, atol=1e-3):
          raise errors.DataError(
              "%s: labels, and dense features before the logarithm log(x + 1), must be "
              "integers, unless float_label_dense is true" % self._path)
        parts.append(whole.astype("<i4"))
    np.concatenate(parts + [keys.astype("<i4")], axis=1).tofile(self._file)

  def close(self):
    """Ends the file."""
    self._file.close()
