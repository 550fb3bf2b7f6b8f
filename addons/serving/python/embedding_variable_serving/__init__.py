# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""A network server for SavedModels with embedding variables: see `main`."""

import os
import re

_INFO = re.compile(r"sok_stock_tf_serving-(.+)\.dist-info$")


def _version():
  """Returns the version of the installed wheel, "unknown" in a source tree."""
  site = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
  found = [_INFO.match(name) for name in os.listdir(site)]
  return next((match.group(1) for match in found if match), "unknown")


__version__ = _version()
