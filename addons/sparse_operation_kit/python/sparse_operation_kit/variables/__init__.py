# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""SOK's variables: which exist, their rows and where they are."""
