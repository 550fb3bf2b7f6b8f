# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Guides say with which TensorFlow they work, as tools/docs/support.py and tests have it."""

import os
import re

from absl.testing import absltest
from absl.testing import parameterized

import support
import tree

# Claims that the line below a title replaces. A page that needs one names a limit of one
# feature instead.
_CLAIM = re.compile(
    r"works? (?:in|on) graph mode only|graph mode only|"
    r"[Nn]ot supported:?\*{0,2} (?:eager|TensorFlow 2)|"
    r"(?:the stock|inside a|on stock|needs|only) TensorFlow 1\.15(?!\.\d)(?! (?:and|or|build))")


def claims(text):
  """Returns the statements on versions and modes in a page's text that no table makes."""
  return [m.group(0) for m in _CLAIM.finditer(" ".join(text.split()))]


class SupportTest(parameterized.TestCase):

  def setUp(self):
    super(SupportTest, self).setUp()
    self.versions = support.supported(tree.read(support.VERSIONS))

  def test_every_page_is_listed(self):
    pages = {os.path.basename(p) for p in tree.files(".md")
             if os.path.dirname(p) == "docs"}
    self.assertCountEqual(pages, list(support.PAGES) + list(support.OTHER_PAGES))

  @parameterized.parameters(*sorted(support.PAGES))
  def test_a_page_has_its_line(self, name):
    text = tree.read("docs/" + name)
    self.assertEqual(text, support.with_line(text, support.PAGES[name], self.versions),
                     "run: bazel run //tools/docs:support")

  @parameterized.parameters(*sorted(support.PAGES))
  def test_a_line_has_its_tests(self, name):
    page = support.PAGES[name]
    self.assertNotEmpty([p for p in tree.files("test.py") if p.startswith(page.tests + "/")])
    if page.graph_2:
      self.assertIn(page.graph_2, tree.read(support.TESTS_ON_2))
    if page.eager:
      build = tree.read(support.EAGER_TESTS + "/BUILD")
      self.assertRegex(build, r'"%s(\.py)?"' % page.eager)

  def test_supported_versions_can_be_set_up(self):
    pins = {os.path.basename(p) for p in tree.files(".txt")
            if os.path.dirname(p) == "tools/setup/tensorflow_pins"}
    self.assertCountEqual(pins, [form % version for version in self.versions[1:]
                                 for form in ("%s.txt", "tests-%s.txt", "horovod-%s.txt")])

  def test_pages_make_no_other_claims(self):
    found = ["%s: %s" % (path, claim) for path in tree.files(".md")
             if path.startswith("docs/") or path in ("README.md", "CONTRIBUTING.md")
             for claim in claims(tree.read(path))]
    self.assertEmpty(found, "\n" + "\n".join(found))

  @parameterized.parameters(
      ("The API works in graph\nmode only.", ["works in graph mode only"]),
      ("Not supported: eager mode.", ["Not supported: eager"]),
      ("runs on the stock TensorFlow 1.15 wheel", ["the stock TensorFlow 1.15"]),
      ("needs TensorFlow 1.15.0's GPU build", []),
      ("on TensorFlow 1.15 and 2.x", []))
  def test_finds_claims(self, text, expected):
    self.assertEqual(claims(text), expected)


if __name__ == "__main__":
  absltest.main()
