# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The version of all distributions."""

VERSION = "0.1.0"
