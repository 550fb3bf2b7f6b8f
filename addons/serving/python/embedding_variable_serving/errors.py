# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The error of a request, with the status codes of gRPC and HTTP."""

import tensorflow as tf

# Name: (number in gRPC and in tensorflow.error.Code, HTTP status).
CODES = {
    "OK": (0, 200),
    "CANCELLED": (1, 499),
    "UNKNOWN": (2, 500),
    "INVALID_ARGUMENT": (3, 400),
    "DEADLINE_EXCEEDED": (4, 504),
    "NOT_FOUND": (5, 404),
    "ALREADY_EXISTS": (6, 409),
    "PERMISSION_DENIED": (7, 403),
    "RESOURCE_EXHAUSTED": (8, 429),
    "FAILED_PRECONDITION": (9, 400),
    "ABORTED": (10, 409),
    "OUT_OF_RANGE": (11, 400),
    "UNIMPLEMENTED": (12, 501),
    "INTERNAL": (13, 500),
    "UNAVAILABLE": (14, 503),
    "DATA_LOSS": (15, 500),
    "UNAUTHENTICATED": (16, 401),
}
_NAMES = {number: name for name, (number, _) in CODES.items()}

# Longer messages are cut, as TensorFlow Serving does. The text becomes an HTTP/2 header,
# whose size clients limit.
_MAX_BYTES = 1024
_CUT = "...TRUNCATED"


class ServingError(Exception):
  """Error of a request or of a version.

  Attributes:
    code: name of a status code.
    message: string, at most about 1,024 bytes.
    number: int, the number of the code.
    http_status: int.
  """

  def __init__(self, code, message, http_status=None):
    encoded = message.encode("utf-8", "replace")
    if len(encoded) > _MAX_BYTES:
      message = encoded[:_MAX_BYTES].decode("utf-8", "ignore") + _CUT
    super().__init__(message)
    self.code = code
    self.message = message
    self.number, usual_status = CODES[code]
    self.http_status = http_status or usual_status


def invalid(message, *values):
  """Returns the ServingError INVALID_ARGUMENT."""
  return ServingError("INVALID_ARGUMENT", message % values if values else message)


def wrapped(error):
  """Returns a ServingError for any exception."""
  if isinstance(error, ServingError):
    return error
  if isinstance(error, tf.errors.OpError):
    return ServingError(_NAMES.get(error.error_code, "UNKNOWN"), error.message or "")
  if isinstance(error, MemoryError):
    return ServingError("RESOURCE_EXHAUSTED", "out of memory: %s" % error)
  return ServingError("INTERNAL", "%s: %s" % (type(error).__name__, error))
