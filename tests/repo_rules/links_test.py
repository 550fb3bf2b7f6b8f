# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Links of pages lead to a page, and to a heading of that page."""

import os
import re

from absl.testing import absltest
from absl.testing import parameterized

import tree

_FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ +(.*)$", re.MULTILINE)


def anchors(page):
  """Returns the anchors that hosts of Markdown give to a page's headings."""
  headings = _HEADING.findall(_FENCE.sub("", page))
  return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


def broken_links(path, page, read):
  """Returns a line for each link to a file or heading that is not there.

  Args:
    path: of the page.
    page: its text.
    read: a function from a path to a file's text; raises OSError if it is not there.
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


class LinksTest(parameterized.TestCase):

  def test_the_tree_obeys(self):
    found = []
    for path in tree.files(".md"):
      found += broken_links(path, tree.read(path), tree.read)
    self.assertEmpty(found, "\n" + "\n".join(found))

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


if __name__ == "__main__":
  absltest.main()
