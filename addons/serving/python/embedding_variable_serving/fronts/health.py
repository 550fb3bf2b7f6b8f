# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The service grpc.health.v1.Health. Readiness follows the models."""

from embedding_variable_serving import errors
from embedding_variable_serving import messages

_REQUEST = messages.message_class("grpc.health.v1.HealthCheckRequest")
_RESPONSE = messages.message_class("grpc.health.v1.HealthCheckResponse")
_ENUM = "grpc.health.v1.ServingStatus"

_SERVICES = ("", "tensorflow.serving.ModelService", "tensorflow.serving.PredictionService",
             "ModelService", "PredictionService")


class Health(object):
  """Check. Watch would hold a thread for each client, and is not implemented."""

  def __init__(self, manager, is_ending):
    """Args: a Manager, a function that returns whether the server ends."""
    self._manager, self._is_ending = manager, is_ending

  def add_to(self, server):
    """Adds the service to a grpc_server.Server."""
    server.add_service("grpc.health.v1.Health", {"Check": (self.check, _REQUEST)})

  def _status(self, service):
    if service not in _SERVICES:
      return "SERVICE_UNKNOWN"
    return "SERVING" if not self._is_ending() and self._manager.is_ready() else "NOT_SERVING"

  def check(self, request, unused_context):
    """Returns a HealthCheckResponse."""
    status = self._status(request.service)
    if status == "SERVICE_UNKNOWN":
      raise errors.ServingError("NOT_FOUND", "unknown service '%s'" % request.service)
    return _RESPONSE(status=messages.enum_value(_ENUM, status))
