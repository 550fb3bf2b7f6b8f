# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Categorical feature columns whose table is an embedding variable."""
