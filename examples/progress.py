# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""A progress bar: redrawn on a terminal, a new line every 10 seconds elsewhere."""

import sys
import time

_WIDTH = 30
_TERMINAL_SECONDS = 0.1
_LOG_SECONDS = 10.0


class ProgressBar(object):
  """Shows how much of the total is done, and a note.

  A context manager; the last state is shown on exit.
  """

  def __init__(self, total, title, stream=None, clock=time.time):
    """Args: total, a positive int; title, a word; stream, stdout by default."""
    self._total = total
    self._title = title
    self._stream = stream or sys.stdout
    self._clock = clock
    self._terminal = getattr(self._stream, "isatty", lambda: False)()
    self._period = _TERMINAL_SECONDS if self._terminal else _LOG_SECONDS
    self._shown_at = None
    self._pending = None

  def __enter__(self):
    return self

  def __exit__(self, *unused_exception):
    if self._pending is not None:
      self._show(*self._pending)
    if self._terminal:
      self._stream.write("\n")
      self._stream.flush()

  def update(self, done, note=""):
    """Shows the state, at most once per period."""
    now = self._clock()
    if self._shown_at is not None and now - self._shown_at < self._period:
      self._pending = (done, note)
      return
    self._shown_at = now
    self._show(done, note)

  def _show(self, done, note):
    self._pending = None
    filled = _WIDTH * done // self._total
    line = "%s [%s%s] %d/%d  %s" % (
        self._title, "#" * filled, "." * (_WIDTH - filled), done, self._total,
        note)
    # Blanks overwrite the rest of a longer line.
    self._stream.write("\r%-78s" % line if self._terminal else line + "\n")
    self._stream.flush()
