# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The Open Inference Protocol V2 apart from its wire: tensors, metadata, runs."""

import struct

import numpy as np
import tensorflow as tf

from embedding_variable_serving import errors
from embedding_variable_serving.inference import predict

PLATFORM = "tensorflow_savedmodel"

TYPES = {"BOOL": tf.bool, "UINT8": tf.uint8, "UINT16": tf.uint16, "UINT32": tf.uint32,
         "UINT64": tf.uint64, "INT8": tf.int8, "INT16": tf.int16, "INT32": tf.int32,
         "INT64": tf.int64, "FP16": tf.float16, "FP32": tf.float32, "FP64": tf.float64,
         "BYTES": tf.string}
NAMES = {dtype: name for name, dtype in TYPES.items()}


def type_of(name, datatype):
  """Returns the tf.DType of a datatype; raises ServingError INVALID_ARGUMENT."""
  if datatype not in TYPES:
    raise errors.invalid("input '%s': there is no datatype '%s'", name, datatype)
  return TYPES[datatype]


def reshaped(name, array, shape):
  """Returns a flat array in a shape of the request."""
  size = 1
  for length in shape:
    if not isinstance(length, int) or isinstance(length, bool) or length < 0:
      raise errors.invalid("input '%s': shape %s is not valid", name, list(shape))
    size *= length
  if size != array.size:
    raise errors.invalid("input '%s': shape %s has %d elements, the data %d", name,
                         list(shape), size, array.size)
  return array.reshape(shape)


def from_raw(name, datatype, shape, data):
  """Returns the array of little-endian bytes; BYTES: 4 bytes of length before each value."""
  dtype = type_of(name, datatype)
  if dtype != tf.string:
    kind = np.dtype(dtype.as_numpy_dtype)
    if len(data) % kind.itemsize:
      raise errors.invalid("input '%s': %d bytes are no whole number of %s", name, len(data),
                           datatype)
    return reshaped(name, np.frombuffer(data, kind), shape)
  values, at = [], 0
  while at < len(data):
    length, = struct.unpack_from("<I", data, at) if at + 4 <= len(data) else (len(data),)
    if at + 4 + length > len(data):
      raise errors.invalid("input '%s': a length in its bytes leads beyond their end", name)
    values.append(bytes(data[at + 4:at + 4 + length]))
    at += 4 + length
  array = np.empty(len(values), object)
  array[:] = values
  return reshaped(name, array, shape)


def to_raw(array):
  """Returns the bytes of an output."""
  array = np.asarray(array)
  if array.dtype != object:
    return array.tobytes()
  return b"".join(struct.pack("<I", len(v)) + v for v in array.ravel().tolist())


def spec_of(name, version):
  """Returns the predict.Spec of a model's name and the text of a version, "" for any."""
  if version and not (version.isdigit() and len(version) < 20):
    raise errors.invalid("version '%s' of model '%s' is not a number", version, name)
  return predict.Spec(name, int(version) if version else None, None, "")


def infer(manager, metrics, spec, feeds, outputs, entrypoint, timeout_ms):
  """Returns the predict.Result of a run of the default signature."""
  with metrics.request(spec.name, "Predict", entrypoint) as observed:
    result = predict.predict(manager, spec, lambda signature: feeds, outputs, timeout_ms,
                             "INVALID_ARGUMENT")
    observed.version = result.number
  return result


def metadata(manager, spec):
  """Returns the metadata of a model as a dict."""
  with manager.use(spec.name, predict.number_of(manager, spec)) as version:
    signature = predict.signature_of(version, "", "NOT_FOUND")

    def ports(found):
      return [{"name": port.alias, "datatype": NAMES.get(port.dtype, port.dtype.name.upper()),
               "shape": [-1] if port.shape is None else port.shape}
              for port in found.values()]
    return {"name": spec.name,
            "versions": [str(number) for number, state, _ in manager.status(spec.name)
                         if state == "AVAILABLE"],
            "platform": PLATFORM, "inputs": ports(signature.inputs),
            "outputs": ports(signature.outputs)}


def is_ready(manager, spec):
  """Returns whether a model, or one version of it, is available."""
  try:
    with manager.use(spec.name, spec.number):
      return True
  except errors.ServingError:
    return False
