# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Recorded requests that a version answers before it serves."""

import contextlib
import os

import tensorflow as tf

from embedding_variable_serving import errors
from embedding_variable_serving import messages
from embedding_variable_serving.inference import examples
from embedding_variable_serving.inference import predict
from embedding_variable_serving.inference import tensors

_FILE = os.path.join("assets.extra", "tf_serving_warmup_requests")
_MAX_RECORDS = 1000


class _Loading(object):
  """Stands for the manager while the only version is the one that loads."""

  def __init__(self, number, servable):
    self.number, self.servable = number, servable

  @contextlib.contextmanager
  def use(self, unused_name, unused_number=None):
    yield self


def _spec(model_spec):
  return predict.Spec(model_spec.name or "model", None, None, model_spec.signature_name)


def _replay(loading, log, max_bytes):
  kind = log.WhichOneof("log_type")
  if kind not in ("predict_log", "classify_log", "regress_log", "multi_inference_log"):
    raise errors.ServingError("UNIMPLEMENTED", "a record is a %s" % kind)
  request = getattr(log, kind).request
  if kind == "predict_log":
    predict.predict(loading, _spec(request.model_spec),
                    lambda signature: {name: tensors.to_array(name, proto, max_bytes)
                                       for name, proto in request.inputs.items()},
                    request.output_filter)
  elif kind == "classify_log":
    examples.classify(loading, _spec(request.model_spec), examples.serialized(request.input))
  elif kind == "regress_log":
    examples.regress(loading, _spec(request.model_spec), examples.serialized(request.input))
  else:
    examples.multi_inference(
        loading, [(_spec(task.model_spec), task.method_name) for task in request.tasks],
        examples.serialized(request.input))


def run(path, number, servable, max_bytes):
  """Replays the recorded requests of a version; returns how many there are.

  Args:
    path: folder of the version.
    number: the version.
    servable: saved_model.SavedModel.
    max_bytes: the most of a tensor.

  Raises:
    ServingError: a record is damaged, is not supported, or its request fails.
  """
  path = os.path.join(path, _FILE)
  if not tf.io.gfile.exists(path):
    return 0
  loading, count = _Loading(number, servable), 0
  try:
    for record in tf.compat.v1.io.tf_record_iterator(path):
      count += 1
      if count > _MAX_RECORDS:
        raise errors.invalid("more than %d records", _MAX_RECORDS)
      try:
        log = messages.serving("PredictionLog").FromString(record)
      except Exception as e:
        raise errors.invalid("record %d is not a PredictionLog: %s", count, e)
      _replay(loading, log, max_bytes)
  except Exception as e:
    error = errors.wrapped(e)
    raise errors.ServingError(error.code, "warm-up by %s: %s" % (path, error.message))
  return count
