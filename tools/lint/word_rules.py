# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Rules of wording: vague pronouns in text, and the form of Markdown pages."""

import re

# Split, so that this file does not break its own rule.
_NO_NAME = ["nobo" + "dy", "whoe" + "ver", "who" + "m", "whome" + "ver", "hi" + "mself",
            "her" + "self", "hi" + "m", "hi" + "s"]
_HIDING = re.compile(r"\b(%s)\b" % "|".join(_NO_NAME), re.IGNORECASE)
# Comments of C++ are about callers, threads and tables, which have names.
_COMMENT_OF_A_PERSON = re.compile(r"//.*\b(wh" + r"o)\b(?!\()", re.IGNORECASE)

_CPP = (".h", ".cc", ".cu", ".cuh", ".inc")
_LEGAL = ("LICENSE",)

_MAX_COLUMNS = 119
_MAX_LINES = 250
_MAX_WORDS = 2500
_MAX_ROWS = 12
# A goal without an owner, and a commit: pages of results name the commit that was measured.
_NO_OWNER = re.compile(r"(?<!project's )\bgoals?\b", re.IGNORECASE)
_COMMIT = re.compile(r"\b(?=[0-9a-f]*[a-f])(?=[0-9a-f]*\d)[0-9a-f]{7,40}\b")
_RESULTS = "benchmarks/results/"
_GUIDE = re.compile(r"docs/\w+\.md$")
_NOTE = re.compile(r"docs/design/\d+[\w-]*\.md$")
_CODE = re.compile(r"`[^`]*`")
_FENCE = re.compile(r"^\s*```")


def hidden_names(path, text):
  """Returns a line for each pronoun that should be a name."""
  if path.endswith(_LEGAL):
    return []
  found = []
  for number, line in enumerate(text.splitlines(), 1):
    words = _HIDING.findall(line)
    if path.endswith(_CPP):
      words += _COMMENT_OF_A_PERSON.findall(line)
    found += ["%s:%d: '%s': name the caller, the thread or the thing that is meant" %
              (path, number, word) for word in words]
  return found


def long_lines(path, text):
  """Returns a line for each line of a Markdown page that is too long.

  Lines that cannot be broken are exempt: tables, code, headings, and lines without a
  space.
  """
  if not path.endswith(".md"):
    return []
  found = []
  is_code = False
  for number, line in enumerate(text.splitlines(), 1):
    if _FENCE.match(line):
      is_code = not is_code
    if len(line) <= _MAX_COLUMNS or is_code or line.startswith(("|", "#", "    ")):
      continue
    if " " in line.strip():
      found.append("%s:%d: %d columns, at most %d" %
                   (path, number, len(line), _MAX_COLUMNS))
  return found


def page_form(path, text):
  """Returns a line for each breach of the form of a page: its length, tables and sources."""
  if not path.endswith(".md") or path == "CHANGELOG.md":
    return []
  found = []
  lines = text.splitlines()
  words = len(text.split())
  if _GUIDE.match(path) and (
      len(lines) > _MAX_LINES or words > _MAX_WORDS):
    found.append("%s: %d lines and %d words, at most %d and %d: split it" %
                 (path, len(lines), words, _MAX_LINES, _MAX_WORDS))
  rows = 0
  for number, line in enumerate(lines, 1):
    plain = _CODE.sub("x", line)
    found += ["%s:%d: '%s': say whose goal it is" % (path, number, word)
              for word in _NO_OWNER.findall(plain)]
    if not path.startswith(_RESULTS):
      found += ["%s:%d: commit %s: only pages of results name commits" % (path, number, commit)
                for commit in _COMMIT.findall(plain)]
    rows = rows + 1 if line.startswith("|") else 0
    if _NOTE.match(path) and rows == _MAX_ROWS + 3:
      found.append("%s:%d: a table of more than %d rows: split it by subject" %
                   (path, number, _MAX_ROWS))
  return found


def violations(path, text):
  """Returns a line for each breach of these rules in a text file."""
  return hidden_names(path, text) + long_lines(path, text) + page_form(path, text)
