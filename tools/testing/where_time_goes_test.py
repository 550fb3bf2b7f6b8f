# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of where_time_goes."""

from absl.testing import absltest

import where_time_goes


def _action(name, seconds):
  return {"cat": "action processing", "name": name, "dur": int(seconds * 1e6)}


class WhereTimeGoesTest(absltest.TestCase):

  def test_sums_each_kind_of_work(self):
    sums = where_time_goes.summed({"traceEvents": [
        _action("Compiling kernels/engine/a.cu with nvcc", 5),
        _action("Compiling kernels/engine/base/a_test.cc", 2),
        _action("Compiling kernels/engine/base/b_test.cc", 3),
        _action("Compiling addons/hugectr/tf/a.cc", 7),
        _action("Compiling kernels/engine/base/a.cc", 1),
        _action("Linking kernels/engine/base/a_test", .5),
        _action("Testing //tests/distributed:a_test (shard 1 of 2)", 11),
        _action("Testing //python/embedding_variable/ops:b_test", 13),
        _action("Writing file x", 0),
        {"cat": "general information", "name": "Compiling", "dur": 99},
        {"name": "no category"},
    ]})
    self.assertEqual({kind: tuple(line) for kind, line in sums.items()}, {
        "compile CUDA code with nvcc": (1, 5.),
        "compile C++ tests": (2, 5.),
        "compile C++ that sees TensorFlow's headers": (1, 7.),
        "compile other C++": (1, 1.),
        "link": (1, .5),
        "run the tests of tests/distributed": (1, 11.),
        "run the tests of python/embedding_variable": (1, 13.),
        "other actions": (1, 0.),
    })

  def test_the_longest_work_comes_first(self):
    self.assertEqual(where_time_goes.table({"link": [1, 2.], "other": [3, 40.]}), [
        "| work | actions | seconds |", "| --- | --- | --- |", "| other | 3 | 40 |",
        "| link | 1 | 2 |", "| all | 4 | 42 |"])


if __name__ == "__main__":
  absltest.main()
