# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Data and configurations for tests."""

import json

from hugectr.data import synthetic

Planted = synthetic.Planted


def write_parquet(folder, planted, files, rows, seed):
  """Writes `files` files of `rows` samples each; returns the file list's path."""
  return synthetic.write_parquet(folder, planted, files, files * rows, seed)


def write_json(path, value):
  """Writes a JSON file; returns its path."""
  with open(path, "w") as f:
    json.dump(value, f)
  return path
