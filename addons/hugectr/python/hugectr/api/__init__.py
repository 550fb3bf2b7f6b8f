# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""HugeCTR's Python API: Model, add, compile, fit.

It describes a model as the JSON configuration does: `Model` collects the clauses of a
configuration, and trains it by a Session. Only `model` and what runs a Model import
TensorFlow.
"""
