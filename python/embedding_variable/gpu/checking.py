# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checks which of TensorFlow's ops work on this card, and prints a table."""

import collections
import json
import os
import subprocess
import sys
import tempfile

from embedding_variable.gpu import places as places_lib
from embedding_variable.gpu import progress

_MODULE = "embedding_variable.gpu.check_program"

NEEDED = "needed"
# The groups that embedding models do not need.
_OPTIONAL = ("fft", "cholesky", "conv2d")

# The first kernel call waits for all code that is not compiled yet; 442 s were seen.
_LIMIT_S = 1800

# name: the checked feature; needed: whether set-up fails without it; error: None, or
# why it does not work.
Check = collections.namedtuple("Check", ["name", "needed", "error"])


def _environ(places):
  environ = dict(os.environ)
  environ.update(places_lib.variables(places))
  # Otherwise listing the devices takes all GPU memory.
  environ["TF_FORCE_GPU_ALLOW_GROWTH"] = "true"
  environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "0")
  return environ


def _last_error(log):
  lines = [l for l in log.splitlines() if l.strip()]
  # TensorFlow marks errors (E) and fatal errors (F).
  marked = [l for l in lines if "] " in l and (": E " in l or ": F " in l)]
  return (marked or lines or [""])[-1].strip()[-300:]


def parse(output, group, status, log):
  """Returns the checks of one process.

  Args:
    output: its standard output.
    group: "needed", or one of the others.
    status: its exit status, or None if it was killed at the time limit.
    log: its standard error.

  Returns:
    list of at least one Check.
  """
  found, started = [], None
  for line in output.splitlines():
    try:
      entry = json.loads(line)
    except ValueError:
      continue  # other output of the process
    if not isinstance(entry, dict):
      continue
    if "begins" in entry:
      started = entry["begins"]
    elif "name" in entry:
      found.append(Check(entry["name"], group == NEEDED, entry["error"]))
      started = None
  if status != 0:
    how = "did not end in %d s" % _LIMIT_S if status is None else "ended its process (%d)" % (
        status)
    found.append(Check(started or "a program with TensorFlow", group == NEEDED,
                       "%s: %s" % (how, _last_error(log))))
  elif not found:
    found.append(Check("a program with TensorFlow", group == NEEDED, "checked nothing"))
  return found


def _run(group, places, command):
  # Files, since a full pipe would block the process.
  with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as log:
    try:
      status = subprocess.call(command + [group], stdin=subprocess.DEVNULL, stdout=out,
                               stderr=log, env=_environ(places), timeout=_LIMIT_S)
    except subprocess.TimeoutExpired:
      status = None
    out.seek(0)
    log.seek(0)
    return parse(out.read(), group, status, log.read())


def run_all(places, command=None):
  """Runs all checks in four processes.

  Args:
    places: places.Places of a set-up whose libraries are laid out.
    command: list, the program and its arguments except the group; replaced in tests.

  Returns:
    (list of Check, seconds of the first process, which compiles everything that is not
      in the cache).
  """
  command = command or [sys.executable, "-W", "ignore", "-m", _MODULE]
  checks = []

  def tell():
    return "%s of compiled code" % progress.mebibytes(places_lib.cache_bytes(places))

  with progress.ElapsedLine("first run of TensorFlow", tell) as line:
    checks += _run(NEEDED, places, command)
    seconds = line.seconds
  for group in _OPTIONAL:
    checks += _run(group, places, command)
  return checks, seconds


def table(checks):
  """Returns the table as text, a line per check."""
  width = max(len(c.name) for c in checks)
  lines = []
  for check in checks:
    line = "%s  %s" % (check.name.ljust(width), "does not work" if check.error else "works")
    if check.error:
      line += ": " + check.error
    lines.append(line)
  return "\n".join(lines) + "\n"


def failed(checks):
  """Returns the names of the needed checks that do not work."""
  return [c.name for c in checks if c.needed and c.error]
