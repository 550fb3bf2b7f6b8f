# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The command `convert`: writes the table directories of a trained model."""

from hierarchical_parameter_server import convert as conversions
from hierarchical_parameter_server.convert import checkpoints


def convert(args, out, err):
  """Writes the tables; prints the checkpoint that is read, and a line per table."""
  if args.kind != "checkpoint" and (args.dense or args.full_only):
    raise ValueError("--dense and --full-only are for checkpoints")
  if args.kind == "checkpoint":
    checkpoint = checkpoints.Checkpoint(args.source, args.full_only)
    print("reading %s" % checkpoint.name, file=err)
    tables = args.tables
    if tables is None and args.dense and not checkpoint.tables:
      tables = []
    written = checkpoints.write(checkpoint, args.out, tables, args.dense, args.row_type)
  elif args.kind == "sok-dump":
    written = conversions.from_sok_dump(args.source, args.out, args.tables, args.row_type)
  else:
    if args.tables:
      raise ValueError("--tables: legacy files are always converted as a whole; leave it out")
    written = conversions.from_legacy(args.source, args.out, args.key_dtype, args.row_type)
  for table, (rows, width) in sorted(written.items()):
    print("%s: %d rows of %d floats" % (table, rows, width), file=out)
  return True
