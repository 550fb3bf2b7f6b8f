# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Every patch of stock TensorFlow, one file for each place that is patched.

A patch dispatches on embedding variables and calls the stock function for everything
else. All knowledge of TensorFlow 1.15's insides that is not needed to be a variable
lives here.
"""
