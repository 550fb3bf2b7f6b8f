# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Lookups over ranks: the exchange of ids, rows and gradients."""
