# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Style rules that none of the pinned tools checks."""

import io
import re
import tokenize

_MAX_COLUMNS = 100
_TABS_ALLOWED = ("Makefile",)
_LONG_LINES_ALLOWED = (".md", ".txt", ".json", "BUILD", ".bzl", "Makefile", ".bazelrc",
                       ".sh", "configure", "tools/step", ".ci/run", ".lds")

# Findings of pyflakes that a comment on the line may excuse, with pylint's name for them.
_EXCUSABLE = {
    "imported but unused": "unused-import",
    "undefined name": "undefined-variable",
}
# A line may be longer because of a pylint remark.
_REMARK = re.compile(r"\s+# pylint: disable=[\w,-]+$")
_PYFLAKES_LINE = re.compile(r"^(?P<path>[^:]+):(?P<line>\d+)(?::\d+)?:? (?P<text>.*)$")


def is_excused(finding):
  """Returns whether a finding of pyflakes is intended.

  It is if it is an unused import in an __init__.py, or if the line has the comment
  "pylint: disable=unused-import" or "pylint: disable=undefined-variable".
  """
  match = _PYFLAKES_LINE.match(finding)
  if not match:
    return False
  names = [name for words, name in _EXCUSABLE.items() if words in match.group("text")]
  if not names:
    return False
  path = match.group("path")
  if names == ["unused-import"] and path.endswith("__init__.py"):
    return True
  try:
    with open(path) as f:
      line = f.read().splitlines()[int(match.group("line")) - 1]
  except (OSError, IndexError):
    return False
  return "pylint: disable=" + names[0] in line


def mended(text):
  """Returns the text with clean line ends and one newline at its end."""
  lines = [line.rstrip() for line in text.split("\n")]
  joined = "\n".join(lines).rstrip("\n")
  return joined + "\n" if joined else ""


def _python_indent(path, text):
  """Returns a line for each block that is not indented by two spaces."""
  found = []
  depths = [0]
  try:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
      if token.type == tokenize.INDENT:
        depth = len(token.string)
        if depth != depths[-1] + 2:
          found.append("%s:%d: indented by %d, expected two spaces" %
                       (path, token.start[0], depth - depths[-1]))
        depths.append(depth)
      elif token.type == tokenize.DEDENT:
        depths.pop()
  except (tokenize.TokenError, IndentationError) as e:
    found.append("%s: cannot be read: %s" % (path, e))
  return found


def violations(path, text):
  """Returns a line for each rule that a text file breaks."""
  found = []
  if text and not text.endswith("\n"):
    found.append("%s: no newline at the end" % path)
  if text.endswith("\n\n"):
    found.append("%s: empty lines at the end" % path)
  for number, line in enumerate(text.splitlines(), 1):
    if line != line.rstrip():
      found.append("%s:%d: white space at the end of the line" % (path, number))
    if "\t" in line and not path.endswith(_TABS_ALLOWED):
      found.append("%s:%d: a tab" % (path, number))
    columns = len(_REMARK.sub("", line))
    if columns > _MAX_COLUMNS and not path.endswith(_LONG_LINES_ALLOWED):
      found.append("%s:%d: %d columns, at most %d" %
                   (path, number, columns, _MAX_COLUMNS))
  if path.endswith(".py"):
    found += _python_indent(path, text)
  return found
