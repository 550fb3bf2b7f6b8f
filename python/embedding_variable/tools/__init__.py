# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""`python -m embedding_variable`: looks into checkpoints that hold embedding variables."""
