# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Opens the files of a configuration's format."""

import os

from hugectr.data import parquet


def open_source(path, data, key_type):
  """Returns the source of a file list or file.

  Args:
    path: string.
    data: config's Data.
    key_type: "I32" or "I64".

  Raises:
    NotImplementedError: a format that is not here yet.
    DataError: files are missing or are something else.
  """
  if data.format != "Parquet":
    raise NotImplementedError(
        "data format %s is not implemented in this version; Parquet is" % data.format)
  threads = min(data.num_workers, os.cpu_count() or 1)
  return parquet.Source(path, data, key_type, threads)
