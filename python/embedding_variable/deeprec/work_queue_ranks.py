# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""State of a work queue that the ranks of a Horovod job share.

Rank 0 holds the works and serves the others over TCP. Its address and a secret of the
job are broadcast by Horovod when the first queue is created. Checkpoints that rank 0
writes have the state of the whole job.
"""

import collections
import contextlib
import hmac
import json
import random
import secrets
import socket
import socketserver
import threading

import numpy as np

from embedding_variable.tf_names import compat
from embedding_variable.tf_names import constant_op
from embedding_variable.tf_names import dtypes
from embedding_variable.tf_names import ops
from embedding_variable.tf_names import random_seed
from embedding_variable.tf_names import script_ops
from embedding_variable.tf_names import session as session_lib


# Seconds that a rank waits for rank 0 to create the queue, and again to fill it.
_WAIT_LIMIT = 300

# Methods of `_Works` that other ranks call with their number.
_CALLS_OF_A_RANK = ("take", "finish", "held")

_lock = threading.Lock()
# The queues of this process, which is rank 0: {(name, number): _Works}.
_states = {}
# How many queues of each name this process has created. A name is unique within a graph
# only, so a queue is identified by its name and its number among those of this name.
_created = collections.Counter()
_state_added = threading.Condition(_lock)
_server = None


class _Works(object):
  """The state of one queue, in rank 0. Thread-safe."""

  def __init__(self, first_fill, held):
    self._first_fill = first_fill
    self._held_size = held
    self._changed = threading.Condition()
    self._works = None
    self._next = 0
    self._done = []
    self._held = collections.defaultdict(collections.deque)

  def initialize(self):
    """Fills the queue unless it is filled."""
    with self._changed:
      if self._works is None:
        self._fill(self._first_fill())

  def restore(self, works):
    """Replaces the contents; None: by those at first."""
    with self._changed:
      self._fill(self._first_fill() if works is None else list(works))

  def _fill(self, works):
    self._works, self._next = works, 0
    self._done = [False] * len(works)
    self._held.clear()
    self._changed.notify_all()

  def is_initialized(self):
    with self._changed:
      return self._works is not None

  def take(self, rank):
    """Returns the next work, or None at the end."""
    with self._changed:
      if not self._changed.wait_for(lambda: self._works is not None, _WAIT_LIMIT):
        raise RuntimeError("rank 0 did not fill the work queue within %d s" % _WAIT_LIMIT)
      if self._next == len(self._works):
        return None
      held = self._held[rank]
      held.append(self._next)
      if len(held) > self._held_size:
        self._done[held.popleft()] = True
      self._next += 1
      return self._works[self._next - 1]

  def finish(self, rank):
    with self._changed:
      for number in self._held.pop(rank, ()):
        self._done[number] = True

  def held(self, rank):
    with self._changed:
      return len(self._held.get(rank, ()))

  def left(self, at_most_once):
    with self._changed:
      if self._works is None:
        return []
      if at_most_once:
        return self._works[self._next:]
      return [w for w, is_done in zip(self._works, self._done) if not is_done]

  def size(self):
    with self._changed:
      return 0 if self._works is None else len(self._works) - self._next


def _new_key(name):
  """Returns (name, number) of a new queue, which are the same on all ranks."""
  with _lock:
    _created[name] += 1
    return name, _created[name]


def _add_state(key, works):
  with _state_added:
    _states[key] = works
    _state_added.notify_all()


def _state(key):
  """Returns the works of a queue. Waits for it: another rank may be ahead of rank 0."""
  with _state_added:
    if not _state_added.wait_for(lambda: key in _states, _WAIT_LIMIT):
      raise RuntimeError("rank 0 did not create the work queue within %d s" % _WAIT_LIMIT)
    return _states[key]


class _Handler(socketserver.StreamRequestHandler):
  """Answers one request per line; both are JSON."""

  def handle(self):
    for line in self.rfile:
      try:
        request = json.loads(line.decode("utf-8"))
        if not hmac.compare_digest(str(request.get("secret")), self.server.secret):
          return
        state = _state((request["queue"], request["number"]))
        call = request["call"]
        if call not in _CALLS_OF_A_RANK + ("size", "is_initialized"):
          return
        arguments = [int(request["rank"])] if call in _CALLS_OF_A_RANK else []
        answer = {"value": getattr(state, call)(*arguments)}
      except RuntimeError as e:
        answer = {"error": str(e)}
      except (ValueError, KeyError, TypeError, AttributeError):
        return
      self.wfile.write(json.dumps(answer).encode("utf-8") + b"\n")


class _Server(socketserver.ThreadingTCPServer):
  daemon_threads = True
  request_queue_size = 128


class _Client(object):
  """This rank's connection to rank 0. Thread-safe."""

  def __init__(self, address, secret, rank):
    self._address, self._secret, self._rank = address, secret, rank
    self._lock = threading.Lock()
    self._file = None

  def call(self, key, call):
    queue, number = key
    request = {"secret": self._secret, "queue": queue, "number": number, "call": call,
               "rank": self._rank}
    with self._lock:
      if self._file is None:
        self._file = socket.create_connection(
            tuple(self._address), 2 * _WAIT_LIMIT + 60).makefile("rwb")
      self._file.write(json.dumps(request).encode("utf-8") + b"\n")
      self._file.flush()
      line = self._file.readline()
    if not line:
      raise RuntimeError("work queue '%s': rank 0 has closed the connection" % queue)
    answer = json.loads(line.decode("utf-8"))
    if "error" in answer:
      raise RuntimeError("work queue '%s': %s" % (queue, answer["error"]))
    return answer["value"]


