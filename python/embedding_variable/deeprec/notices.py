# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Lines on standard error about stand-ins, each printed once per process.

The launcher enables them. Without it only arguments without effect are reported, by
TensorFlow's log.
"""

import sys
import threading

from embedding_variable.tf_names import tf_logging as logging

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


def ignored(function, why, **arguments):
  """Reports arguments that a function accepts and ignores, with or without the launcher.

  Args:
    function: string, DeepRec's name of the function.
    why: string, the reason.
    **arguments: by name, (value, default): reported if the value is another one.
  """
  for name, (value, default) in sorted(arguments.items()):
    if value != default:
      _print("%s(%s=%r)" % (function, name, value), "no effect: " + why, always=True)


def _print(name, text, always=False):
  with _lock:
    if not (_enabled or always) or name in _printed:
      return
    _printed.add(name)
  if not _enabled:
    logging.warning("%s: %s", name, text)
    return
  sys.stderr.write("deeprec: %s: %s\n" % (name, text))
  sys.stderr.flush()
