# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Layers of a configuration as TensorFlow ops, and their parameters."""
