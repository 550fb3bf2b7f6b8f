# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Saving and restoring embedding variables in stock V2 checkpoints."""
