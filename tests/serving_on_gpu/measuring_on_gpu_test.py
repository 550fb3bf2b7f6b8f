# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests the comparisons and the output of lookup_speed.py --device=gpu on the test
device.

Stock ops use soft placement, because TensorFlow's CPU wheel has no GPU kernels for them.
"""

import contextlib
import io
import os
import re

from absl.testing import absltest
from absl.testing import flagsaver
import tensorflow as tf

_HERE = os.path.dirname(os.path.abspath(__file__))
_load_op_library = tf.load_op_library
# Replaced before the package loads its library.
tf.load_op_library = lambda path: _load_op_library(
    os.path.join(_HERE, os.path.basename(path)))

import lookup_speed  # pylint: disable=wrong-import-position


class MeasuringOnGpuTest(absltest.TestCase):

  def run_program(self, **changed):
    out = io.StringIO()
    with flagsaver.flagsaver(
        device="gpu", soft_placement=True, rows=3000, width=8, seconds=.01,
        batches=["32", "1024"], **changed), contextlib.redirect_stdout(out):
      lookup_speed.main([])
    return out.getvalue()

  def test_rows_are_the_same(self):
    for ids_on_gpu in (False, True):
      output = self.run_program(check=True, ids_on_gpu=ids_on_gpu)
      self.assertIn("combined rows on the GPU are those of the CPU", output)
      self.assertIn("the same rows", output)

  def test_it_measures(self):
    output = self.run_program(gpucacheper=.2)
    hits = {}
    for stream in ("repeated", "zipf1.05", "zipf1.2", "uniform"):
      line = re.search("^%s +1024 (.*)$" % re.escape(stream), output, re.M).group(1)
      values = [float(v) for v in line.split()]
      self.assertLen(values, 8)  # three methods, hits, GB/s
      hits[stream] = values[6]
    # A fifth of the rows is cached; which ones depends on their use.
    self.assertBetween(hits["uniform"], 10, 30)
    self.assertGreater(hits["zipf1.2"], hits["uniform"])

  def test_one_way_alone(self):
    output = self.run_program(ways=[], streams=["repeated"], gpucacheper=1.)
    values = re.search("^repeated +32 (.*)$", output, re.M).group(1).split()
    self.assertLen(values, 4)
    self.assertEqual(float(values[2]), 100.)


if __name__ == "__main__":
  absltest.main()
