# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs the demo as a user does, and the script that the design promises."""

import os
import re
import subprocess
import sys

from absl.testing import absltest
from absl.testing import parameterized

_DEMO = os.path.join(os.path.dirname(os.path.abspath(__file__)), "demo.py")

# The script that must run unchanged except for its comments; only ids are added.
_PROMISED_SCRIPT = """
import tensorflow as tf, horovod.tensorflow as hvd
sparse_ids = tf.SparseTensor([[0, 0], [0, 1], [2, 0]], tf.constant([7, -3, 7], tf.int64), [3, 2])
from sparse_operation_kit import experiment as sok
hvd.init(); sok.init()
var = tf.get_embedding_variable("var_0", embedding_dim=3, initializer=tf.ones_initializer(
    tf.float32))
var.target_gpu = -1
emb = sok.lookup_sparse([var], [sparse_ids], combiners=["sum"])
loss = tf.reduce_sum(tf.multiply(emb, 2.0))
opt = tf.train.AdagradOptimizer(0.1)
train_op = opt.apply_gradients(opt.compute_gradients(loss))
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer()); sess.run([emb, train_op, loss])
    print("loss %.5f" % sess.run(loss))
"""


def _run(args):
  # PYTHONPATH: the child imports from the build too.
  env = dict(os.environ, PYTHONPATH=os.pathsep.join(p for p in sys.path if p))
  process = subprocess.run([sys.executable] + args, env=env, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, universal_newlines=True)
  if process.returncode:
    raise AssertionError("exit status %d\n%s" % (process.returncode, process.stderr))
  return process.stdout


class DemoTest(parameterized.TestCase):

  @parameterized.parameters("adagrad", "adam", "sgd")
  def test_loss_falls(self, optimizer):
    out = _run([_DEMO, "--steps=6", "--dims=3,16,5", "--id_space=20",
                "--optimizer=" + optimizer])
    losses = [float(x) for x in re.findall(r"loss (-?[\d.]+)", out)]
    self.assertLen(losses, 6)
    self.assertLess(losses[-1], losses[0])
    # 64 samples with up to 5 of 20 ids contain every id within six steps.
    self.assertEqual(re.findall(r"var_\d has 20 rows of (\d+) floats", out),
                     ["3", "16", "5"])

  def test_promised_script(self):
    out = _run(["-c", _PROMISED_SCRIPT])
    # Adagrad, accumulator 0.1: id 7 has gradient 4, id -3 has gradient 2.
    row_7 = 1 - 0.1 * 4 / (0.1 + 16) ** 0.5
    row_3 = 1 - 0.1 * 2 / (0.1 + 4) ** 0.5
    expected = 2 * 3 * (2 * row_7 + row_3)
    self.assertAlmostEqual(float(re.findall(r"loss ([\d.]+)", out)[0]), expected,
                           places=4)


if __name__ == "__main__":
  absltest.main()
