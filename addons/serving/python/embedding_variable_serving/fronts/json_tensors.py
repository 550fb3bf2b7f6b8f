# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""JSON of TensorFlow Serving's REST interface: text, values, tensors."""

import base64
import binascii
import itertools
import json
import re

import numpy as np
import tensorflow as tf

from embedding_variable_serving import errors

try:
  import orjson
except ImportError:
  orjson = None

_MAX_QUOTED = 256

# A tensor has at most 254 dimensions. orjson before 3.9.15, the last for Python 3.7, reads
# each level in a call without a limit, so deep text would end the process
# (CVE-2024-27454).
_MAX_DEPTH = 300
_ESCAPED = re.compile(rb"\\.", re.DOTALL)
_UNNESTED = bytes(c for c in range(256) if c not in b'"[]{}')
_STEPS = np.zeros(256, np.int8)
_STEPS[list(b"[{")], _STEPS[list(b"]}")] = 1, -1
_DECODER = json.JSONDecoder()


def loads(body):
  """Returns the first JSON value of a bytes object. NaN and Infinity are numbers.

  Raises:
    ServingError: INVALID_ARGUMENT.
  """
  if _is_deep(body):
    raise errors.invalid("JSON Parse error: the value has more than %d levels", _MAX_DEPTH)
  if orjson is not None:
    try:
      return orjson.loads(body)
    except ValueError:
      pass  # NaN, Infinity, or text after the value; or really not JSON.
  try:
    text = body.decode("utf-8")
    return _DECODER.raw_decode(text, len(text) - len(text.lstrip()))[0]
  except (ValueError, RecursionError) as e:
    raise errors.invalid("JSON Parse error: %s: %s", e,
                         body[:_MAX_QUOTED].decode("utf-8", "replace"))


def _is_deep(body):
  if body.count(b"[") + body.count(b"{") <= _MAX_DEPTH:
    return False
  marks = np.frombuffer(_ESCAPED.sub(b"", body).translate(None, _UNNESTED), np.uint8)
  outside_strings = np.cumsum(marks == ord('"'), dtype=np.int32) % 2 == 0
  depths = np.cumsum(_STEPS[marks] * outside_strings, dtype=np.int32)
  return depths.max(initial=0) > _MAX_DEPTH


def _finite(value):
  if isinstance(value, np.ndarray):
    return value.dtype.kind != "f" or bool(np.isfinite(value).all())
  if isinstance(value, dict):
    return all(_finite(v) for v in value.values())
  if isinstance(value, (list, tuple)):
    return all(_finite(v) for v in value)
  return not isinstance(value, (float, np.floating)) or bool(np.isfinite(value))


def _plain(value):
  """Returns arrays as lists whose floats are written in the shortest form."""
  if isinstance(value, (np.ndarray, np.generic)):
    if value.dtype == np.float32:
      return np.asarray(value).astype("U32").astype(np.float64).tolist()
    return value.tolist()
  if isinstance(value, dict):
    return {k: _plain(v) for k, v in value.items()}
  if isinstance(value, (list, tuple)):
    return [_plain(v) for v in value]
  return value


def dumps(value):
  """Returns the JSON text, as bytes, of dicts, lists, arrays and scalars."""
  # orjson writes NaN as null.
  if orjson is not None and _finite(value):
    return orjson.dumps(value, default=_plain, option=orjson.OPT_SERIALIZE_NUMPY)
  return json.dumps(_plain(value), ensure_ascii=False, separators=(",", ":")).encode("utf-8")


def is_bytes_object(value):
  """Returns whether a value is {"b64": ...}."""
  return isinstance(value, dict) and len(value) == 1 and "b64" in value


def to_bytes(name, value):
  """Returns the bytes of a JSON string or a b64 object."""
  if isinstance(value, str):
    return value.encode("utf-8", "surrogatepass")
  if is_bytes_object(value):
    try:
      return base64.b64decode(value["b64"], validate=True)
    except (binascii.Error, ValueError, TypeError):
      raise errors.invalid("input '%s': the text of \"b64\" is not base64", name)
  raise errors.invalid("input '%s': expected a string or {\"b64\": ...}, got %s", name,
                       json.dumps(value)[:_MAX_QUOTED])


def _flatten(name, value):
  """Returns (flat list, shape) of nested lists."""
  shape, flat = [], [value]
  while flat and isinstance(flat[0], list):
    lengths = set(len(v) if isinstance(v, list) else -1 for v in flat)
    if len(lengths) != 1:
      raise errors.invalid("input '%s': the nested lists have different lengths or depths",
                           name)
    shape.append(lengths.pop())
    flat = list(itertools.chain.from_iterable(flat))
  return flat, shape


def to_array(name, value, dtype):
  """Returns the NumPy array of a JSON value.

  Args:
    name: name of the input, for errors.
    value: nested lists of numbers, strings, b64 objects.
    dtype: tf.DType.

  Raises:
    ServingError: INVALID_ARGUMENT; UNIMPLEMENTED, JSON has no values of that type.
  """
  flat, shape = _flatten(name, value)
  kinds = set(map(type, flat))
  if dtype == tf.string:
    array = np.empty(len(flat), object)
    array[:] = [v.encode("utf-8", "surrogatepass") if type(v) is str else to_bytes(name, v)
                for v in flat]
    return array.reshape(shape)
  if dtype == tf.bool:
    allowed, what = {bool}, "true or false"
  elif dtype in (tf.float32, tf.float64):
    allowed, what = {int, float}, "numbers"
  elif dtype.is_integer:
    allowed, what = {int}, "integers"
  else:
    raise errors.ServingError("UNIMPLEMENTED", "input '%s': type %s is not supported in JSON" %
                              (name, dtype.name))
  if not kinds <= allowed:
    wrong = next(v for v in flat if type(v) not in allowed)
    raise errors.invalid("input '%s': expected %s for type %s, got %s", name, what,
                         dtype.name, json.dumps(wrong)[:_MAX_QUOTED])
  kind = np.dtype(dtype.as_numpy_dtype)
  if dtype.is_integer and flat:
    if min(flat) < np.iinfo(kind).min or max(flat) > np.iinfo(kind).max:
      raise errors.invalid("input '%s': a value is out of the range of %s", name, dtype.name)
  try:
    return np.array(flat, kind).reshape(shape)
  except OverflowError:
    raise errors.invalid("input '%s': a value is out of the range of %s", name, dtype.name)


def from_array(name, array):
  """Returns the JSON value of an output: an array, or lists if it has strings."""
  array = np.asarray(array)
  if array.dtype == np.float16:
    return array.astype(np.float32)
  if array.dtype != object:
    return np.asarray(array, order="C")  # ascontiguousarray makes lists of scalars
  as_b64 = name.endswith("_bytes")

  def text(value):
    if isinstance(value, list):
      return [text(v) for v in value]
    if as_b64:
      return {"b64": base64.b64encode(value).decode()}
    try:
      return value.decode("utf-8") if isinstance(value, bytes) else value
    except UnicodeDecodeError:
      raise errors.ServingError(
          "FAILED_PRECONDITION", "output '%s' is not UTF-8; outputs whose name ends in "
          "_bytes are written as base64" % name)
  return text(array.tolist())
