# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Raw files: samples of 4-byte numbers, without a header.

A sample has labels, dense features and the keys of each slot: one, or the number of a
sparse input with `is_fixed_length`. All numbers are little-endian int32, and a dense
feature x is read as log(x + 1). With `float_label_dense`, labels and
dense features are float32, read unchanged.
"""

import numpy as np

from hugectr.data import batches
from hugectr.data import errors
from hugectr.data import fixed_length
from hugectr.data import native


class Source(object):
  """The samples of one file.

  Args:
    path: string.
    data: config's Data.
    samples: int, number of samples by the configuration.
    batch_size: int, samples per block.
    shuffle_seed: int, seed of the order of blocks, which differs in each pass; None:
      the file's order.
    threads: int, blocks that are read concurrently.
  """

  def __init__(self, path, data, samples, batch_size, shuffle_seed, threads):
    self._path = path
    self._data = data
    self._samples = samples
    self._batch_size = batch_size
    self._seed = shuffle_seed
    self._threads = threads
    self._passes = 0
    self._counts = fixed_length.counts_of(data)

  def _open(self, layouts, repeat, rank, ranks):
    data, counts = self._data, self._counts
    sizes = data.slot_sizes or [1 << 31] * len(counts)
    offsets = np.zeros([len(counts)], np.int64)
    if data.slot_sizes:
      offsets[1:] = np.cumsum(sizes)[:-1]
    stored = layouts
    if max(counts) > 1:
      data = fixed_length.stored(data, counts)
      stored = [l for each in fixed_length.stored_layouts(layouts, counts) for l in each]
      sizes, offsets = np.repeat(sizes, counts), np.repeat(offsets, counts)
    shape = native.Shape(data, stored, self._batch_size, repeat, rank, ranks,
                         self._threads)
    reader = native.open_raw(shape, self._path, self._samples,
                             bool(data.clause.get("float_label_dense")), sizes, offsets,
                             self._seed, self._passes)
    return reader if max(counts) == 1 else fixed_length.Reader(reader, layouts, counts)

  def reader(self, layouts, repeat, rank=0, ranks=1):
    """Returns a reader of batches from the beginning; see native.Reader.

    Args:
      layouts: list of batches.InputLayout.
      repeat: bool, whether the data starts again at its end.
      rank: int.
      ranks: int.

    Raises:
      DataError: the file does not exist, or has another size.
    """
    return self._open(layouts, repeat, rank, ranks)

  def chunks(self):
    """Returns an iterator over all samples once, a Chunk per block.

    Blocks are in the file's order or shuffled; samples keep their order within a block.

    Raises:
      DataError: the file does not exist, or has another size.
    """
    slots = sum(s.slot_num for s in self._data.sparse)
    found = native.chunks(self._open([batches.InputLayout(0, slots, True)], False, 0, 1))
    self._passes += 1
    return found


class Writer(object):
  """Writes a Raw file from chunks whose keys have no offsets.

  Args:
    path: string.
    data: config's Data.
  """

  def __init__(self, path, data):
    self._is_float = bool(data.clause.get("float_label_dense"))
    self._counts = fixed_length.counts_of(data)
    self._path = path
    self._file = open(path, "wb")

  def add(self, chunk):
    """Appends samples; raises DataError for values that a Raw file cannot hold."""
    keys = []
    for s, (slot, count) in enumerate(zip(chunk.slots, self._counts)):
      has = np.unique(np.diff(slot.offsets)).tolist() if slot.offsets is not None else [1]
      if batches.size_of(chunk) and has != [count]:
        raise errors.DataError(
            "%s: a Raw file holds one key per slot, or the number of a sparse input with "
            "is_fixed_length: expected %d in slot %d, got %d to %d" % (
                self._path, count, s, has[0], has[-1]))
      keys.append(slot.keys.reshape([-1, count]))
    keys = np.concatenate(keys, axis=1)
    if keys.size and not 0 <= keys.min() <= keys.max() < 1 << 31:
      raise errors.DataError("%s: a Raw file holds keys in [0, 2147483648), got %d to "
                             "%d" % (self._path, keys.min(), keys.max()))
    floats = [chunk.labels, chunk.dense]
    if self._is_float:
      parts = [np.ascontiguousarray(f, "<f4").view("<i4") for f in floats]
    else:
      parts = []
      for values, exact in ((chunk.labels, chunk.labels.astype(np.float64)),
                            (chunk.dense, np.expm1(chunk.dense.astype(np.float64)))):
        whole = np.rint(exact)
        # Logarithms in float32 are slightly inexact.
        if not np.allclose(exact, whole, rtol=1e-5, atol=1e-3):
          raise errors.DataError(
              "%s: labels, and dense features before the logarithm log(x + 1): expected "
              "integers, unless float_label_dense is true" % self._path)
        parts.append(whole.astype("<i4"))
    np.concatenate(parts + [keys.astype("<i4")], axis=1).tofile(self._file)

  def close(self):
    """Closes the file."""
    self._file.close()
