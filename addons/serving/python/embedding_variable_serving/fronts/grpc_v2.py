# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The Open Inference Protocol V2 over gRPC: inference.GRPCInferenceService."""

import numpy as np

import embedding_variable_serving
from embedding_variable_serving import errors
from embedding_variable_serving import messages
from embedding_variable_serving.fronts import v2

_CONTENTS = {"BOOL": "bool_contents", "UINT8": "uint_contents", "UINT16": "uint_contents",
             "UINT32": "uint_contents", "UINT64": "uint64_contents", "INT8": "int_contents",
             "INT16": "int_contents", "INT32": "int_contents", "INT64": "int64_contents",
             "FP32": "fp32_contents", "FP64": "fp64_contents", "BYTES": "bytes_contents"}


def _class(name):
  return messages.message_class("inference." + name)


def _array(tensor):
  dtype = v2.type_of(tensor.name, tensor.datatype)
  if tensor.datatype not in _CONTENTS:
    raise errors.invalid("input '%s': %s is sent in raw_input_contents only", tensor.name,
                         tensor.datatype)
  values = getattr(tensor.contents, _CONTENTS[tensor.datatype])
  array = np.empty(len(values), np.dtype(dtype.as_numpy_dtype))
  array[:] = values
  return v2.reshaped(tensor.name, array, list(tensor.shape))


class InferenceService(object):
  """The methods of inference.GRPCInferenceService."""

  def __init__(self, manager, metrics, is_ending):
    self._manager, self._metrics, self._is_ending = manager, metrics, is_ending

  def add_to(self, server):
    """Adds the service to a grpc_server.Server."""
    answer, empty, model = _class("BoolAnswer"), _class("Empty"), _class("ModelName")
    server.add_service("inference.GRPCInferenceService", {
        "ServerLive": (lambda *unused: answer(answer=True), empty),
        "ServerReady": (lambda *unused: answer(
            answer=self._manager.is_ready() and not self._is_ending()), empty),
        "ModelReady": (lambda request, unused: answer(answer=v2.is_ready(
            self._manager, v2.spec_of(request.name, request.version))), model),
        "ServerMetadata": (lambda *unused: _class("ServerMetadata")(
            name="embedding_variable_serving",
            version=embedding_variable_serving.__version__), empty),
        "ModelMetadata": (lambda request, unused: _class("ModelMetadata")(**v2.metadata(
            self._manager, v2.spec_of(request.name, request.version))), model),
        "ModelInfer": (self.infer, _class("ModelInferRequest")),
    })

  def infer(self, request, timeout_ms):
    """Returns a ModelInferResponse; its tensors are raw if those of the request are."""
    is_raw = bool(request.raw_input_contents)
    if is_raw and len(request.raw_input_contents) != len(request.inputs):
      raise errors.invalid("raw_input_contents has %d tensors for %d inputs",
                           len(request.raw_input_contents), len(request.inputs))
    feeds = {}
    for number, tensor in enumerate(request.inputs):
      if tensor.name in feeds:
        raise errors.invalid("input '%s' is there twice", tensor.name)
      feeds[tensor.name] = _array(tensor) if not is_raw else v2.from_raw(
          tensor.name, tensor.datatype, list(tensor.shape), request.raw_input_contents[number])
    result = v2.infer(self._manager, self._metrics,
                      v2.spec_of(request.model_name, request.model_version), feeds,
                      [output.name for output in request.outputs], "GRPC",
                      timeout_ms)
    response = _class("ModelInferResponse")(
        model_name=request.model_name, model_version=str(result.number), id=request.id)
    datatypes = {name: v2.NAMES[result.signature.outputs[name].dtype]
                 for name in result.outputs}
    is_raw = is_raw or "FP16" in datatypes.values()
    for name, array in result.outputs.items():
      tensor = response.outputs.add(name=name, datatype=datatypes[name])
      tensor.shape.extend(np.shape(array))
      if is_raw:
        response.raw_output_contents.append(v2.to_raw(array))
      else:
        getattr(tensor.contents, _CONTENTS[tensor.datatype]).extend(
            np.asarray(array).ravel().tolist())
    return response
