# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""What is raised for data that cannot be read."""


def _printable(text):
  """Returns a text whose bytes of file names that are not UTF-8 are written as \\xNN.

  TensorFlow, through which a dataset's errors go, drops a text that UTF-8 cannot encode.
  """
  try:
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
  except UnicodeEncodeError:  # Half of a surrogate pair, which no file name has.
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


class DataError(ValueError):
  """A file is missing, damaged or not what the configuration says; the text names it."""

  def __init__(self, text):
    super(DataError, self).__init__(_printable(str(text)))
