# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""`python -m embedding_variable`: see `embedding_variable.tools.main`."""

import sys

from embedding_variable.tools import main

if __name__ == "__main__":
  sys.exit(main.main())
