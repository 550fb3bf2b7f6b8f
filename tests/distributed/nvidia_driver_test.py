# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests when multi-rank tests are skipped because there is no GPU."""

from unittest import mock

from absl.testing import absltest

import nvidia_driver


class _Driver(object):
  """Stands for the driver library that ctypes loads."""

  def __init__(self, started, counted=0, gpus=0):
    self._started, self._counted, self._gpus = started, counted, gpus

  def cuInit(self, unused_flags):  # pylint: disable=invalid-name
    return self._started

  def cuDeviceGetCount(self, count):  # pylint: disable=invalid-name
    count._obj.value = self._gpus  # pylint: disable=protected-access
    return self._counted


def _why(**library):
  with mock.patch.object(nvidia_driver.ctypes, "CDLL", **library):
    return nvidia_driver.why_no_gpu()


class NvidiaDriverTest(absltest.TestCase):

  def test_machine_without_a_gpu(self):
    self.assertRegex(_why(side_effect=OSError()), "no NVIDIA driver")
    self.assertRegex(_why(return_value=_Driver(100)), "sees no GPU")
    self.assertRegex(_why(return_value=_Driver(0)), "sees no GPU")

  def test_machine_with_a_gpu(self):
    self.assertIsNone(_why(return_value=_Driver(0, gpus=2)))

  def test_broken_driver_is_an_error(self):
    for driver in (_Driver(999), _Driver(0, counted=802)):
      with self.assertRaisesRegex(RuntimeError, "does not start: CUDA error (999|802)"):
        _why(return_value=driver)


if __name__ == "__main__":
  absltest.main()
