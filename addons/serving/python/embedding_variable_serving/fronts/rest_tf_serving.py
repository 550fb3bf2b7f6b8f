# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""TensorFlow Serving's REST interface: /v1/models/..."""

import re
import urllib.parse

import numpy as np

from embedding_variable_serving import errors
from embedding_variable_serving.fronts import json_tensors
from embedding_variable_serving.inference import predict

_PATH = re.compile(
    r"/v1/models/(?P<name>[^/:]+)"
    r"(?:/versions/(?P<number>\d{1,19})|/labels/(?P<label>[^/:]+))?"
    r"(?P<rest>/metadata|:predict)?$", re.IGNORECASE)


def row_feeds(signature, instances):
  """Returns the feeds of the row format: a list with one item per row."""
  if not isinstance(instances, list) or not instances:
    raise errors.invalid("\"instances\" is not a list with at least one item")
  first = instances[0]
  if not isinstance(first, dict) or (
      json_tensors.is_bytes_object(first) and "b64" not in signature.inputs):
    if len(signature.inputs) != 1:
      raise errors.invalid(
          "\"instances\" is a plain list, but signature '%s' has the inputs [%s]; expected a "
          "list of objects with these names", signature.name, ", ".join(signature.inputs))
    port, = signature.inputs.values()
    return {port.alias: json_tensors.to_array(port.alias, instances, port.dtype)}
  for item in instances:
    if not isinstance(item, dict) or set(item) != set(signature.inputs):
      raise errors.invalid(
          "an item of \"instances\" has the names [%s]; expected exactly [%s]",
          ", ".join(sorted(item)) if isinstance(item, dict) else "",
          ", ".join(signature.inputs))
  return {name: json_tensors.to_array(name, [item[name] for item in instances], port.dtype)
          for name, port in signature.inputs.items()}


def column_feeds(signature, inputs):
  """Returns the feeds of the column format: one value per input."""
  is_object = isinstance(inputs, dict) and not json_tensors.is_bytes_object(inputs)
  if not is_object:
    if len(signature.inputs) != 1:
      raise errors.invalid(
          "\"inputs\" is a plain value, but signature '%s' has the inputs [%s]; expected an "
          "object with these names", signature.name, ", ".join(signature.inputs))
    inputs = {next(iter(signature.inputs)): inputs}
  missing = [name for name in signature.inputs if name not in inputs]
  if missing:
    raise errors.invalid("\"inputs\" lacks [%s]", ", ".join(missing))
  return {name: json_tensors.to_array(name, inputs[name], port.dtype)
          for name, port in signature.inputs.items()}


def _rows(outputs):
  """Returns the list \"predictions\", one item per row."""
  lengths = {np.asarray(a).shape[:1] for a in outputs.values()}
  if len(lengths) != 1 or lengths == {()}:
    raise errors.ServingError(
        "FAILED_PRECONDITION", "the outputs [%s] have no common first dimension; send "
        "\"inputs\" instead of \"instances\"" % ", ".join(outputs))
  values = {name: json_tensors.from_array(name, array) for name, array in outputs.items()}
  if len(values) == 1:
    return next(iter(values.values()))
  return [dict(zip(values, row)) for row in zip(*values.values())]


class RestInterface(object):
  """Answers requests below /v1/."""

  def __init__(self, manager):
    self._manager = manager

  def __call__(self, method, path, body, timeout_ms):
    """Returns the value to write as JSON.

    Raises:
      ServingError: any.
    """
    found = _PATH.match(path)
    if not found or (method == "POST") != (found.group("rest") or "").startswith(":"):
      raise errors.invalid("Malformed request: %s %s", method, path)
    spec = predict.Spec(
        urllib.parse.unquote(found.group("name")),
        int(found.group("number")) if found.group("number") else None,
        urllib.parse.unquote(found.group("label")) if found.group("label") else None, "")
    action = (found.group("rest") or "").lower()
    return {":predict": self._predict}[action](spec, body, timeout_ms)

  def _predict(self, spec, body, timeout_ms):
    request = json_tensors.loads(body)
    if not isinstance(request, dict):
      raise errors.invalid("the request is not a JSON object")
    name = request.get("signature_name", "")
    if not isinstance(name, str):
      raise errors.invalid("\"signature_name\" is not a string")
    if ("instances" in request) == ("inputs" in request):
      raise errors.invalid("expected one of the keys \"instances\" and \"inputs\"")
    is_row = "instances" in request

    def feeds(signature):
      return (row_feeds(signature, request["instances"]) if is_row else
              column_feeds(signature, request["inputs"]))

    result = predict.predict(self._manager, spec._replace(signature=name), feeds,
                             timeout_ms=timeout_ms, unknown_signature="INVALID_ARGUMENT")
    if is_row:
      return {"predictions": _rows(result.outputs)}
    if len(result.outputs) == 1:
      (alias, array), = result.outputs.items()
      return {"outputs": json_tensors.from_array(alias, array)}
    return {"outputs": {alias: json_tensors.from_array(alias, array)
                        for alias, array in result.outputs.items()}}
