# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes samples in a configuration's format: files and a file list, or one file."""

import os

import numpy as np

from hugectr.data import batches
from hugectr.data import norm
from hugectr.data import parquet_writer
from hugectr.data import raw

_NAMES = {"Norm": "%d.data", "Parquet": "%d.parquet"}


def offsets(data):
  """Returns the offset of the keys of each slot, int64 `[slots]`."""
  slots = sum(s.slot_num for s in data.sparse)
  found = np.zeros([slots], np.int64)
  if data.slot_sizes:
    found[1:] = np.cumsum(data.slot_sizes)[:-1]
  return found


def moved(chunk, amounts):
  """Returns a chunk with an amount added to the keys of each slot."""
  return chunk._replace(slots=[batches.Slot(s.keys + a, s.offsets)
                               for s, a in zip(chunk.slots, amounts)])


def _writer(path, data, key_type, group):
  if data.format == "Norm":
    return norm.Writer(path, data, key_type)
  if data.format == "Raw":
    return raw.Writer(path, data)
  return parquet_writer.Writer(path, group)


def _pieces(chunks, rows_per_file):
  """Yields (number of the file, Chunk)."""
  number, rows = 0, 0
  for chunk in chunks:
    at, size = 0, batches.size_of(chunk)
    while at < size:
      take = min(size - at, rows_per_file - rows)
      yield number, batches.part(chunk, at, at + take)
      at += take
      rows += take
      if rows == rows_per_file:
        number, rows = number + 1, 0


def write(path, data, key_type, chunks, rows_per_file, group=65536):
  """Writes samples at the paths that a configuration reads.

  In Norm files keys of different slots differ: the sums of slot_size_array are added
  here. In Raw and Parquet files the keys of each slot start at 0, and readers add the
  sums.

  Args:
    path: string, path of the file list to write, in the folder of its files; for Raw,
      of the file.
    data: the config's Data, which determines the format.
    key_type: "I32" or "I64".
    chunks: iterable of Chunk whose keys have no offsets.
    rows_per_file: int, samples per file; Raw has one file.
    group: int, largest number of rows per row group of a Parquet file.

  Returns:
    The number of samples.

  Raises:
    DataError, ValueError: samples that the format cannot hold.
    OSError: a file cannot be written.
  """
  folder = os.path.dirname(path) or "."
  os.makedirs(folder, exist_ok=True)
  files, writer, total = [], None, 0
  if data.format == "Norm":
    chunks = (moved(chunk, offsets(data)) for chunk in chunks)
  if data.format == "Raw":
    rows_per_file = 1 << 62
  try:
    for number, chunk in _pieces(chunks, rows_per_file):
      if number == len(files):
        if writer is not None:
          writer.close()
        name = path if data.format == "Raw" else os.path.join(
            folder, _NAMES[data.format] % number)
        writer = _writer(name, data, key_type, group)
        files.append([name, 0])
      writer.add(chunk)
      files[-1][1] += batches.size_of(chunk)
      total += batches.size_of(chunk)
  finally:
    if writer is not None:
      writer.close()
  if data.format != "Raw":
    with open(path, "w") as f:
      f.write("%d\n" % len(files))
      f.writelines(name + "\n" for name, _ in files)
  if data.format == "Parquet":
    parquet_writer.write_metadata(folder, data, [(os.path.basename(n), r)
                                                 for n, r in files])
  return total
