# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""For tests: a process that ends between two steps that change files."""

import os
import shutil
import tempfile

from absl.testing import absltest


def folder_in_memory(test):
  """Returns the path of a folder for many writes, which wait for no disk if possible."""
  memory = "/dev/shm"
  path = tempfile.mkdtemp(dir=memory if os.access(memory, os.W_OK) else None)
  test.addCleanup(shutil.rmtree, path)
  return path


class _End(BaseException):
  """No handler catches it."""


class Killed(object):
  """Context that is left before a step: a file is renamed, or is on the disk.

  Attributes:
    happened: whether it was; false if there were not as many steps.
  """

  def __init__(self, step):
    """Args: step, int, the number of steps that are done."""
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
