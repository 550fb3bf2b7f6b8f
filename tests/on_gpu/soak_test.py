# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs the soak test for some seconds, and tests that it finds errors. Needs no GPU."""

import os
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np

import soak
import soak_oracle

_SMALL = ["soak", "--minutes=0", "--samples=64", "--hotness=3", "--window=1000",
          "--universe=10000", "--rows_on_gpu=300", "--steps=20", "--wave=50",
          "--slack_mib=1000"]
_DEVICE = ["--device=" + os.environ.get("SOAK_DEVICE", "/cpu:0")]


class OracleTest(absltest.TestCase):

  def test_a_row_in_closed_form(self):
    oracle = soak_oracle.Oracle(10, 4)
    oracle.train(np.array([3, 3, 5]), step=7)
    np.testing.assert_array_equal(
        oracle.rows(np.array([3])), [[.25 - 2 / 32, .5 - 1 / 32, .75 - 4 / 32, 1 - 2 / 32]])
    np.testing.assert_array_equal(oracle.rows(np.array([4])), [[.25, .5, .75, 1.]])
    keys, rows = oracle.table()
    self.assertEqual(set(keys), set(soak_oracle.keys_of([3, 5])))
    self.assertEqual(rows.dtype, np.float32)

  def test_stale_rows(self):
    oracle = soak_oracle.Oracle(10, 4)
    oracle.train(np.array([3]), step=7)
    oracle.train(np.array([5]), step=8)
    self.assertEqual(oracle.evict_stale(step=9, steps_to_live=2), 0)
    self.assertEqual(oracle.evict_stale(step=10, steps_to_live=2), 1)
    self.assertEqual(list(oracle.counts[[3, 5]]), [0, 1])

  def test_weak_rows(self):
    oracle = soak_oracle.Oracle(10, 4)
    oracle.train(np.array([3] * 8 + [5]), step=7)
    weight = .5 * np.sum(np.square(oracle.rows(np.array([3]))))
    self.assertEqual(oracle.evict_weak(weight + 1e-3), 1)
    self.assertEqual(list(oracle.counts[[3, 5]]), [0, 1])

  def test_keys_differ(self):
    self.assertLen(set(soak_oracle.keys_of(np.arange(1000))), 1000)


class GpuMemoryTest(absltest.TestCase):

  def _asked(self, apps):
    def answer(command):
      return apps if any("compute-apps" in word for word in command) else b"5000\n"
    with mock.patch.object(soak.subprocess, "check_output", answer):
      return soak.gpu_mib()

  def test_memory_of_this_process(self):
    self.assertEqual(self._asked(b"1, 40\n%d, 700\n" % os.getpid()), 700.)

  def test_memory_of_all_processes_if_they_are_not_listed(self):
    self.assertEqual(self._asked(b""), 5000.)
    self.assertEqual(self._asked(b"%d, [N/A]\n" % os.getpid()), 5000.)


class SoakTest(parameterized.TestCase):

  def _main(self, *args):
    with mock.patch("builtins.print") as out:
      status = soak.main(_SMALL + _DEVICE + list(args))
    return status, str(out.call_args[0][0])

  @parameterized.parameters("dram", "hbm", "hbm_dram")
  def test_passes(self, storage):
    if storage != "dram" and "SOAK_DEVICE" not in os.environ:
      self.skipTest("there is no GPU")
    self.assertEqual(self._main("--storage=" + storage), (0, "soak passed"))

  def test_finds_a_wrong_row(self):
    train = soak.soak_oracle.Oracle.train

    def forget_one(oracle, numbers, step):
      train(oracle, numbers[1:] if step == 30 else numbers, step)

    with mock.patch.object(soak.soak_oracle.Oracle, "train", forget_one):
      status, last = self._main("--storage=dram")
    self.assertEqual(status, 1)
    self.assertRegex(last, "^soak failed: table exact_0.*at step")

  def test_finds_that_memory_grows(self):
    steady = [(t, 100., 50., 1) for t in range(30)]
    self.assertEmpty(soak.check_memory(steady, 10.))
    leak = [(t, 100. + t, 50. + 3 * t, 1) for t in range(30)]
    self.assertLen(soak.check_memory(leak, 9.), 2)
    self.assertLen(soak.check_memory(leak, 20.), 1)
    self.assertEmpty(soak.check_memory(leak, 40.))


if __name__ == "__main__":
  absltest.main()
