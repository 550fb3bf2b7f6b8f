# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""A progress line on a terminal."""

import time

# Seconds between two updates.
_EVERY = 0.2

_BAR = 30


class Progress(object):
  """Rewrites one line; does nothing if the output is not a terminal.

  Args:
    out: a file, such as standard error.
    total: int, steps of the run; 0: unknown.
  """

  def __init__(self, out, total):
    self._out = out
    self._total = total
    self._shows = getattr(out, "isatty", lambda: False)()
    self._next = 0.
    self._width = 0

  def show(self, done, text):
    """Shows the number of completed steps, and a text."""
    now = time.monotonic()
    if not self._shows or now < self._next:
      return
    self._next = now + _EVERY
    line = "%d %s" % (done, text)
    if self._total:
      filled = _BAR * min(done, self._total) // self._total
      line = "[%s%s] %d/%s" % ("#" * filled, "." * (_BAR - filled), done,
                               "%d %s" % (self._total, text))
    self._out.write("\r" + line.ljust(self._width))
    self._out.flush()
    self._width = len(line)

  def clear(self):
    """Removes the line, so that others can be printed."""
    if self._shows and self._width:
      self._out.write("\r" + " " * self._width + "\r")
      self._out.flush()
      self._width, self._next = 0, 0.
