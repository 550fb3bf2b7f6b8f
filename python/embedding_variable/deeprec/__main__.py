# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""`python -m embedding_variable.deeprec`: see `embedding_variable.deeprec.main`."""

import sys

from embedding_variable.deeprec import main

if __name__ == "__main__":
  sys.exit(main.main())
