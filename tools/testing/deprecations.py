# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Turns off TensorFlow's warnings about deprecated functions.

To print a warning once per line of code, TensorFlow 1.15 inspects the signature of a
deprecated function at every call, also in calls by stock TensorFlow itself. This takes an
eighth of the time in which a test builds graphs.
"""

from tensorflow.python.util import deprecation


def silence():
  """Turns off the warnings in this process and in its forks."""
  deprecation._PRINT_DEPRECATION_WARNINGS = False  # pylint: disable=protected-access
