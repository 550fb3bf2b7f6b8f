# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""A gRPC server whose methods are functions from message to message."""

import asyncio
import collections
from concurrent import futures
import functools
import logging
import threading

from google.protobuf import message as protobuf_message
import grpc

try:
  import uvloop
except ImportError:
  uvloop = None

from embedding_variable_serving import errors
from embedding_variable_serving.fronts import limits

_CODES = {code.value[0]: code for code in grpc.StatusCode}

# function: gets a request and the milliseconds until its deadline, or None; returns the response,
#   and may raise. It runs in a thread of requests.
# cls: class of the request.
# begin: None, or a function of the same arguments and of `done`. It returns at once: False if
#   `function` is to be called, else it calls done(response, error) later, in any thread.
Method = collections.namedtuple("Method", ["function", "cls", "begin"])
Method.__new__.__defaults__ = (None,)


@functools.lru_cache(None)
def _loop():
  """Returns the event loop of all servers; grpc.aio has one for a process."""
  # uvloop's takes less time for a call.
  loop = (uvloop or asyncio).new_event_loop()

  def run():
    asyncio.set_event_loop(loop)
    loop.run_forever()

  threading.Thread(target=run, name="grpc", daemon=True).start()
  return loop


def _in_loop(coroutine):
  """Returns the result of a coroutine that runs in the thread of the servers."""
  return asyncio.run_coroutine_threadsafe(coroutine, _loop()).result()


def _check(request):
  if isinstance(request, Exception):
    raise errors.invalid("the request is not a valid message: %s", request)


async def _abort(context, e):
  error = errors.wrapped(e)
  if error.code == "INTERNAL":
    logging.error("internal error of a gRPC request", exc_info=e)
  await context.abort(_CODES[error.number], error.message)


def _streamed(function):
  """Returns a handler that sends what `function` gives to its third argument."""
  async def stream(request, context):
    messages, ended = asyncio.Queue(), []
    context.add_done_callback(lambda unused: [callback() for callback in ended])
    try:
      _check(request)
      function(request, ended.append,
               lambda message: _loop().call_soon_threadsafe(messages.put_nowait, message))
    except Exception as e:  # pylint: disable=broad-except
      await _abort(context, e)
    while True:
      message = await messages.get()
      if message is None:
        return
      yield message
  return stream


class _Finished(object):
  """Takes results in any thread, and gives them to the event loop together."""

  def __init__(self):
    self._results, self._is_waking = collections.deque(), False

  def add(self, future, response, error):
    self._results.append((future, response, error))
    if not self._is_waking:
      self._is_waking = True
      _loop().call_soon_threadsafe(self._give)

  def _give(self):
    self._is_waking = False  # Before the queue is read: what is added later wakes again.
    while self._results:
      future, response, error = self._results.popleft()
      if error is None:
        future.set_result(response)
      else:
        future.set_exception(error)


def _reader(cls):
  """Returns a function from bytes to a message of a class, or to a DecodeError.

  grpc logs a traceback for each message whose function raises.
  """
  def read(data):
    try:
      return cls.FromString(data)
    except protobuf_message.DecodeError as e:
      return e
  return read


class Server(object):
  """Listens on a TCP port and a Unix socket."""

  def __init__(self, num_threads, max_queued, max_bytes, arguments=()):
    """Makes a server that does not listen yet.

    Args:
      num_threads: num_threads of requests.
      max_queued: requests that may wait for a thread.
      max_bytes: max_bytes of a message.
      arguments: (name, value) pairs of channel arguments.
    """
    self._threads = futures.ThreadPoolExecutor(num_threads, "grpc")
    self._limit, self._finished = limits.Limit(num_threads, max_queued), _Finished()
    options = [("grpc.so_reuseport", 0), ("grpc.max_receive_message_length", max_bytes),
               ("grpc.max_send_message_length", -1)] + list(arguments)

    async def make():
      return grpc.aio.server(options=options)

    self._server = _in_loop(make())

  def add_service(self, name, methods, streams=()):
    """Adds a service.

    Args:
      name: full name.
      methods: {name: tuple with the fields of a Method}.
      streams: {name: (function, class of the request)}, for methods that send responses while
        a client waits for them. Their function gets the request, a function that takes what
        is to be called when the stream has ended, and one that sends a response, or ends the
        stream if it gets None. It returns at once, so a stream holds no thread.
    """
    handlers = {}
    for method, found in methods.items():
      found = Method(*found)
      handlers[method] = grpc.unary_unary_rpc_method_handler(
          self._answered(found), request_deserializer=_reader(found.cls),
          response_serializer=lambda message: message.SerializeToString())
    for method, (function, cls) in dict(streams).items():
      handlers[method] = grpc.unary_stream_rpc_method_handler(
          _streamed(function), request_deserializer=_reader(cls),
          response_serializer=lambda message: message.SerializeToString())
    self._server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler(name, handlers),))

  def _answered(self, method):
    def start(request, timeout_ms):
      """Returns a future of the response."""
      self._limit.enter()
      try:
        _check(request)
        future = None
        if method.begin is not None:
          future = _loop().create_future()
          if not method.begin(request, timeout_ms,
                              functools.partial(self._finished.add, future)):
            future = None
        if future is None:
          future = _loop().run_in_executor(self._threads, method.function, request, timeout_ms)
      except BaseException:
        self._limit.leave()
        raise
      future.add_done_callback(self._limit.leave)
      return future

    async def call(request, context):
      seconds = context.time_remaining()
      # Without a deadline grpc returns None or some hundred years.
      timeout_ms = None if seconds is None or seconds > 1e8 else seconds * 1e3
      try:
        # If the client goes, grpc cancels this call. The request goes on, and counts.
        return await asyncio.shield(start(request, timeout_ms))
      except asyncio.CancelledError:  # Python 3.7 takes it for an Exception.
        raise
      except Exception as e:  # pylint: disable=broad-except
        await _abort(context, e)
    return call

  def listen(self, address, credentials=None):
    """Adds an address, such as "127.0.0.1:0" or "unix:PATH"; returns the port.

    Raises:
      OSError: the address is in use, or not valid.
    """
    async def add():
      return (self._server.add_secure_port(address, credentials) if credentials else
              self._server.add_insecure_port(address))

    try:
      port = _in_loop(add())
    except RuntimeError as e:
      raise OSError("cannot listen on %s: %s" % (address, e))
    if not port:
      raise OSError("cannot listen on %s: the address is in use, or not valid" % address)
    return port

  def start(self):
    _in_loop(self._server.start())

  def stop(self, seconds):
    """Refuses new calls, waits for those in flight, at most so many seconds."""
    _in_loop(self._server.stop(seconds))
    self._threads.shutdown(wait=False)
