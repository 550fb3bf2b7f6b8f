# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""What carries the bytes of lookups between ranks, when it is not Horovod.

Horovod stays what ranks find each other by, and what carries dense gradients, unless they
are on GPUs (dense_gradients.py). A carrier of our own ("memory": ranks of one host, through
shared memory; "nccl": ranks with a GPU each) takes the exchanges of lookups, which are many
times larger.
"""

import os
import threading
import time

import tensorflow as tf

from embedding_variable import _lib

from sparse_operation_kit import collectives
from sparse_operation_kit import communication
from sparse_operation_kit import notes
from sparse_operation_kit import sessions
from sparse_operation_kit import settings

_HOROVOD = communication.HOROVOD
_MEMORY = "memory"
_NCCL = "nccl"
_AUTO = "auto"

KINDS = (_HOROVOD, _MEMORY, _NCCL, _AUTO)

# What "auto" tries, the fastest first.
_AUTO_ORDER = (_NCCL, _MEMORY)

# Under what ranks note what they ask for, "<how many times> <kind>".
_ASKED = "exchange"

# How often a rank looks at the notes of others; and how long it waits for one that asks
# for something else, which may be about to call sok.init again.
_LOOK_SECONDS = .2
_PATIENCE_SECONDS = 10.

_times_asked = 0

# The carrier of this process, for its life: not Horovod, which is always there.
_started = None


def start(kind):
  """Makes sure that all ranks have an exchange of that kind.

  Collective, unless it is "horovod" or there is one rank. A rank that asks for another
  kind takes no part in it: where horovodrun keeps notes the others know, and fail within
  seconds; elsewhere they wait for it until the time limit.

  Args:
    kind: one of `KINDS`.

  Returns:
    What the ranks have: `kind`, and for "auto" the first of "nccl", "memory" and
    "horovod" that all ranks can have.

  Raises:
    ValueError: the ranks do not ask for the same.
    RuntimeError: this process has another one already, or a rank cannot have it. That
      is so for "horovod", too: a call that forgets to name the carrier would else
      change what carries the lookups after it, and not on all ranks alike.
  """
  global _started, _times_asked
  if communication.num_ranks() > 1:
    _times_asked += 1
    notes.leave(_ASKED, "%d %s" % (_times_asked, kind))
  if communication.num_ranks() == 1 or (kind == _HOROVOD and _started is None):
    return _HOROVOD
  if _started is not None:
    if kind in (_started, _AUTO):
      return _started
    raise RuntimeError(
        "sok.init: exchange is %r and this process has %r already; there is one for the "
        "life of a process" % (kind, _started))
  _see_what_others_ask_for(kind)
  channel = collectives.channel("init")
  channel.check_equal("exchange", kind)
  if kind != _AUTO:
    reasons = _make(channel, kind)
    if reasons:
      raise RuntimeError("sok.init: exchange=%r: %s" % (kind, "; ".join(reasons)))
    _started = kind
    return kind
  for candidate in _AUTO_ORDER:
    reasons = _make(channel, candidate)
    if not reasons:
      _started = candidate
      break
    # The reasons are all ranks'.
    if communication.rank() == 0:
      tf.compat.v1.logging.info("sok.init: no exchange by %s: %s", candidate,
                                "; ".join(reasons))
  return _started or _HOROVOD


def _see_what_others_ask_for(kind):
  """Returns when all ranks ask for that kind, or no launcher keeps what they ask for.

  Raises:
    ValueError: a rank asks for another one.
    RankError: a rank has not come in time.
  """
  begin, limit, warned = time.monotonic(), settings.exchange_timeout(), False
  while True:
    found = notes.read(_ASKED)
    if found is None:
      return
    asked = [(note or "0 nothing").split(" ", 1) for note in found]
    if all(other == kind for _, other in asked):
      return
    waited = time.monotonic() - begin
    # One that has called sok.init less often than this rank has yet to come.
    missing = [rank for rank, (times, other) in enumerate(asked)
               if other != kind and int(times) < _times_asked]
    if len(missing) < sum(other != kind for _, other in asked):
      if waited > min(_PATIENCE_SECONDS, limit or _PATIENCE_SECONDS):
        raise ValueError(
            "sok.init: exchange must be the same on all ranks, got %s" % "; ".join(
                "rank %d: %s" % (rank, other) for rank, (_, other) in enumerate(asked)))
    elif limit and waited > limit:
      raise collectives.RankError(
          "sok.init: exchange=%r: rank %d has waited for %g s for the sok.init of rank %s. "
          "(The limit is sok.init(exchange_timeout=...).)" %
          (kind, communication.rank(), limit, ", ".join(map(str, missing))))
    elif waited > _PATIENCE_SECONDS and not warned:
      warned = True
      tf.compat.v1.logging.warning(
          "sok.init: exchange=%r: rank %d waits for the sok.init of rank %s", kind,
          communication.rank(), ", ".join(map(str, missing)))
    time.sleep(_LOOK_SECONDS)


def _make(channel, kind):
  """Returns a list of reasons why not, the same on all ranks; empty: it is made."""
  made = {}

  def prepare():
    made["id"] = _run(lambda gen: gen.sok_carrier_id(
        kind=kind, rank=communication.rank(), num_ranks=communication.num_ranks()))

  reasons = _said(channel, _try(prepare))
  name = bytes.fromhex(channel.gather_text(made.get("id", b"").hex())[0])
  if not reasons:
    reasons = _said(channel, _try(lambda: _run(
        lambda gen: gen.sok_start_carrier(
            name, kind=kind, rank=communication.rank(),
            num_ranks=communication.num_ranks()))))
  if reasons and kind == _MEMORY and communication.rank() == 0 and name:
    _try(lambda: os.unlink(name.decode("utf-8")))
  return reasons


def _try(call):
  """Returns why a call failed, or ""; it may take as long as a lookup may wait.

  After that its thread goes on: nothing ends NCCL's start while ranks are missing. It is
  a daemon, so it does not keep the process; and a carrier that it makes in the end is
  not used, but stays the one that the process can have.
  """
  reason = []

  def run():
    try:
      call()
      reason.append("")
    except tf.errors.OpError as e:
      # Without the op that TensorFlow names after it.
      reason.append(e.message.split("\n")[0])
    except Exception as e:  # pylint: disable=broad-except
      reason.append(str(e) or type(e).__name__)

  thread = threading.Thread(target=run, name="sok_init")
  thread.daemon = True
  thread.start()
  limit = settings.exchange_timeout()
  thread.join(limit or None)
  return reason[0] if reason else "not all ranks came within %g s" % limit


def _said(channel, reason):
  """Returns what every rank that failed says."""
  return ["rank %d: %s" % (rank, text)
          for rank, text in enumerate(channel.gather_text(reason)) if text]


def _run(build):
  session, fetch = sessions.on_cpu(lambda: build(_lib.load()))
  with session:
    return session.run(fetch)
