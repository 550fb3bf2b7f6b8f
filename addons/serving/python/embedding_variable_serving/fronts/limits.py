# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Threads with a bounded queue: what does not fit is refused at once."""

from concurrent import futures
import threading

from embedding_variable_serving import errors


class BoundedThreads(futures.ThreadPoolExecutor):
  """Thread pool whose surplus calls run in one more thread, marked as refused.

  A call checks `refusal()` first. grpc's server needs an executor that takes every call,
  so submit itself cannot refuse.
  """

  def __init__(self, num_threads, max_queued, name):
    """Args: threads of the pool, calls that may wait for them, prefix of thread names."""
    super().__init__(num_threads, name)
    self._max_pending = num_threads + max_queued
    self._lock = threading.Lock()
    self._pending = 0
    self._local = threading.local()
    self._refusing = futures.ThreadPoolExecutor(1, name + "_refuse")

  def submit(self, fn, *args, **kwargs):
    with self._lock:
      accepted = self._pending < self._max_pending
      self._pending += accepted
    if not accepted:
      return self._refusing.submit(self._refuse, fn, args, kwargs)
    future = super().submit(fn, *args, **kwargs)
    future.add_done_callback(self._done)
    return future

  def _done(self, unused_future):
    with self._lock:
      self._pending -= 1

  def _refuse(self, fn, args, kwargs):
    self._local.refused = True
    return fn(*args, **kwargs)

  def check(self):
    """Raises ServingError UNAVAILABLE in a call that did not fit into the queue."""
    if getattr(self._local, "refused", False):
      raise errors.ServingError(
          "UNAVAILABLE", "the server is overloaded: more than %d requests wait or run, see "
          "--max_queued_requests" % self._max_pending)

  def shutdown(self, wait=True, **kwargs):
    self._refusing.shutdown(wait)
    super().shutdown(wait, **kwargs)
