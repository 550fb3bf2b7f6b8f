# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Parquet files as NVTabular writes them: a file list, with _metadata.json in its folder."""

import collections
import functools
import itertools
import json
import os
import threading

import numpy as np

from hugectr.data import ahead
from hugectr.data import arrow
from hugectr.data import batches
from hugectr.data import errors
from hugectr.data import file_list
from hugectr.data import native
from hugectr.data import parquet_columns
from hugectr.data import reader as readers

# I32 keys are in [0, this).
_I32_LIMIT = 1 << 32

# Bytes of a column per read. A buffer for a whole row group would cause page faults.
_BUFFER = 1 << 16

# Largest number of concurrently read parts of a row group. More columns would not stay
# in the CPU caches until they are joined.
_PARTS = 8

# labels, conts, cats: lists of (name, index or None). rows: dict from file name to
# number of rows.
Metadata = collections.namedtuple("Metadata", ["labels", "conts", "cats", "rows"])


def read_metadata(folder):
  """Returns the Metadata of a folder's _metadata.json.

  Raises:
    DataError: it is missing or invalid; the text has the path.
  """
  path = os.path.join(folder, "_metadata.json")
  try:
    with open(path, encoding="utf-8-sig") as f:  # may start with a byte-order mark
      found = json.load(f)
    lists = []
    for key in ("labels", "conts", "cats"):
      lists.append([(str(c["col_name"]), c.get("index")) for c in found.get(key, [])])
    rows = {os.path.basename(str(s["file_name"])): int(s["num_rows"])
            for s in found.get("file_stats", [])}
  except OSError as e:
    raise errors.DataError("%s: cannot be read: %s" % (path, e))
  except (ValueError, KeyError, TypeError, AttributeError) as e:
    raise errors.DataError(
        "%s: expected {\"file_stats\": [{\"file_name\", \"num_rows\"}], \"labels\": "
        "[{\"col_name\", \"index\"}], \"conts\": [...], \"cats\": [...]}: %s: %s" %
        (path, type(e).__name__, e))
  if not lists[0] or not lists[2]:
    raise errors.DataError("%s: labels and cats must each name a column" % path)
  return Metadata(*(lists + [rows]))


