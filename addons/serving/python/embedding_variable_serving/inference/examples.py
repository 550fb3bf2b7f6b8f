# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Classify and Regress: serialized tf.Examples in, labels, scores or values out."""

import numpy as np
import tensorflow as tf

from embedding_variable_serving import errors
from embedding_variable_serving import messages
from embedding_variable_serving.inference import predict

CLASSIFY, REGRESS = "tensorflow/serving/classify", "tensorflow/serving/regress"


def serialized(request_input):
  """Returns the array of serialized Examples of an Input; a context precedes each.

  Raises:
    ServingError: INVALID_ARGUMENT, it has none.
  """
  kind = request_input.WhichOneof("kind")
  examples = getattr(request_input, kind).examples if kind else ()
  if not examples:
    raise errors.invalid("Input is empty: it has no examples")
  # Fields of two serialized messages merge when both are parsed as one.
  context = (request_input.example_list_with_context.context.SerializeToString()
             if kind == "example_list_with_context" else b"")
  array = np.empty(len(examples), object)
  array[:] = [context + example.SerializeToString() for example in examples]
  return array


def _run(manager, spec, examples, possible, timeout_ms):
  """Returns a predict.Result with those of some possible outputs that there are."""
  def feeds(signature):
    if len(signature.inputs) != 1:
      raise errors.invalid(
          "expected one input of serialized Examples, signature '%s' has [%s]",
          signature.name, ", ".join(signature.inputs))
    port, = signature.inputs.values()
    if port.dtype != tf.string:
      raise errors.invalid("input '%s' of signature '%s': expected serialized Examples, a "
                           "vector of strings, got %s", port.alias, signature.name,
                           port.dtype.name)
    return {port.alias: examples}

  with manager.use(spec.name, predict.number_of(manager, spec)) as version:
    signature = predict.signature_of(version, spec.signature, "INVALID_ARGUMENT")
    names = [name for name in possible if name in signature.outputs]
    if not names:
      raise errors.invalid("expected an output of [%s], signature '%s' has [%s]",
                           ", ".join(possible), signature.name, ", ".join(signature.outputs))
  return predict.predict(manager, spec._replace(number=version.number, label=None), feeds,
                         names, timeout_ms, "INVALID_ARGUMENT")


def _checked(result, name, num_examples, ranks, kind):
  array = np.asarray(result.outputs[name])
  if array.ndim not in ranks or len(array) != num_examples or array.dtype != kind:
    raise errors.invalid(
        "output '%s' has type %s and shape %s, expected %s for %d examples", name,
        array.dtype.name, list(array.shape), np.dtype(kind).name, num_examples)
  return array


def classify(manager, spec, examples, timeout_ms=None):
  """Returns (predict.Result, ClassificationResult) for an array of Examples."""
  result = _run(manager, spec, examples, ("classes", "scores"), timeout_ms)
  classes = scores = None
  if "classes" in result.outputs:
    classes = _checked(result, "classes", len(examples), (2,), object)
  if "scores" in result.outputs:
    scores = _checked(result, "scores", len(examples), (2,), np.float32)
  if classes is not None and scores is not None and classes.shape != scores.shape:
    raise errors.invalid("outputs 'classes' and 'scores' have the shapes %s and %s",
                         list(classes.shape), list(scores.shape))
  found = messages.serving("ClassificationResult")()
  for row in range(len(examples)):
    classifications = found.classifications.add()
    for column in range((classes if scores is None else scores).shape[1]):
      one = classifications.classes.add()
      if classes is not None:
        one.label = classes[row, column].decode("utf-8", "replace")
      if scores is not None:
        one.score = scores[row, column]
  return result, found


def regress(manager, spec, examples, timeout_ms=None):
  """Returns (predict.Result, RegressionResult) for an array of Examples."""
  result = _run(manager, spec, examples, ("outputs",), timeout_ms)
  values = _checked(result, "outputs", len(examples), (1, 2), np.float32)
  if values.ndim == 2 and values.shape[1] != 1:
    raise errors.invalid("output 'outputs' has shape %s, expected one value for an example",
                         list(values.shape))
  found = messages.serving("RegressionResult")()
  for value in values.ravel().tolist():
    found.regressions.add().value = value
  return result, found


def multi_inference(manager, tasks, examples, timeout_ms=None):
  """Returns [(predict.Result, "classification_result" or "regression_result", message)].

  Args:
    manager: manager.Manager.
    tasks: list of (predict.Spec, method name).
    examples: as of `serialized`.
    timeout_ms: for all tasks.
  """
  if not tasks:
    raise errors.invalid("Inference request has no tasks")
  if len({spec.name for spec, _ in tasks}) != 1:
    raise errors.invalid("all tasks of a request: expected the same model name")
  signatures = [spec.signature or predict.DEFAULT_SIGNATURE for spec, _ in tasks]
  if len(set(signatures)) != len(signatures):
    raise errors.invalid("a signature is in two tasks: [%s]", ", ".join(signatures))
  found = []
  for spec, method in tasks:
    if found and spec.number is None and spec.label is None:
      spec = spec._replace(number=found[0][0].number)  # A swap does not part the tasks.
    if method == CLASSIFY:
      found.append(classify(manager, spec, examples, timeout_ms))
    elif method == REGRESS:
      found.append(regress(manager, spec, examples, timeout_ms))
    else:
      raise errors.ServingError("UNIMPLEMENTED", "Unsupported signature method_name: " + method)
  kinds = {CLASSIFY: "classification_result", REGRESS: "regression_result"}
  return [(result, kinds[method], message)
          for (result, message), (_, method) in zip(found, tasks)]
