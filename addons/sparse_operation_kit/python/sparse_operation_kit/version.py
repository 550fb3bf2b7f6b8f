# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Which version this is, and of which TensorFlow."""

import os
import re

import tensorflow as tf

# What Bazel writes the version into, in the source tree's layout.
_FILE = os.path.join("tools", "pip_package", "version.txt")

_INSTALLED = re.compile(r"sparse_operation_kit-(.+)\.dist-info$")


def version():
  """Returns the version, "0.1.0"; "unknown" where Python runs in a bare source tree."""
  package = os.path.dirname(os.path.abspath(__file__))
  # An installed wheel says it beside the package.
  for name in os.listdir(os.path.dirname(package)):
    found = _INSTALLED.match(name)
    if found:
      return found.group(1)
  path = os.path.join(package, *[".."] * 4 + [_FILE])
  if not os.path.exists(path):
    return "unknown"
  with open(path) as f:
    return f.read().strip()


def tf_version():
  """Returns TensorFlow's version as a list of three integers, [1, 15, 5]."""
  return [int(re.match(r"\d+", part).group())
          for part in tf.__version__.split(".")[:3]]
