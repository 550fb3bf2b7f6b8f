# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0

import io

from absl.testing import absltest

import progress


class _Terminal(io.StringIO):

  def isatty(self):
    return True


class ProgressBarTest(absltest.TestCase):

  def _show(self, stream, seconds_per_step, steps=10):
    now = [0.0]
    with progress.ProgressBar(steps, "work", stream, lambda: now[0]) as bar:
      for i in range(steps):
        bar.update(i + 1, "note %d" % i)
        now[0] += seconds_per_step
    return stream.getvalue()

  def test_a_terminal_line_is_redrawn(self):
    text = self._show(_Terminal(), 1.0)
    self.assertEqual(text.count("\r"), 10)
    self.assertTrue(text.endswith("\n"))
    self.assertIn("10/10  note 9", text)

  def test_a_log_gets_a_line_now_and_then_and_the_last_state(self):
    lines = self._show(io.StringIO(), 3.0).splitlines()
    self.assertLen(lines, 4)
    self.assertIn("1/10", lines[0])
    self.assertIn("[" + "#" * 30 + "] 10/10  note 9", lines[-1])


if __name__ == "__main__":
  absltest.main()
