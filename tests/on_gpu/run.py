# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs the conformance suites with their tables on TensorFlow's GPU.

  python -m embedding_variable.gpu run DIR -- python tests/on_gpu/run.py

Needs this repository's files, the installed wheel, absl-py and a TensorFlow with GPU
devices; it needs neither Bazel nor a network. Each test program runs in its own process,
once for each storage (suites.py). With --library the process is a fork of one that has
imported TensorFlow and the package. Tables are on the device, everything else is on the
CPU (placement.py), so the suites' own comparisons apply, to the bit where they demand
that.

Prints the failures with the last lines of each program's log, and `N passed, N failed, N
skipped` as the last line. The exit status is 1 if a case failed, if a program ran no
case, or if no table of the whole run was on the device.

It also runs without a GPU: `--device=/cpu:0` with `--storages=per_table` runs the suites
unchanged on the CPU. `--library` loads an op library with a test device.
"""

import argparse
import atexit
import collections
import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile
import time

_HERE = os.path.dirname(os.path.abspath(__file__))
_ROOT = os.path.dirname(os.path.dirname(_HERE))
sys.path[:0] = [_HERE, os.path.join(_ROOT, "tools", "testing")]

import placement  # pylint: disable=wrong-import-position
import preloaded  # pylint: disable=wrong-import-position
import suites  # pylint: disable=wrong-import-position
import test_log  # pylint: disable=wrong-import-position

_PLACED = re.compile(r"^tables that were placed: (\d+)$", re.MULTILINE)

# Messages of exceptions. In a log, long stacks of the graph's construction follow them.
_ERRORS = re.compile(r"^[\w.]*(?:Error|Exception)\b.*$", re.MULTILINE)

_NOT_RUN = re.compile(r"^not run: (?:__main__\.)?(.*)$", re.MULTILINE)

# counts: test_log.Counts. placed: int, number of tables on the device. log: string.
Outcome = collections.namedtuple("Outcome", ["name", "counts", "placed", "log", "seconds"])


def _start(words, environ, folder, out, interpreter):
  """Starts a Python program; returns a process object with `wait`.

  Args:
    words: list of strings that follow `python` on a command line.
    environ: dict of strings.
    folder: its working directory; None: this process's.
    out: file for its output and errors.
    interpreter: a preloaded.Interpreter, or None for a new process.
  """
  if interpreter is not None:
    return interpreter.start(words, out, environ, folder)
  return subprocess.Popen(
      [sys.executable, "-W", "ignore"] + words, cwd=folder, env=environ,
      stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)


def run_program(path, storage, options, interpreter=None):
  """Runs one test program; returns its Outcome.

  Args:
    path: path of the program, from the repository's root.
    storage: one of placement.STORAGES.
    options: the arguments that `main` parsed.
    interpreter: a preloaded.Interpreter to fork from; None starts a new interpreter.
  """
  name = "%s (%s)" % (path, storage)
  environ = dict(os.environ, PYTHONUNBUFFERED="1")
  environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
  # Some suites start servers, whose sessions are not configured by placement.py. Without
  # this variable such a session takes all of the card's memory.
  environ["TF_FORCE_GPU_ALLOW_GROWTH"] = "true"
  environ[placement.DEVICE] = options.device
  environ[placement.STORAGE] = storage
  if options.library:
    environ[placement.LIBRARY] = os.path.abspath(options.library)
  start = time.time()
  with tempfile.TemporaryDirectory() as folder:
    xml = os.path.join(folder, "test.xml")
    environ.update(XML_OUTPUT_FILE=xml, TEST_TMPDIR=folder)
    log = os.path.join(folder, "log")
    with open(log, "wb") as out:
      process = _start(
          [os.path.join(_HERE, "program.py"), os.path.join(_ROOT, path)], environ, folder,
          out, interpreter)
      try:
        code = process.wait(options.timeout)
        how = "exit code %s" % code
      except subprocess.TimeoutExpired:
        process.kill()
        code, how = process.wait(), "did not end within %d s" % options.timeout
    counts = test_log.count_program([xml], name, code == 0, how)
    with open(log, errors="replace") as f:
      text = f.read()
  placed = _PLACED.search(text)
  return Outcome(name, counts, int(placed.group(1)) if placed else 0, text,
                 time.time() - start)


def programs(storages, patterns):
  """Returns [(path, storage)] of the selected programs.

  Args:
    storages: list of placement.STORAGES, or None for each suite's own.
    patterns: list of strings, of which a path must contain one; empty: all.
  """
  return [(path, storage)
          for path, own in suites.SUITES
          for storage in (storages or own)
          if not patterns or any(p in path for p in patterns)]


def interpreter_of(options):
  """Returns a preloaded.Interpreter with the package and --library, or None without
  it."""
  if not options.library:
    return None
  environ = dict(os.environ)
  environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
  environ[placement.LIBRARY] = os.path.abspath(options.library)
  interpreter = preloaded.Interpreter(["package_with_library"], environ)
  atexit.register(interpreter.close)
  return interpreter


def run_all(todo, options, interpreter=None):
  """Runs the programs, several at once; returns their Outcomes in order of completion."""
  outcomes = []
  with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
    futures = [pool.submit(run_program, path, storage, options, interpreter)
               for path, storage in todo]
    for future in concurrent.futures.as_completed(futures):
      outcome = future.result()
      outcomes.append(outcome)
      print("%s: %s, %d tables placed, %.0f s" % (
          outcome.name, outcome.counts.line(), outcome.placed, outcome.seconds),
            flush=True)
  return outcomes


def report(outcomes, log_lines):
  """Prints failures, reasons of skipped cases, and the sum. Returns the exit status."""
  counts = test_log.Counts()
  for outcome in outcomes:
    counts.add(outcome.counts)
  print("\nskipped by exemptions.py, with the reason:")
  for outcome in outcomes:
    for line in _NOT_RUN.findall(outcome.log):
      print("  %s %s" % (outcome.name, line))
  print("\nskipped, these among them:")
  for line in counts.skipped_programs():
    print("  " + line)
  for outcome in outcomes:
    if outcome.counts.failed:
      print("\n%s, its errors:" % outcome.name)
      for line in sorted(set(_ERRORS.findall(outcome.log))):
        print("  " + line[:500])
      print("its last lines:")
      print("\n".join("  " + l for l in outcome.log.splitlines()[-log_lines:]))
  if counts.failed:
    print("\nfailed:")
    for line in counts.failed:
      print("  " + line)
  if not sum(outcome.placed for outcome in outcomes):
    counts.failed.append("no table was put on the device")
    print("\nno table was put on the device: nothing was tested on it")
  print(counts.line(), flush=True)
  return 1 if counts.failed else 0


def has_device(options, interpreter=None):
  """Returns whether TensorFlow has the device; checked in a separate process."""
  script = ("import tensorflow as tf, sys\n"
            "config = tf.ConfigProto()\n"
            "config.gpu_options.allow_growth = True\n"
            "wanted = tf.DeviceSpec.from_string(sys.argv[1]).device_type\n"
            "found = [d.device_type for d in tf.Session(config=config).list_devices()]\n"
            "sys.exit(wanted not in found)\n")
  environ = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="2")
  with open(os.devnull, "wb") as out:
    return not _start(["-c", script, options.device], environ, None, out,
                      interpreter).wait()


def main(argv):
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--device", default="/gpu:0", help="device of the tables")
  parser.add_argument("--storages", default="", help="comma-separated; default: "
                      "each suite's own, out of " + ", ".join(placement.STORAGES))
  parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 2) // 2),
                      help="number of programs that run at once")
  parser.add_argument("--timeout", type=int, default=300,
                      help="time limit of one program, in seconds")
  parser.add_argument("--log_lines", type=int, default=40,
                      help="number of log lines to print of a failed program")
  parser.add_argument("--library", default="", help="an op library with a test device")
  parser.add_argument("--list", action="store_true", help="print the programs, run none")
  parser.add_argument("patterns", nargs="*", help="parts of programs' paths; default: "
                      "all programs")
  options = parser.parse_args(argv[1:])
  storages = [s for s in options.storages.split(",") if s]
  unknown = [s for s in storages if s not in placement.STORAGES]
  if unknown:
    parser.error("unknown storages: %s" % ", ".join(unknown))
  todo = programs(storages, options.patterns)
  if options.list:
    for path, storage in todo:
      print("%s (%s)" % (path, storage))
    return 0
  interpreter = interpreter_of(options)
  if not has_device(options, interpreter):
    print("error: TensorFlow has no device of the type of %s. "
          "`python -m embedding_variable.gpu run` starts a program with a TensorFlow "
          "that has GPUs" %
          options.device, file=sys.stderr)
    return 2
  return report(run_all(todo, options, interpreter), options.log_lines)


if __name__ == "__main__":
  sys.exit(main(sys.argv))
