# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Norm files: a file list; each file has a header of eight int64, then records.

The header: 1 if records have checksums, else 0; number of records; label_dim;
dense_dim; slots; three reserved. A record: float32 labels and dense features, then for
each slot an int32 count and that many keys, uint32 (I32) or int64 (I64). With checksums
a record starts with an int32, its size without these 4 bytes and the last one, and ends
with a byte, the sum of those bytes modulo 256. Keys of different slots are different.
"""

import numpy as np

from hugectr.data import batches
from hugectr.data import errors
from hugectr.data import file_list
from hugectr.data import native

_HEADER = np.dtype("<i8")


class Source(object):
  """The samples of one file list.

  Args:
    path: string, the file list.
    data: config's Data.
    batch_size: int, samples per batch.
    batch_size: int, samples of a batch.
    threads: int, reading threads.

  Raises:
    DataError: the list cannot be read, or a file does not exist.
  """

  def __init__(self, path, data, key_type, batch_size, threads):
    self._data = data
    self._key_bytes = 8 if key_type == "I64" else 4
    self._batch_size = batch_size
    self._threads = threads
    self._paths = file_list.read(path)

  def reader(self, layouts, repeat, rank=0, ranks=1, tile=0):
    """Returns a reader of batches from the beginning; see native.Reader.

    Args:
      layouts: list of batches.InputLayout.
      repeat: bool, whether the data starts again at its end.
      rank: int.
      ranks: int.
      tile: int, bytes per read; 0: a fast default.

    Raises:
      DataError: a file does not exist, or its header does not match the configuration.
    """
    shape = native.Shape(self._data, layouts, self._batch_size, repeat, rank, ranks,
                         self._threads, tile)
    return native.open_norm(shape, self._paths, self._key_bytes,
                            self._data.clause.get("check", "None") == "Sum")

  def chunks(self, tile=0):
    """Returns an iterator over all samples once, a Chunk per batch, in the files' order.

    Raises:
      DataError: as in `reader`.
    """
    slots = sum(s.slot_num for s in self._data.sparse)
    return native.chunks(self.reader([batches.InputLayout(0, slots, True)], False,
                                     tile=tile))


def _records(chunk, key_words, with_sums):
  """Returns the bytes of a chunk's records."""
  size = batches.size_of(chunk)
  counts = np.stack([np.ones([size], np.int64) if s.offsets is None else
                     np.diff(s.offsets) for s in chunk.slots], axis=1)
  fixed = chunk.labels.shape[1] + chunk.dense.shape[1]
  lengths = fixed + (1 + counts * key_words).sum(axis=1)
  begins = np.zeros([size + 1], np.int64)
  np.cumsum(lengths, out=begins[1:])
  words = np.empty([begins[-1]], np.int32)
  floats = np.concatenate([chunk.labels, chunk.dense], axis=1).astype(np.float32)
  words[begins[:-1, None] + np.arange(fixed)] = floats.view(np.int32)
  place = begins[:-1] + fixed
  for s, slot in enumerate(chunk.slots):
    words[place] = counts[:, s]
    offsets = np.cumsum(counts[:, s]) - counts[:, s]
    at = np.repeat(place + 1 - offsets * key_words, counts[:, s]) + (
        np.arange(len(slot.keys)) * key_words)
    words[at] = (slot.keys & 0xffffffff).astype(np.uint32).view(np.int32)
    if key_words == 2:
      words[at + 1] = slot.keys >> 32
    place = place + 1 + counts[:, s] * key_words
  if not with_sums:
    return words.tobytes()
  payload, out = words.view(np.uint8), []
  for first, end in zip(begins[:-1] * 4, begins[1:] * 4):
    record = payload[first:end]
    out.append(np.array([end - first], "<i4").tobytes() + record.tobytes() +
               bytes([int(record.sum(dtype=np.uint8))]))
  return b"".join(out)


class Writer(object):
  """Writes a Norm file from chunks; keys of different slots must differ.

  Args:
    path: string.
    data: config's Data.
    key_type: "I32" or "I64".
  """

  def __init__(self, path, data, key_type):
    self._path = path
    self._key_words = 2 if key_type == "I64" else 1
    self._with_sums = data.clause.get("check", "None") == "Sum"
    self._header = np.array(
        [int(self._with_sums), 0, data.label_dim, data.dense_dim,
         sum(s.slot_num for s in data.sparse), 0, 0, 0], _HEADER)
    self._file = open(path, "wb")
    self._file.write(self._header.tobytes())

  def add(self, chunk):
    """Appends samples; raises DataError for keys that do not fit I32."""
    for slot in chunk.slots:
      if self._key_words == 1 and len(slot.keys) and not (
          0 <= slot.keys.min() <= slot.keys.max() < 1 << 32):
        raise errors.DataError("%s: keys %d to %d do not fit input_key_type I32" %
                               (self._path, slot.keys.min(), slot.keys.max()))
    self._file.write(_records(chunk, self._key_words, self._with_sums))
    self._header[1] += len(chunk.labels)

  def close(self):
    """Writes the number of records into the header, and closes the file."""
    self._file.seek(0)
    self._file.write(self._header.tobytes())
    self._file.close()
