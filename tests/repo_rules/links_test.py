# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Links and source paths on pages, and source names in comments, are of existing files."""

import fnmatch
import os
import re

from absl.testing import absltest
from absl.testing import parameterized

import tree

_FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_SPAN = re.compile(r"`([^`\n]+)`")
# A path that may start at any folder: rows/row_home.h, ids/unique.*
_SOURCE = re.compile(r"^[\w./-]+\.(?:h|cc|cu|cuh|bzl)$|^[\w./-]+/\w+\.\*$")
# A source named in a C++ comment.
_NAMED = re.compile(r"(?<![\w*>./-])[\w./-]*\w\.(?:h|cc|cu|cuh)\b")
# Headers of other projects that comments name.
_FOREIGN = ("cuda_runtime_api.h", "rdkafka.h", "rocksdb/c.h")
_HEADING = re.compile(r"^#+ +(.*)$", re.MULTILINE)


def anchors(page):
  """Returns the anchors that Markdown hosts generate for a page's headings."""
  headings = _HEADING.findall(_FENCE.sub("", page))
  return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


def broken_links(path, page, read):
  """Returns a line for each link to a file or heading that does not exist.

  Args:
    path: path of the page.
    page: its text.
    read: a function from a path to a file's text; raises OSError if there is no file.
  """
  found = []
  for link in _LINK.findall(_FENCE.sub("", page)):
    target, _, heading = link.partition("#")
    if "://" in link:
      continue
    other = os.path.normpath(os.path.join(os.path.dirname(path), target)) if target else path
    try:
      text = page if other == path else read(other)
    except IsADirectoryError:
      continue
    except OSError:
      found.append("%s: %s is not there" % (path, link))
      continue
    if heading and heading not in anchors(text):
      found.append("%s: %s has no such heading" % (path, link))
  return found


def missing_sources(path, page, files):
  """Returns a line for each C++ or Bazel source in a code span that does not exist.

  Args:
    path: path of the page.
    page: its text.
    files: list of all paths of the tree.
  """
  found = []
  for span in _SPAN.findall(_FENCE.sub("", page)):
    if _SOURCE.match(span) and not fnmatch.filter(files, "*/" + span):
      found.append("%s: there is no %s" % (path, span))
  return found


def missing_in_comments(path, text, files):
  """Returns a line for each source that a C++ comment names and that does not exist.

  Args:
    path: path of the C++ file.
    text: text of the file.
    files: set of all paths of the tree and of what follows each "/" in them.
  """
  found = []
  for number, line in enumerate(text.splitlines(), 1):
    comment = line.partition("//")[2]
    for name in _NAMED.findall(comment):
      if name not in files and name not in _FOREIGN:
        found.append("%s:%d: there is no %s" % (path, number, name))
  return found


class LinksTest(parameterized.TestCase):

  def test_the_tree_obeys(self):
    found = []
    files = ["/" + path for path in tree.files()]
    for path in tree.files(".md"):
      page = tree.read(path)
      found += broken_links(path, page, tree.read)
      # The change log may name sources that were removed later.
      if path != "CHANGELOG.md":
        found += missing_sources(path, page, files)
    self.assertEmpty(found, "\n" + "\n".join(found))

  def test_comments_name_existing_sources(self):
    files = {path[start:] for path in tree.files()
             for start in [0] + [m.end() for m in re.finditer("/", path)]}
    found = []
    for path in tree.files(".h", ".cc", ".cu", ".cuh"):
      found += missing_in_comments(path, tree.read(path), files)
    self.assertEmpty(found, "\n" + "\n".join(found))

  @parameterized.parameters(
      ("// a.h", 0), ("// (ids/a.h)", 0), ("x();  // in rdkafka.h.", 0), ("// *_a.h, <a>_b.h", 0),
      ('#include "b.h"', 0), ("// b.h", 1), ("int x;  // see ids/b.cc, id/a.h", 2))
  def test_finds_missing_sources_in_comments(self, line, count):
    files = {"kernels/ids/a.h", "ids/a.h", "a.h"}
    self.assertLen(missing_in_comments("c.h", "\n" + line + "\n", files), count)

  @parameterized.parameters(
      ("[a](b.md)", 0), ("[a](b.md#in-parts-of-2-ev-s)", 0), ("[a](#here)", 0),
      ("[a](https://c.org/d.md)", 0), ("```\n[a](c.md)\n```", 0),
      ("[a](c.md)", 1), ("[a](b.md#elsewhere)", 1), ("[a](#elsewhere)", 1))
  def test_finds_broken_links(self, link, count):
    def read(path):
      if path != "docs/b.md":
        raise OSError(path)
      return "# B\n\n## In parts of 2, `ev`-s\n"

    self.assertLen(broken_links("docs/a.md", "# Here\n\n" + link + "\n", read), count)

  @parameterized.parameters(
      ("`ids/unique.h`", 0), ("`ids/unique.*`", 0), ("`a.b()`", 0), ("```\n`ids/a.h`\n```", 0),
      ("`kernels/engine/ids/unique.h`", 0), ("`ids/uniques.h`", 1), ("`id/unique.h`", 1),
      ("`ids/uniq.*`", 1))
  def test_finds_missing_sources(self, span, count):
    files = ["/kernels/engine/ids/unique.h", "/kernels/engine/ids/unique.cc"]
    self.assertLen(missing_sources("docs/a.md", "See\n" + span + "\n", files), count)


if __name__ == "__main__":
  absltest.main()
