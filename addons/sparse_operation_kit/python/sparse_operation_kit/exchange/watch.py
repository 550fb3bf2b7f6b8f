# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Ends a wait for other ranks that takes too long.

A collective never ends if some rank does not take part, because it runs fewer lookups
or waits elsewhere. (Horovod itself detects a rank that dies, at once, or that is
frozen, by its transport.) So a thread checks once a second which lookup of this process
has waited longest. After the time limit it logs an error, stops the carrier if there is
one, and shuts Horovod down, which makes the collectives of all ranks fail.
"""

import atexit
import os
import sys
import threading
import time

from embedding_variable import _lib
from embedding_variable.tf_names import tf

from sparse_operation_kit import communication
from sparse_operation_kit import settings
from sparse_operation_kit.exchange import sessions

_PERIOD_SECONDS = 1.

# Limits of the wait for started exchanges at process exit. After an exception the limit
# is shorter, since the other ranks may wait elsewhere.
_DRAIN_SECONDS = 30
_DRAIN_SECONDS_AFTER_ERROR = 2

# Name prefix of calls that sum dense gradients.
GRADIENTS = "sok_gradients"

# Name prefix of calls that sum one number per rank, for the norm of gradients.
SUMS = "sok_sum_over_ranks"

# Reason in the errors of exchanges after a wait that was too long.
WAITED_TOO_LONG = "a rank has waited too long for the others; the log names the lookup"

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
    # Runs before Horovod's handler, which was registered earlier.
    atexit.register(_end)


def _end():
  if os.getpid() != _pid:
    return  # the exit of a child is not that of the rank
  _stop.set()
  _thread.join(5.)
  if not _ends_horovod.is_set():
    _drain()
  if _ends_horovod.is_set():
    # Horovod's handler is next and must find Horovod shut down. One of two concurrent
    # shutdowns never returns. This waits as long as Horovod waits for a frozen
    # rank.
    _thread.join()


def _drain():
  """Waits for the started exchanges between GPUs, which other ranks may need."""
  if not settings.exchange_on_device():
    return
  # Python sets it for an exception that ends the program.
  has_raised = hasattr(sys, "last_value")
  seconds = _DRAIN_SECONDS_AFTER_ERROR if has_raised else _DRAIN_SECONDS
  session, drain = sessions.on_cpu(lambda: _lib.load().sok_drain_carrier(seconds=seconds))
  with session:
    try:
      session.run(drain)
    except tf.errors.InternalError as e:
      # Log it, since there may be no further run to report it.
      tf.compat.v1.logging.error("sok: %s", e.message)


def message(what, seconds):
  """Returns the error message for a wait that was too long."""
  return (
      "sok: rank %d has waited for %d s in %s. Not all ranks take part in it: "
      "one has stopped, waits elsewhere, or runs other lookups than this one. Horovod "
      "is shut down now, so that every rank fails instead of waiting for ever. (The "
      "limit is SOK_EXCHANGE_TIMEOUT_SECONDS, or sok.init(exchange_timeout=...).)" %
      (communication.rank(), seconds,
       what if what.startswith((GRADIENTS, SUMS)) else "lookup " + what))


def reason_of_lost_rank(message):
  """Returns why an exchange by Horovod failed, in the words of the other carriers.

  Horovod does not report which rank it lost.

  Args:
    message: string, Horovod's error.
  """
  return (WAITED_TOO_LONG if _ends_horovod.is_set() else
          "a rank is gone, or has ended before the others. Horovod says: " + message)


def _watch():
  began = time.monotonic()
  # No wait is older than this thread. Until the limit, open no session, so that it is
  # not the first one of the process (see sessions.py).
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
