# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Short names of tables, for output and for input by users."""

import difflib
import re

# Suffix that feature columns add to the name of a column.
_COLUMN_ENDING = "_embedding"

# Most names listed in an error.
_LISTED = 8


def natural(name):
  """Returns a sort key that puts C2 before C10."""
  parts = re.split(r"(\d+)", name)
  return [int(part) if i % 2 else part for i, part in enumerate(parts)], name


def shorten(names):
  """Removes the path components that all names share at their start and end.

  Also removes the suffix that feature columns add to a column's name.

  Args:
    names: list of strings, all different.

  Returns:
    (list of the short names, pattern): "*" in the pattern stands for a short name; the
      pattern is "*" if nothing was removed.
  """
  paths = [name.split("/") for name in names]
  if len(paths) < 2:
    return list(names), "*"
  longest = min(map(len, paths)) - 1
  head = 0
  while head < longest and len({path[head] for path in paths}) == 1:
    head += 1
  tail = 0
  while tail < longest - head and len({path[-1 - tail] for path in paths}) == 1:
    tail += 1
  short = ["/".join(path[head:len(path) - tail]) for path in paths]
  star = "*"
  if all(name.endswith(_COLUMN_ENDING) for name in short):
    short = [name[:-len(_COLUMN_ENDING)] for name in short]
    star += _COLUMN_ENDING
  return short, "/".join(paths[0][:head] + [star] + paths[0][len(paths[0]) - tail:])


def _contains(path, part):
  """Returns whether `part` is a contiguous part of the list `path`."""
  return any(path[i:i + len(part)] == part for i in range(len(path) - len(part) + 1))


def matching(name, names):
  """Returns the names that match a user's name; several if it is ambiguous.

  A name matches itself. Otherwise it matches names that contain it as whole path
  components, otherwise those of the feature column with that name: "C1" matches
  "input/C1_embedding/weights".

  Args:
    name: string.
    names: iterable of strings.
  """
  names = list(names)
  if name in names:
    return [name]
  part = name.strip("/").split("/")
  for wanted in (part, part[:-1] + [part[-1] + _COLUMN_ENDING]):
    found = [n for n in names if _contains(n.split("/"), wanted)]
    if found:
      return sorted(found, key=natural)
  return []


def listed(names):
  """Returns quoted names for an error, only the first few of many."""
  names = list(names)
  text = ", ".join("'%s'" % name for name in names[:_LISTED])
  if len(names) > _LISTED:
    text += " and %d more" % (len(names) - _LISTED)
  return text


def close(name, names):
  """Returns names that resemble an unknown name, the closest first."""
  names = list(names)
  inside = [n for n in names if name.lower() in n.lower()]
  short, _ = shorten(names) if names else ([], "")
  near = difflib.get_close_matches(name, short, n=_LISTED)
  return (sorted(inside, key=natural) or [names[short.index(s)] for s in near] or
          difflib.get_close_matches(name, names, n=_LISTED))
