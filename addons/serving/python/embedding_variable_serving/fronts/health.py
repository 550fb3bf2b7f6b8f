# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The service grpc.health.v1.Health. Readiness follows the models."""

import logging
import threading
import time

from embedding_variable_serving import errors
from embedding_variable_serving import messages

_REQUEST = messages.message_class("grpc.health.v1.HealthCheckRequest")
_RESPONSE = messages.message_class("grpc.health.v1.HealthCheckResponse")
_ENUM = "grpc.health.v1.ServingStatus"

_SERVICES = ("", "tensorflow.serving.ModelService", "tensorflow.serving.PredictionService",
             "ModelService", "PredictionService")


# Clients that may watch, so that they cannot use memory without limit.
_MAX_WATCHERS = 1000

_POLL_SECONDS = 0.2


class Health(object):
  """Check, and Watch, which sends a new status within 0.2 s. Safe from any thread."""

  def __init__(self, manager, is_ending):
    """Args: a Manager, a function that returns whether the server ends."""
    self._manager, self._is_ending = manager, is_ending
    self._lock = threading.Lock()
    self._watchers = {}  # by a function that sends: [service, the last status]
    self._thread = None  # runs while clients watch

  def add_to(self, server):
    """Adds the service to a grpc_server.Server."""
    server.add_service("grpc.health.v1.Health", {"Check": (self.check, _REQUEST)},
                       {"Watch": (self.watch, _REQUEST)})

  def _status(self, service):
    if service not in _SERVICES:
      return "SERVICE_UNKNOWN"
    return "SERVING" if not self._is_ending() and self._manager.is_ready() else "NOT_SERVING"

  def check(self, request, unused_timeout_ms):
    """Returns a HealthCheckResponse."""
    status = self._status(request.service)
    if status == "SERVICE_UNKNOWN":
      raise errors.ServingError("NOT_FOUND", "unknown service '%s'" % request.service)
    return _RESPONSE(status=messages.enum_value(_ENUM, status))

  def watch(self, request, when_ended, send):
    """Sends the status of a service now, and each time that it changes."""
    with self._lock:
      if len(self._watchers) >= _MAX_WATCHERS:
        raise errors.ServingError("RESOURCE_EXHAUSTED",
                                  "%d clients watch already" % _MAX_WATCHERS)
      self._watchers[send] = [request.service, None]
      if self._thread is None:
        self._thread = threading.Thread(target=self._poll, name="health", daemon=True)
        self._thread.start()
    when_ended(lambda: self._forget(send))

  def _forget(self, send):
    with self._lock:
      self._watchers.pop(send, None)

  def _poll(self):
    while True:
      with self._lock:
        if not self._watchers:
          self._thread = None
          return
        watchers = list(self._watchers.items())
      is_last = self._is_ending()
      for send, watched in watchers:
        try:
          self._send(send, watched, is_last)
        except Exception:  # pylint: disable=broad-except
          # One client's call must not end the thread of all.
          logging.exception("a client no longer watches")
          self._forget(send)
      time.sleep(_POLL_SECONDS)

  def _send(self, send, watched, is_last):
    status = self._status(watched[0])
    if status != watched[1]:
      watched[1] = status
      send(_RESPONSE(status=messages.enum_value(_ENUM, status)))
    if is_last:
      send(None)
      self._forget(send)
