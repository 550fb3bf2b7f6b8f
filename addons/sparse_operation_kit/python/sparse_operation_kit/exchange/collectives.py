# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Exchanges of arrays between the ranks' Python programs, outside the user's graph.

Used for files, which ranks read and write between steps. Each channel has its own graph
and session, so the user's graph does not grow and may be finalized. If a rank does not
come, the others raise an error after `sok.init(exchange_timeout=...)` seconds, as in a
lookup.
"""

import threading

import numpy as np
from embedding_variable.tf_names import tf

from sparse_operation_kit import communication
from sparse_operation_kit import settings
from sparse_operation_kit.exchange import sessions

# Seconds after which a waiting rank logs a warning.
_PATIENCE_SECONDS = 10.

_lock = threading.Lock()
_channels = {}


class RankError(RuntimeError):
  """Another rank failed, or did not come."""


class Channel(object):
  """Collectives under one name. All ranks make the same calls in the same order."""

  def __init__(self, name):
    self._name = name
    self._session = None
    if communication.num_ranks() == 1:
      return
    self._session, _ = sessions.on_cpu(self._build, num_threads=2)

  def _build(self):
    self._input = tf.compat.v1.placeholder(tf.uint8, [None])
    self._sizes = tf.compat.v1.placeholder(tf.int64, [1])
    hvd = communication.horovod()
    self._all_sizes = hvd.allgather(self._sizes, name="sok/%s/sizes" % self._name)
    self._output = hvd.allgather(self._input, name="sok/%s/bytes" % self._name)

  def gather(self, array):
    """Returns the arrays of all ranks, as a list by rank.

    Args:
      array: same dtype and number of axes on all ranks; only the first axis may differ.

    Raises:
      RankError: a rank did not come in time, or is gone.
    """
    if self._session is None:
      return [array]
    flat = np.ascontiguousarray(array).view(np.uint8).reshape(-1)
    gathered, sizes = self._run(
        [self._output, self._all_sizes],
        {self._input: flat, self._sizes: np.array([flat.size], np.int64)})
    ends = np.cumsum(sizes)
    return [
        gathered[end - size:end].copy().view(array.dtype).reshape(
            (-1,) + array.shape[1:])
        for size, end in zip(sizes, ends)
    ]

  def gather_text(self, text):
    """Returns the strings of all ranks, as a list by rank."""
    pieces = self.gather(np.array(bytearray(text, "utf-8"), np.uint8))
    return [piece.tobytes().decode("utf-8") for piece in pieces]

  def check(self, error):
    """Raises on all ranks if one of them failed.

    Args:
      error: this rank's exception, or None.

    Raises:
      Exception: `error`, on the rank that failed.
      RankError: the message of another rank's error.
    """
    said = self.gather_text("" if error is None else "%s: %s" %
                            (type(error).__name__, error))
    if error is not None:
      raise error
    for rank, text in enumerate(said):
      if text:
        raise RankError("%s: rank %d failed: %s" % (self._name, rank, text))

  def check_equal(self, what, value):
    """Raises ValueError on all ranks unless all passed the same string.

    """
    said = self.gather_text(value)
    if any(text != said[0] for text in said):
      raise ValueError("%s: %s: expected the same on all ranks, got %s" % (
          self._name, what,
          "; ".join("rank %d: %s" % pair for pair in enumerate(said))))

  def _run(self, fetches, feed):
    result, failure = [], []

    def run():
      try:
        result.append(self._session.run(fetches, feed))
      except Exception as e:  # pylint: disable=broad-except
        failure.append(e)

    # In a thread, since a collective that some rank does not join cannot be
    # interrupted.
    thread = threading.Thread(target=run, name="sok_collective")
    thread.daemon = True
    thread.start()
    rank, limit = communication.rank(), settings.exchange_timeout()
    patience = min(_PATIENCE_SECONDS, limit) if limit else _PATIENCE_SECONDS
    thread.join(patience)
    if thread.is_alive() and patience != limit:
      tf.compat.v1.logging.warning(
          "sok: %s: rank %d waits for the other ranks. Every rank must make the same "
          "call%s.", self._name, rank,
          "; all fail if one has not after %g s" % limit if limit else "")
      thread.join(limit - patience if limit else None)
    if thread.is_alive():
      # Other ranks may be waiting too: end the wait on all of them.
      communication.horovod().shutdown()
      raise RankError(
          "%s: rank %d has waited for %g s. Not all ranks take part in it; every rank "
          "must make the same call. Horovod is shut down now, so that every rank fails "
          "instead of waiting for ever. (The limit is sok.init(exchange_timeout=...).)" %
          (self._name, rank, limit))
    if failure:
      raise RankError("%s: another rank is gone, or Horovod failed: %s" %
                      (self._name, failure[0]))
    return result[0]


def channel(name):
  """Returns the channel of this name; the first call makes it."""
  with _lock:
    key = (name, communication.num_ranks())
    if key not in _channels:
      _channels[key] = Channel(name)
    return _channels[key]
