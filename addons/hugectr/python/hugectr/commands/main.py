# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The command line: `python -m hugectr COMMAND ...`."""

import argparse
import os
import sys

from hugectr.commands import checking
from hugectr.commands import converting
from hugectr.commands import generating
from hugectr.commands import running
from hugectr.config import errors as config_errors
from hugectr.data import errors as data_errors
from hugectr import version

_GOOD, _TROUBLE = 0, 2


def _check(args):
  return checking.check(args.config, args.plot, sys.stdout)


def _convert(args):
  return converting.convert(args.config, args.source, args.target, args.source_format,
                            args.target_format, args.rows_per_file, sys.stdout, sys.stderr)


def _generate(args):
  return generating.generate(args.config, args.samples, args.eval_samples, args.files,
                             args.seed, sys.stdout)


def _train(args):
  # Imported here, since TensorFlow takes seconds to import and other commands do not
  # need it.
  from hugectr.commands import training  # pylint: disable=g-import-not-at-top
  return training.train(args.config, args.summaries, sys.stdout, sys.stderr)


def _run(args):
  running.run(args.script, args.arguments)


def _parser():
  parser = argparse.ArgumentParser(
      prog="python -m hugectr", description="Works with HugeCTR's JSON configurations and "
      "scripts.")
  parser.add_argument("--version", action="version",
                      version="hugectr " + version.version())
  commands = parser.add_subparsers(dest="command", metavar="COMMAND")
  commands.required = True

  def command(name, function, help_text):
    sub = commands.add_parser(name, help=help_text, description=help_text)
    sub.set_defaults(function=function)
    sub.add_argument("config", metavar="CONFIG.json")
    return sub

  sub = command("check", _check,
                "Print the mistakes of a configuration, or the layers of a correct one.")
  sub.add_argument("--plot", metavar="FILE",
                   help="also draw the layers: an SVG; if the name ends with .png a PNG, by "
                   "matplotlib")

  sub = command("convert", _convert,
                "Convert data from one format to another; the configuration describes the "
                "samples. SOURCE and TARGET are file lists (norm, parquet) or files "
                "(raw, tsv: Criteo's text).")
  sub.add_argument("source", metavar="SOURCE")
  sub.add_argument("target", metavar="TARGET")
  sub.add_argument("--from", dest="source_format", required=True,
                   choices=sorted(converting.FORMATS))
  sub.add_argument("--to", dest="target_format", required=True,
                   choices=["norm", "parquet", "raw"])
  sub.add_argument("--rows_per_file", type=int, default=1000000,
                   help="samples per written file (1000000)")

  sub = command("generate", _generate,
                "Write random data with a planted signal to the files that a configuration "
                "names.")
  sub.add_argument("--samples", type=int, default=100000,
                   help="training samples (100000)")
  sub.add_argument("--eval_samples", type=int, default=20000,
                   help="evaluation samples (20000)")
  sub.add_argument("--files", type=int, default=4, help="training files (4)")
  sub.add_argument("--seed", type=int, default=0, help="seed of the data (0)")

  sub = command("train", _train, "Train by the solver clause of a configuration.")
  sub.add_argument("--summaries", metavar="DIR",
                   help="also write loss, rate and metrics for TensorBoard")

  text = ("Run a script of the Python API, with an mpi4py that has no effect if none is "
          "installed.")
  sub = commands.add_parser("run", help=text, description=text)
  sub.set_defaults(function=_run)
  sub.add_argument("script", metavar="SCRIPT.py")
  sub.add_argument("arguments", metavar="ARG", nargs=argparse.REMAINDER)
  return parser


def main(argv=None):
  """Runs a command.

  Args:
    argv: list of strings; None: the process's arguments.

  Returns:
    Exit status: 0; 2 after an error, which is printed to standard error.
  """
  args = _parser().parse_args(argv)
  if args.function is _run and os.path.isfile(args.script):
    # Its errors show where the script raised them.
    args.function(args)
    return _GOOD
  try:
    args.function(args)
    return _GOOD
  except BrokenPipeError:
    # The reader of the output, such as head, has closed it.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return _GOOD
  except config_errors.ConfigError as e:
    # Keep each mistake on one line: names may contain line breaks.
    sys.stderr.write("".join("error: %s\n" % line.replace("\n", r"\n")
                             for line in e.mistakes))
  except (data_errors.DataError, NotImplementedError, OSError, RuntimeError,
          ValueError) as e:
    sys.stderr.write("error: %s\n" % e)
  return _TROUBLE
