# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Keras layers."""

from sparse_operation_kit.layers.embedding import Embedding
