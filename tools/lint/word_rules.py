# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Rules of wording: vague pronouns in text, and Markdown lines that are too long."""

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


def violations(path, text):
  """Returns a line for each breach of these rules in a text file."""
  return hidden_names(path, text) + long_lines(path, text)
