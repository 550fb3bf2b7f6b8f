# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Replaces files and folders so that either the previous or the new one is complete.

The only module that renames and syncs. `replaced(path)` is the usual way; its steps are
`begin(path)`, which returns the path to write to, and `replace(path)`. `current(path)` is
the path to read.
"""

import contextlib
import os
import re
import shutil

# A new file or folder before it has its name, and the one that it replaces.
PART = ".part"
_OLD = ".old"

_FILE = re.compile("^file://[^/]*")


def is_local(path):
  """Returns False if `path` is not in one of this machine's file systems."""
  return "://" not in local(path)


def local(path):
  """Returns a path without "file://", which TensorFlow's functions take too."""
  return _FILE.sub("", path)


def sync(path):
  """Waits until a file's content, or a directory's entries, are on disk."""
  if not is_local(path):
    return
  descriptor = os.open(local(path), os.O_RDONLY)
  try:
    os.fsync(descriptor)
  finally:
    os.close(descriptor)


def make_folder(path):
  """Creates a folder and its parents if necessary, and syncs the entries of new ones."""
  path = os.path.abspath(path)
  new = []
  while not os.path.isdir(path):
    new.append(path)
    path = os.path.dirname(path)
  if new:
    os.makedirs(new[0], exist_ok=True)
    for folder in new:
      sync(os.path.dirname(folder))


def begin(path):
  """Returns the path to write a new file or folder to, before `replace`.

  Finishes an interrupted replacement first, and removes what a failed write left.

  Args:
    path: string, the final path; its parent folder must exist.
  """
  path = os.path.normpath(path)
  if current(path) != path:
    _give_name(path)
  _remove(path + PART)
  return path + PART


def replace(path):
  """Gives what was written to `begin(path)` its final path, in place of the previous.

  The new files are on disk before the previous ones lose their name, and a file or folder
  is removed only after the new one has the name. If the process ends at any point,
  `current` returns either the previous or the new one, complete.

  Args:
    path: string, a file or a folder.
  """
  path = os.path.normpath(path)
  part = path + PART
  for folder, _, names in os.walk(part):
    for name in names:
      sync(os.path.join(folder, name))
    sync(folder)
  if not os.path.isdir(part):
    sync(part)
  # A rename replaces a file by a file only.
  if os.path.isdir(path) or (os.path.isdir(part) and os.path.lexists(path)):
    _remove(path + _OLD)
    os.rename(path, path + _OLD)
  _give_name(path)


@contextlib.contextmanager
def replaced(path):
  """Context that replaces a file or folder by what its body writes to the yielded path.

  If the body raises an error, nothing changes.

  Args:
    path: string, the final path; its parent folder must exist.
  """
  part = begin(path)
  try:
    yield part
  except BaseException:
    _remove(part)
    raise
  replace(path)


def current(path):
  """Returns the path to read a file or folder of `replace` from; writes nothing."""
  path = os.path.normpath(path)
  is_replaced = not os.path.lexists(path) and os.path.lexists(path + _OLD)
  return path + PART if is_replaced and os.path.lexists(path + PART) else path


def give_names(paths):
  """Renames `<path>.part` of paths of one folder, and waits until that is on disk."""
  for path in paths:
    os.replace(path + PART, path)
  if paths:
    sync(os.path.dirname(paths[0]) or ".")


def _give_name(path):
  give_names([path])
  _remove(path + _OLD)


def _remove(path):
  if os.path.isdir(path) and not os.path.islink(path):
    shutil.rmtree(path)
  elif os.path.lexists(path):
    os.remove(path)
