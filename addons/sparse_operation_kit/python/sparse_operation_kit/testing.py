# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Test helper: ends a process between two steps that change files."""

import os
import shutil
import tempfile

from absl.testing import absltest


def folder_in_memory(test):
  """Returns a folder for many writes, in memory if possible."""
  memory = "/dev/shm"
  path = tempfile.mkdtemp(dir=memory if os.access(memory, os.W_OK) else None)
  test.addCleanup(shutil.rmtree, path)
  return path


class _End(BaseException):
  """Not derived from Exception, so that no handler catches it."""


class Killed(object):
  """A context that ends before a given step; steps are renames and fsyncs of files.

  Attributes:
    happened: whether the context ended early; false if there were fewer steps.
  """

  def __init__(self, step):
    """Args: step, int, the number of steps to complete."""
    self.happened = False
    self._left = step
    self._patches = [
        absltest.mock.patch.object(os, name, self._counted(getattr(os, name)))
        for name in ("replace", "fsync")
    ]

  def _counted(self, function):

    def call(*args):
      if not self._left:
        raise _End()
      self._left -= 1
      return function(*args)

    return call

  def __enter__(self):
    for patch in self._patches:
      patch.start()
    return self

  def __exit__(self, kind, *unused):
    for patch in self._patches:
      patch.stop()
    self.happened = kind is _End
    return self.happened
