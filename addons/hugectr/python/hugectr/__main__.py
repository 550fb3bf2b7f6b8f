# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""python -m hugectr COMMAND ..."""

import sys

from hugectr.commands import main

if __name__ == "__main__":
  sys.exit(main.main())
