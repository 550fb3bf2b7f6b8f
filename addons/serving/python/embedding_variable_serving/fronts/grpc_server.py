# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""A gRPC server whose methods are functions from message to message."""

import logging
import time

from google.protobuf import message as protobuf_message
import grpc

from embedding_variable_serving import errors
from embedding_variable_serving.fronts import limits

_CODES = {code.value[0]: code for code in grpc.StatusCode}


def time_left_ms(context):
  """Returns the milliseconds until the deadline of a call, or None."""
  seconds = context.time_remaining()
  # Without a deadline grpc returns None or some hundred years.
  return None if seconds is None or seconds > 1e8 else seconds * 1e3


def _without_thread(function):
  def start(request, context, send_response_callback):
    if isinstance(request, Exception):
      context.set_code(grpc.StatusCode.INVALID_ARGUMENT)
      context.set_details("the request is not a valid message: %s" % request)
      send_response_callback(None)
    else:
      function(request, context, send_response_callback)
  start.experimental_non_blocking = True  # the same attribute as in grpcio-health-checking
  return start


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
    self._threads = limits.BoundedThreads(num_threads, max_queued, "grpc")
    options = [("grpc.so_reuseport", 0), ("grpc.max_receive_message_length", max_bytes),
               ("grpc.max_send_message_length", -1)] + list(arguments)
    self._server = grpc.server(self._threads, options=options)

  def add_service(self, name, methods, streams=()):
    """Adds a service.

    Args:
      name: full name.
      methods: {method: (function of request and context, request class)}.
      streams: the same, for methods that send responses while a client waits for them.
        The function has a third argument, a function that sends a response, or ends the
        stream if it gets None. It returns at once, so a stream holds no thread.
    """
    handlers = {}
    for method, (function, cls) in methods.items():
      handlers[method] = grpc.unary_unary_rpc_method_handler(
          self._guarded(function), request_deserializer=_reader(cls),
          response_serializer=lambda message: message.SerializeToString())
    for method, (function, cls) in dict(streams).items():
      handlers[method] = grpc.unary_stream_rpc_method_handler(
          _without_thread(function), request_deserializer=_reader(cls),
          response_serializer=lambda message: message.SerializeToString())
    self._server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler(name, handlers),))

  def _guarded(self, function):
    def call(request, context):
      try:
        self._threads.check()
        if isinstance(request, Exception):
          raise errors.invalid("the request is not a valid message: %s", request)
        return function(request, context)
      except Exception as e:  # pylint: disable=broad-except
        error = errors.wrapped(e)
        if error.code == "INTERNAL":
          logging.exception("internal error of a gRPC request")
        context.abort(_CODES[error.number], error.message)
    return call

  def listen(self, address, credentials=None):
    """Adds an address, such as "127.0.0.1:0" or "unix:PATH"; returns the port.

    Raises:
      OSError: the address is in use, or not valid.
    """
    try:
      port = (self._server.add_secure_port(address, credentials) if credentials else
              self._server.add_insecure_port(address))
    except RuntimeError as e:
      raise OSError("cannot listen on %s: %s" % (address, e))
    if not port:
      raise OSError("cannot listen on %s: the address is in use, or not valid" % address)
    return port

  def start(self):
    self._server.start()

  def stop(self, seconds):
    """Refuses new calls, waits for those in flight, at most so many seconds."""
    begin = time.time()
    self._server.stop(seconds).wait(seconds + 1)
    self._threads.shutdown(wait=time.time() - begin < seconds)
