# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The one place that says which version this is."""

VERSION = "0.1.0"
