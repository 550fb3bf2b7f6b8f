# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""A status line with the elapsed time and the size of the cache."""

import sys
import threading
import time

_TERMINAL_SECONDS = 1.0
_LOG_SECONDS = 15.0


class ElapsedLine(object):
  """Writes the line periodically from a thread. Use as a context manager.

  On a terminal one line is redrawn; elsewhere a line is written every 15 seconds.
  """

  def __init__(self, title, tell, stream=None, clock=time.monotonic, period=None):
    """Initializes the line; entering the context starts the thread.

    Args:
      title: name of the activity.
      tell: a function without arguments that returns the rest of the line, a string.
        Called on the thread.
      stream: standard error unless given.
      clock: returns seconds.
      period: seconds between lines; depends on the stream unless given.
    """
    self._title = title
    self._tell = tell
    self._stream = stream or sys.stderr
    self._clock = clock
    self._terminal = getattr(self._stream, "isatty", lambda: False)()
    self._period = period or (_TERMINAL_SECONDS if self._terminal else _LOG_SECONDS)
    self._over = threading.Event()
    self._thread = threading.Thread(target=self._run, daemon=True)
    self._length = 0
    self._began = None

  @property
  def seconds(self):
    """Seconds since the context was entered."""
    return self._clock() - self._began

  def __enter__(self):
    self._began = self._clock()
    self._thread.start()
    return self

  def __exit__(self, *unused_exception):
    self._over.set()
    self._thread.join()
    if self._terminal and self._length:
      self._stream.write("\r" + " " * self._length + "\r")
      self._stream.flush()

  def _run(self):
    while not self._over.wait(self._period):
      line = "%s: %d s, %s" % (self._title, self.seconds, self._tell())
      if self._terminal:
        # Pads with blanks to erase the rest of a longer line.
        self._stream.write("\r" + line.ljust(self._length))
        self._length = max(self._length, len(line))
      else:
        self._stream.write(line + "\n")
      self._stream.flush()


def mebibytes(count):
  """Returns "279 MiB" for a number of bytes."""
  return "%d MiB" % round(count / float(1 << 20))
