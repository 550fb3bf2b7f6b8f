# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs the steps of a make target and prints how long each took."""

import contextlib
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


def run(command, **kwargs):
  """Runs a command without input; returns its exit code."""
  print("+ " + " ".join(command), flush=True)
  return subprocess.call(command, stdin=subprocess.DEVNULL, **kwargs)
