# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Readers: files into batches, by threads ahead of training.

Nothing here needs TensorFlow.
"""
