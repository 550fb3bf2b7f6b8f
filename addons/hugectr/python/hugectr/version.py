# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The version of this package."""

import os
import re

# The version file in the source tree layout, written by Bazel.
_FILE = os.path.join("tools", "pip_package", "version.txt")

# The folder that pip creates beside the package for an installed wheel.
_INSTALLED = re.compile(r"sok_stock_tf_hugectr-(.+)\.dist-info$")


def version():
  """Returns the version, "0.1.0"; "unknown" in a source tree without Bazel."""
  package = os.path.dirname(os.path.abspath(__file__))
  for name in os.listdir(os.path.dirname(package)):
    found = _INSTALLED.match(name)
    if found:
      return found.group(1)
  path = os.path.join(package, *[".."] * 4 + [_FILE])
  if not os.path.exists(path):
    return "unknown"
  with open(path) as f:
    return f.read().strip()
