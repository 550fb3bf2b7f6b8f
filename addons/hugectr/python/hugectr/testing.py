# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Data and configurations for tests."""

import json
import os
import pickle

from hugectr.config import model
from hugectr.data import arrow
from hugectr.data import synthetic
from hugectr.data import writing

Planted = synthetic.Planted


def write_data(path, planted, files, rows, seed, kind="Parquet", key_type="I32", label_dim=1,
               **clause):
  """Writes `files` files of `rows` samples each; returns the file list's path.

  label_dim: int, that of `planted`.
  """
  slots = len(planted.sizes)
  data = model.Data(
      "data", kind, path, None, "label", label_dim, "dense", planted.dense_dim,
      [model.SparseInput("keys", False, 0, slots, 1, slots)], planted.sizes, 2, clause)
  chunks = synthetic.chunks(planted, files * rows, seed, rows)
  writing.write(path, data, key_type, chunks, rows, group=max(1, rows // 2))
  return path


def write_parquet(folder, planted, files, rows, seed):
  """Like write_data, in a folder."""
  return write_data(os.path.join(folder, "_file_list.txt"), planted, files, rows, seed)


class _Code(object):
  """Its pickle creates a file when it is loaded."""

  def __init__(self, path):
    self._path = path

  def __reduce__(self):
    return open, (self._path, "w")


def write_with_code(path, column, marker):
  """Gives a column of a Parquet file a type whose description creates the file `marker`."""
  table = arrow.pq.read_table(path)
  at = table.schema.get_field_index(column)
  field = table.schema.field(at).with_metadata({
      "ARROW:extension:name": "arrow.py_extension_type",
      "ARROW:extension:metadata": pickle.dumps(_Code(marker), 0)})
  arrow.pq.write_table(table.cast(table.schema.set(at, field)), path)


def write_json(path, value):
  """Writes a JSON file; returns its path."""
  with open(path, "w") as f:
    json.dump(value, f)
  return path
