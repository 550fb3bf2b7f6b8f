# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""An error message that a page quotes exists in the sources.

A quoted message is a code span of four or more words without code in it. `…` or `...`, a
number and a quoted name in it stand for what the program puts there.
"""

import ast
import re

from absl.testing import absltest
from absl.testing import parameterized

import tree

# Messages of other programs: a part of the message, and the program.
_OF_OTHERS = {
    "Op type not registered": "TensorFlow",
    "could not parse rpc response": "TensorFlow",
    "OOM when allocating tensor": "TensorFlow",
    "has no attribute 'get_embedding_variable'": "Python",
    "No matching distribution found": "pip",
}

_FENCE = re.compile(r"```.*?```", re.DOTALL)
_SPAN = re.compile(r"`([^`]+)`")
_CODE = re.compile(
    r"[=(){}<>\[\]|*]|--|\.(?:py|sh|cc|h|json)\b|\b[A-Z]{3,} [A-Z]{3,}\b|"
    r"^(?:python|make|pip|bazel|horovodrun|import|from|with|git|tools|sudo|apt-get)\b")
_WORD = re.compile(r"[A-Za-z]{2,}")
_SPACE = re.compile(r" \S")
_GAP = re.compile(r"…|\.\.\.|'[^']* ?'|\b[\d.]*\d\b|\bint\d\d\b")

_LITERALS = re.compile(r'(?:"(?:[^"\\\n]|\\.)*"\s*)+')
_LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')


def quoted(page):
  """Returns the messages that a page's text quotes."""
  spans = _SPAN.findall(" ".join(_FENCE.sub("", page).split()))
  return [s for s in spans if len(_SPACE.findall(s)) >= 3 and not _CODE.search(s)]


def literals(path, text):
  """Returns the string literals of a source, one line each, adjacent ones joined."""
  if path.endswith(".py"):
    return "\n".join(node.s for node in ast.walk(ast.parse(text))
                     if isinstance(node, ast.Constant) and isinstance(node.value, str)
                     or isinstance(node, ast.Str))
  return "\n".join("".join(_LITERAL.findall(m.group(0))).replace("\\\"", "\"")
                   for m in _LITERALS.finditer(text))


def parts(message):
  """Returns the parts of a message that stand in the source as they are."""
  found = [p.strip(" ,.:;") for p in _GAP.split(message)]
  return [p for p in found if len(_WORD.findall(p)) >= 2] or [max(found, key=len)]


class QuotedErrorsTest(parameterized.TestCase):

  def test_quoted_errors_exist(self):
    sources = [literals(path, tree.read(path) or "") for path in tree.files(
        ".py", ".cc", ".h", ".cu", ".cuh") if not re.search(r"(_test|_utest)\.\w+$", path)]
    found, missing = set(), []
    for path in tree.files(".md"):
      if not path.startswith(("docs/", "addons/", "examples/")) and path != "README.md":
        continue
      if path.startswith("docs/design/"):
        continue
      for message in quoted(tree.read(path)):
        found.add(message)
        if not (any(other in message for other in _OF_OTHERS) or
                any(all(p in s for p in parts(message)) for s in sources)):
          missing.append("%s: %s" % (path, message))
    self.assertEmpty(missing, "\n" + "\n".join(missing))
    self.assertGreater(len(found), 20)
    for other in _OF_OTHERS:
      self.assertTrue(any(other in message for message in found), other)

  @parameterized.parameters(
      ("| `it has no dense value` | x |", ["it has no dense value"]),
      ("`a b`, `python -m a_b run train now`, `f(a, b) is a call of it`", []),
      ("```\n`in a block of code`\n```", []))
  def test_finds_messages(self, page, expected):
    self.assertEqual(quoted(page), expected)

  def test_parts_of_a_message(self):
    self.assertEqual(parts("id 17 does not fit into int32, the table's key type"),
                     ["does not fit into", "the table's key type"])

  def test_literals_of_a_source(self):
    self.assertEqual(literals("a.py", "x = ('one '\n     'two')"), "one two")
    self.assertEqual(literals("a.cc", 'f("one "\n  "two", x, "three");'), "one two\nthree")


if __name__ == "__main__":
  absltest.main()
