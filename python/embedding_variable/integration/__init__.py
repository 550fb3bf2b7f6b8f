# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""All patches of stock TensorFlow, one file per patched place.

A patch handles embedding variables and calls the stock function for everything else.
All dependencies on internals of TensorFlow 1.15, except those of the variable class
itself, are in this folder.
"""
