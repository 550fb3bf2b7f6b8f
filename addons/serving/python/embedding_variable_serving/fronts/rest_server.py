# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""An HTTP server in a thread of its own: bodies in, functions in threads, answers out."""

import asyncio
import collections
from concurrent import futures
import logging
import socket
import threading
import zlib

import uvicorn

from embedding_variable_serving import errors
from embedding_variable_serving.fronts import json_tensors
from embedding_variable_serving.fronts import limits

# Result of the function that answers a request. body: bytes.
Answer = collections.namedtuple("Answer", ["status", "body", "content_type", "headers"])
Answer.__new__.__defaults__ = ("application/json", ())

# Header: (name in lower case, value), both bytes.
Request = collections.namedtuple("Request", ["method", "path", "headers", "body", "timeout_ms"])


def listen(host, port):
  """Returns a socket that listens.

  Raises:
    OSError: the address is in use.
  """
  family = socket.AF_INET6 if ":" in host else socket.AF_INET
  sock = socket.socket(family, socket.SOCK_STREAM)
  sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
  try:
    sock.bind((host, port))
  except OSError as e:
    sock.close()
    raise OSError("cannot listen on %s:%d: %s" % (host, port, e))
  sock.listen(1024)
  return sock


def _inflated(body, max_bytes):
  """Returns a gzip body unpacked."""
  try:
    unpacker = zlib.decompressobj(16 + zlib.MAX_WBITS)
    found = unpacker.decompress(body, max_bytes + 1)
  except zlib.error as e:
    raise errors.invalid("the body is not gzip: %s", e)
  _check_size(len(found), max_bytes)
  if not unpacker.eof:
    raise errors.invalid("the gzip body is cut off")
  return found


def _check_size(size, max_bytes):
  if size > max_bytes:
    raise errors.ServingError("INVALID_ARGUMENT", "the body has %d bytes or more, expected at "
                              "most %d: see --max_request_bytes" % (size, max_bytes), 413)


class Server(object):
  """Calls a function for each request."""

  def __init__(self, answer, sock, num_threads, max_queued, max_bytes, timeout_ms):
    """Starts to listen.

    Args:
      answer: function of a Request; returns an Answer. It may raise.
      sock: socket that listens.
      num_threads: that call `answer`.
      max_queued: requests that may wait for a thread.
      max_bytes: max_bytes of a body, as sent and unpacked.
      timeout_ms: timeout_ms of a request.
    """
    self._answer, self._max_bytes, self._timeout_ms = answer, max_bytes, timeout_ms
    self._threads = futures.ThreadPoolExecutor(num_threads, "rest")
    self._limit = limits.Limit(num_threads, max_queued)
    config = uvicorn.Config(
        self._app, loop="auto", http="httptools", lifespan="off", interface="asgi3",
        # Without a level uvicorn traces each request, by a middleware.
        access_log=False, log_config=None, log_level="warning", server_header=False,
        proxy_headers=False, ws="none",
        timeout_keep_alive=75)
    self._server = uvicorn.Server(config)
    self._sock = sock
    self.port = sock.getsockname()[1]
    self._thread = threading.Thread(target=self._run, name="rest", daemon=True)
    self._thread.start()

  def _run(self):
    self._server.run(sockets=[self._sock])

  async def _app(self, scope, receive, send):
    if scope["type"] != "http":
      return
    try:
      body = await self._body(scope, receive)
      if body is None:
        return  # The client is gone.
      request = Request(scope["method"], scope["raw_path"].decode("latin-1").split("?")[0],
                        scope["headers"], body, self._timeout_ms)
      self._limit.enter()
      try:
        answer = await asyncio.get_event_loop().run_in_executor(
            self._threads, self._call, request)
      finally:
        self._limit.leave()
    except errors.ServingError as e:
      answer = error_answer(e)
    headers = [(b"content-type", answer.content_type.encode()),
               (b"content-length", b"%d" % len(answer.body))] + list(answer.headers)
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})

  async def _body(self, scope, receive):
    headers = dict(scope["headers"])
    length = headers.get(b"content-length", b"0")
    _check_size(int(length) if length.isdigit() else 0, self._max_bytes)
    parts, size = [], 0
    while True:
      try:
        # A client that sends slowly does not keep a connection for ever.
        event = await asyncio.wait_for(receive(), self._timeout_ms / 1e3)
      except asyncio.TimeoutError:
        raise errors.ServingError("DEADLINE_EXCEEDED", "the body did not arrive in time")
      if event["type"] == "http.disconnect":
        return None
      parts.append(event.get("body", b""))
      size += len(parts[-1])
      _check_size(size, self._max_bytes)
      if not event.get("more_body"):
        break
    body = b"".join(parts)
    if headers.get(b"content-encoding", b"").lower() == b"gzip":
      body = _inflated(body, self._max_bytes)
    return body

  def _call(self, request):
    try:
      return self._answer(request)
    except Exception as e:  # pylint: disable=broad-except
      error = errors.wrapped(e)
      if error.code == "INTERNAL":
        logging.exception("internal error of a REST request")
      return error_answer(error)

  def stop(self, seconds):
    """Refuses new connections, answers requests in flight, at most so many seconds."""
    self._server.should_exit = True
    self._thread.join(seconds)
    self._server.force_exit = True
    self._thread.join(5)
    self._threads.shutdown(wait=False)


def error_answer(error):
  """Returns the Answer of a ServingError."""
  return Answer(error.http_status, json_tensors.dumps({"error": error.message}))
