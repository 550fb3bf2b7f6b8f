# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of sok.layers.Embedding in graph mode; tests/eager has those of TensorFlow 2.x."""

from unittest import mock

from absl.testing import absltest
import numpy as np
import tensorflow as tf

from embedding_variable.eager.patches import keras_ranks_patch
from sparse_operation_kit.layers import embedding


class EmbeddingTest(absltest.TestCase):

  def test_a_model_learns(self):
    with tf.Graph().as_default(), tf.compat.v1.Session().as_default():
      given = [tf.keras.Input((1,), dtype="int64") for _ in range(2)]
      users, items = embedding.Embedding([8, 8], combiner="sum", initializer="uniform")(given)
      rows = tf.keras.layers.Concatenate()([users, items])
      score = tf.keras.layers.Dense(1, activation="sigmoid")(rows)
      model = tf.keras.Model(given, score)
      model.compile(tf.keras.optimizers.Adam(.05), "binary_crossentropy",
                    metrics=["accuracy"])
      ids = np.random.RandomState(0).randint(0, 50, [2000, 2])
      labels = (ids[:, 0] % 2).astype(np.float32)
      columns = [ids[:, :1] * 2 ** 40, ids[:, 1:]]
      model.fit(columns, labels, epochs=5, batch_size=100, verbose=0)
      self.assertGreater(model.evaluate(columns, labels, verbose=0)[1], .95)
      self.assertLen(model.trainable_weights, 2 + 2)

  def test_a_row_per_id(self):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      rows = embedding.Embedding(3, initializer="ones")(tf.constant([[1, 2], [3, 4]]))
      self.assertEqual(tf.float32, rows.dtype)
      session.run(tf.compat.v1.global_variables_initializer())
      self.assertEqual([[[1.] * 3] * 2] * 2, session.run(rows).tolist())

  def test_fit_over_ranks_with_a_plain_optimizer(self):
    with tf.Graph().as_default(), tf.compat.v1.Session().as_default():
      given = tf.keras.Input((1,), dtype="int64")
      rows = embedding.Embedding(2, combiner="sum", initializer="ones", name="users")(given)
      model = tf.keras.Model(given, tf.keras.layers.Dense(1)(rows))
      data = np.ones([4, 1], np.int64), np.zeros([4, 1], np.float32)
      model.compile(tf.keras.optimizers.SGD(.1), "mse")
      with mock.patch.object(keras_ranks_patch, "num_ranks", return_value=2), \
          mock.patch.object(keras_ranks_patch, "is_spread", return_value=True), \
          self.assertRaisesRegex(RuntimeError, "SGD does not average the gradients of "
                                 "'.*kernel.* over the 2 ranks that share the table 'users"):
        model.fit(*data, verbose=0)
      model.fit(*data, verbose=0)

  def test_wrong_use(self):
    with self.assertRaisesRegex(ValueError, "2 tables got the combiners"):
      embedding.Embedding([2, 3], combiner=["sum"])
    with tf.Graph().as_default():
      with self.assertRaisesRegex(ValueError, "2 tables got 1 inputs"):
        embedding.Embedding([2, 3], combiner="sum")([tf.constant([[1]])])

  def test_ids_of_rank_3(self):
    with tf.Graph().as_default():
      layer = embedding.Embedding(2, combiner="sum", name="users")
      ids = tf.zeros([2, 3, 1], tf.int64)
      for wrong in (ids, tf.sparse.from_dense(ids + 1),
                    tf.RaggedTensor.from_tensor(ids, ragged_rank=2)):
        with self.assertRaisesRegex(
            ValueError, r"layer 'users' with a combiner: its ids: expected the shape "
            r"\[batch, ids\], of rank 2, got a \S+ of rank 3 and shape \(2, "):
          layer(wrong)
      self.assertEqual([2, 2], layer(ids[:, :, 0]).shape.as_list())
      self.assertEqual([2, 3, 1, 2], embedding.Embedding(2)(ids).shape.as_list())


if __name__ == "__main__":
  absltest.main()
