# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Rules of plain English for comments, docstrings, pages and names.

A comment starts with its subject, code does not talk, a sentence or a cell of a table
has at most 40 words, and no name ends in a place that only its author could see.

  tools/lint/prose_rules.py FILE ...
"""

import ast
import functools
import io
import re
import sys
import tokenize

_CPP = (".h", ".cc", ".cu", ".cuh", ".inc")
_MAX_WORDS = 40

# This file and its test quote what they forbid.
_QUOTING = ("tools/lint/prose_rules.py", "tools/lint/prose_rules_test.py")

_HEADLESS = re.compile(r"No:|(Of|As|What|Where|Behind|But|That|Which|So|Whose)\b")
_TALKING = re.compile(
    r"\b(says|said|tells|told|knows|knew|hears|heard|asks|asked|wants|wanted|learnt)\b",
    re.IGNORECASE)
_IDIOM = re.compile(
    r"\b(but for|through with|of before|as many as are too many|there is none of|one's)\b",
    re.IGNORECASE)
_PLACE = re.compile(r"(?:^|[a-z0-9_])(?:There|Here|Told|Begun)(?=[A-Z0-9_]|$)"
                    r"|(?:^|_)(?:there|here|told|begun)(?=_|$)")
_LITERAL = re.compile(r'//[^\n]*|"(?:[^"\\\n]|\\.)*"')
_NAME = re.compile(r"\b[A-Za-z_]\w*\b")
_NOT_CODE = re.compile(
    r'R"doc\(.*?\)doc"|//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"|'
    r"'(?:[^'\\\n]|\\.)*'", re.DOTALL)

# A test is named by what it checks: subject and verb, or verb and object.
_TEST = re.compile(r"(?:def test_(?:is|are|has|have|with)_|"
                   r"TEST(?:_F|_P)?\(\s*\w+,\s*(?:Is|Are|Has|Have|With)[A-Z]|"
                   r"TEST(?:_F|_P)?\(\s*\w+,\s*Acceptance\d)\w*")

# Words that pages and comments write in another way, and that way.
_WORDING = (
    (re.compile(r"(?<!there )\b(?:is|are) (?:an error|errors)\b"), "write 'raises ...'"),
    (re.compile(r"(?<=[\w`'\")]): of\b"), "a fragment needs its noun"),
    (re.compile(r"\ban own\b"), "write 'its own' or 'a separate'"),
    (re.compile(r"(?<![\w.\])\"'])\.\d+\b"), "a number starts with a digit, as 0.6"),
)
# The same for messages, which are string literals.
_MESSAGES = _WORDING[:3] + (
    (re.compile(r"\bwants?\b"), "an error has 'expected X, got Y', then the remedy"),)
# A colon or semicolon does not end a sentence: two clauses are two sentences.
_SENTENCE_END = re.compile(r"[.?!](?=\s|$)")
_CODE = re.compile(r"\([^()]*\)|`[^`]*`|\[[^\]]*\]")
_CELL_END = re.compile(r"(?<!\\)\|")
# A line of a list in a comment: it is indented, and what continues it is so further.
_LISTED = re.compile(r" {2,8}\S")
_LICENCE = re.compile(r"Copyright|SPDX-License-Identifier")


class Block:
  """A comment, a docstring or a paragraph: its first line and its text."""

  def __init__(self, line, text, is_opening=True):
    self.line = line
    self.text = text
    # False for a comment behind code on its line, which may be a noun alone.
    self.is_opening = is_opening


def _joined(lines):
  """Returns Blocks of (number, text) comment lines that follow each other."""
  blocks = []
  last = None
  for number, text in lines:
    if not text.strip() or _LICENCE.search(text):
      last = None
      continue
    if last == number - 1 and not _LISTED.match(text):
      blocks[-1].text += " " + text.strip()
    else:
      blocks.append(Block(number, text.strip(), is_opening=not _LISTED.match(text)))
    last = number
  return blocks


def _cpp_blocks(text):
  own, trailing = [], []
  for number, line in enumerate(text.splitlines(), 1):
    place = line.find("//")
    if place < 0 or line[:place].count('"') % 2 or line[:place].endswith(":"):
      continue
    comment = line[place + 2:]
    if line[:place].strip():
      trailing.append(Block(number, comment.strip(), is_opening=False))
    else:
      own.append((number, comment))
  return _joined(own) + trailing


def _python_blocks(text):
  own, blocks = [], []
  try:
    tree = ast.parse(text)
  except SyntaxError:
    return []
  lines = text.splitlines()
  for token in _tokens(text):
    if token.type == tokenize.COMMENT:
      number, column = token.start
      comment = token.string[1:]
      if lines[number - 1][:column].strip():
        blocks.append(Block(number, comment.strip(), is_opening=False))
      else:
        own.append((number, comment))
  for node in ast.walk(tree):
    if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
      doc = ast.get_docstring(node, clean=True)
      if doc:
        end = node.body[0].value.lineno  # Python 3.7: the docstring's last line.
        start = end - len(node.body[0].value.s.splitlines()) + 1
        blocks += _paragraphs(doc, max(start, 1))
  return _joined(own) + blocks


def _paragraphs(text, first=1):
  """Returns Blocks of prose: no code, tables or headings; each list item is one."""
  blocks = []
  is_code = False
  last = None
  for number, line in enumerate(text.splitlines(), first):
    if line.strip().startswith("```"):
      is_code = not is_code
      last = None
      continue
    if is_code or not line.strip() or line.startswith(("|", "#", "    ", "<")):
      last = None
      continue
    item = re.match(r"\s*([-*]|\d+\.)\s|\s{2,}\w+: |\s{2,}\S+\s{2,}\S", line)
    if last == number - 1 and not item:
      blocks[-1].text += " " + line.strip()
    else:
      blocks.append(Block(number, line.strip()))
    last = number
  return blocks


def blocks_of(path, text):
  """Returns the Blocks of one file."""
  if path.endswith(_CPP):
    return _cpp_blocks(text)
  if path.endswith(".py"):
    return _python_blocks(text)
  if path.endswith(".md"):
    return _paragraphs(text)
  return []


def _cells(text):
  """Returns Blocks: the cells of the tables of a page."""
  return [Block(number, cell.strip()) for number, line in _prose_lines(text)
          if line.startswith("|") for cell in _CELL_END.split(line)[1:-1]]


def _prose_lines(text):
  """Returns [(number, line)] of a page outside of blocks of code."""
  found, is_code = [], False
  for number, line in enumerate(text.splitlines(), 1):
    if line.strip().startswith("```"):
      is_code = not is_code
    elif not is_code and not line.startswith("    "):
      found.append((number, line))
  return found


def _literals(path, text):
  """Returns [(line, literal)] of the strings of one file, without docstrings."""
  if path.endswith(_CPP):
    return [(1 + text.count("\n", 0, m.start()), m.group(0)) for m in _LITERAL.finditer(text)
            if not m.group(0).startswith("//")]
  return [(t.start[0], t.string) for t in _python_tokens(path, text)
          if t.type == tokenize.STRING and not t.string.endswith('"""')]


