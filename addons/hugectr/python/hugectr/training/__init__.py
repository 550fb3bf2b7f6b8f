# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Solver, learning rate, metrics, tables, optimizers, and the Session over them."""
