# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Predict: arrays in, arrays out. Every front calls it."""

import collections

import tensorflow as tf

from embedding_variable_serving import errors
from embedding_variable_serving.models import saved_model

DEFAULT_SIGNATURE = "serving_default"

# name: that of the model. number or label: those of a version, or None. signature: name, "" is the
# default one.
Spec = collections.namedtuple("Spec", ["name", "number", "label", "signature"])

# outputs: {alias: array}. signature: saved_model.Signature. number: that of the version.
Result = collections.namedtuple("Result", ["outputs", "signature", "number"])


def type_name(number):
  """Returns the name of a number of DataType, such as "DT_INT64"."""
  for name in ("float32", "float64"):
    if number == tf.as_dtype(name).as_datatype_enum:
      return {"float32": "DT_FLOAT", "float64": "DT_DOUBLE"}[name]
  return "DT_" + tf.as_dtype(number).name.upper()


def number_of(manager, spec):
  """Returns the number of the version that a Spec selects, None for the newest."""
  if not spec.name:
    raise errors.invalid("Missing ModelSpec: the request has no model name")
  if spec.label is not None:
    return manager.resolve(spec.name, spec.label)
  return spec.number


def signature_of(version, name, code):
  """Returns a Signature of a Version.

  Raises:
    ServingError: `code`, there is no such signature.
  """
  name = name or DEFAULT_SIGNATURE
  signatures = version.servable.signatures
  if name not in signatures:
    raise errors.ServingError(
        code, "Serving signature key \"%s\" not found; the model has [%s]" %
        (name, ", ".join(sorted(signatures))))
  return signatures[name]


def predict(manager, spec, make_feeds, output_filter=(), timeout_ms=None,
            unknown_signature="FAILED_PRECONDITION"):
  """Runs a signature.

  Args:
    manager: manager.Manager.
    spec: Spec.
    make_feeds: function of the Signature; returns {alias: array}.
    output_filter: aliases of the outputs to return, all if empty.
    timeout_ms: number or None.
    unknown_signature: status code of this error.

  Returns:
    Result.

  Raises:
    ServingError: any.
  """
  if timeout_ms is not None and timeout_ms <= 0:
    raise errors.ServingError("DEADLINE_EXCEEDED", "the deadline of the request has passed")
  with manager.use(spec.name, number_of(manager, spec)) as version:
    signature = signature_of(version, spec.signature, unknown_signature)
    names, feeds = _checked(signature, make_feeds, output_filter)
    try:
      arrays = version.servable.run(signature, feeds, names, timeout_ms)
    except Exception as e:
      raise errors.wrapped(e)
    return Result(dict(zip(names, arrays)), signature, version.number)


def begin(done, manager, spec, make_feeds, output_filter=(), timeout_ms=None):
  """Adds a run of a signature to a batch, if the model has batches; returns whether it has.

  Args:
    done: function of (Result, None), or of (None, error), called later in any thread.
    manager, spec, make_feeds, output_filter, timeout_ms: as for `predict`.

  Raises:
    ServingError: any; `done` is not called.
  """
  version = manager.enter(spec.name, number_of(manager, spec), waits=False)
  if version is None:
    return False
  is_started = False
  try:
    start = getattr(version.servable, "begin", None)
    if start is not None:
      signature = signature_of(version, spec.signature, "FAILED_PRECONDITION")
      names, feeds = _checked(signature, make_feeds, output_filter)

      def finish(arrays, error):
        manager.leave(version)
        if error is None:
          done(Result(dict(zip(names, arrays)), signature, version.number), None)
        else:
          done(None, errors.wrapped(error))

      is_started = start(signature, feeds, names, timeout_ms, finish)
  finally:
    if not is_started:
      manager.leave(version)
  return is_started


def _checked(signature, make_feeds, output_filter):
  """Returns (names of the outputs, feeds) of a run that fits a signature."""
  names = list(output_filter) or list(signature.outputs)
  if len(set(names)) != len(names) or any(n not in signature.outputs for n in names):
    raise errors.invalid(
        "output_filter [%s] has a name twice, or one that signature '%s' lacks; its "
        "outputs are [%s]", ", ".join(names), signature.name, ", ".join(signature.outputs))
  feeds = make_feeds(signature)
  saved_model.check(signature, feeds)
  return names, feeds