def _python_tokens(path, text):
  """Returns the tokens of a Python file; none of another file."""
  return _tokens(text) if path.endswith(".py") else []


# Three rules need the tokens of a file, and making them takes most of the time.
@functools.lru_cache(maxsize=1)
def _tokens(text):
  try:
    return list(tokenize.generate_tokens(io.StringIO(text).readline))
  except (SyntaxError, tokenize.TokenError):
    return []


def _names(path, text):
  """Returns [(line, identifier)] of the code of one file, without comments and literals."""
  if path.endswith(_CPP):
    code = _NOT_CODE.sub(lambda m: re.sub(r"[^\n]", " ", m.group(0)), text)
    return [(number, name) for number, line in enumerate(code.splitlines(), 1)
            for name in _NAME.findall(line)]
  return [(t.start[0], t.string) for t in _python_tokens(path, text)
          if t.type == tokenize.NAME]


def _longest_sentence(text):
  text = _CODE.sub("x", text)
  return max(len(s.split()) for s in _SENTENCE_END.split(text))


def violations(path, text):
  """Returns a line for each breach of the rules, in any folder."""
  if path.endswith(_QUOTING):
    return []
  found = []

  def add(number, what):
    found.append("%s:%d: %s" % (path, number, what))

  is_code = not path.endswith(".md")
  for block in blocks_of(path, text):
    if is_code and block.is_opening and _HEADLESS.match(block.text):
      add(block.line, "a comment starts with its subject, not with '%s'" %
          block.text.split()[0])
    if is_code:
      for word in _TALKING.findall(block.text):
        add(block.line, "'%s': code returns, stores, records, reads or checks" % word)
    for words in _IDIOM.findall(block.text):
      add(block.line, "'%s': write except, finished with, per-call, the previous" % words)
    for pattern, remedy in _WORDING:
      for words in pattern.findall(_CODE.sub("x", block.text)):
        add(block.line, "'%s': %s" % (words, remedy))
    count = _longest_sentence(block.text)
    if count > _MAX_WORDS:
      add(block.line, "a sentence of %d words, at most %d" % (count, _MAX_WORDS))
  for cell in [] if is_code else _cells(text):
    plain = _CODE.sub("x", cell.text)
    count = len(plain.split())
    if count > _MAX_WORDS:
      add(cell.line, "a cell of %d words, at most %d" % (count, _MAX_WORDS))
    for pattern, remedy in _WORDING:
      for words in pattern.findall(plain):
        add(cell.line, "'%s': %s" % (words, remedy))
  if is_code:
    for number, literal in _literals(path, text):
      for pattern, remedy in _MESSAGES:
        for words in pattern.findall(literal):
          add(number, "'%s': %s" % (words, remedy))
    if _PLACE.search(re.sub(r"\W", "_", path.rsplit("/", 1)[-1])):
      add(1, "the file's name: name what it holds")
    for number, name in _names(path, text):
      if _PLACE.search(name):
        add(number, "'%s': name the memory or the rank that is meant" % name)
    for match in _TEST.finditer(text):
      add(1 + text.count("\n", 0, match.start()),
          "'%s': a test's name says what it checks" % match.group(0))
  return found


def main():
  count = 0
  for path in sys.argv[1:]:
    with open(path) as f:
      for line in violations(path, f.read()):
        print(line)
        count += 1
  print("%d findings" % count)


if __name__ == "__main__":
  main()
