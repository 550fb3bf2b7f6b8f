# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""A limit of the requests in a server: what does not fit is refused at once."""

from embedding_variable_serving import errors


class Limit(object):
  """Counts the requests. For one thread, that of an event loop."""

  def __init__(self, num_threads, max_queued):
    """Args: requests that run at once, and that may wait for them."""
    self._most, self._pending = num_threads + max_queued, 0

  def enter(self):
    """Counts a request, which `leave` ends.

    Raises:
      ServingError: UNAVAILABLE, there are as many requests as may be.
    """
    if self._pending >= self._most:
      raise errors.ServingError(
          "UNAVAILABLE", "the server is overloaded: %d requests wait or run, see "
          "--max_queued_requests" % self._pending)
    self._pending += 1

  def leave(self, *unused):
    """Ends a request. It takes the argument of a future's callback."""
    self._pending -= 1
