# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that ranks train the five sample models like TensorFlow alone in one process."""

import os
import shutil
import sys
import tempfile

# Python adds the program's real folder to the path first, but the package in that
# folder of the source tree lacks the compiled reader.
sys.path[:] = [p for p in sys.path
               if p != os.path.dirname(os.path.realpath(__file__))]

# pylint: disable=wrong-import-position
import horovod.tensorflow as hvd
import tensorflow as tf
from absl.testing import absltest
from absl.testing import parameterized
import numpy as np

import sample_models


def _of_rank_0(text):
  """Returns rank 0's text; waits for all ranks."""
  data = np.zeros([512], np.uint8)
  data[:len(text)] = np.frombuffer(text.encode(), np.uint8)
  with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    found = session.run(hvd.broadcast(tf.constant(data), 0))
  return bytes(found).rstrip(b"\0").decode()


class ModelsUtest(parameterized.TestCase):

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    hvd.init()

  @parameterized.parameters(*[(m,) for m in sample_models.MODELS])
  def test_trains_as_the_same_model_does(self, model):
    folder = _of_rank_0(tempfile.mkdtemp() if hvd.rank() == 0 else "")
    start = folder + "/start"
    if hvd.rank() == 0:
      sample_models.write(model, folder)
    _of_rank_0("")
    found = sample_models.train(model, folder, start, hvd.size())
    _of_rank_0("")
    direct = sample_models.train_directly(model, folder, start)
    np.testing.assert_allclose(found.losses, direct.losses, rtol=2e-3)
    self.assertAlmostEqual(found.auc, direct.auc, delta=.002)
    _of_rank_0("")
    if hvd.rank() == 0:
      shutil.rmtree(folder)


if __name__ == "__main__":
  absltest.main()
