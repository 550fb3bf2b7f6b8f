# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The command line: `python -m embedding_variable.gpu COMMAND ...`."""

import argparse
import contextlib
import fcntl
import os
import shlex
import sys

from embedding_variable import distribution
from embedding_variable.gpu import checking
from embedding_variable.gpu import compiling
from embedding_variable.gpu import cuda_libraries
from embedding_variable.gpu import driver as driver_lib
from embedding_variable.gpu import errors
from embedding_variable.gpu import links
from embedding_variable.gpu import places as places_lib
from embedding_variable.gpu import progress
from embedding_variable.gpu import state
from embedding_variable.gpu import tensorflow_build

_WELL, _FAILED, _TROUBLE = 0, 1, 2


def _say(text):
  sys.stdout.write(text)
  sys.stdout.flush()


@contextlib.contextmanager
def _locked(places):
  """Context in which only this process may change the folder."""
  with open(places.lock, "w") as f:
    try:
      fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
      raise errors.GpuError("another process is setting up %s" % places.top)
    yield


def _run_checks(places):
  checks, seconds = checking.run_all(places)
  _say(checking.table(checks))
  return checks, seconds


def _setup(args):
  places = places_lib.Places(args.directory or places_lib.default_directory())
  driver = driver_lib.look()
  build = tensorflow_build.installed()
  cuda = cuda_libraries.find(cuda_libraries.places(args.cuda), driver.cuda[0])
  planned = links.plan(cuda, args.cudart)
  _say("TensorFlow %s for CUDA 10.0 in %s\n" % (build.version, build.folder))
  _say("CUDA %d from %s\n" % (cuda.version, cuda.place))
  for gpu in driver.gpus:
    _say("GPU %d: %s, compute capability %d.%d, driver %s\n" %
         ((gpu.ordinal, gpu.name) + divmod(gpu.capability, 10) + (driver.version,)))
  os.makedirs(places.top, exist_ok=True)
  with _locked(places):
    if os.path.exists(places.state):
      os.remove(places.state)
    links.lay_out(planned, places.libraries)
    facts = state.describe(build, driver, cuda)
    facts["compiled"] = []
    seen = set()
    for gpu in driver.gpus:
      if gpu.name in seen:
        continue
      seen.add(gpu.name)
      result = compiling.compile_for(gpu, build, places, args.jobs)
      _say("compiled %d modules for %s in %.0f s with %d processes, %s in %s\n" %
           (result.compiled, gpu.name, result.seconds, result.processes,
            progress.mebibytes(places_lib.cache_bytes(places)), places.cache))
      if result.refused or result.without_code:
        _say("without code for this card: %d of %d modules; refused by the driver: %d\n" %
             (result.without_code, len(build.modules), result.refused))
      facts["compiled"].append({"gpu": gpu.name, "seconds": round(result.seconds, 1),
                                "modules": result.compiled})
    checks, seconds = _run_checks(places)
    facts["checks"] = {c.name: c.error or "works" for c in checks}
    facts["first_run_seconds"] = round(seconds, 1)
    facts["cache_bytes"] = places_lib.cache_bytes(places)
    lacking = checking.failed(checks)
    if lacking:
      sys.stderr.write("error: TensorFlow does not work on this GPU: %s\n" %
                       "; ".join(lacking))
      return _FAILED
    state.write(places.state, facts)
  _say("set up in %s, %s of compiled code. Now:\n"
       "  python -m embedding_variable.gpu run %s -- python train.py\n" %
       (places.top, progress.mebibytes(facts["cache_bytes"]), shlex.quote(places.top)))
  return _WELL


def _ready(directory):
  """Returns the Places of a set-up that is still valid."""
  places = places_lib.Places(directory or places_lib.default_directory())
  facts = state.read(places)
  state.check(facts, driver_lib.look(), places)
  return places


def _check(args):
  places = _ready(args.directory)
  checks, _ = _run_checks(places)
  return _FAILED if checking.failed(checks) else _WELL


def _env(args):
  for name, value in places_lib.variables(_ready(args.directory)).items():
    _say("export %s=%s\n" % (name, shlex.quote(value)))
  return _WELL


def _run(args):
  places = _ready(args.directory)
  environ = dict(os.environ)
  environ.update(places_lib.variables(places))
  sys.stdout.flush()
  sys.stderr.flush()
  try:
    os.execvpe(args.command[0], args.command, environ)
  except OSError as e:
    raise errors.GpuError("%s cannot be run: %s" % (args.command[0], e.strerror))


def _parser():
  parser = argparse.ArgumentParser(
      prog="python -m embedding_variable.gpu",
      description="Makes TensorFlow 1.15.0's GPU build, which is for CUDA 10.0, work on "
      "current cards. DIR stores the files for this; default: $TF_EV_GPU_DIR, or a folder in "
      "~/.cache.")
  parser.add_argument("--version", action="version",
                      version="embedding_variable " + distribution.version())
  commands = parser.add_subparsers(dest="name", metavar="COMMAND")
  commands.required = True

  def command(name, function, help_text):
    sub = commands.add_parser(name, help=help_text, description=help_text)
    sub.set_defaults(function=function)
    sub.add_argument("directory", metavar="DIR", nargs="?")
    return sub

  sub = command("setup", _setup,
                "Find TensorFlow, CUDA and the driver, compile TensorFlow's kernels for "
                "this machine's cards, and check them. Exit status 1: what embedding "
                "models need does not work.")
  sub.add_argument("--cuda", metavar="DIR", help="the CUDA toolkit to take")
  sub.add_argument("--cudart", metavar="FILE",
                   help="a libcudart.so.10.0 to use instead of ours, for libraries of "
                   "kernels that were built for CUDA 10.0")
  sub.add_argument("--jobs", type=int, metavar="N",
                   help="processes that compile; default: one a core")
  sub = command("run", _run, "Run a command with TensorFlow on the GPU: "
                "run [DIR] -- python train.py")
  command("env", _env, "Print the variables that `run` sets, for a shell: "
          "eval \"$(python -m embedding_variable.gpu env)\"")
  command("check", _check, "Report which ops work on this card. Exit status 1: one that "
          "embedding models need does not.")
  return parser


def parse(argv):
  """Returns the parsed arguments; `command` is the part after "--"."""
  parser = _parser()
  own, behind = argv, None
  if "--" in argv:
    at = argv.index("--")
    own, behind = argv[:at], argv[at + 1:]
  args = parser.parse_args(own)
  if args.name == "run" and not behind:
    parser.error("run needs a command: run [DIR] -- python train.py")
  if args.name != "run" and behind is not None:
    parser.error("only run takes a command")
  if getattr(args, "jobs", None) is not None and args.jobs < 1:
    parser.error("--jobs: expected at least 1, got %d" % args.jobs)
  args.command = behind
  return args


def main(argv=None):
  """Runs a command.

  Args:
    argv: list of strings; None: the process's arguments.

  Returns:
    Exit status: 0; 1 if something needed does not work on the GPU; 2 for other errors,
      which are printed to standard error. `run` does not return: the command replaces
      this process.
  """
  args = parse(sys.argv[1:] if argv is None else argv)
  try:
    return args.function(args)
  except (errors.GpuError, OSError) as e:
    # OSError: a folder is not writable, or the disk is full.
    sys.stderr.write("error: %s\n" % e)
    return _TROUBLE
