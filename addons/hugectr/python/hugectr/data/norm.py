# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Norm files: a file list; each file a header of eight int64, then records.

The header: whether records have checksums (0 or 1), number of records, label_dim,
dense_dim, slots, three reserved. A record: float32 labels and dense features, then per
slot an int32 number of keys and the keys, uint32 (I32) or int64 (I64). With checksums a
record begins with an int32, the number of its bytes without these 4 and the last, and
ends with a byte, the sum of those bytes modulo 256. Keys of different slots differ.
"""

import os

import numpy as np

from hugectr.data import ahead
from hugectr.data import errors
from hugectr.data import file_list
from hugectr.data import norm_records

_HEADER = np.dtype("<i8")
_HEADER_BYTES = 64

# Bytes of a block: what is computed for it fits a processor's second cache.
_BLOCK = 1 << 18


class Source(object):
  """The samples of one file list.

  Args:
    path: string, the file list.
    data: config's Data.
    key_type: "I32" or "I64".
    threads: int, files that are read at a time.

  Raises:
    DataError: a file is not there, or its header does not fit the configuration.
  """

  def __init__(self, path, data, key_type, threads):
    self._data = data
    self._key_words = 2 if key_type == "I64" else 1
    self._threads = threads
    self._with_sums = data.clause.get("check", "None") == "Sum"
    self._slots = sum(s.slot_num for s in data.sparse)
    self._paths = file_list.read(path)
    self._records = [self._check_header(p) for p in self._paths]

  def _check_header(self, path):
    """Returns the number of records; raises DataError."""
    try:
      with open(path, "rb") as f:
        header = np.fromfile(f, _HEADER, _HEADER_BYTES // 8)
    except OSError as e:
      raise errors.DataError("%s: cannot be read: %s" % (path, e))
    if len(header) != _HEADER_BYTES // 8:
      raise errors.DataError("%s: %d bytes, expected a header of %d" %
                             (path, os.path.getsize(path), _HEADER_BYTES))
    for at, what, expected in (
        (0, "error_check, 1 if the JSON's check is Sum and else 0,", int(self._with_sums)),
        (2, "label_dim", self._data.label_dim), (3, "dense_dim", self._data.dense_dim),
        (4, "slot_num", self._slots)):
      if header[at] != expected:
        raise errors.DataError("%s: byte %d of the header: %s must be %d, got %d" %
                               (path, 8 * at, what, expected, header[at]))
    if header[1] < 0:
      raise errors.DataError("%s: byte 8 of the header: number_of_records is %d" %
                             (path, header[1]))
    return int(header[1])

  def _blocks(self, path, records):
    """Yields a file's records, a Chunk per block."""
    done, at, size = 0, _HEADER_BYTES, _BLOCK
    with open(path, "rb") as f:
      total = os.fstat(f.fileno()).st_size
      while done < records:
        f.seek(at)
        block = np.fromfile(f, np.uint8, size)
        chunk, count, used = self._parse(path, block, done, at, records - done)
        if count:
          yield chunk
        elif at + len(block) >= total:
          raise errors.DataError(
              "%s: record %d, byte %d: the file ends within the record, and its header "
              "says that there are %d" % (path, done, at, records))
        else:
          # A record larger than a block.
          size *= 2
        done += count
        at += used
    if at != total:
      raise errors.DataError("%s: byte %d: %d bytes follow the %d records" %
                             (path, at, total - at, records))

  def _parse(self, path, block, done, at, most):
    """Returns (Chunk, records, bytes) of the whole records of a block."""
    data, fixed = self._data, self._data.label_dim + self._data.dense_dim

    def fail(error, byte):
      raise errors.DataError("%s: record %d, byte %d: %s" % (
          path, done + error.record, at + byte, error))

    if self._with_sums:
      try:
        words, begins, used = norm_records.framed(block, most)
      except norm_records.RecordError as e:
        fail(e, e.word)
    else:
      words = block[:len(block) // 4 * 4].view(np.int32)
      begins = norm_records.starts(words, fixed, self._slots, self._key_words, most)
      used = int(begins[-1]) * 4
    if len(begins) == 1:
      return None, 0, 0
    try:
      chunk = norm_records.read(words, begins, data.label_dim, data.dense_dim,
                                self._slots, self._key_words)
    except norm_records.RecordError as e:
      # A frame has 5 bytes around a payload, 4 of them before it.
      fail(e, 4 * e.word + (5 * e.record + 4 if self._with_sums else 0))
    return chunk, len(begins) - 1, used

  def chunks(self):
    """Returns an iterator of the samples once, in the files' order."""
    return ahead.chained([self._blocks(p, r) for p, r in zip(self._paths, self._records)],
                         self._threads)


class Writer(object):
  """Writes a Norm file from chunks whose keys differ between slots.

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
    """Appends samples; raises DataError for keys that I32 does not hold."""
    for slot in chunk.slots:
      if self._key_words == 1 and len(slot.keys) and not (
          0 <= slot.keys.min() <= slot.keys.max() < 1 << 32):
        raise errors.DataError("%s: keys %d to %d do not fit input_key_type I32" %
                               (self._path, slot.keys.min(), slot.keys.max()))
    self._file.write(norm_records.written(chunk, self._key_words, self._with_sums))
    self._header[1] += len(chunk.labels)

  def close(self):
    """Writes the number of records into the header, and ends the file."""
    self._file.seek(0)
    self._file.write(self._header.tobytes())
    self._file.close()