def _horovod():
  import horovod.tensorflow as hvd  # pylint: disable=g-import-not-at-top
  try:
    hvd.size()
  except ValueError:
    raise ValueError("WorkQueue: ranks=True needs hvd.init() before the queue is created")
  return hvd


def _connect(hvd):
  """Starts or finds rank 0's server; returns this process's (is_host, client)."""
  global _server
  with _lock:
    if _server is None:
      address, secret, server = None, None, None
      if hvd.rank() == 0:
        secret = secrets.token_hex(16)
        server = _Server(("", 0), _Handler)
        server.secret = secret
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = [socket.gethostname(), server.server_address[1]]
      with ops.Graph().as_default(), session_lib.Session() as session:
        address, secret = hvd.broadcast_object([address, secret], 0, session=session,
                                               name="embedding_variable_work_queues")
      _server = (server, _Client(address, secret, hvd.rank()))
    return _server


class RanksState(object):
  """The same methods as `work_queue_graph.GraphState`; the ops call Python."""

  def __init__(self, name, works, num_epochs, shuffle, seed, held):
    hvd = _horovod()
    graph_seed, op_seed = random_seed.get_seed(seed)
    server, self._client = _connect(hvd)
    self._name = name
    self._key = _new_key(name)
    self._rank = hvd.rank()
    self._works = None

    def first_fill():
      numbers = random.Random(None if op_seed is None else "%s/%s" %
                              (graph_seed, op_seed))
      filled = []
      for _ in range(num_epochs):
        epoch = list(works)
        if shuffle:
          numbers.shuffle(epoch)
        filled += epoch
      return filled

    if server is not None:
      self._works = _Works(first_fill, held)
      _add_state(self._key, self._works)
    self._anchor = constant_op.constant(name, name=name + "_anchor")

  @property
  def op(self):
    """An op of this rank's graph."""
    return self._anchor.op

  def host(self):
    """Returns a scope without effect: the ops of a rank have no device of their own."""
    return contextlib.suppress()

  def _call(self, call):
    """Calls rank 0's method that needs at most this rank's number."""
    if self._works is None:
      return self._client.call(self._key, call)
    arguments = [self._rank] if call in _CALLS_OF_A_RANK else []
    return getattr(self._works, call)(*arguments)

  def _op(self, function, inputs, dtype):
    return script_ops.numpy_function(function, inputs, dtype)

  def initialize(self):
    def function():
      if self._works is not None:
        self._works.initialize()
      return np.bool_(True)
    return self._op(function, [], dtypes.bool).op

  def is_initialized(self):
    # Other ranks wait in their first take.
    return self._op(
        lambda: np.bool_(self._works is None or self._works.is_initialized()), [],
        dtypes.bool)

  def restore(self, works, is_same):
    def function(values, same):
      if self._works is not None:
        self._works.restore([compat.as_str(v) for v in values] if same else None)
      return np.bool_(True)
    return self._op(function, [works, is_same], dtypes.bool).op

  def take(self):
    def function():
      work = self._call("take")
      if work is None:
        raise StopIteration("work queue '%s' is empty" % self._name)
      return np.array(compat.as_bytes(work), dtype=object)
    return self._op(function, [], dtypes.string)

  def finish(self):
    def function():
      self._call("finish")
      return np.bool_(True)
    return self._op(function, [], dtypes.bool).op

  def left(self, at_most_once):
    def function():
      left = [] if self._works is None else self._works.left(at_most_once)
      return np.array([compat.as_bytes(w) for w in left], dtype=object)
    return self._op(function, [], dtypes.string)

  def held(self):
    return self._op(lambda: np.int64(self._call("held")), [], dtypes.int64)

  def size(self):
    return self._op(lambda: np.int64(self._call("size")), [], dtypes.int64)
