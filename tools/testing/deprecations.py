# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Turns off TensorFlow's warnings about deprecated functions.

To write one at the first call from a line of code, TensorFlow 1.15 inspects the signature
of the function at every call, and stock TensorFlow calls such functions itself: this is
an eighth of the time in which a test builds graphs.
"""

from tensorflow.python.util import deprecation


def silence():
  """Turns them off in this process and in its forks."""
  deprecation._PRINT_DEPRECATION_WARNINGS = False  # pylint: disable=protected-access
