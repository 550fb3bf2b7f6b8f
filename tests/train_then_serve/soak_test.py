# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs the server's soak test for some seconds, and tests that it finds errors."""

import types
from unittest import mock

from absl.testing import absltest

import soak


class SoakTest(absltest.TestCase):

  def test_passes(self):
    with mock.patch("builtins.print") as out:
      # Memory has not settled after so few versions.
      status = soak.main(["--seconds=6", "--warm_up_seconds=4", "--clients=1",
                          "--growth_mib=60"])
    lines = [str(call[0][0]) for call in out.call_args_list]
    self.assertEqual((status, lines[-1]), (0, "soak passed"), lines)

  def test_growth_is_found(self):
    first, limits = soak.Usage(100., 40, 20), (20., 4, 4)
    for last, text in ((soak.Usage(121., 40, 20), "mib grew from 100 to 121"),
                       (soak.Usage(100., 45, 20), "threads grew from 40 to 45"),
                       (soak.Usage(100., 40, 25), "files grew from 20 to 25")):
      with self.assertRaisesRegex(soak.SoakError, text):
        soak.check_usage(first, last, limits)
    soak.check_usage(first, soak.Usage(119., 44, 24), limits)

  def test_wrong_answers_are_found(self):
    answers = [{"scores": [202., 202.], "step": 2.}, {"scores": [303., 303.], "step": 3}]
    checked = soak._Checked(lambda: answers[0], types.SimpleNamespace(steps=3))
    for _ in range(2):
      checked()
    for wrong in ({"scores": [202., 303.], "step": 3.}, {"scores": [303.], "step": 2.},
                  {"scores": [101.], "step": 1.}, {"scores": [404.], "step": 4.}):
      answers.insert(0, wrong)
      with self.assertRaisesRegex(soak.SoakError, "after step 2"):
        checked()
      del answers[0]
    del answers[0]
    checked()


if __name__ == "__main__":
  absltest.main()
