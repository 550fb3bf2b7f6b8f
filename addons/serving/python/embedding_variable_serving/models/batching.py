# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Requests that wait together run as one batch, by TensorFlow Serving's parameters."""

import collections
import os
import threading
import time

import numpy as np

from embedding_variable_serving import errors

# batch: rows of a run. request: rows of a request. sizes: allowed sizes of a run, or ().
Parameters = collections.namedtuple(
    "Parameters", ["batch", "request", "timeout", "batches", "threads", "sizes", "pads"])


def parameters(message):
  """Returns the Parameters of a BatchingParameters message.

  Raises:
    ServingError: INVALID_ARGUMENT.
  """
  def value(name, default):
    return getattr(message, name).value if message.HasField(name) else default

  request = value("max_batch_size", 1000)
  splits = value("enable_large_batch_splitting", False)
  if not splits and message.HasField("max_execution_batch_size"):
    raise errors.invalid("max_execution_batch_size needs enable_large_batch_splitting")
  batch = value("max_execution_batch_size", request)
  found = Parameters(batch, request, value("batch_timeout_micros", 0) / 1e6,
                     value("max_enqueued_batches", 10),
                     value("num_batch_threads", os.cpu_count() or 1),
                     tuple(message.allowed_batch_sizes), message.pad_variable_length_inputs)
  if min(batch, request, found.batches, found.threads) < 1 or found.timeout < 0 or (
      batch > request):
    raise errors.invalid("batching parameters: a size or number is out of range: %s", found)
  sizes = found.sizes
  if sizes and (list(sizes) != sorted(set(sizes)) or sizes[0] < 1 or sizes[-1] != batch):
    raise errors.invalid("allowed_batch_sizes %s: expected increasing sizes, the last one %d",
                         list(sizes), batch)
  return found


class _Task(object):

  def __init__(self, feeds, size, deadline, finish):
    """Args: feeds, their rows, a time or None, a function to call when it has ended."""
    self.feeds, self.size, self.deadline, self.begin = feeds, size, deadline, time.time()
    self.finish = finish
    self.outputs = self.error = None


class _Batch(object):

  def __init__(self):
    self.tasks, self.size, self.opened = [], 0, time.time()


class Pool(object):
  """Threads that run the batches of all queues, in turn."""

  def __init__(self, params):
    self.params = params
    self._changed = threading.Condition()
    self._queues = collections.deque()
    self._closing = False
    self._threads = [threading.Thread(target=self._work, name="batch", daemon=True)
                     for _ in range(params.threads)]
    for thread in self._threads:
      thread.start()

  def add(self, queue):
    with self._changed:
      self._queues.append(queue)

  def remove(self, queue):
    with self._changed:
      self._queues.remove(queue)

  def put(self, queue, task):
    """Adds a task to the last batch of a queue.

    Raises:
      ServingError: UNAVAILABLE, the queue is full.
    """
    with self._changed:
      batches = queue.batches
      if not batches or batches[-1].size + task.size > queue.params.batch:
        if len(batches) >= queue.params.batches:
          raise errors.ServingError(
              "UNAVAILABLE", "The batch scheduling queue is full: %d batches wait, see "
              "max_enqueued_batches" % len(batches))
        batches.append(_Batch())
      batches[-1].tasks.append(task)
      batches[-1].size += task.size
      self._changed.notify()

  def close(self):
    """Ends the threads. All tasks have ended."""
    with self._changed:
      self._closing = True
      self._changed.notify_all()
    for thread in self._threads:
      thread.join()

  def _next(self):
    """Returns (queue, batch) to run now, or seconds to wait. The caller has the lock."""
    now, wait = time.time(), None
    for _ in range(len(self._queues)):
      queue = self._queues[0]
      self._queues.rotate(-1)
      if not queue.batches:
        continue
      first = queue.batches[0]
      left = first.opened + queue.params.timeout - now
      if left <= 0 or len(queue.batches) > 1 or first.size >= queue.params.batch:
        return queue, queue.batches.popleft()
      wait = left if wait is None else min(wait, left)
    return None, wait

  def _work(self):
    while True:
      with self._changed:
        queue, found = self._next()
        while queue is None:
          if self._closing:
            return
          self._changed.wait(found)
          queue, found = self._next()
      queue.run(found.tasks)


