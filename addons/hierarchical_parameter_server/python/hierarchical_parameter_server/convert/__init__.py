# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes trained tables as table directories.

  from hierarchical_parameter_server import convert
  convert.from_checkpoint("model.ckpt-1000", "tables", ["users", "items"])

A table directory has two files without headers: `key` (int64) and `emb_vector`
(float32, rows x width). With row_type "float16" or "uint8" the second is
`emb_vector_float16` or `emb_vector_uint8`, half or about a quarter as large
(checkpoint_format/packed_rows.py). Every function returns {table: (rows, width)}. It writes new
files and then renames them, so a directory is never half written.

SparseOperationKit need not be installed: its files and checkpoints are read directly.
"""

from hierarchical_parameter_server.checkpoint_format.table_directories import write_table
from hierarchical_parameter_server.convert.checkpoints import checkpoint_tables
from hierarchical_parameter_server.convert.checkpoints import from_checkpoint
from hierarchical_parameter_server.convert.sok_files import from_legacy
from hierarchical_parameter_server.convert.sok_files import from_sok_dump

__all__ = ["checkpoint_tables", "from_checkpoint", "from_legacy", "from_sok_dump",
           "write_table"]
