# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests the checks: on the CPU, where all must pass, and with programs that crash."""

import os
import sys

from absl.testing import absltest
import tensorflow as tf

from embedding_variable.gpu import check_program
from embedding_variable.gpu import checking
from embedding_variable.gpu import places as places_lib
from tensorflow.core.framework.embedding import config_pb2


class CheckProgramTest(absltest.TestCase):

  def setUp(self):
    super().setUp()
    self.enter_context(absltest.mock.patch.object(check_program, "DEVICE", "/cpu:0"))
    self.enter_context(absltest.mock.patch.object(
        check_program, "STORAGE", config_pb2.StorageType.DRAM))

  def test_each_is_right_on_the_processors(self):
    for group in check_program.GROUPS.values():
      for name, function in group:
        if function is not check_program._device:
          with self.subTest(name):
            function()

  def test_each_notices_a_wrong_result(self):
    run = check_program._run

    def wrong(function, *arrays):
      result = run(function, *arrays)
      return result + result.dtype.type(1)

    with absltest.mock.patch.object(check_program, "_run", wrong):
      for group in check_program.GROUPS.values():
        for name, function in group:
          if function in (check_program._device, check_program._dense_training,
                          check_program._embedding_variable):
            continue
          with self.subTest(name), self.assertRaises(AssertionError):
            function()
    # These two train: another learning rate must be detected.
    for function in (check_program._dense_training, check_program._embedding_variable):
      optimizer = tf.compat.v1.train.AdagradOptimizer
      with absltest.mock.patch.object(
          tf.compat.v1.train, "AdagradOptimizer",
          lambda rate, make=optimizer, **kwargs: make(rate * 1.1, **kwargs)):
        with self.assertRaises(AssertionError):
          function()

  def test_the_line_with_the_cause(self):
    for error, line in (
        (ValueError("a\nb"), "a"), (ValueError(), "ValueError"),
        (tf.errors.UnknownError(None, None, "2 root error(s) found.\n  (0) Unknown: no "
                                "algorithm\n  (1) Unknown: no"),
         "(0) Unknown: no algorithm")):
      self.assertEqual(check_program._first_line(error), line)

  def test_no_device_is_an_error(self):
    if tf.config.experimental.list_physical_devices("GPU"):
      self.skipTest("this machine has one")
    with self.assertRaisesRegex(AssertionError, "no GPU device"):
      check_program._device()


_PROGRAM = """
import json, os, sys
assert os.environ["CUDA_CACHE_PATH"] == %r
assert os.environ["TF_FORCE_GPU_ALLOW_GROWTH"] == "true"
group = sys.argv[1]
def say(**entry):
  print(json.dumps(entry), flush=True)
say(begins="one of " + group)
print("a line of something else")
say(name="one of " + group, error=None)
if group == "needed":
  say(begins="two")
  say(name="two", error="off by 3")
if group == "conv2d":
  say(begins="convolutions")
  sys.stderr.write("2026-01-01 1: I x.cc:1] fine\\n")
  sys.stderr.write("2026-01-01 1: F y.cc:2] Check failed\\nAborted\\n")
  sys.stderr.flush()
  os.abort()
"""


class CheckingTest(absltest.TestCase):

  def setUp(self):
    super().setUp()
    self.places = places_lib.Places(self.create_tempdir().full_path)

  def run_all(self, program):
    path = os.path.join(self.places.top, "program.py")
    with open(path, "w") as f:
      f.write(program)
    return checking.run_all(self.places, [sys.executable, path])[0]

  def test_reports_which_checks_pass(self):
    checks = self.run_all(_PROGRAM % self.places.cache)
    self.assertEqual([c.name for c in checks], [
        "one of needed", "two", "one of fft", "one of cholesky", "one of conv2d",
        "convolutions"])
    self.assertEqual(checking.failed(checks), ["two"])
    lines = checking.table(checks).splitlines()
    self.assertEqual(lines[0], "one of needed    works")
    self.assertEqual(lines[1], "two              does not work: off by 3")
    self.assertRegex(lines[5], r"^convolutions     does not work: ended its process \(-6\)"
                     ": .*Check failed$")

  def test_a_program_that_does_not_start_is_a_failure(self):
    checks = self.run_all("raise SystemExit('no TensorFlow')")
    self.assertEqual(checking.failed(checks), ["a program with TensorFlow"])
    self.assertIn("ended its process (1): no TensorFlow", checks[0].error)

  def test_a_program_that_checks_nothing_is_a_failure(self):
    self.assertEqual(self.run_all("")[0].error, "checked nothing")

  def test_a_program_that_does_not_end_is_a_failure(self):
    with absltest.mock.patch.object(checking, "_LIMIT_S", 1):
      check = self.run_all("import time; time.sleep(600)")[0]
    self.assertIn("did not end in 1 s", check.error)
    self.assertTrue(check.needed)


if __name__ == "__main__":
  absltest.main()
