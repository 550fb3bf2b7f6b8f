# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""TensorFlow Serving's gRPC services over a manager.Manager."""

from embedding_variable_serving import config_files
from embedding_variable_serving import errors
from embedding_variable_serving import messages
from embedding_variable_serving.inference import examples
from embedding_variable_serving.inference import metadata
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

  def __init__(self, manager, metrics, max_bytes, as_content=False):
    """Makes the service.

    Args:
      manager: manager.Manager.
      metrics: metrics.Metrics.
      max_bytes: the most of a tensor.
      as_content: whether to write tensor_content in responses.
    """
    self._manager, self._metrics = manager, metrics
    self._max_bytes, self._as_content = max_bytes, as_content

  def add_to(self, server):
    """Adds the service to a grpc_server.Server."""
    server.add_service("tensorflow.serving.PredictionService", {
        "Predict": (self.predict, messages.serving("PredictRequest"), self.begin_predict),
        "Classify": (self.classify, messages.serving("ClassificationRequest")),
        "Regress": (self.regress, messages.serving("RegressionRequest")),
        "MultiInference": (self.multi_inference, messages.serving("MultiInferenceRequest")),
        "GetModelMetadata": (self.metadata, messages.serving("GetModelMetadataRequest")),
    })

  def predict(self, request, timeout_ms):
    """Returns a PredictResponse."""
    with self._metrics.request(request.model_spec.name, "Predict", "GRPC") as observed:
      result = predict.predict(*self._call(request, timeout_ms))
      observed.version = result.number
    return self._response(request, result)

  def begin_predict(self, request, timeout_ms, done):
    """Starts a Predict whose model runs batches; returns whether it has.

    Args:
      request: PredictRequest.
      timeout_ms: milliseconds until the deadline, or None.
      done: function of (PredictResponse, None) or of (None, error).
    """
    observed = self._metrics.start(request.model_spec.name, "Predict", "GRPC")

    def finish(result, error):
      response = None
      if error is None:
        observed.version = result.number
        try:
          response = self._response(request, result)
        except Exception as e:  # pylint: disable=broad-except
          error = e
      observed.end(error)
      done(response, error)

    try:
      return predict.begin(finish, *self._call(request, timeout_ms))
    except Exception as e:
      observed.end(e)
      raise

  def _call(self, request, timeout_ms):
    return (self._manager, spec_of(request.model_spec),
            lambda signature: {name: tensors.to_array(name, proto, self._max_bytes)
                               for name, proto in request.inputs.items()},
            request.output_filter, timeout_ms)

  def _response(self, request, result):
    response = messages.serving("PredictResponse")()
    fill_spec(response.model_spec, request.model_spec.name, result.number,
              result.signature.name)
    for name, array in result.outputs.items():
      tensors.from_array(array, result.signature.outputs[name].dtype, response.outputs[name],
                         self._as_content)
    return response

  def classify(self, request, timeout_ms):
    """Returns a ClassificationResponse."""
    return self._of_examples(request, timeout_ms, examples.classify, "Classify",
                             "ClassificationResponse")

  def regress(self, request, timeout_ms):
    """Returns a RegressionResponse."""
    return self._of_examples(request, timeout_ms, examples.regress, "Regress",
                             "RegressionResponse")

  def _of_examples(self, request, timeout_ms, function, api, name):
    with self._metrics.request(request.model_spec.name, api, "GRPC") as observed:
      result, found = function(self._manager, spec_of(request.model_spec),
                               examples.serialized(request.input),
                               timeout_ms)
      observed.version = result.number
    response = messages.serving(name)(result=found)
    fill_spec(response.model_spec, request.model_spec.name, result.number,
              result.signature.name)
    return response

  def multi_inference(self, request, timeout_ms):
    """Returns a MultiInferenceResponse."""
    tasks = [(spec_of(task.model_spec), task.method_name) for task in request.tasks]
    response = messages.serving("MultiInferenceResponse")()
    model = tasks[0][0].name if tasks else ""
    with self._metrics.request(model, "MultiInference", "GRPC") as observed:
      found = examples.multi_inference(
          self._manager, tasks, examples.serialized(request.input),
          timeout_ms)
      observed.version = found[0][0].number
    for result, field, message in found:
      one = response.results.add()
      fill_spec(one.model_spec, model, result.number, result.signature.name)
      getattr(one, field).CopyFrom(message)
    return response

  def metadata(self, request, unused_timeout_ms):
    """Returns a GetModelMetadataResponse."""
    metadata.check_fields(request.metadata_field)
    number, signatures = metadata.signature_map(self._manager, spec_of(request.model_spec))
    response = messages.serving("GetModelMetadataResponse")()
    fill_spec(response.model_spec, request.model_spec.name, number)
    response.metadata[metadata.FIELD].Pack(signatures)
    return response


class ModelService(object):
  """The methods of tensorflow.serving.ModelService."""

  def __init__(self, manager):
    self._manager = manager

  def add_to(self, server):
    """Adds the service to a grpc_server.Server."""
    server.add_service("tensorflow.serving.ModelService", {
        "GetModelStatus": (self.status, messages.serving("GetModelStatusRequest")),
        "HandleReloadConfigRequest": (self.reload, messages.serving("ReloadConfigRequest")),
    })

  def status(self, request, unused_timeout_ms):
    """Returns a GetModelStatusResponse."""
    spec = spec_of(request.model_spec)
    if not spec.name:
      raise errors.invalid("Missing ModelSpec")
    response = messages.serving("GetModelStatusResponse")()
    for number, state, error in self._manager.status(spec.name, spec.number):
      one = response.model_version_status.add(
          version=number, state=messages.enum_value("tensorflow.serving.State", state))
      one.status.error_code = error.number if error else 0
      one.status.error_message = error.message if error else ""
    return response

  def reload(self, request, unused_timeout_ms):
    """Returns a ReloadConfigResponse, after new models serve or have failed."""
    response = messages.serving("ReloadConfigResponse")()
    if request.metric_names:
      raise errors.invalid("metric_names is not supported")
    settings = config_files.settings(request.config)
    old = set(self._manager.names())
    self._manager.configure(settings)
    new = [model.name for model in settings if model.name not in old]
    if not self._manager.wait(new):
      raise errors.ServingError(
          "UNKNOWN", "a model has no version that loads: [%s]" % ", ".join(new))
    response.status.error_code = 0
    return response
