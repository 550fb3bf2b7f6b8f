# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The JSON configuration: its schema, its checks, and the model it describes.

This package does not import TensorFlow.
"""
