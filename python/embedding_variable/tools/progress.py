# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""A progress bar on standard error, for work that takes more than a moment."""

import sys
import time

_WIDTH = 30
_TERMINAL_SECONDS = 0.1
_LOG_SECONDS = 10.0


class Progress(object):
  """Shows the progress of some work. Use as a context manager.

  On a terminal the bar is redrawn and removed at the end. Elsewhere a line is written
  every ten seconds, so short work writes nothing.
  """

  def __init__(self, title, total, stream=None, clock=time.monotonic):
    """Args: title, a word; total, amount of work; stream, standard error unless given."""
    self._title = title
    self._total = max(1, total)
    self._done = 0
    self._stream = stream or sys.stderr
    self._clock = clock
    self._terminal = getattr(self._stream, "isatty", lambda: False)()
    self._period = _TERMINAL_SECONDS if self._terminal else _LOG_SECONDS
    self._shown_at = clock()
    self._length = 0

  def __enter__(self):
    return self

  def __exit__(self, *unused_exception):
    if self._terminal and self._length:
      self._stream.write("\r" + " " * self._length + "\r")
      self._stream.flush()

  def add(self, amount, note=""):
    """Adds to the amount of completed work; `note` describes it."""
    self._done = min(self._total, self._done + amount)
    now = self._clock()
    if now - self._shown_at < self._period:
      return
    self._shown_at = now
    filled = _WIDTH * self._done // self._total
    line = "%s [%s%s] %3d%%  %s" % (self._title, "#" * filled, "." *
                                    (_WIDTH - filled),
                                    100 * self._done // self._total, note)
    if self._terminal:
      # Pads with blanks to erase the rest of a longer line.
      self._stream.write("\r" + line.ljust(self._length))
      self._length = max(self._length, len(line))
    else:
      self._stream.write(line + "\n")
    self._stream.flush()
