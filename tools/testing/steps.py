# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs the steps of a make target and prints how long each took."""

import contextlib
import math
import subprocess
import sys
import time

# (name, seconds) of the completed steps.
_times = []


@contextlib.contextmanager
def step(name):
  """Announces a step, and records its time for `print_times`."""
  print("\n== %s" % name, flush=True)
  start = time.time()
  try:
    yield
  finally:
    seconds = time.time() - start
    _times.append((name, seconds))
    print("== %s: %.0f s" % (name, seconds), flush=True)


def print_times():
  """Prints the times that `step` recorded."""
  print("")
  for name, seconds in _times:
    print("%6.0f s  %s" % (seconds, name))
  sys.stdout.flush()


def run(command, seconds=float("inf")):
  """Runs a command without input; returns its exit code.

  Args:
    command: list of strings.
    seconds: after these, the command and the programs that it started are interrupted, and
      a minute later killed.
  """
  print("+ " + " ".join(command), flush=True)
  if seconds != float("inf"):
    whole = max(1, math.ceil(seconds))
    command = ["timeout", "--signal=INT", "--kill-after=60", str(whole)] + command
  return subprocess.call(command, stdin=subprocess.DEVNULL)
