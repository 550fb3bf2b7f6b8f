# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Each results page has what is needed to repeat it: command, machine and commit."""

import os

from absl.testing import absltest

import tree

_RESULTS = "benchmarks/results/"
_NAMED = ("command", "machine", "commit")
_CHARTS = (".png", ".svg")


def violations(files):
  """Returns a line for each result without that information.

  Args:
    files: {path: text, or None if it is not text}.
  """
  found = []
  texts = [text for text in files.values() if text]
  for path, text in sorted(files.items()):
    if path.endswith(_CHARTS):
      name = os.path.basename(path)
      if not any(name in other for other in texts):
        found.append("%s: no page beside it shows this chart" % path)
    elif text is None:
      found.append("%s: is not text" % path)
    else:
      missing = [word for word in _NAMED if word not in text.lower()]
      if missing:
        found.append("%s: does not name its %s" % (path, ", ".join(missing)))
  return found


class ResultsTest(absltest.TestCase):

  def test_every_result_can_be_repeated(self):
    files = {p: tree.read(p) for p in tree.files() if p.startswith(_RESULTS)}
    found = violations(files)
    self.assertEmpty(found, "\n" + "\n".join(found))

  def test_refuses_a_result_without_its_command(self):
    self.assertEqual(
        violations({"r/a.md": "Machine: x\nCommit: y\n"}),
        ["r/a.md: does not name its command"])

  def test_refuses_a_chart_that_no_page_shows(self):
    page = "Command, machine, commit. ![](b.png)"
    self.assertLen(violations({"r/a.png": None, "r/b.png": None, "r/a.md": page}), 1)


if __name__ == "__main__":
  absltest.main()
