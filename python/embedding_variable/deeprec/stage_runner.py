# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The threads that fill a stage's queue."""

import threading
import weakref

from embedding_variable.tf_names import errors
from embedding_variable.tf_names import ops
from embedding_variable.tf_names import tf_logging as logging


from embedding_variable.deeprec import stage_prefetch


class Errors(object):
  """A set of exceptions, given as classes or as codes of `tf.errors`."""

  def __init__(self, given, default):
    given = default if given is None else given
    self._classes = tuple(e for e in given if isinstance(e, type))
    self._codes = frozenset(e for e in given if not isinstance(e, type))

  def match(self, exception):
    """Returns whether the exception is in the set."""
    return (isinstance(exception, self._classes) or
            getattr(exception, "error_code", None) in self._codes)


class Feeds(object):
  """The feeds of a stage's runs: a dict of Tensors, or a generator of values."""

  def __init__(self, feed_dict, feed_list, feed_generator):
    self._feed_dict = dict(feed_dict or {})
    for placeholder, value in self._feed_dict.items():
      if not isinstance(value, ops.Tensor):
        raise TypeError("staged: feed_dict: expected Tensors as values, got %r for %r" %
                        (value, placeholder))
    if (feed_list is None) != (feed_generator is None):
      raise ValueError("staged: feed_list and feed_generator must be given together")
    self._feed_list = feed_list
    self._feed_generator = feed_generator

  def of_session(self, session):
    """Returns a function that returns the feed_dict of the next run; thread-safe."""
    if self._feed_generator is not None:
      generator, lock = self._feed_generator(session), threading.Lock()

      def following():
        with lock:
          return dict(zip(self._feed_list, next(generator)))
      return following
    return lambda: session.run(self._feed_dict)


class StageRunner(object):
  """Creates the threads of one stage in each session.

  Thread-safe. A thread runs its enqueue op until its input ends, an error occurs or the
  coordinator stops; the last thread closes the queue.
  """

  def __init__(self, queue, taken, enqueue_ops, feeds, closed, ignored):
    """Creates the queue's ops.

    Args:
      queue: the FIFOQueue.
      taken: list of Tensors, those of the queue's next batch.
      enqueue_ops: list of ops, one per thread.
      feeds: `Feeds`.
      closed: `Errors` that end a thread.
      ignored: `Errors` after which a thread goes on.
    """
    self.queue = queue
    self._taken = taken
    self._has_prefetches = False
    self.enqueue_ops = enqueue_ops
    self._feeds = feeds
    self._closed = closed
    self._ignored = ignored
    self._close = queue.close()
    self._cancel = queue.close(cancel_pending_enqueues=True)
    self._is_closed = queue.is_closed()
    self._lock = threading.Lock()
    self._running = weakref.WeakKeyDictionary()

  @property
  def name(self):
    """Name of the queue."""
    return self.queue.name

  def prefetch_rows(self, graph):
    """Makes each thread prefetch the rows of a batch before it enqueues it, once.

    Args:
      graph: Graph with the stage, complete and not finalized.
    """
    if self._has_prefetches:
      return
    self._has_prefetches = True
    for enqueue in set(self.enqueue_ops):
      # The first input is the queue.
      prefetches = stage_prefetch.add(graph, self._taken, list(enqueue.inputs)[1:])
      if prefetches:
        enqueue._add_control_inputs(prefetches)  # pylint: disable=protected-access

  def create_threads(self, session, coord, daemon=True, start=True):
    """Creates the threads in a session.

    Args:
      session: a Session.
      coord: Coordinator, which receives errors and stops the threads.
      daemon: bool.
      start: bool, whether to start them.

    Returns:
      List of the threads; empty if the session already runs them.

    Raises:
      FailedPreconditionError: the queue was closed by an earlier session of a server.
    """
    with self._lock:
      if self._running.get(session):
        return []
      if session.run(self._is_closed):
        raise errors.FailedPreconditionError(
            None, None, "stage '%s': an earlier session of this server has closed it, so "
            "it would deliver no batch; start a new process" % self.name)
      self._running[session] = len(self.enqueue_ops)
    try:
      following = self._feeds.of_session(session)
    except BaseException:
      # No thread runs, so that a later call may try again.
      with self._lock:
        del self._running[session]
      raise
    threads = [threading.Thread(target=self._run, args=(session, coord, op, following))
               for op in self.enqueue_ops]
    threads.append(threading.Thread(target=self._cancel_on_stop, args=(session, coord)))
    for thread in threads:
      thread.daemon = daemon
      coord.register_thread(thread)
      if start:
        thread.start()
    return threads

  def _run(self, session, coord, enqueue, following):
    has_ended = False
    try:
      while not coord.should_stop():
        try:
          session.run(enqueue, feed_dict=following())
        except Exception as e:  # pylint: disable=broad-except
          if self._closed.match(e):
            has_ended = True
            return
          if not self._ignored.match(e):
            raise
          logging.warning("stage '%s': ignored %s", self.name, e)
    except Exception as e:  # pylint: disable=broad-except
      if not coord.should_stop():
        coord.request_stop(e)
    finally:
      self._end(session, has_ended)

  def _end(self, session, has_ended):
    """Closes the queue after the last thread, if the input has ended."""
    with self._lock:
      self._running[session] -= 1
      is_last = not self._running[session]
    if is_last and has_ended:
      try:
        session.run(self._close)
      except Exception as e:  # pylint: disable=broad-except
        logging.vlog(1, "stage '%s': close: %s", self.name, e)

  def _cancel_on_stop(self, session, coord):
    coord.wait_for_stop()
    try:
      session.run(self._cancel)
    except Exception as e:  # pylint: disable=broad-except
      # The session is closed, and its queue with it.
      logging.vlog(1, "stage '%s': cancel: %s", self.name, e)
