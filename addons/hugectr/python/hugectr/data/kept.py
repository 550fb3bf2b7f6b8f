# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Caches the first batches of a file for readers that start again."""

import os

from hugectr.data import errors


class KeptBatches(object):
  """The first batches of one file at a time.

  The cache is cleared when another file is read, or the file has changed. Not
  thread-safe.

  Args:
    open_reader: function (path) -> a reader of batches from the start of the file.
    most: int of at least 1, largest number of batches to cache.
    samples: int of at least 1, number of samples in the file.
    batch_size: int.
    repeat: bool, whether the data starts again at its end, within a batch.
  """

  def __init__(self, open_reader, most, samples, batch_size, repeat):
    self.open_source = open_reader
    self.most = most
    self._whole, more = divmod(samples, batch_size)
    self._ends = not repeat
    if self._ends:
      self._whole += bool(more)
    elif more:
      # Batches repeat only after a very long time.
      self._whole = None
    self._version = None
    self.batches = []

  def open(self, path):
    """Returns a reader from the start of the file; raises DataError."""
    try:
      found = os.stat(path)
    except OSError as e:
      raise errors.DataError("%s: cannot be read: %s" % (path, e))
    version = (os.path.realpath(path), found.st_ino, found.st_size, found.st_mtime_ns)
    source = None
    if version != self._version:
      source = self.open_source(path)
      self._version, self.batches = version, []
    return _Reader(self, path, source)

  def place_of(self, batch):
    """Returns the number of the first batch that equals this one; None: end of the data."""
    if self._whole is None:
      return batch
    if self._ends:
      return batch if batch < self._whole else None
    return batch % self._whole


class _Reader(object):
  """Returns cached batches, and reads the others.

  Attributes:
    waits: int, as for other readers.
  """

  def __init__(self, kept, path, source):
    self._kept = kept
    # If the file changes, a later reader starts a new cache; this one keeps its own.
    self._batches = kept.batches
    self._path = path
    self._source = source
    # Number of the next batch, and of the next batch of the source.
    self._batch = 0
    self._place = 0

  @property
  def waits(self):
    return self._source.waits if self._source else 0

  def next(self):
    """Returns the next Batch, or None at the end of the data; raises DataError."""
    place = self._kept.place_of(self._batch)
    if place is None:
      return None
    if place < len(self._batches):
      self._batch += 1
      return self._batches[place]
    if self._source is None:
      self._source = self._kept.open_source(self._path)
    while self._place != place:
      self._source.next()
      self._place = self._kept.place_of(self._place + 1)
    batch = self._source.next()
    if place == len(self._batches) < self._kept.most:
      self._batches.append(batch)
    self._batch += 1
    self._place = self._kept.place_of(self._place + 1)
    return batch

  def close(self):
    """Stops the source's threads."""
    if self._source is not None:
      self._source.close()
      self._source = None
