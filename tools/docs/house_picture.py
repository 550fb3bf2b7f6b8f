# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Draws the rooms of the C++ tree into docs/architecture.md, from their includes.

  bazel run //tools/docs:house_picture

A room is a folder of C++ sources. It is drawn one floor above the highest room that it
includes. Rooms that include each other form a cycle and share a floor. Tests, benchmarks
and folders named testing are left out. An arrow is drawn only if no path of other arrows
leads to the same room.
"""

import collections
import os
import re
import sys

PAGE = "docs/architecture.md"
COMMAND = "bazel run //tools/docs:house_picture"

_BEGIN = "<!-- house picture: begin (written by %s) -->" % COMMAND
_END = "<!-- house picture: end -->"

# Folders that contain rooms, and the prefixes that the picture shortens.
_HOUSES = collections.OrderedDict([
    ("kernels/engine/", "engine/"),
    ("kernels/tf/", "tf/"),
    ("addons/sparse_operation_kit/", "sok/"),
    ("addons/hierarchical_parameter_server/", "hps/"),
    ("addons/hugectr/", "hugectr/"),
])
_SOURCES = (".h", ".cc", ".cu", ".cuh", ".inc")
_INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
_COLUMNS = 118


def is_drawn(path):
  """Returns whether a file is a C++ source of a room in the picture."""
  stem = os.path.splitext(path)[0]
  return (path.endswith(_SOURCES) and path.startswith(tuple(_HOUSES)) and
          "/testing/" not in path and not stem.endswith(("_test", "_benchmark")))


def sources(root):
  """Returns {path: text} of the sources below `root` that the picture shows."""
  found = {}
  for house in _HOUSES:
    for folder, _, names in os.walk(os.path.join(root, house)):
      for name in names:
        full = os.path.join(folder, name)
        path = os.path.relpath(full, root)
        if is_drawn(path):
          with open(full, encoding="utf-8") as f:
            found[path] = f.read()
  return found


def arrows(texts):
  """Returns {room: set of rooms that it includes}.

  Args:
    texts: {path: text} of sources.
  """
  rooms = {os.path.dirname(path): set() for path in texts}
  for path, text in texts.items():
    room = os.path.dirname(path)
    for header in _INCLUDE.findall(text):
      other = os.path.dirname(header)
      if other in rooms and other != room:
        rooms[room].add(other)
  return rooms


def reached(graph):
  """Returns {room: set of rooms that are reachable from it}."""
  found = {}
  for room in graph:
    seen, left = set(), list(graph[room])
    while left:
      other = left.pop()
      if other not in seen:
        seen.add(other)
        left += graph[other]
    found[room] = seen
  return found


def floors(graph):
  """Returns {room: floor}; a room that includes no other is on floor 0.

  The rooms of a cycle have the same floor.
  """
  below = reached(graph)
  found = {}

  def floor(room):
    if room not in found:
      lower = [r for r in below[room] if room not in below[r]]
      found[room] = 1 + max(map(floor, lower)) if lower else 0
    return found[room]

  for room in graph:
    floor(room)
  return found


def direct(graph):
  """Returns {room: set of rooms} with only the arrows that no other path replaces."""
  below = reached(graph)
  kept = {}
  for room, others in graph.items():
    # Every room of a cycle reaches all others, so arrows within a cycle are kept.
    replaced = set()
    for other in others:
      if room not in below[other]:
        replaced |= below[other] - {other}
    kept[room] = {o for o in others if o not in replaced or room in below[o]}
  return kept


def cycles(graph):
  """Returns the sorted lists of rooms that include each other."""
  below = reached(graph)
  found = set()
  for room in graph:
    if room in below[room]:
      found.add(tuple(sorted(r for r in below[room] if room in below[r])))
  return sorted(list(cycle) for cycle in found)


def _short(room):
  for house, name in _HOUSES.items():
    if (room + "/").startswith(house):
      return (name + (room + "/")[len(house):]).rstrip("/")
  raise ValueError("in no house: " + room)


def _wrapped(names, width):
  """Returns lines of at most `width` columns that list the names."""
  lines = [""]
  for i, name in enumerate(names):
    word = name + ("," if i + 1 < len(names) else "")
    if lines[-1] and len(lines[-1]) + 1 + len(word) > width:
      lines.append(word)
    else:
      lines[-1] = (lines[-1] + " " + word).strip()
  return lines


def picture(graph):
  """Returns the lines of the picture: the highest floor first."""
  height, uses = floors(graph), direct(graph)
  width = max([len("room")] + [len(_short(room)) for room in graph])
  form = "%%5s  %%-%ds  %%s" % width
  lines = [form % ("floor", "room", "stands on")]
  for level in sorted(set(height.values()), reverse=True):
    rooms = sorted((r for r in graph if height[r] == level), key=_short)
    for i, room in enumerate(rooms):
      listed = _wrapped(sorted(map(_short, uses[room])), _COLUMNS - width - 9)
      lines.append(form % (level if i == 0 else "", _short(room), listed[0]))
      lines += [form % ("", "", more) for more in listed[1:]]
  for cycle in cycles(graph):
    lines += _wrapped(["a cycle: " + _short(cycle[0])] + list(map(_short, cycle[1:])),
                      _COLUMNS)
  return [line.rstrip() for line in lines]


def with_picture(page, lines):
  """Returns the page's text with the picture between its markers.

  Raises:
    ValueError: the page does not have each marker once and in order.
  """
  before, begin, rest = page.partition(_BEGIN)
  _, end, after = rest.partition(_END)
  if not begin or not end or _BEGIN in rest or _END in after:
    raise ValueError("%s must have these lines once: %s and %s" % (PAGE, _BEGIN, _END))
  block = "\n".join(["", "```text"] + lines + ["```", ""])
  return before + begin + block + end + after


def main():
  root = os.environ.get("BUILD_WORKSPACE_DIRECTORY") or os.getcwd()
  path = os.path.join(root, PAGE)
  with open(path, encoding="utf-8") as f:
    page = f.read()
  drawn = with_picture(page, picture(arrows(sources(root))))
  if drawn == page:
    print("%s has the picture already" % PAGE)
    return
  with open(path, "w", encoding="utf-8") as f:
    f.write(drawn)
  print("wrote the picture into %s" % PAGE)


if __name__ == "__main__":
  sys.exit(main())
