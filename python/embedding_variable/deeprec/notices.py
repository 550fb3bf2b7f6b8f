# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Lines on standard error about stand-ins, each printed once per process.

The launcher enables them. Without it the functions of this module do nothing.
"""

import sys
import threading

_lock = threading.Lock()
_printed = set()
_enabled = False


def enable():
  """Prints notices from now on."""
  global _enabled
  _enabled = True


def stands_in(name, what):
  """Reports that `name` is replaced.

  Args:
    name: string, DeepRec's name.
    what: string, what is used in its place.
  """
  _print(name, "stand-in: " + what)


def no_effect(name, why):
  """Reports that `name` is accepted and ignored.

  Args:
    name: string, DeepRec's name.
    why: string, the reason.
  """
  _print(name, "no effect: " + why)


def _print(name, text):
  with _lock:
    if not _enabled or name in _printed:
      return
    _printed.add(name)
  sys.stderr.write("deeprec: %s: %s\n" % (name, text))
  sys.stderr.flush()
