# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Starts a carrier for the exchanges of lookups between ranks, in place of Horovod.

Horovod still connects the ranks, and sums dense gradients that are not on GPUs
(dense_gradients.py). Lookups exchange many times more bytes; a carrier of this package
moves them: "memory" between ranks of one host through shared memory, or "nccl" between
ranks with a GPU each.
"""

import os
import threading
import time

from embedding_variable import _lib
from embedding_variable.tf_names import tf

from sparse_operation_kit import communication
from sparse_operation_kit import settings
from sparse_operation_kit.exchange import collectives
from sparse_operation_kit.exchange import notes
from sparse_operation_kit.exchange import sessions

_HOROVOD = communication.HOROVOD
_MEMORY = "memory"
_NCCL = "nccl"
_AUTO = "auto"

KINDS = (_HOROVOD, _MEMORY, _NCCL, _AUTO)

# Candidates of "auto", fastest first.
_AUTO_ORDER = (_NCCL, _MEMORY)

# Key of each rank's note (notes.py): "<number of calls> <kind>".
_NOTE = "exchange"

# Interval between reads of other ranks' notes, and how long to wait for a rank with
# another kind, which may be about to call sok.init again.
_LOOK_SECONDS = .2
_PATIENCE_SECONDS = 10.

_num_calls = 0

# The carrier of this process, which it keeps for life; None for Horovod.
_started = None


def start(kind):
  """Makes sure that all ranks have an exchange of this kind.

  Collective, except for "horovod" and a single rank. A rank that passes another kind
  does not take part. Under horovodrun the other ranks read its note and fail within
  seconds; otherwise they wait until the time limit.

  Args:
    kind: one of `KINDS`.

  Returns:
    The exchange of all ranks: `kind`, or for "auto" the first of "nccl", "memory" and
    "horovod" that all ranks can have.

  Raises:
    ValueError: ranks pass different kinds.
    RuntimeError: this process already has another exchange, or a rank cannot have this
      one. Passing "horovod" after another kind raises an error too: a call that forgets to
      name the carrier would otherwise change the carrier of later lookups on some ranks
      only.
  """
  global _started, _num_calls
  if communication.num_ranks() > 1:
    _num_calls += 1
    notes.leave(_NOTE, "%d %s" % (_num_calls, kind))
  if communication.num_ranks() == 1 or (kind == _HOROVOD and _started is None):
    return _HOROVOD
  if _started is not None:
    if kind in (_started, _AUTO):
      return _started
    raise RuntimeError(
        "sok.init: exchange=%r, but this process already uses %r, which it cannot change" %
        (kind, _started))
  _check_same_kind(kind)
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
    # The reasons of all ranks.
    if communication.rank() == 0:
      tf.compat.v1.logging.info("sok.init: no exchange by %s: %s", candidate,
                                "; ".join(reasons))
  return _started or _HOROVOD


def _check_same_kind(kind):
  """Returns when all ranks pass this kind, or if no launcher keeps notes.

  Raises:
    ValueError: a rank passes another kind.
    RankError: a rank did not come in time.
  """
  begin, limit, warned = time.monotonic(), settings.exchange_timeout(), False
  while True:
    found = notes.read(_NOTE)
    if found is None:
      return
    others = [(note or "0 nothing").split(" ", 1) for note in found]
    if all(other == kind for _, other in others):
      return
    waited = time.monotonic() - begin
    # Ranks that have called sok.init less often than this rank are late, not different.
    missing = [rank for rank, (times, other) in enumerate(others)
               if other != kind and int(times) < _num_calls]
    if len(missing) < sum(other != kind for _, other in others):
      if waited > min(_PATIENCE_SECONDS, limit or _PATIENCE_SECONDS):
        raise ValueError(
            "sok.init: exchange: expected the same on all ranks, got %s" % "; ".join(
                "rank %d: %s" % (rank, other) for rank, (_, other) in enumerate(others)))
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
  """Returns the reasons why the carrier was not made, equal on all ranks; empty on success."""
  made = {}

  def prepare():
    made["id"] = _run(lambda gen: gen.sok_carrier_id(
        kind=kind, rank=communication.rank(), num_ranks=communication.num_ranks()))

  reasons = _failures(channel, _try(prepare))
  name = bytes.fromhex(channel.gather_text(made.get("id", b"").hex())[0])
  if not reasons:
    reasons = _failures(channel, _try(lambda: _run(
        lambda gen: gen.sok_start_carrier(
            name, kind=kind, rank=communication.rank(),
            num_ranks=communication.num_ranks()))))
  if reasons and kind == _MEMORY and communication.rank() == 0 and name:
    _try(lambda: os.unlink(name.decode("utf-8")))
  return reasons


def _try(call):
  """Returns the reason why a call failed, or "". Waits up to the exchange timeout.

  After the timeout the thread goes on: NCCL's start cannot be ended while ranks are
  missing. The thread is a daemon, so it does not keep the process alive. A carrier that
  it makes later is not used, but no other can be started in this process.
  """
  reason = []

  def run():
    try:
      call()
      reason.append("")
    except tf.errors.OpError as e:
      reason.append(_message_of_op(e.message))
    except Exception as e:  # pylint: disable=broad-except
      reason.append(str(e) or type(e).__name__)

  thread = threading.Thread(target=run, name="sok_init")
  thread.daemon = True
  thread.start()
  limit = settings.exchange_timeout()
  thread.join(limit or None)
  return reason[0] if reason else "not all ranks came within %g s" % limit


def _message_of_op(message):
  """Returns the message of an op without what TensorFlow adds to it.

  TensorFlow appends lines with the op's name, `[[{{node start}}]]`. In 2.x it also puts
  lines before the message, which list where the op was created.
  """
  lines = message.split("\n")
  own = [k for k, line in enumerate(lines) if "[[{{node" in line or "[[node" in line]
  return lines[own[0] - 1] if own and own[0] > 0 else lines[0]


def _failures(channel, reason):
  """Returns the reasons of every rank that failed."""
  return ["rank %d: %s" % (rank, text)
          for rank, text in enumerate(channel.gather_text(reason)) if text]


def _run(build):
  session, fetch = sessions.on_cpu(lambda: build(_lib.load()))
  with session:
    return session.run(fetch)
