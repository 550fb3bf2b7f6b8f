# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Passes each HTTP request to its interface."""

from embedding_variable_serving.fronts import json_tensors
from embedding_variable_serving.fronts import rest_server
from embedding_variable_serving.fronts import rest_tf_serving


class Router(object):
  """The function that rest_server.Server calls."""

  def __init__(self, manager):
    self._tf_serving = rest_tf_serving.RestInterface(manager)

  def __call__(self, request):
    if request.path.lower().startswith("/v1/"):
      value = self._tf_serving(request.method, request.path, request.body, request.timeout_ms)
      return rest_server.Answer(200, json_tensors.dumps(value))
    return rest_server.Answer(404, b"", "text/plain")
