# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Draws the folders of the C++ tree into docs/architecture.md, from their includes.

  bazel run //tools/docs:include_picture

A folder of C++ sources is drawn one layer above the highest folder that it includes.
Folders that include each other form a cycle and share a layer. Tests, benchmarks and
folders named testing are left out. An arrow is drawn only if no path of other arrows
leads to the same folder.
"""

import collections
import os
import re
import sys

PAGE = "docs/architecture.md"
COMMAND = "bazel run //tools/docs:include_picture"

_BEGIN = "<!-- include picture: begin (written by %s) -->" % COMMAND
_END = "<!-- include picture: end -->"

# Folders whose folders are drawn, and the prefixes that the picture shortens.
_TREES = collections.OrderedDict([
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
  """Returns whether a file is a C++ source of a folder in the picture."""
  stem = os.path.splitext(path)[0]
  return (path.endswith(_SOURCES) and path.startswith(tuple(_TREES)) and
          "/testing/" not in path and not stem.endswith(("_test", "_benchmark")))


def sources(root):
  """Returns {path: text} of the sources below `root` that the picture shows."""
  found = {}
  for tree in _TREES:
    for folder, _, names in os.walk(os.path.join(root, tree)):
      for name in names:
        full = os.path.join(folder, name)
        path = os.path.relpath(full, root)
        if is_drawn(path):
          with open(full, encoding="utf-8") as f:
            found[path] = f.read()
  return found


def arrows(texts):
  """Returns {folder: set of folders that it includes}.

  Args:
    texts: {path: text} of sources.
  """
  folders = {os.path.dirname(path): set() for path in texts}
  for path, text in texts.items():
    folder = os.path.dirname(path)
    for header in _INCLUDE.findall(text):
      other = os.path.dirname(header)
      if other in folders and other != folder:
        folders[folder].add(other)
  return folders


def reached(graph):
  """Returns {folder: set of folders that are reachable from it}."""
  found = {}
  for folder in graph:
    seen, left = set(), list(graph[folder])
    while left:
      other = left.pop()
      if other not in seen:
        seen.add(other)
        left += graph[other]
    found[folder] = seen
  return found


def layers(graph):
  """Returns {folder: layer}; a folder that includes no other is on layer 0.

  The folders of a cycle have the same layer.
  """
  below = reached(graph)
  found = {}

  def layer(folder):
    if folder not in found:
      lower = [r for r in below[folder] if folder not in below[r]]
      found[folder] = 1 + max(map(layer, lower)) if lower else 0
    return found[folder]

  for folder in graph:
    layer(folder)
  return found


def direct(graph):
  """Returns {folder: set of folders} with only the arrows that no other path replaces."""
  below = reached(graph)
  kept = {}
  for folder, others in graph.items():
    # Every folder of a cycle reaches all others, so arrows within a cycle are kept.
    replaced = set()
    for other in others:
      if folder not in below[other]:
        replaced |= below[other] - {other}
    kept[folder] = {o for o in others if o not in replaced or folder in below[o]}
  return kept


def cycles(graph):
  """Returns the sorted lists of folders that include each other."""
  below = reached(graph)
  found = set()
  for folder in graph:
    if folder in below[folder]:
      found.add(tuple(sorted(r for r in below[folder] if folder in below[r])))
  return sorted(list(cycle) for cycle in found)


def _short(folder):
  for tree, name in _TREES.items():
    if (folder + "/").startswith(tree):
      return (name + (folder + "/")[len(tree):]).rstrip("/")
  raise ValueError("in no tree: " + folder)


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
  """Returns the lines of the picture: the highest layer first."""
  height, uses = layers(graph), direct(graph)
  width = max([len("folder")] + [len(_short(folder)) for folder in graph])
  form = "%%5s  %%-%ds  %%s" % width
  lines = [form % ("layer", "folder", "stands on")]
  for level in sorted(set(height.values()), reverse=True):
    folders = sorted((r for r in graph if height[r] == level), key=_short)
    for i, folder in enumerate(folders):
      listed = _wrapped(sorted(map(_short, uses[folder])), _COLUMNS - width - 9)
      lines.append(form % (level if i == 0 else "", _short(folder), listed[0]))
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
