# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""TensorFlow Serving's gRPC services over a manager.Manager."""

from embedding_variable_serving import messages
from embedding_variable_serving.fronts import grpc_server
from embedding_variable_serving.inference import predict
from embedding_variable_serving.inference import tensors


def spec_of(model_spec):
  """Returns the predict.Spec of a ModelSpec."""
  which = model_spec.WhichOneof("version_choice")
  return predict.Spec(model_spec.name,
                      model_spec.version.value if which == "version" else None,
                      model_spec.version_label if which == "version_label" else None,
                      model_spec.signature_name)


def fill_spec(model_spec, name, number, signature=""):
  """Writes a ModelSpec."""
  model_spec.name = name
  model_spec.version.value = number
  model_spec.signature_name = signature


class PredictionService(object):
  """The methods of tensorflow.serving.PredictionService."""

  def __init__(self, manager, max_bytes, as_content=False):
    """Args: a Manager, the limit of a request's tensors, whether to write tensor_content."""
    self._manager, self._max_bytes, self._as_content = manager, max_bytes, as_content

  def add_to(self, server):
    """Adds the service to a grpc_server.Server."""
    server.add_service("tensorflow.serving.PredictionService", {
        "Predict": (self.predict, messages.serving("PredictRequest")),
    })

  def predict(self, request, context):
    """Returns a PredictResponse."""
    result = predict.predict(
        self._manager, spec_of(request.model_spec),
        lambda signature: {name: tensors.to_array(name, proto, self._max_bytes)
                           for name, proto in request.inputs.items()},
        request.output_filter, grpc_server.time_left_ms(context))
    response = messages.serving("PredictResponse")()
    fill_spec(response.model_spec, request.model_spec.name, result.number,
              result.signature.name)
    for name, array in result.outputs.items():
      tensors.from_array(array, result.signature.outputs[name].dtype, response.outputs[name],
                         self._as_content)
    return response
