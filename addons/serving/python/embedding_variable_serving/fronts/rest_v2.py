# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The Open Inference Protocol V2 over HTTP: /v2/..."""

import re
import urllib.parse

import numpy as np

import embedding_variable_serving
from embedding_variable_serving import errors
from embedding_variable_serving.fronts import json_tensors
from embedding_variable_serving.fronts import rest_server
from embedding_variable_serving.fronts import v2

_PATH = re.compile(r"/v2/models/(?P<name>[^/]+)(?:/versions/(?P<version>[^/]+))?"
                   r"(?:/(?P<action>ready|infer))?$")
_LENGTH = b"inference-header-content-length"
_STATUS = {"NOT_FOUND": 404, "UNAVAILABLE": 503, "UNIMPLEMENTED": 501, "INTERNAL": 500}


def _json(value, status=200):
  return rest_server.Answer(status, json_tensors.dumps(value))


def _list_of_objects(request, key):
  value = request.get(key, [])
  if not isinstance(value, list) or not all(
      isinstance(v, dict) and isinstance(v.get("name"), str) for v in value):
    raise errors.invalid("\"%s\" is not a list of objects with a name", key)
  return value


def _parameter(thing, key, default=None):
  parameters = thing.get("parameters")
  return parameters.get(key, default) if isinstance(parameters, dict) else default


def _split(request):
  """Returns (JSON value, bytes of binary tensors) of a body."""
  length = dict(request.headers).get(_LENGTH)
  if length is None:
    return json_tensors.loads(request.body), b""
  if not length.isdigit() or int(length) > len(request.body):
    raise errors.invalid("Inference-Header-Content-Length is not a number up to %d",
                         len(request.body))
  return (json_tensors.loads(request.body[:int(length)]),
          memoryview(request.body)[int(length):])


class RestInterface(object):
  """Answers requests below /v2."""

  def __init__(self, manager, metrics):
    self._manager, self._metrics = manager, metrics

  def __call__(self, request):
    """Returns the rest_server.Answer of a Request."""
    try:
      return self._answer(request)
    except errors.ServingError as e:
      return _json({"error": e.message}, _STATUS.get(e.code, 400))

  def _answer(self, request):
    path = request.path.rstrip("/")
    if request.method == "GET" and path == "/v2":
      return _json({"name": "embedding_variable_serving",
                    "version": embedding_variable_serving.__version__,
                    "extensions": ["binary_tensor_data"]})
    if request.method == "GET" and path in ("/v2/health/live", "/v2/health/ready"):
      is_ok = path.endswith("live") or self._manager.is_ready()
      return _json(is_ok, 200 if is_ok else 400)
    found = _PATH.match(path)
    if not found or (request.method == "POST") != (found.group("action") == "infer"):
      raise errors.ServingError("NOT_FOUND", "there is no %s %s" % (request.method, path))
    spec = v2.spec_of(urllib.parse.unquote(found.group("name")), found.group("version") or "")
    if found.group("action") == "infer":
      return self._infer(spec, request)
    if found.group("action") == "ready":
      is_ok = v2.is_ready(self._manager, spec)
      return _json(is_ok, 200 if is_ok else 400)
    return _json(v2.metadata(self._manager, spec))

  def _infer(self, spec, request):
    body, tail = _split(request)
    if not isinstance(body, dict):
      raise errors.invalid("the request is not a JSON object")
    feeds, at = {}, 0
    for tensor in _list_of_objects(body, "inputs"):
      name, shape, datatype = tensor["name"], tensor.get("shape"), tensor.get("datatype")
      if not isinstance(shape, list) or name in feeds:
        raise errors.invalid("input '%s' has no shape, or is there twice", name)
      size = _parameter(tensor, "binary_data_size")
      if size is None:
        flat = json_tensors.to_array(name, tensor.get("data", []), v2.type_of(name, datatype))
        feeds[name] = v2.reshaped(name, flat.ravel(), shape)
        continue
      if not isinstance(size, int) or not 0 <= size <= len(tail) - at:
        raise errors.invalid("input '%s': binary_data_size %s is more than the body has", name,
                             size)
      feeds[name] = v2.from_raw(name, datatype, shape, tail[at:at + size])
      at += size
    if at != len(tail):
      raise errors.invalid("the body has %d bytes that belong to no input", len(tail) - at)
    wanted = _list_of_objects(body, "outputs")
    result = v2.infer(self._manager, self._metrics, spec, feeds,
                      [output["name"] for output in wanted], "REST", request.timeout_ms)
    all_binary = _parameter(body, "binary_data_output", False)
    is_binary = {output["name"]: _parameter(output, "binary_data", all_binary)
                 for output in wanted}
    return self._response(spec, body, result, lambda name: is_binary.get(name, all_binary))

  def _response(self, spec, body, result, is_binary):
    outputs, tail = [], b""
    for name, array in result.outputs.items():
      array = np.asarray(array)
      output = {"name": name, "datatype": v2.NAMES[result.signature.outputs[name].dtype],
                "shape": list(array.shape)}
      if is_binary(name):
        data = v2.to_raw(array)
        output["parameters"] = {"binary_data_size": len(data)}
        tail += data
      else:
        output["data"] = json_tensors.from_array("", array.ravel())
      outputs.append(output)
    value = {"model_name": spec.name, "model_version": str(result.number), "outputs": outputs}
    if isinstance(body.get("id"), str):
      value["id"] = body["id"]
    text = json_tensors.dumps(value)
    if not tail:
      return rest_server.Answer(200, text)
    return rest_server.Answer(200, text + tail, "application/octet-stream",
                              ((_LENGTH, b"%d" % len(text)),))
