# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The command line: `python -m hierarchical_parameter_server COMMAND ...`."""

import argparse
import os
import sys

# Set before TensorFlow is imported, so that its log lines do not mix with the output.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")

# pylint: disable=g-import-not-at-top
import tensorflow as tf

from hierarchical_parameter_server.checkpoint_format import packed_rows
from hierarchical_parameter_server.commands import checking
from hierarchical_parameter_server.commands import converting
from hierarchical_parameter_server.commands import loading
from hierarchical_parameter_server.commands import looking_up
from hierarchical_parameter_server.commands import profiling
from hierarchical_parameter_server import version

# Exit codes: the command found errors or mismatches; the command failed.
_FOUND, _TROUBLE = 1, 2


def _parser():
  parser = argparse.ArgumentParser(
      prog="python -m hierarchical_parameter_server",
      description="Works with configurations and tables of the parameter server.")
  parser.add_argument("--version", action="version",
                      version="hierarchical_parameter_server " + version.version())
  commands = parser.add_subparsers(dest="command", metavar="COMMAND")
  commands.required = True

  def command(name, function, help_text):
    sub = commands.add_parser(name, help=help_text, description=help_text)
    sub.set_defaults(function=function)
    return sub

  sub = command("check", checking.check,
                "Report which keys of a configuration are unknown, without effect or at odds "
                "with the files, and how much memory each table takes.")
  sub.add_argument("config", metavar="CONFIG")
  sub.add_argument("--connect", action="store_true",
                   help="also try to reach Redis and RocksDB; one that is not reached is an "
                   "error")

  sub = command("lookup", looking_up.lookup, "Print the rows of keys.")
  sub.add_argument("config", metavar="CONFIG")
  sub.add_argument("model", metavar="MODEL")
  sub.add_argument("table", metavar="TABLE", help="a table's name or number")
  sub.add_argument("keys", metavar="KEY", type=int, nargs="+")

  sub = command("load", loading.load,
                "Load every table of a configuration: databases are filled, and indexes "
                "are written beside the files.")
  sub.add_argument("config", metavar="CONFIG")

  sub = command("convert", converting.convert,
                "Write table directories of a trained model.")
  sub.add_argument("kind", choices=["checkpoint", "sok-dump", "legacy"],
                   help="checkpoint: written by tf.train.Saver; sok-dump: a folder of sok.dump; "
                   "legacy: a folder of Saver.dump_to_file")
  sub.add_argument("source", metavar="SOURCE", help="a checkpoint's prefix, or a folder")
  sub.add_argument("out", metavar="OUT", help="folder; each table is one below it")
  sub.add_argument("--tables", nargs="+", metavar="NAME", help="these tables; default: all")
  sub.add_argument("--dense", nargs="+", metavar="NAME", default=[],
                   help="dense variables of a checkpoint; their row numbers are the keys")
  sub.add_argument("--full-only", action="store_true",
                   help="leave out the incremental checkpoints that continue a checkpoint")
  sub.add_argument("--key_dtype", choices=["int64", "uint32"], default="int64",
                   help="of legacy files")
  sub.add_argument("--row_type", choices=packed_rows.ROW_TYPES, default="float32",
                   help="of the written rows; float16 takes half of float32's bytes, uint8 "
                   "about a quarter")

  sub = command("profile", profiling.profile,
                "Measure lookups: latency, throughput and where rows came from.")
  sub.add_argument("config", metavar="CONFIG")
  sub.add_argument("--model", help="default: the first one")
  sub.add_argument("--table", type=int, default=0, help="a table's number")
  sub.add_argument("--stream", choices=("all",) + profiling.STREAMS, default="zipf",
                   help="zipf: a few keys are most of them; repeated: one batch again and "
                   "again; all: one after the other, and a table of them")
  sub.add_argument("--exponent", type=float, default=1.2, help="of zipf, above 1")
  sub.add_argument("--batch", type=int, default=1024, help="ids of a lookup")
  sub.add_argument("--iterations", type=int, default=1000)
  sub.add_argument("--warmup", type=int, default=50)
  sub.add_argument("--threads", type=int, default=1, help="callers at once")
  sub.add_argument("--seed", type=int, default=1)
  sub.add_argument("--chart", action="store_true", help="draw the latencies as text")
  sub.add_argument("--chart_file", metavar="FILE",
                   help="draw them into a file: .svg, or .png where matplotlib is installed")
  return parser


def main(argv=None):
  """Runs a command; returns the program's exit code."""
  args = _parser().parse_args(argv)
  for stream in (sys.stdout, sys.stderr):
    if hasattr(stream, "reconfigure"):
      # A path or message may have characters that the terminal's encoding lacks.
      stream.reconfigure(errors="backslashreplace")
  try:
    return 0 if args.function(args, sys.stdout, sys.stderr) else _FOUND
  except (ValueError, OSError) as e:
    print("error: %s" % e, file=sys.stderr)
  except tf.errors.OpError as e:
    # The rest of the message names nodes of an internal graph.
    print("error: %s" % e.message.split("\n\t [[")[0], file=sys.stderr)
  return _TROUBLE
