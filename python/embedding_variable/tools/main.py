# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The command line: `python -m embedding_variable COMMAND ...`."""

import argparse
import importlib
import importlib.util
import os
import sys

from embedding_variable import distribution
from embedding_variable.checkpoint_format import checkpoint_tables
from embedding_variable.checkpoint_format import errors
from embedding_variable.checkpoint_format import names
from embedding_variable.tools import diffing
from embedding_variable.tools import exporting
from embedding_variable.tools import inspecting
from embedding_variable.tools import looking_up
from embedding_variable.tools import plotting
from embedding_variable.tools import progress
from embedding_variable.tools import publication_text
from embedding_variable.tools import shrinking

# Exit statuses, like those of diff(1).
_SAME, _DIFFERENT, _TROUBLE = 0, 1, 2


def _open(path, args):
  """Opens a checkpoint; prints to standard error which deltas are read."""
  checkpoint = checkpoint_tables.Checkpoint(path, full_only=args.full_only)
  if checkpoint.num_deltas:
    sys.stderr.write("reading %s\n" % checkpoint.name)
  return checkpoint


def _inspect(args):
  checkpoint = _open(args.checkpoint, args)
  tables = [checkpoint.table(n) for n in args.variable] or [
      checkpoint.tables[n] for n in sorted(checkpoint.tables, key=names.natural)
  ]
  facts = []
  with progress.Progress("inspect", len(tables)) as bar:
    for table in tables:
      facts.append(inspecting.of_table(table))
      bar.add(1, table.name)
  sys.stdout.write(inspecting.text(checkpoint, facts))
  if args.plot:
    plotting.plot(checkpoint, facts, args.plot)
    sys.stdout.write("\nwrote %s\n" % args.plot)
  return _SAME


def _lookup(args):
  checkpoint = _open(args.checkpoint, args)
  sys.stdout.write(looking_up.text(checkpoint.table(args.variable), args.keys))
  return _SAME


def _export(args):
  table = _open(args.checkpoint, args).table(args.variable)
  path = args.out or "%s.%s" % (args.variable.replace("/", "_"), args.to)
  exporting.export(table, args.to, path, with_slots=args.slots, overwrite=args.force)
  sys.stdout.write("wrote {:,} rows to {}\n".format(table.rows, path))
  return _SAME


def _diff(args):
  found = diffing.text(_open(args.first, args), _open(args.second, args))
  sys.stdout.write(found)
  return _DIFFERENT if found else _SAME


def _shrink(args):
  checkpoint = _open(args.checkpoint, args)
  out = args.out or checkpoint.prefix + "-shrunk"
  for result in shrinking.shrink(
      checkpoint, out, steps=args.evict_older_than, drop_filtered=args.drop_filtered,
      step=args.global_step, names=args.variable):
    note = "" if result.versions else ", all kept: no versions were recorded"
    if result.filtered:
      note += ", {:,} keys that were not admitted dropped".format(result.filtered)
    sys.stdout.write("{}: {:,} of {:,} rows evicted{}\n".format(
        result.name, result.before - result.after, result.before, note))
  sys.stdout.write("wrote %s\n" % out)
  return _SAME


def _publish(args):
  sys.stdout.write(publication_text.check(args.check))
  return _SAME


def _serve(argv):
  """Runs the server of another wheel; it has its own flags."""
  if importlib.util.find_spec("embedding_variable_serving") is None:
    raise errors.ToolError("serve needs the wheel sok-stock-tf-serving: "
                           "pip install 'sok-stock-tf[serving]'")
  return importlib.import_module("embedding_variable_serving.main").main(argv)


def _parser():
  parser = argparse.ArgumentParser(
      prog="python -m embedding_variable",
      description="Looks into checkpoints that hold embedding variables. CKPT is a "
      "checkpoint's prefix, or a directory, whose newest checkpoint is taken. It is read "
      "with its incremental checkpoints if tf.train.Saver().restore would apply them.")
  parser.add_argument("--version", action="version",
                      version="embedding_variable " + distribution.version())
  commands = parser.add_subparsers(dest="command", metavar="COMMAND")
  commands.required = True

  def command(name, function, help_text, checkpoints=("checkpoint",)):
    sub = commands.add_parser(name, help=help_text, description=help_text)
    sub.set_defaults(function=function)
    for checkpoint in checkpoints:
      sub.add_argument(checkpoint, metavar="CKPT")
    sub.add_argument("--full-only", action="store_true",
                     help="leave out the incremental checkpoints that continue CKPT")
    return sub

  sub = command("inspect", _inspect,
                "List variables: rows, dim, slots, bytes, frequencies, versions.")
  sub.add_argument("--variable", action="append", default=[], metavar="VAR",
                   help="only this one; may be repeated. VAR may be a part of a name's "
                   "path that no other name has, or a feature column")
  sub.add_argument("--plot", metavar="PNG", help="also draw the histograms")

  sub = command("lookup", _lookup, "Print the rows of some keys.")
  sub.add_argument("variable", metavar="VAR")
  sub.add_argument("keys", metavar="KEY", type=int, nargs="+")

  sub = command("export", _export, "Write a variable as another kind of file.")
  sub.add_argument("variable", metavar="VAR")
  sub.add_argument("--to", choices=exporting.FORMATS, required=True)
  sub.add_argument("--out", metavar="FILE", help="default: VAR.FORMAT")
  sub.add_argument("--slots", action="store_true", help="also the optimizer's slots")
  sub.add_argument("--force", action="store_true", help="overwrite FILE")

  command("diff", _diff,
          "Compare two checkpoints by key, bit for bit. Exit status 1: they differ.",
          ("first", "second"))

  sub = command("shrink", _shrink,
                "Write a new checkpoint without unused rows.")
  sub.add_argument("--evict-older-than", type=int, metavar="STEPS",
                   help="drop rows whose last update is longer ago")
  sub.add_argument("--drop-filtered", action="store_true",
                   help="drop the keys that a filter did not admit yet")
  sub.add_argument("--global-step", type=int, metavar="STEP",
                   help="count from this step; default: the checkpoint's")
  sub.add_argument("--variable", action="append", metavar="VAR",
                   help="only this one; may be repeated")
  sub.add_argument("--out", metavar="PREFIX", help="default: CKPT-shrunk")

  sub = commands.add_parser(
      "publish", help="Check a folder that embedding_variable.publish wrote.")
  sub.set_defaults(function=_publish)
  sub.add_argument("--check", metavar="FOLDER", required=True,
                   help="compare all files that its current.json names with their checksums")

  commands.add_parser("serve", help="Serve SavedModels over gRPC and HTTP; see serve --help.")
  return parser


def main(argv=None):
  """Runs a command.

  Args:
    argv: list of strings; None: the process's arguments.

  Returns:
    Exit status: 0; 1 if `diff` found a difference; 2 for errors, which are printed to
      standard error.
  """
  argv = sys.argv[1:] if argv is None else argv
  try:
    if argv[:1] == ["serve"]:
      return _serve(argv[1:])
    args = _parser().parse_args(argv)
    return args.function(args)
  except errors.CheckpointError as e:
    sys.stderr.write("error: %s\n" % e)
    return _TROUBLE
  except BrokenPipeError:
    # The reader of the output, such as head, has stopped reading.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return _SAME
