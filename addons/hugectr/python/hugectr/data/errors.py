# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Errors of data files."""


def _printable(text):
  """Returns a text in which bytes of file names that are not UTF-8 are written as \\xNN.

  The errors of a dataset pass through TensorFlow, which drops a text that cannot be
  encoded in UTF-8.
  """
  try:
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
  # half of a surrogate pair, which does not occur in file names
  except UnicodeEncodeError:
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


class DataError(ValueError):
  """A file is missing, damaged or does not match the configuration; the text names it."""

  def __init__(self, text):
    super(DataError, self).__init__(_printable(str(text)))
