# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""All patches of stock TensorFlow, one file per patched place.

A patch handles embedding variables and calls the stock function for everything else.
Internal functions of TensorFlow that other folders call are in tf_names.py.
"""
