# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Processes that a test kills, and threads that ask a server all the time."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

import grpc
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2
from tensorflow_serving.apis import prediction_service_pb2_grpc

_POLL_SECONDS = 0.005
_PAUSE_SECONDS = 0.02  # between two requests of a client
_LONGEST = 240  # seconds that anything may take on a busy machine


def wait_until(condition, what, alive=()):
  """Waits until condition() is true.

  Args:
    condition: function without arguments.
    what: string, what is waited for.
    alive: Processes that must not end meanwhile.

  Raises:
    AssertionError: a process has ended, or it takes too long.
  """
  end = time.time() + _LONGEST
  while not condition():
    for process in alive:
      if process.popen.poll() is not None:
        raise AssertionError("waited for %s, but %s ended:\n%s" % (
            what, process.name, process.output()[-3000:]))
    if time.time() > end:
      raise AssertionError("waited %d s for %s\n%s" % (
          _LONGEST, what, "\n".join(p.output()[-3000:] for p in alive)))
    time.sleep(_POLL_SECONDS)


def free_port():
  with socket.socket() as probe:
    probe.bind(("127.0.0.1", 0))
    return probe.getsockname()[1]


class Process(object):
  """A process with a file for its output, which is started again after a kill.

  Attributes:
    name: string, in messages.
    popen: the newest process.
  """

  def __init__(self, folder, name, argv):
    """Starts nothing. Args: folder of the output, its name, list of strings."""
    self.name, self.popen = name, None
    self._argv, self._path = argv, os.path.join(folder, name + ".output")

  def start(self, *more, **environ):
    """Starts it, with more arguments and variables of the environment."""
    with open(self._path, "wb") as f:
      self.popen = subprocess.Popen(
          self._argv + list(more), stdout=f, stderr=subprocess.STDOUT,
          env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path), **environ))

  def output(self):
    """Returns what the newest process has printed."""
    with open(self._path, errors="replace") as f:
      return f.read()

  def wait_for(self, pattern):
    """Waits until a pattern is in the output; returns its match."""
    wait_until(lambda: re.search(pattern, self.output()), "'%s'" % pattern, [self])
    return re.search(pattern, self.output())

  def kill(self):
    """Kills it, if it runs."""
    if self.popen is not None:
      self.popen.kill()
      self.popen.wait()

  def kill_if(self, condition):
    """Stops it, and kills it if condition() is true then; otherwise it goes on.

    Returns:
      Bool, whether it was killed.
    """
    self.popen.send_signal(signal.SIGSTOP)
    if condition():
      self.kill()
      return True
    self.popen.send_signal(signal.SIGCONT)
    return False

  def terminate(self):
    """Sends SIGTERM; returns the exit status."""
    self.popen.send_signal(signal.SIGTERM)
    return self.popen.wait(timeout=_LONGEST)


def server(folder, *flags):
  """Returns the Process of a server with (gRPC port, HTTP port); starts nothing."""
  ports = free_port(), free_port()
  return Process(folder, "server", [
      sys.executable, "-W", "ignore", "-m", "embedding_variable", "serve",
      "--port=%d" % ports[0], "--rest_api_port=%d" % ports[1]] + list(flags)), ports


class Client(threading.Thread):
  """Thread that sends the same request again and again, one at a time.

  Attributes:
    answers: list of dicts {output: array}.
    failures: list of (code, text); the code of gRPC, or "UNREACHABLE" without an answer
      over HTTP.
  """

  def __init__(self, ask):
    """Args: function that returns an answer, or raises a grpc.RpcError or OSError."""
    super().__init__(daemon=True)
    self.answers, self.failures, self._taken = [], [], 0
    self.error = None
    self._ask, self._done = ask, threading.Event()

  def run(self):
    while not self._done.is_set():
      try:
        self.answers.append(self._ask())
      except grpc.RpcError as e:
        self.failures.append((e.code().name, e.details()))
      except urllib.error.HTTPError as e:
        self.failures.append(("HTTP %d" % e.code, e.read().decode()))
      except OSError as e:
        self.failures.append(("UNREACHABLE", repr(e)))
      except BaseException as e:
        self.error = e
        raise
      self._done.wait(_PAUSE_SECONDS)

  def stop(self):
    self._done.set()
    self.join()

  def wait_for_answer(self, condition, what, alive):
    """Waits for an answer to a request that is sent from now on."""
    first = len(self.answers) + 1  # the next one may have been under way

    def found():
      if self.error:
        raise AssertionError("a client ended: %r" % self.error)
      return any(condition(answer) for answer in self.answers[first:])

    wait_until(found, "%s; the last answers are %s, and the failures %s" % (
        what, self.answers[-1:], self.failures[-1:]), alive)

  def take_failures(self):
    """Returns the failures since the last call."""
    found = self.failures[self._taken:]
    self._taken += len(found)
    return found


def ask_by_grpc(port, model, inputs):
  """Returns a function for Client: {output: array}, and "version"."""
  request = predict_pb2.PredictRequest()
  request.model_spec.name = model
  for name, array in inputs.items():
    request.inputs[name].CopyFrom(tf.compat.v1.make_tensor_proto(array))
  channel = grpc.insecure_channel("127.0.0.1:%d" % port, [
      ("grpc.initial_reconnect_backoff_ms", 100), ("grpc.max_reconnect_backoff_ms", 100)])
  stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)

  def ask():
    response = stub.Predict(request, timeout=_LONGEST)
    answer = {name: tf.make_ndarray(proto) for name, proto in response.outputs.items()}
    return dict(answer, version=response.model_spec.version.value)

  return ask


def ask_by_http(port, model, inputs):
  """Returns a function for Client: {output: list or number}."""
  body = json.dumps({"inputs": inputs}).encode()
  url = "http://127.0.0.1:%d/v1/models/%s:predict" % (port, model)

  def ask():
    with urllib.request.urlopen(url, body, timeout=_LONGEST) as answer:
      return json.loads(answer.read().decode())["outputs"]

  return ask
