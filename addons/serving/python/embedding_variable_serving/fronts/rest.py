# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Passes each HTTP request to its interface."""

from embedding_variable_serving import metrics as metrics_text
from embedding_variable_serving.fronts import json_tensors
from embedding_variable_serving.fronts import rest_server
from embedding_variable_serving.fronts import rest_tf_serving
from embedding_variable_serving.fronts import rest_v2


class Router(object):
  """The function that rest_server.Server calls."""

  def __init__(self, manager, metrics, metrics_path=None):
    self._tf_serving = rest_tf_serving.RestInterface(manager, metrics)
    self._v2 = rest_v2.RestInterface(manager, metrics)
    self._metrics, self._metrics_path = metrics, metrics_path

  def __call__(self, request):
    if request.path.lower().startswith("/v1/"):
      value = self._tf_serving(request.method, request.path, request.body, request.timeout_ms)
      return rest_server.Answer(200, json_tensors.dumps(value))
    if request.path == "/v2" or request.path.startswith("/v2/"):
      return self._v2(request)
    if request.method == "GET" and request.path == self._metrics_path:
      return rest_server.Answer(200, self._metrics.text(), metrics_text.TYPE)
    return rest_server.Answer(404, b"", "text/plain")
