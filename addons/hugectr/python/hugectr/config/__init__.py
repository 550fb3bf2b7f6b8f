# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The JSON configuration: its schema, its checks, the model that it describes.

Nothing here needs TensorFlow.
"""
