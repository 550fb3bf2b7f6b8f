# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""python -m hierarchical_parameter_server."""

import sys

from hierarchical_parameter_server.commands import main

if __name__ == "__main__":
  sys.exit(main.main())
