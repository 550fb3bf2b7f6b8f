# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Signatures of a model as the answer of GetModelMetadata."""

from embedding_variable_serving import errors
from embedding_variable_serving import messages
from embedding_variable_serving.inference import predict

FIELD = "signature_def"


def signature_map(manager, spec):
  """Returns (version number, SignatureDefMap) of a model.

  Args:
    manager: manager.Manager.
    spec: predict.Spec.

  Raises:
    ServingError: any.
  """
  found = messages.serving("SignatureDefMap")()
  with manager.use(spec.name, predict.number_of(manager, spec)) as version:
    for name, signature in version.servable.signatures.items():
      found.signature_def[name].MergeFromString(signature.proto.SerializeToString())
    return version.number, found


def check_fields(fields):
  """Raises ServingError INVALID_ARGUMENT for fields that no model has."""
  if not fields:
    raise errors.invalid("GetModelMetadataRequest must specify at least one metadata_field")
  for field in fields:
    if field != FIELD:
      raise errors.invalid("Metadata field %s is not supported", field)


def _ports(infos):
  return {alias: {
      "dtype": predict.type_name(info.dtype),
      "tensor_shape": {
          "dim": [{"size": str(dim.size), "name": dim.name} for dim in info.tensor_shape.dim],
          "unknown_rank": info.tensor_shape.unknown_rank},
      "name": info.name} for alias, info in infos.items()}


def as_dict(signatures):
  """Returns the JSON value of a SignatureDefMap."""
  return {"signature_def": {
      name: {"inputs": _ports(definition.inputs), "outputs": _ports(definition.outputs),
             "method_name": definition.method_name}
      for name, definition in signatures.signature_def.items()}}
