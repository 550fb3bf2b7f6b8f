# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Norm and Raw readers in a few lines of NumPy: the reference for the library."""

import ctypes

import numpy as np

from hugectr.data import batches
from hugectr.data import file_list

_libm = ctypes.CDLL("libm.so.6")
_libm.log1pf.restype, _libm.log1pf.argtypes = ctypes.c_float, [ctypes.c_float]


def log1p(x):
  """Returns float32 log(1 + x) with the C library's bits.

  NumPy's own function differs in the last bit on processors with AVX-512.
  """
  return np.vectorize(_libm.log1pf, otypes=[np.float32])(np.asarray(x, np.float32))


class Norm(object):
  """The samples of valid Norm files, record by record.

  Args:
    path: string, the file list.
    data: config's Data.
    key_type: "I32" or "I64".
  """

  def __init__(self, path, data, key_type):
    self._paths = file_list.read(path)
    self._data = data
    self._kind = np.dtype("<i8" if key_type == "I64" else "<u4")
    self._with_sums = data.clause["check"] == "Sum"

  def _record(self, raw, at):
    """Returns (labels, dense, [keys of each slot], start of the next record)."""
    at += 4 * self._with_sums
    fixed = self._data.label_dim + self._data.dense_dim
    numbers, keys = np.frombuffer(raw, "<f4", fixed, at), []
    at += 4 * fixed
    for _ in range(sum(s.slot_num for s in self._data.sparse)):
      count = int(np.frombuffer(raw, "<i4", 1, at)[0])
      keys.append(np.frombuffer(raw, self._kind, count, at + 4).astype(np.int64))
      at += 4 + count * self._kind.itemsize
    return (numbers[:self._data.label_dim], numbers[self._data.label_dim:], keys,
            at + self._with_sums)

  def chunks(self):
    """Yields a Chunk per record."""
    for path in self._paths:
      with open(path, "rb") as f:
        raw = f.read()
      at = 64
      while at < len(raw):
        labels, dense, keys, at = self._record(raw, at)
        yield batches.Chunk(labels[None], dense[None], [
            batches.Slot(k, None if len(k) == 1 else np.array([0, len(k)]))
            for k in keys])


class Raw(object):
  """The samples of a valid Raw file, block by block.

  Args:
    path: string.
    data: config's Data.
    batch_size: int, samples per block.
    shuffle_seed: int, seed of the order of blocks; None: the file's order.
  """

  def __init__(self, path, data, batch_size, shuffle_seed):
    self._path = path
    self._data = data
    self._batch_size = batch_size
    self._seed = shuffle_seed

  def chunks(self):
    """Yields a Chunk per block, in another order in each call."""
    data = self._data
    slots, labels = sum(s.slot_num for s in data.sparse), data.label_dim
    end = labels + data.dense_dim
    rows = np.fromfile(self._path, "<i4").reshape([-1, end + slots])
    firsts = np.arange(0, len(rows), self._batch_size)
    if self._seed is not None:
      np.random.RandomState(self._seed % (1 << 32)).shuffle(
          firsts[:len(rows) // self._batch_size])
      self._seed += 1
    offsets = np.cumsum([0] + list(data.slot_sizes))
    for first in firsts:
      block = rows[first:first + self._batch_size]
      if data.clause["float_label_dense"]:
        floats = block[:, :end].copy().view("<f4")
      else:
        floats = np.concatenate([block[:, :labels].astype(np.float32),
                                 log1p(block[:, labels:end])], axis=1)
      yield batches.Chunk(floats[:, :labels], floats[:, labels:], [
          batches.Slot(block[:, end + s].astype(np.int64) + offsets[s], None)
          for s in range(slots)])
