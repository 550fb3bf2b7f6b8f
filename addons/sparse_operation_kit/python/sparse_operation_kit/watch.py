# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Ends a wait for other ranks that takes too long.

A collective that not every rank takes part in never ends: a rank has run one lookup
more than the others, or waits somewhere else. (A rank that dies is noticed by Horovod
at once, one that is frozen by its transport.) So a thread looks once a second which
lookup of this process has waited longest. Beyond the time limit it says so, stops the
carrier if there is one, and shuts Horovod down, which makes the collectives of all ranks
fail.
"""

import atexit
import os
import sys
import threading
import time

import tensorflow as tf

from embedding_variable import _lib

from sparse_operation_kit import communication
from sparse_operation_kit import sessions
from sparse_operation_kit import settings

_PERIOD_SECONDS = 1.

# How long a process that ends waits for what it has begun, at most; and one that ends
# because it raised, which others may wait for elsewhere.
_DRAIN_SECONDS = 30
_DRAIN_SECONDS_AFTER_ERROR = 2

# What the names of calls begin with that sum dense gradients.
GRADIENTS = "sok_gradients"

# The same of calls that add numbers of all ranks, for the norm of gradients.
SUMS = "sok_sum_over_ranks"

# Why exchanges fail once a wait was too long.
WAITED_TOO_LONG = "a rank has waited too long for the others; the log says for what"

_lock = threading.Lock()
_thread = None
_pid = None
_stop = threading.Event()
_ends_horovod = threading.Event()


def start():
  """Starts the thread, once."""
  global _thread, _pid
  with _lock:
    if _thread is not None:
      return
    _pid = os.getpid()
    _thread = threading.Thread(target=_watch, name="sok_watch")
    _thread.daemon = True
    _thread.start()
    # Before Horovod's own handler, which was registered earlier.
    atexit.register(_end)


def _end():
  if os.getpid() != _pid:
    return  # a child's end is not the rank's
  _stop.set()
  _thread.join(5.)
  if not _ends_horovod.is_set():
    _drain()
  if _ends_horovod.is_set():
    # Horovod's own handler is next, and must find it done: of two that shut Horovod down
    # at once one never returns. It takes as long as Horovod waits for a rank that is
    # frozen.
    _thread.join()


def _drain():
  """Waits for what runs have begun between GPUs, and other ranks wait for."""
  if not settings.exchange_on_device():
    return
  # What Python sets for an exception that ends the program.
  has_raised = hasattr(sys, "last_value")
  seconds = _DRAIN_SECONDS_AFTER_ERROR if has_raised else _DRAIN_SECONDS
  session, drain = sessions.on_cpu(lambda: _lib.load().sok_drain_carrier(seconds=seconds))
  with session:
    try:
      session.run(drain)
    except tf.errors.InternalError as e:
      # No run may come that says so.
      tf.compat.v1.logging.error("sok: %s", e.message)


def message(what, seconds):
  """Returns what is said about a wait that was too long."""
  return (
      "sok: rank %d has waited for %d s in %s. Not all ranks take part in it: "
      "one has stopped, waits elsewhere, or runs other lookups than this one. Horovod "
      "is shut down now, so that every rank fails instead of waiting for ever. (The "
      "limit is SOK_EXCHANGE_TIMEOUT_SECONDS, or sok.init(exchange_timeout=...).)" %
      (communication.rank(), seconds,
       what if what.startswith((GRADIENTS, SUMS)) else "lookup " + what))


def reason_of_lost_rank(message):
  """Returns why an exchange by Horovod has failed, in the words of other carriers.

  Horovod does not say which rank it has lost.

  Args:
    message: string, Horovod's.
  """
  return (WAITED_TOO_LONG if _ends_horovod.is_set() else
          "a rank is gone, or has ended before the others. Horovod says: " + message)


def _watch():
  began = time.monotonic()
  # Nothing has waited for longer than this thread has. Until then the session is not
  # opened, so that it is not the first one of the process (sessions.py says why).
  while not _stop.wait(_PERIOD_SECONDS):
    limit = settings.exchange_timeout()
    if limit and time.monotonic() - began >= limit:
      break
  else:
    return
  gen = _lib.load()
  session, (longest, stop) = sessions.on_cpu(lambda: (
      gen.sok_longest_wait(),
      gen.sok_stop_carrier(why=WAITED_TOO_LONG)))
  with session:
    while not _stop.is_set():
      limit = settings.exchange_timeout()
      if limit:
        seconds, what = session.run(longest)
        if seconds > limit:
          tf.compat.v1.logging.error(message(what.decode("utf-8"), seconds))
          _ends_horovod.set()
          session.run(stop)
          communication.horovod().shutdown()
          return
      _stop.wait(_PERIOD_SECONDS)