class _Queue(object):
  """Tasks of one signature of one version."""

  def __init__(self, servable, signature, params, ran):
    self._servable, self._signature, self.params, self._ran = servable, signature, params, ran
    self.batches = collections.deque()

  def run(self, tasks):
    """Runs tasks as one batch, and stores outputs or the error in each."""
    try:
      self._run(tasks)
    except Exception as e:  # pylint: disable=broad-except
      for task in tasks:
        task.error = errors.wrapped(e)
    for task in tasks:
      task.finish()

  def _run(self, tasks):
    deadlines = [task.deadline for task in tasks]
    timeout_ms = None
    if None not in deadlines:
      timeout_ms = (max(deadlines) - time.time()) * 1e3
      if timeout_ms <= 0:
        raise errors.ServingError("RESOURCE_EXHAUSTED",
                                  "the deadlines of all requests passed in the batch queue")
    sizes, now = [task.size for task in tasks], time.time()
    size = sum(sizes)
    padded = next((s for s in self.params.sizes if s >= size), size)
    if self._ran:
      self._ran([now - task.begin for task in tasks], sizes, padded)
    feeds = {name: self._joined(name, [task.feeds[name] for task in tasks], padded - size)
             for name in self._signature.inputs}
    names = list(self._signature.outputs)
    arrays = self._servable.run(self._signature, feeds, names, timeout_ms)
    for name, array in zip(names, arrays):
      if not np.ndim(array) or len(array) != padded:
        raise errors.ServingError(
            "FAILED_PRECONDITION", "output '%s' has shape %s: its first dimension is not the "
            "batch, %d rows" % (name, list(np.shape(array)), padded))
    begin = 0
    for task in tasks:
      task.outputs = {name: array[begin:begin + task.size]
                      for name, array in zip(names, arrays)}
      begin += task.size

  def _joined(self, name, arrays, num_more):
    if len({array.shape[1:] for array in arrays}) > 1:
      if not self.params.pads or len({array.ndim for array in arrays}) > 1:
        raise errors.ServingError(
            "FAILED_PRECONDITION", "input '%s': requests of one batch have the shapes %s; see "
            "pad_variable_length_inputs" % (name, [list(a.shape) for a in arrays]))
      largest = np.max([array.shape[1:] for array in arrays], axis=0)
      arrays = [np.pad(
          array, [(0, 0)] + [(0, most - length)
                             for most, length in zip(largest, array.shape[1:])],
          "constant", constant_values=b"" if array.dtype == object else 0)
                for array in arrays]
    if num_more:
      # Rows that fill the batch repeat a row of the last request.
      arrays = arrays + [np.repeat(arrays[-1][:1], num_more, axis=0)]
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


class Batched(object):
  """A SavedModel whose runs of a whole signature are batched."""

  def __init__(self, servable, pool, params=None, ran=None):
    """Makes a queue for each signature.

    Args:
      servable: SavedModel.
      pool: Pool, whose threads run the batches.
      params: Parameters in place of the pool's.
      ran: function of (seconds that each request waited, rows of each, rows that run), called
        for each batch.
    """
    self._servable, self._pool, self._params = servable, pool, params or pool.params
    self.signatures, self.session = servable.signatures, servable.session
    self.follower = getattr(servable, "follower", None)
    self._queues = {name: _Queue(servable, signature, self._params, ran)
                    for name, signature in servable.signatures.items()}
    for queue in self._queues.values():
      pool.add(queue)

  def run(self, signature, feeds, outputs, timeout_ms=None):
    """Does the same as SavedModel.run."""
    if not self._fits(signature, feeds, outputs):
      return self._servable.run(signature, feeds, outputs, timeout_ms)
    size, most = self._size(feeds), self._params.batch
    deadline = None if timeout_ms is None else time.time() + timeout_ms / 1e3
    tasks, ended = [], []
    for begin in range(0, max(size, 1), most):
      part = feeds if size <= most else {
          name: array[begin:begin + most] for name, array in feeds.items()}
      ended.append(threading.Event())
      tasks.append(_Task(part, min(size - begin, most), deadline, ended[-1].set))
      self._pool.put(self._queues[signature.name], tasks[-1])
    for task, event in zip(tasks, ended):
      if not event.wait(None if deadline is None else max(0, deadline - time.time())):
        raise errors.ServingError("DEADLINE_EXCEEDED",
                                  "the deadline of the request passed in a batch")
      if task.error is not None:
        raise task.error
    return [tasks[0].outputs[name] if len(tasks) == 1 else
            np.concatenate([task.outputs[name] for task in tasks]) for name in outputs]

  def begin(self, signature, feeds, outputs, timeout_ms, done):
    """Adds a run to a batch and returns at once; returns False if it must be run alone.

    Args:
      signature, feeds, outputs, timeout_ms: as for `run`.
      done: function of (arrays, None), or of (None, error), called in a thread of batches.

    Raises:
      ServingError: UNAVAILABLE, INVALID_ARGUMENT.
    """
    if not self._fits(signature, feeds, outputs):
      return False
    size = self._size(feeds)
    if size > self._params.batch:
      return False

    def finish():
      if task.error is not None:
        done(None, task.error)
      else:
        done([task.outputs[name] for name in outputs], None)

    deadline = None if timeout_ms is None else time.time() + timeout_ms / 1e3
    task = _Task(feeds, size, deadline, finish)
    self._pool.put(self._queues[signature.name], task)
    return True

  @staticmethod
  def _fits(signature, feeds, outputs):
    """Returns whether a run is of a whole signature."""
    return bool(feeds) and set(outputs) == set(signature.outputs)

  def _size(self, feeds):
    """Returns the rows of a request."""
    sizes = {name: array.shape[0] if array.ndim else None for name, array in feeds.items()}
    if len(set(sizes.values())) != 1 or None in sizes.values():
      raise errors.invalid("batched inputs: expected one first dimension, got %s", sizes)
    size = next(iter(sizes.values()))
    if size > self._params.request:
      raise errors.invalid("a request has %d rows, more than max_batch_size %d", size,
                           self._params.request)
    return size

  def close(self):
    for queue in self._queues.values():
      self._pool.remove(queue)
    self._servable.close()
