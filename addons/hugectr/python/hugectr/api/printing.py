# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Lines of text that scripts parse, and reports that appear once."""

import sys
import time

_WIDTH = 100

_reported = set()


def line(text, level="INFO", rank=0, out=None):
  """Prints a line with upstream's prefix; only rank 0 prints.

  Args:
    text: string.
    level: "INFO" or "WARNING".
    rank: int, rank of this process.
    out: a file; None: standard output.
  """
  if rank == 0:
    now = time.time()
    out = out or sys.stdout
    out.write("[HCTR][%s.%03d][%s][RK0][main]: %s\n" % (
        time.strftime("%H:%M:%S", time.localtime(now)), int(now % 1 * 1000), level, text))
    out.flush()


def banner(text, rank=0):
  """Prints a title in a row of "="."""
  if rank == 0:
    sys.stdout.write(text.center(_WIDTH, "=") + "\n")
    sys.stdout.flush()


def once(text, rank=0):
  """Prints a warning the first time that the process has this text for it."""
  if text not in _reported:
    _reported.add(text)
    line(text, "WARNING", rank)


def without_effect(where, given):
  """Reports arguments that have no effect, once each.

  Args:
    where: string, the call, such as "hugectr.CreateSolver".
    given: dict from an argument's name to (value, default). A default value is not
      reported.
  """
  for name, (value, default) in sorted(given.items()):
    if value != default:
      once("%s: %s has no effect" % (where, name))
