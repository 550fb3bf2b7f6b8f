# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""convert: table directories of a trained model."""

from hierarchical_parameter_server import convert as conversions


def convert(args, out, err):
  """Writes the tables; prints a line for each."""
  del err
  if args.kind != "checkpoint" and args.dense:
    raise ValueError("--dense: is of checkpoints")
  if args.kind == "checkpoint":
    tables = args.tables
    if tables is None and args.dense and not conversions.checkpoint_tables(args.source):
      tables = []
    written = conversions.from_checkpoint(args.source, args.out, tables, args.dense)
  elif args.kind == "sok-dump":
    written = conversions.from_sok_dump(args.source, args.out, args.tables)
  else:
    if args.tables:
      raise ValueError("--tables: of legacy files all are converted")
    written = conversions.from_legacy(args.source, args.out, args.key_dtype)
  for table, (rows, width) in sorted(written.items()):
    print("%s: %d rows of %d floats" % (table, rows, width), file=out)
  return True
