# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Clients that a server must survive: broken requests, aborts, crashes, slow senders."""

import collections
import random
import socket
import struct
import subprocess
import sys
import threading

import grpc

_PREDICT = "/tensorflow.serving.PredictionService/Predict"
_SLOW = 20  # connections of slow clients at a time

# Sends a part of a request, and is killed.
_CRASH = """
import os, signal, socket, sys
client = socket.create_connection(("127.0.0.1", int(sys.argv[1])), 30)
client.sendall(bytes.fromhex(sys.argv[2]))
os.kill(os.getpid(), signal.SIGKILL)
"""


class BadClients(threading.Thread):
  """Thread that misbehaves in a random order.

  Attributes:
    counts: {what was done, or status of an answer: times}.
    error: the exception that ended the thread, or None.
  """

  def __init__(self, ports, http_path, message, seed):
    """Starts nothing.

    Args:
      ports: (port of gRPC, port of HTTP).
      http_path: string, such as "/v1/models/m:predict".
      message: bytes of a valid PredictRequest.
      seed: int.
    """
    super().__init__(daemon=True)
    self.counts, self.error = collections.Counter(), None
    self._grpc_port, self._http_port = ports
    body = b'{"instances": [1, 2]}'
    self._request = (b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (
        http_path.encode(), len(body))) + body
    self._message, self._draw = message, random.Random(seed)
    self._slow = collections.deque()
    self._done = threading.Event()

  def run(self):
    kinds = [self.malformed_http, self.malformed_grpc, self.abort, self.crash, self.slow,
             self.cancel, self.bytes_to_grpc]
    try:
      with grpc.insecure_channel("127.0.0.1:%d" % self._grpc_port) as channel:
        self._call = channel.unary_unary(_PREDICT, None, None)
        while not self._done.is_set():
          kind = self._draw.choice(kinds)
          kind()
          self.counts[kind.__name__] += 1
          self._done.wait(0.005)
    except Exception as e:  # pylint: disable=broad-except
      self.error = e
    finally:
      for client in self._slow:
        client.close()

  def stop(self):
    self._done.set()
    self.join()

  def _connect(self, port):
    return socket.create_connection(("127.0.0.1", port), 60)

  def _damaged(self, data):
    data = bytearray(data)
    for _ in range(self._draw.randint(1, 5)):
      data[self._draw.randrange(len(data))] = self._draw.randrange(256)
    return bytes(data)

  def _part(self):
    return self._request[:self._draw.randrange(1, len(self._request))]

  def malformed_http(self):
    """Sends a damaged request, ends its side, and reads the answer, if there is one."""
    with self._connect(self._http_port) as client:
      try:
        client.sendall(self._damaged(self._request))
        client.shutdown(socket.SHUT_WR)
        line = client.makefile("rb").readline().split()
      except OSError:  # refused before all of it had come
        line = []
    self.counts["HTTP %s" % (line[1].decode("latin-1") if len(line) > 1 else "closed")] += 1

  def malformed_grpc(self):
    """Sends a damaged message."""
    try:
      self._call(self._damaged(self._message), timeout=60)
      self.counts["OK"] += 1
    except grpc.RpcError as e:
      self.counts[e.code().name] += 1

  def cancel(self):
    """Cancels a valid call while it runs, or before."""
    call = self._call.future(self._message, timeout=60)
    self._done.wait(0.002 * self._draw.random())
    call.cancel()

  def abort(self):
    """Resets a connection in the middle of a request, or before its answer."""
    with self._connect(self._http_port) as client:
      client.sendall(self._draw.choice([self._part(), self._request]))
      client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

  def crash(self):
    """Runs a process that is killed in the middle of a request."""
    subprocess.call([sys.executable, "-S", "-E", "-c", _CRASH, str(self._http_port),
                     self._part().hex()])

  def slow(self):
    """Opens a connection whose request never ends; the oldest of them is closed."""
    client = self._connect(self._draw.choice([self._http_port, self._grpc_port]))
    client.sendall(self._request[:self._draw.randrange(1, 20)])
    self._slow.append(client)
    for other in list(self._slow):
      try:
        other.sendall(b"x")
      except OSError:  # the server has closed it
        self._slow.remove(other)
        other.close()
    if len(self._slow) > _SLOW:
      self._slow.popleft().close()

  def bytes_to_grpc(self):
    """Sends bytes that are no HTTP/2 to the port of gRPC."""
    with self._connect(self._grpc_port) as client:
      client.sendall(self._damaged(self._request))
