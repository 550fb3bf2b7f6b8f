# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of not_on_tensorflow_2."""

import unittest
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized

import not_on_tensorflow_2 as exemptions


class NotOnTensorflow2Test(parameterized.TestCase):

  @parameterized.parameters(
      ("training_test", "LossScaleTest.test_dynamic_rewrite_of_keras_adagrad", True),
      ("training_test", "LossScaleTest.test_dynamic_keras_of_keras_adamax_pooled", True),
      ("training_test", "LossScaleTest.test_dynamic_rewrite_of_adam", False),
      ("training_test", "SessionsTest.test_a_gradient_does_not_become_dense_identity", True),
      ("training_test", "SessionsTest.test_a_gradient_does_not_become_dense_concat", False),
      ("creation_test", "CreationTest.test_eager_mode", True),
      ("other_test", "CreationTest.test_eager_mode", False))
  def test_which_cases(self, program, case, expected):
    self.assertEqual(expected, exemptions.why(program, case) is not None)

  def test_unittest_skips(self):
    runs = []
    run = unittest.TestCase.run
    self.addCleanup(setattr, unittest.TestCase, "run", run)
    exemptions.skip()
    self.enter_context(mock.patch.object(
        exemptions, "LIST", [exemptions.Exemption(
            "not_on_tensorflow_2_test", "*Inner.test_a", None, "the reason")]))

    class Inner(unittest.TestCase):

      def test_a(self):
        runs.append("a")

      def test_b(self):
        runs.append("b")

    result = unittest.TestResult()
    unittest.TestSuite([Inner("test_a"), Inner("test_b")]).run(result)
    self.assertEqual(["b"], runs)
    self.assertEqual(["the reason"], [reason for _, reason in result.skipped])


if __name__ == "__main__":
  absltest.main()
