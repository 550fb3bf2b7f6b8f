# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of progress."""

import io

from absl.testing import absltest

from embedding_variable.tools import progress


class _Terminal(io.StringIO):

  def isatty(self):
    return True


class _Clock(object):

  def __init__(self):
    self.now = 0.0

  def __call__(self):
    return self.now


class ProgressTest(absltest.TestCase):

  def run_for(self, stream, seconds_each, steps=4):
    clock = _Clock()
    with progress.Progress("work", steps, stream, clock) as bar:
      for i in range(steps):
        clock.now += seconds_each
        bar.add(1, "item %d" % i)
    return stream.getvalue()

  def test_short_work_writes_nothing(self):
    self.assertEqual(self.run_for(io.StringIO(), 1.0), "")
    self.assertEqual(self.run_for(_Terminal(), 0.01), "")

  def test_a_log_has_a_line_now_and_then(self):
    lines = self.run_for(io.StringIO(), 6.0).splitlines()
    self.assertLen(lines, 2)
    self.assertEqual(lines[0], "work [" + "#" * 15 + "." * 15 + "]  50%  item 1")

  def test_a_terminal_is_clean_afterwards(self):
    text = self.run_for(_Terminal(), 1.0)
    self.assertIn("\r", text)
    self.assertIn("100%", text)
    self.assertEqual(text.split("\r")[-1], "")
    self.assertEqual(text.split("\r")[-2].strip(), "")


if __name__ == "__main__":
  absltest.main()
