# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Compares the CPU with itself, and checks reports of invented results."""

from unittest import mock

from absl.testing import absltest
from absl.testing import flagsaver

import compare_devices
import train_ctr

_DEVICES = ["cpu", "gpu"]


def _row(cpu, gpu, same_bits=True):
  rates = {"cpu": [1.0] * len(cpu), "gpu": [2.0] * len(gpu)}
  return compare_devices.Row("dlrm", {"cpu": cpu, "gpu": gpu}, rates, same_bits)


class CompareDevicesTest(absltest.TestCase):

  def _report(self, row):
    with mock.patch("builtins.print") as out:
      status = compare_devices.report([row], _DEVICES, 4.0, 0.8)
    return status, "\n".join(str(call[0][0]) for call in out.call_args_list)

  def test_noise_is_no_difference(self):
    status, text = self._report(_row([.70, .71, .72], [.71, .70, .73]))
    self.assertEqual(status, 0)
    self.assertIn("| dlrm | 0.710000 | 0.713333 | +0.003333 | 0.012", text)

  def test_a_difference_is_an_error(self):
    status, text = self._report(_row([.70, .7001, .7002], [.71, .7101, .7102]))
    self.assertEqual(status, 1)
    self.assertIn("differ by more than 4 standard errors", text)

  def test_other_bits_after_a_restore_are_an_error(self):
    status, text = self._report(_row([.70, .71], [.70, .71], same_bits=False))
    self.assertEqual(status, 1)
    self.assertIn("did not restore to the same bits", text)

  def test_the_cpu_agrees_with_itself(self):
    with mock.patch("builtins.print") as out:
      with flagsaver.flagsaver(models=["wdl"], devices=["cpu", "cpu"], num_seeds=2,
                               steps=5, batch_size=64, dim=4, eval_samples=500):
        self.assertEqual(compare_devices.main(["compare_devices"]), 0)
    text = "\n".join(str(call[0][0]) for call in out.call_args_list)
    self.assertIn("| wdl | 0.", text)

  def test_no_gpu_is_an_error_before_anything_is_trained(self):
    with mock.patch.object(train_ctr, "check_device", side_effect=train_ctr.NoGpu("no")):
      with self.assertRaisesRegex(train_ctr.NoGpu, "no"):
        compare_devices.main(["compare_devices"])


if __name__ == "__main__":
  absltest.main()
