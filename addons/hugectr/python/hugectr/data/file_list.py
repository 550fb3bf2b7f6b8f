# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""File lists: the number of files, then one path per line."""

import os

from hugectr.data import errors


def read(path):
  """Returns the paths in a file list, in order.

  A relative path is resolved against the process's folder if the file exists there,
  else against the file list's folder.

  Args:
    path: string.

  Raises:
    DataError: the list cannot be read, its first line is not a number of at least 1 or
      not the number of paths, or a file does not exist.
  """
  try:
    # utf-8-sig skips a byte-order mark.
    with open(path, encoding="utf-8-sig") as f:
      lines = [line.strip() for line in f]
  except (OSError, UnicodeDecodeError) as e:
    raise errors.DataError("file list %s: cannot be read: %s" % (path, e))
  while lines and not lines[-1]:
    lines.pop()
  if not lines or not lines[0].isdigit() or int(lines[0]) < 1:
    raise errors.DataError(
        "file list %s: line 1: expected the number of files, at least 1, got %r" %
        (path, lines[0] if lines else ""))
  names = lines[1:]
  if len(names) != int(lines[0]):
    raise errors.DataError("file list %s: line 1 gives %s files, but %d follow" %
                           (path, lines[0], len(names)))
  found = []
  for number, name in enumerate(names, 2):
    beside = os.path.join(os.path.dirname(path), name)
    existing = [p for p in (name, beside) if name and os.path.isfile(p)]
    if not existing:
      raise errors.DataError("file list %s: line %d: there is no file %r" %
                             (path, number, name))
    found.append(existing[0])
  return found
