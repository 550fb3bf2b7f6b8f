# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""TensorFlow Serving's REST interface: /v1/models/..."""

import re
import urllib.parse

import numpy as np

from embedding_variable_serving import errors
from embedding_variable_serving import messages
from embedding_variable_serving.fronts import json_tensors
from embedding_variable_serving.inference import examples
from embedding_variable_serving.inference import metadata
from embedding_variable_serving.inference import predict

_PATH = re.compile(
    r"/v1/models/(?P<name>[^/:]+)"
    r"(?:/versions/(?P<number>\d{1,19})|/labels/(?P<label>[^/:]+))?"
    r"(?P<rest>/metadata|:predict|:classify|:regress)?$", re.IGNORECASE)


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


def _signature_name(request):
  if not isinstance(request, dict):
    raise errors.invalid("the request is not a JSON object")
  name = request.get("signature_name", "")
  if not isinstance(name, str):
    raise errors.invalid("\"signature_name\" is not a string")
  return name


def _fill_feature(feature, name, value):
  values = value if isinstance(value, list) else [value]
  kinds = {type(v) for v in values}
  if not values:
    return
  if kinds <= {int, bool}:
    feature.int64_list.value.extend(int(v) for v in values)
  elif kinds <= {float}:
    feature.float_list.value.extend(values)
  elif kinds <= {str, dict}:
    feature.bytes_list.value.extend(json_tensors.to_bytes(name, v) for v in values)
  else:
    raise errors.invalid("feature '%s': expected values of one kind, integers, decimals or "
                         "strings", name)


def _example(value):
  if not isinstance(value, dict):
    raise errors.invalid("an example is not an object of features")
  example = messages.message_class("tensorflow.Example")()
  for name, feature in value.items():
    try:
      _fill_feature(example.features.feature[name], name, feature)
    except ValueError as e:
      raise errors.invalid("feature '%s': %s", name, e)
  return example


def _examples(request):
  """Returns (signature name, array of serialized Examples) of a classify or regress body."""
  name, items = _signature_name(request), request.get("examples")
  if not isinstance(items, list) or not items:
    raise errors.invalid("\"examples\" is not a list with at least one item")
  found = messages.serving("Input")()
  if "context" in request:
    found.example_list_with_context.context.CopyFrom(_example(request["context"]))
    found.example_list_with_context.examples.extend(_example(item) for item in items)
  else:
    found.example_list.examples.extend(_example(item) for item in items)
  return name, examples.serialized(found)


class RestInterface(object):
  """Answers requests below /v1/."""

  def __init__(self, manager, metrics):
    self._manager, self._metrics = manager, metrics

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
    return {"": self._status, "/metadata": self._metadata, ":predict": self._predict,
            ":classify": self._classify, ":regress": self._regress}[action](
                spec, body, timeout_ms)

  def _status(self, spec, unused_body, unused_timeout_ms):
    number = predict.number_of(self._manager, spec)
    return {"model_version_status": [
        {"version": str(version), "state": state,
         "status": {"error_code": error.code if error else "OK",
                    "error_message": error.message if error else ""}}
        for version, state, error in self._manager.status(spec.name, number)]}

  def _metadata(self, spec, unused_body, unused_timeout_ms):
    number, signatures = metadata.signature_map(self._manager, spec)
    return {"model_spec": {"name": spec.name, "signature_name": "", "version": str(number)},
            "metadata": {metadata.FIELD: metadata.as_dict(signatures)}}

  def _classify(self, spec, body, timeout_ms):
    name, array = _examples(json_tensors.loads(body))
    found = self._of_examples(examples.classify, "Classify", spec, name, array, timeout_ms)
    return {"results": [[[one.label, np.float32(one.score)] for one in row.classes]
                        for row in found.classifications]}

  def _regress(self, spec, body, timeout_ms):
    name, array = _examples(json_tensors.loads(body))
    found = self._of_examples(examples.regress, "Regress", spec, name, array, timeout_ms)
    return {"results": np.array([one.value for one in found.regressions], np.float32)}

  def _of_examples(self, function, api, spec, signature, array, timeout_ms):
    with self._metrics.request(spec.name, api, "REST") as observed:
      result, found = function(self._manager, spec._replace(signature=signature), array,
                               timeout_ms)
      observed.version = result.number
    return found

  def _predict(self, spec, body, timeout_ms):
    request = json_tensors.loads(body)
    name = _signature_name(request)
    if ("instances" in request) == ("inputs" in request):
      raise errors.invalid("expected one of the keys \"instances\" and \"inputs\"")
    is_row = "instances" in request

    def feeds(signature):
      return (row_feeds(signature, request["instances"]) if is_row else
              column_feeds(signature, request["inputs"]))

    with self._metrics.request(spec.name, "Predict", "REST") as observed:
      result = predict.predict(self._manager, spec._replace(signature=name), feeds,
                               timeout_ms=timeout_ms, unknown_signature="INVALID_ARGUMENT")
      observed.version = result.number
    if is_row:
      return {"predictions": _rows(result.outputs)}
    if len(result.outputs) == 1:
      (alias, array), = result.outputs.items()
      return {"outputs": json_tensors.from_array(alias, array)}
    return {"outputs": {alias: json_tensors.from_array(alias, array)
                        for alias, array in result.outputs.items()}}
