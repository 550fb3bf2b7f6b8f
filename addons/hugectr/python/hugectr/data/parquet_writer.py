# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes Parquet files, a file list and _metadata.json, as NVTabular does."""

import json
import os

from hugectr.data.arrow import pa, pq

# Rows per row group.
_GROUP = 65536


class Writer(object):
  """Writes one file from chunks whose keys have no offsets.

  Args:
    path: string.
    group: int, largest number of rows per row group.
  """

  def __init__(self, path, group=_GROUP):
    self._path = path
    self._group = group
    self._writer = None
    self.rows = 0

  def add(self, chunk):
    """Appends samples."""
    columns = {}
    for k in range(chunk.labels.shape[1]):
      columns["label" if k == 0 else "label%d" % (k + 1)] = pa.array(chunk.labels[:, k])
    for k in range(chunk.dense.shape[1]):
      columns["I%d" % (k + 1)] = pa.array(chunk.dense[:, k])
    for k, slot in enumerate(chunk.slots):
      keys = pa.array(slot.keys)
      if slot.offsets is not None:
        keys = pa.ListArray.from_arrays(pa.array(slot.offsets.astype("int32")), keys)
      columns["C%d" % (k + 1)] = keys
    table = pa.table(columns)
    if self._writer is None:
      self._writer = pq.ParquetWriter(self._path, table.schema)
    if not table.schema.equals(self._writer.schema):
      raise ValueError("%s: some samples have lists of keys in slots in which others have one "
                       "key each" % self._path)
    self._writer.write_table(table, row_group_size=self._group)
    self.rows += len(chunk.labels)

  def close(self):
    """Closes the file."""
    if self._writer is not None:
      self._writer.close()


def write_metadata(folder, data, files):
  """Writes _metadata.json.

  Args:
    folder: string.
    data: the config's Data, or an object with label_dim, dense_dim and sparse.
    files: list of (file name, rows).
  """
  labels = ["label"] + ["label%d" % (k + 2) for k in range(data.label_dim - 1)]
  conts = ["I%d" % (k + 1) for k in range(data.dense_dim)]
  cats = ["C%d" % (k + 1) for k in range(sum(s.slot_num for s in data.sparse))]
  names = labels + conts + cats

  def described(part):
    return [{"col_name": n, "index": names.index(n)} for n in part]

  with open(os.path.join(folder, "_metadata.json"), "w") as f:
    json.dump({"file_stats": [{"file_name": n, "num_rows": r} for n, r in files],
               "labels": described(labels), "conts": described(conts),
               "cats": described(cats)}, f, indent=1)
