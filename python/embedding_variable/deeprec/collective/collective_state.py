# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Whether the process is inside of a CollectiveStrategy's scope."""

import importlib

_depth = [0]
_checkpoint_dir = [None]


def horovod():
  """Returns the module `horovod.tensorflow`."""
  return importlib.import_module("horovod.tensorflow")


def sok():
  """Returns the package `sparse_operation_kit`."""
  return importlib.import_module("sparse_operation_kit")


def enter():
  """Begins a scope."""
  _depth[0] += 1


def leave():
  """Ends the innermost scope."""
  _depth[0] -= 1


def is_active():
  """Returns whether a scope has begun and not ended."""
  return _depth[0] > 0


def set_checkpoint_dir(folder):
  """Stores the folder of the last monitored session in a scope."""
  _checkpoint_dir[0] = folder


def checkpoint_dir():
  """Returns that folder, or None."""
  return _checkpoint_dir[0]
