# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs TensorFlow 1.15.0's GPU build on current cards: `python -m
embedding_variable.gpu`.

See `embedding_variable.gpu.main` for the commands and docs/gpu.md for a guide.
"""
