# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""`python -m embedding_variable.gpu`: see `embedding_variable.gpu.main`."""

import sys

from embedding_variable.gpu import main

if __name__ == "__main__":
  sys.exit(main.main())