class Source(object):
  """The samples of one file list.

  Args:
    path: string, the file list.
    data: config's Data.
    key_type: "I32" or "I64".
    batch_size: int, samples per batch.
    threads: int, reading threads. One more thread makes batches, and reads too if there
      is a CPU for it.

  Raises:
    DataError: an error in the list, the metadata, the files or their columns.
  """

  def __init__(self, path, data, key_type, batch_size, threads):
    self._data = data
    self._batch_size = batch_size
    self._threads = threads
    # The thread that makes batches mostly waits for row groups.
    self._decoders = max(threads, min(threads + 1, os.cpu_count() or 1))
    self._limit = _I32_LIMIT if key_type == "I32" else None
    self._paths = file_list.read(path)
    self._metadata = read_metadata(os.path.dirname(path))
    slots = sum(s.slot_num for s in data.sparse)
    if len(self._metadata.cats) != slots:
      raise errors.DataError(
          "%s: %d columns of cats, but the sparse inputs have %d slots" %
          (os.path.join(os.path.dirname(path), "_metadata.json"),
           len(self._metadata.cats), slots))
    self._sizes = key_limits(data.slot_sizes or [0] * slots)
    self._offsets = [0] * slots
    if data.slot_sizes:
      self._offsets = [0] + np.cumsum(data.slot_sizes)[:-1].tolist()
    for path in self._paths:
      self._check_file(path)
    # The columns of each part of a row group; parts are read concurrently. cats come
    # first.
    kinds = self._metadata.cats + self._metadata.labels + self._metadata.conts
    names = [name for name, _ in kinds]
    self._slots = {name: s for s, name in enumerate(names[:slots])}
    parts = min(self._decoders, _PARTS, len(names))
    self._parts = [part.tolist() for part in np.array_split(np.array(names, object), parts)]

  def _check_file(self, path):
    """Raises DataError unless the file has the columns and rows of the metadata."""
    parquet = self._open(path)
    schema = parquet.schema_arrow
    found = []
    for kind in ("labels", "conts", "cats"):
      for name, index in getattr(self._metadata, kind):
        if name not in schema.names:
          raise errors.DataError("%s: there is no column '%s', which _metadata.json lists "
                                 "in %s" % (path, name, kind))
        if index is not None and schema.names.index(name) != index:
          raise errors.DataError(
              "%s: column '%s' has index %d, but %s in _metadata.json" %
              (path, name, schema.names.index(name), index))
        found.append(name)
    if len(set(found)) != len(found):
      raise errors.DataError("%s: _metadata.json names a column twice" % path)
    expected = self._metadata.rows.get(os.path.basename(path))
    if expected is not None and expected != parquet.metadata.num_rows:
      raise errors.DataError("%s: %d rows, but %d in _metadata.json" %
                             (path, parquet.metadata.num_rows, expected))

  def _open(self, path):
    try:
      return arrow.pq.ParquetFile(path, buffer_size=_BUFFER)
    except Exception as e:  # pylint: disable=broad-except
      # pyarrow raises errors of several classes for damaged files.
      raise errors.DataError("%s: not a Parquet file that can be read: %s" %
                             (path, arrow.cause(e)))

  def _read(self, opened, path, group, names):
    """Reads some columns of a row group.

    Returns (path, rows, columns): columns are Slots, or float32 [rows, width].

    Args:
      opened: object in which this thread caches the file of its last call.
      path: string.
      group: int.
      names: list of strings.
    """
    if getattr(opened, "path", None) != path:
      opened.path, opened.parquet = None, self._open(path)
      opened.path = path
    parquet = opened.parquet
    try:
      table = parquet.read_row_group(group, columns=names, use_threads=False)
    except Exception as e:  # pylint: disable=broad-except
      raise errors.DataError("%s: row group %d cannot be read: %s" %
                             (path, group, arrow.cause(e)))
    first = sum(parquet.metadata.row_group(g).num_rows for g in range(group))
    columns = parquet_columns.Columns(path, table, first)
    found = []
    for name in names:
      s = self._slots.get(name)
      found.append(columns.floats(name) if s is None else columns.keys(
          name, self._offsets[s], self._sizes[s], self._limit))
    return path, columns.rows, found

  def _chunk(self, parts):
    """Makes a Chunk of one row group from the results of `_read` for its parts."""
    path, rows, _ = parts[0]
    found = [column for _, _, columns in parts for column in columns]
    slots, labels = len(self._slots), len(self._metadata.labels)
    return batches.Chunk(
        _floats(rows, found[slots:slots + labels], path, "label_dim", self._metadata.labels,
                self._data.label_dim),
        _floats(rows, found[slots + labels:], path, "dense_dim", self._metadata.conts,
                self._data.dense_dim), found[:slots])

  def chunks(self):
    """Returns an iterator over the samples, a Chunk per row group, in the files' order.

    Threads read the next row groups ahead.
    """
    return map(batches.plain, self._chunks())

  def _chunks(self):
    """Like `chunks`, but Slots may have `added`, and numbers may be FloatColumns."""
    opened = threading.local()
    tasks = (functools.partial(self._read, opened, path, group, names)
             for path in self._paths for group in range(self._open(path).num_row_groups)
             for names in self._parts)
    done = ahead.in_order(tasks, self._decoders)
    while True:
      parts = list(itertools.islice(done, len(self._parts)))
      if not parts:
        return
      yield self._chunk(parts)

  def reader(self, layouts, repeat, rank=0, ranks=1):
    """Returns a reader of batches from the beginning; see reader.Reader.

    Args:
      layouts: list of batches.InputLayout.
      repeat: bool, whether the data starts again at its end.
      rank: int.
      ranks: int.
    """
    shape = native.Shape(self._data, layouts, self._batch_size, repeat, rank, ranks,
                         self._threads)
    return readers.Reader(self._chunks, native.Joiner(shape).batch_of, self._batch_size, repeat,
                          rank, ranks)


def key_limits(sizes):
  """Returns the number of keys that each slot may have, or None for any.

  A slot of size 0 shares the keys of the next slot that has a size.

  Args:
    sizes: list of ints.
  """
  found, last = [], None
  for size in reversed(sizes):
    last = size or last
    found.append(last)
  return found[::-1]


def _floats(rows, parts, path, what, names, width):
  """Joins columns, float32 [rows, any].

  Returns float32 [rows, width], or batches.FloatColumns if each is one number wide.
  """
  found = sum(p.shape[1] for p in parts)
  if found != width:
    raise errors.DataError("%s: columns %s hold %d numbers of a sample, and %s is %d" % (
        path, ", ".join("'%s'" % n for n, _ in names) or "(none)", found, what, width))
  if all(p.shape[1] == 1 for p in parts):
    return batches.FloatColumns([p[:, 0] for p in parts], rows)
  out = np.empty([rows, width], np.float32)
  at = 0
  for piece in parts:
    out[:, at:at + piece.shape[1]] = piece
    at += piece.shape[1]
  return out
