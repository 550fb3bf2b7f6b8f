# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checks that the DCNv2 benchmark runs and trains, with tiny sizes on the CPU."""

import json
from unittest import mock

from absl import app
from absl.testing import absltest
from absl.testing import flagsaver
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

import dcnv2
import mixed_precision

_TINY = dict(device="/cpu:0", storage="dram", batch=24, dim=4, max_rows=50, stock_rows=40,
             steps=8, warmup_steps=1, bottom=["8"], top=["16", "8"], cross_layers=2,
             cross_rank=3)


class Dcnv2Test(parameterized.TestCase):

  @parameterized.parameters((dcnv2.EV,), (dcnv2.STOCK,), (dcnv2.EV, "float16", True))
  def test_runs_and_trains(self, variant, dtype="float32", one_id=False):
    with flagsaver.flagsaver(variant=variant, dtype=dtype, one_id=one_id,
                             **_TINY), mock.patch(
        "builtins.print") as out:
      dcnv2.main(["dcnv2"])
    results = [json.loads(call[0][0]) for call in out.call_args_list
               if str(call[0][0]).startswith("{")]
    self.assertEqual([r["graph"] for r in results], list(dcnv2.GRAPHS))
    for result in results:
      self.assertEqual(result["variant"], variant)
      self.assertGreater(result["step_ms"], 0.)
      self.assertEqual(result["batch"], 24)
      self.assertEqual((result["dtype"], result["ids_per_sample"]),
                       (dtype, 26 if one_id else 214))
      self.assertLess(result["loss"][1], result["loss"][0], result)

  def test_the_factor_of_the_loss_changes_no_update(self):
    results = []
    for dtype in "float32", "float16":
      with flagsaver.flagsaver(dtype=dtype), tf.Graph().as_default():
        x = tf.compat.v1.get_variable("x", initializer=[3., -.5])
        loss = tf.reduce_sum(x * x)
        scaled = mixed_precision.scaled(loss)
        train = mixed_precision.adagrad().minimize(scaled)
        with tf.compat.v1.Session() as session:
          session.run(tf.compat.v1.global_variables_initializer())
          values, factor = session.run([loss, scaled])
          self.assertEqual(factor / values, 1024. if dtype == "float16" else 1.)
          for _ in range(5):
            session.run(train)
          results.append(session.run(x))
    self.assertGreater(abs(results[0][0] - 3.), .01)
    np.testing.assert_allclose(results[0], results[1], rtol=1e-6)

  def test_losses_must_be_finite(self):
    for losses in [1., float("nan")], [float("inf"), 1.]:
      with self.assertRaisesRegex(FloatingPointError, "graph 'whole' in float32.*finite"):
        mixed_precision.check_finite(losses, dcnv2.WHOLE)
    mixed_precision.check_finite([1., .5], dcnv2.WHOLE)

  def test_the_published_setting(self):
    self.assertEqual(sum(dcnv2.HOTNESS), 214)
    self.assertLen(dcnv2.HOTNESS, 26)
    self.assertLen(dcnv2.ROWS, 26)

  def test_unknown_graph(self):
    with flagsaver.flagsaver(graphs=["hole"]):
      with self.assertRaisesRegex(app.UsageError, "hole.*whole, dense, sparse"):
        dcnv2.main(["dcnv2"])


if __name__ == "__main__":
  absltest.main()
