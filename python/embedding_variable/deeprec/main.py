# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The launcher: `python -m embedding_variable.deeprec [OPTIONS] SCRIPT [ARGUMENTS]`."""

import argparse
import os
import runpy
import sys

from embedding_variable import distribution
from embedding_variable.deeprec import names

# Version of the distribution "tensorflow" that a script finds through pkg_resources.
_VERSION = "1.15.5+deeprec2402"


def _parser():
  parser = argparse.ArgumentParser(
      prog="python -m embedding_variable.deeprec",
      description="Runs a training script that was written for DeepRec on stock "
      "TensorFlow 1.15. Prints a line for each of DeepRec's subsystems that the script "
      "uses: what stands in for it, or that it has no effect.")
  parser.add_argument("--version", action="version",
                      version="embedding_variable " + distribution.version())
  parser.add_argument("--list", action="store_true",
                      help="print DeepRec's names and what each one does, and exit")
  parser.add_argument("--quiet", action="store_true", help="print no such lines")
  parser.add_argument("--deeprec-version", default=_VERSION, metavar="VERSION",
                      help="version of TensorFlow that pkg_resources reports to the "
                      "script; default: %(default)s")
  parser.add_argument("--at-most-once", action="store_true",
                      help="a restored WorkQueue leaves out works that were taken and "
                      "not finished, as DeepRec's does; by default they are handed out "
                      "again")
  parser.add_argument("--share-work", action="store_true",
                      help="the ranks of a Horovod job share each WorkQueue")
  parser.add_argument("script", nargs="?", metavar="SCRIPT")
  parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="ARGUMENTS")
  return parser


def main(argv=None):
  """Runs a script, or prints the list of names.

  Args:
    argv: list of strings; None: the process's arguments.

  Returns:
    Exit status: 0, or 2 if there is no such script. The script's own exceptions and
      exits are passed on.
  """
  parser = _parser()
  args = parser.parse_args(argv)
  if args.list:
    sys.stdout.write(names.text())
    return 0
  if not args.script:
    parser.error("a script is needed: python -m embedding_variable.deeprec train.py")
  if not os.path.isfile(args.script):
    sys.stderr.write("error: there is no script %s\n" % args.script)
    return 2
  from embedding_variable.deeprec import activation  # pylint: disable=g-import-not-at-top
  activation.activate(args.deeprec_version, is_quiet=args.quiet,
                      at_most_once=args.at_most_once, share_work=args.share_work)
  sys.argv = [args.script] + args.arguments
  sys.path[0] = os.path.dirname(os.path.abspath(args.script))
  runpy.run_path(args.script, run_name="__main__")
  return 0
