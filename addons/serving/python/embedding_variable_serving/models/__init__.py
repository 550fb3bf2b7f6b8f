# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Versions of models: folders, loading, warm-up, batching."""
