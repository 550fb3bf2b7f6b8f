# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""TensorProto to NumPy array and back."""

import functools

from google.protobuf.internal import encoder
import numpy as np
import tensorflow as tf

from embedding_variable_serving import errors
from embedding_variable_serving import messages

# The field of a TensorProto that holds the values of a type.
_FIELDS = {
    tf.float32: "float_val", tf.float64: "double_val", tf.int32: "int_val",
    tf.int16: "int_val", tf.int8: "int_val", tf.uint8: "int_val", tf.uint16: "int_val",
    tf.int64: "int64_val", tf.bool: "bool_val", tf.uint32: "uint32_val",
    tf.uint64: "uint64_val", tf.string: "string_val", tf.float16: "half_val",
}
# Tags of packed fields whose bytes are those of a little-endian array.
_PACKED = {tf.float32: b"\x2a", tf.float64: b"\x32"}


@functools.lru_cache(maxsize=None)
def type_of(number):
  """Returns the tf.DType of a number of DataType.

  Raises:
    ServingError: INVALID_ARGUMENT, there is no such type.
  """
  try:
    return tf.as_dtype(number)
  except (TypeError, KeyError, ValueError):
    raise errors.invalid("%d is not the number of a data type", number)


@functools.lru_cache(maxsize=None)
def _kind(number):
  """Returns (tf.DType, name of the field, bytes of a value, NumPy dtype), cached: TensorFlow's
  types are slow to look up. The name is None for a type that is not supported."""
  dtype = type_of(number)
  field = _FIELDS.get(dtype)
  return dtype, field, field and dtype.size, field and np.dtype(dtype.as_numpy_dtype)


def to_array(name, proto, max_bytes):
  """Returns the NumPy array of a TensorProto.

  Args:
    name: name of the input, for errors.
    proto: TensorProto.
    max_bytes: a larger array is refused: few values may stand for a large shape.

  Raises:
    ServingError: INVALID_ARGUMENT.
  """
  dtype, field, num_bytes, kind = _kind(proto.dtype)
  if field is None:
    raise errors.invalid("input '%s': tensors of type %s are not supported", name, dtype.name)
  if proto.tensor_shape.unknown_rank:
    raise errors.invalid("input '%s': the shape of the tensor is not set", name)
  shape = [dim.size for dim in proto.tensor_shape.dim]
  size = 1
  for length in shape:
    if length < 0:
      raise errors.invalid("input '%s': shape %s has a negative dimension", name, shape)
    size *= length
  if size * num_bytes > max_bytes:
    raise errors.invalid("input '%s': shape %s has more than %d bytes, see "
                         "--max_request_bytes", name, shape, max_bytes)
  if proto.tensor_content:
    if dtype == tf.string or len(proto.tensor_content) != size * kind.itemsize:
      raise errors.invalid(
          "input '%s': tensor_content has %d bytes, which is not a tensor of type %s and "
          "shape %s", name, len(proto.tensor_content), dtype.name, shape)
    return np.frombuffer(proto.tensor_content, kind).reshape(shape)
  values = getattr(proto, field)
  if len(values) > size:
    raise errors.invalid("input '%s': %d values for shape %s", name, len(values), shape)
  array = _values(values, dtype, kind)
  if len(array) < size:
    # The last value stands for all that follow it, zero if there is none.
    filled = np.empty(size, kind)
    filled[:len(array)] = array
    filled[len(array):] = array[-1] if len(array) else (
        b"" if dtype == tf.string else 0)
    array = filled
  return array.reshape(shape)


def _values(values, dtype, kind):
  if dtype == tf.string:
    array = np.empty(len(values), object)
    array[:] = values
    return array
  if dtype == tf.float16:
    return np.array(values, np.uint16).view(np.float16)
  return np.fromiter(values, kind, len(values))


def from_array(array, dtype, proto, as_content=False):
  """Writes a NumPy array into a TensorProto.

  Args:
    array: as session.run returns it.
    dtype: tf.DType.
    proto: TensorProto, empty.
    as_content: write tensor_content instead of one field per type.
  """
  array = np.asarray(array)
  proto.dtype = dtype.as_datatype_enum
  for length in array.shape:
    proto.tensor_shape.dim.add().size = length
  if dtype == tf.string:
    proto.string_val.extend(
        value if isinstance(value, bytes) else str(value).encode()
        for value in array.ravel().tolist())
  elif as_content or dtype not in _FIELDS:
    proto.tensor_content = array.tobytes()
  elif dtype in _PACKED:
    data = array.tobytes()
    if data:
      proto.MergeFromString(_PACKED[dtype] + encoder._VarintBytes(len(data)) + data)  # pylint: disable=protected-access
  elif dtype == tf.float16:
    proto.half_val.extend(array.ravel().view(np.uint16).tolist())
  else:
    getattr(proto, _FIELDS[dtype]).extend(array.ravel().tolist())


def make(array, dtype, as_content=False):
  """Returns a new TensorProto of an array."""
  proto = messages.TensorProto()
  from_array(array, dtype, proto, as_content)
  return proto
