# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Parts of TensorFlow 2.x that cannot use a table raise an error with its name."""

import os
import unittest

from absl.testing import absltest
import tensorflow as tf

import embedding_variable  # pylint: disable=unused-import
from embedding_variable import tf_names
import pairs


@unittest.skipUnless(pairs.is_tensorflow_2(), "TensorFlow 1.15 has none of this")
class TensorFlow2Test(absltest.TestCase):

  def test_an_optimizer_of_keras_that_cannot_train(self):
    for base in tf_names.keras_step_bases():
      adagrad = [cls for cls in base.__subclasses__() if cls.__name__ == "Adagrad"]
      self.assertNotEmpty(adagrad)
      for cls in adagrad:
        with tf.Graph().as_default():
          v = pairs.make("table", "v", pairs.rows(9, 3))
          gradients = tf.gradients(tf.reduce_sum(tf.nn.embedding_lookup(v, [1, 2])), [v])
          with self.assertRaisesRegex(
              TypeError, "'v': the optimizer Adagrad of .*keras.*TF_USE_LEGACY_KERAS=1"):
            cls(.1).apply_gradients(zip(gradients, [v]))

  def test_checkpoint(self):
    with tf.Graph().as_default(), pairs.session():
      v = pairs.make("table", "v", pairs.rows(9, 3))
      with self.assertRaisesRegex(NotImplementedError,
                                  "'v': tf.train.Checkpoint.*tf.compat.v1.train.Saver"):
        tf.train.Checkpoint(table=v).save(
            os.path.join(self.create_tempdir().full_path, "a"))


if __name__ == "__main__":
  absltest.main()
