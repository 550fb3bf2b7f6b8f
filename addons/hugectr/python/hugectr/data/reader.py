# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads batches in a thread ahead of the training loop, into a bounded queue."""

import queue
import threading
import weakref

from hugectr.data import batches
from hugectr.data import errors

# Largest number of finished batches that wait.
_DEPTH = 4

# Seconds after which a blocked thread checks whether it should end.
_LOOK = 0.05


class _End(object):
  """Follows the last batch, with the reason why there is none.

  Attributes:
    error: the exception, or None at the end of the data.
  """

  def __init__(self, error=None):
    self.error = error


class Reader(object):
  """Reads one source from its beginning.

  Not thread-safe: one thread takes batches and closes the reader. The thread also ends
  when the reader is garbage.

  Args:
    chunks: function that returns an iterator of batches.Chunk, once through the data.
    batch_of: function (list of Chunks, samples of all ranks) -> Batch.
    batch_size: int, samples of all ranks together.
    repeat: bool. If True, the data starts again at its end, within a batch, so all
      batches are full. Otherwise the last batch may have fewer samples.
    rank: int.
    ranks: int.
  """

  def __init__(self, chunks, batch_of, batch_size, repeat, rank=0, ranks=1):
    self._queue = queue.Queue(_DEPTH)
    self._stop = threading.Event()
    self._end = None
    self.waits = 0
    weakref.finalize(self, self._stop.set)
    self._thread = threading.Thread(
        target=_run, daemon=True, name="hugectr reader",
        args=(self._queue, self._stop, chunks, batch_of, batch_size, repeat, rank, ranks))
    self._thread.start()

  def next(self):
    """Returns the next Batch, waiting for it; None at the end of the data.

    Raises:
      DataError: the data cannot be read; every further call raises it too.
    """
    if self._end is None:
      if self._queue.empty():
        self.waits += 1
      item = self._queue.get()
      if not isinstance(item, _End):
        return item
      self._end = item
    if self._end.error is not None:
      raise self._end.error
    return None

  def close(self):
    """Stops the thread and waits for it."""
    self._stop.set()
    self._thread.join()


def _run(out, stop, chunks, batch_of, batch_size, repeat, rank, ranks):
  """Puts batches into a queue; holds no reference to the Reader."""

  def put(item):
    """Waits for room; returns False if the reader was closed."""
    while not stop.is_set():
      try:
        out.put(item, timeout=_LOOK)
        return True
      except queue.Full:
        pass
    return False

  end = _End()
  try:
    found = _repeated(chunks) if repeat else chunks()
    for pieces, size in batches.cut(found, batch_size, rank, ranks):
      if not put(batch_of(pieces, size)):
        return
  except Exception as e:  # pylint: disable=broad-except
    # Raised again in the thread that takes batches.
    end = _End(e)
  put(end)


def _repeated(chunks):
  """Yields the samples of a source repeatedly."""
  while True:
    count = 0
    for chunk in chunks():
      count += batches.size_of(chunk)
      yield chunk
    if not count:
      raise errors.DataError("the data to repeat has no samples")
