# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Imports the package with the op library that EV_TEST_LIBRARY names."""

import importlib
import os

import placement

placement.use_library(os.environ[placement.LIBRARY])
importlib.import_module("embedding_variable")
