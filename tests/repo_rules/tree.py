# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Lists and reads the files of the source tree, for rules that apply to all of it."""

import os
import subprocess

_IGNORED_FOLDERS = {".git", ".venv", ".build", "dist", "__pycache__", ".hypothesis"}


def root():
  """Returns the source tree's root, to which the runfiles link."""
  runfiles = os.path.join(os.environ["TEST_SRCDIR"], os.environ["TEST_WORKSPACE"])
  return os.path.dirname(os.path.realpath(os.path.join(runfiles, "WORKSPACE")))


def _walk(top):
  for folder, folders, names in os.walk(top):
    folders[:] = [
        f for f in folders
        if f not in _IGNORED_FOLDERS and not f.startswith("bazel-")
    ]
    for name in names:
      yield os.path.relpath(os.path.join(folder, name), top)


def files(*suffixes, top=None):
  """Returns the sorted paths of the tree's files, relative to the root.

  These are the files that git tracks or would add; without git, all except build
  products.

  Args:
    *suffixes: only paths that end in one of these; all if empty.
    top: another tree's root.
  """
  top = top or root()
  try:
    # The clone may belong to another user, because it is only read.
    listed = subprocess.check_output(
        ["git", "-c", "safe.directory=*", "ls-files", "-co", "--exclude-standard", "-z"],
        cwd=top,
        stderr=subprocess.DEVNULL,
        universal_newlines=True).split("\0")
  except (OSError, subprocess.CalledProcessError):
    listed = _walk(top)
  found = [
      path for path in listed
      if path and path.endswith(suffixes or "") and
      os.path.isfile(os.path.join(top, path))
  ]
  return sorted(found)


def read(path, top=None):
  """Returns a file's text, or None if it is not text."""
  with open(os.path.join(top or root(), path), "rb") as f:
    data = f.read()
  try:
    return data.decode("utf-8")
  except UnicodeDecodeError:
    return None
