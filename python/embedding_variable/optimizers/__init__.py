# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Updates of embedding variables by stock optimizers, and DeepRec's optimizers."""
