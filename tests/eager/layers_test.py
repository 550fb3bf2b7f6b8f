# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `sok.layers.Embedding` in Keras models."""

import os

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

import sparse_operation_kit as sok

keras = tf.keras

_SAMPLES = 4096


def _data():
  """Returns ids `[N, 4]` of any size, and labels that their sum of scores decides."""
  random = np.random.RandomState(0)
  ids = random.randint(0, 100, [_SAMPLES, 4])
  scores = random.normal(size=[4, 100])
  labels = sum(scores[k][ids[:, k]] for k in range(4)) > 0
  return (ids * 2 ** 40 - 2 ** 46 + np.arange(4)).astype(np.int64), labels.astype(np.float32)


def _functional():
  inputs = [keras.Input((1,), dtype="int64", name="c%d" % i) for i in range(4)]
  rows = sok.layers.Embedding([8] * 4, combiner="sum", initializer="uniform")(inputs)
  hidden = keras.layers.Dense(16, activation="relu")(keras.layers.Concatenate()(rows))
  return keras.Model(inputs, keras.layers.Dense(1, activation="sigmoid")(hidden))


class Subclassed(keras.Model):

  def __init__(self):
    super(Subclassed, self).__init__()
    self.rows = sok.layers.Embedding(8, initializer="uniform")
    self.flat = keras.layers.Flatten()
    self.out = keras.layers.Dense(1, activation="sigmoid")

  def call(self, inputs):
    return self.out(self.flat(self.rows(inputs)))


def _columns(ids):
  return [ids[:, i:i + 1] for i in range(4)]


class FitTest(parameterized.TestCase):

  @parameterized.parameters("adam", "adagrad")
  def test_a_functional_model_learns(self, name):
    ids, labels = _data()
    keras.utils.set_random_seed(1)
    model = _functional()
    optimizer = {"adam": keras.optimizers.Adam(.02),
                 "adagrad": keras.optimizers.Adagrad(.5)}[name]
    model.compile(optimizer, "binary_crossentropy", metrics=["accuracy"])
    model.fit(_columns(ids), labels, batch_size=256, epochs=4, verbose=0)
    self.assertGreater(model.evaluate(_columns(ids), labels, verbose=0)[1], .85)
    for table in model.layers[4].embedding_variables:
      self.assertEqual(100, table.total_count().numpy()[0])

  def test_a_subclassed_model_learns(self):
    ids, labels = _data()
    keras.utils.set_random_seed(1)
    model = Subclassed()
    model.compile(keras.optimizers.Adam(.02), "binary_crossentropy", metrics=["accuracy"])
    model.fit(ids, labels, batch_size=256, epochs=4, verbose=0)
    self.assertGreater(model.evaluate(ids, labels, verbose=0)[1], .9)
    before = model.rows.embedding_variables[0].total_count().numpy()[0]
    model.predict(ids + 10 ** 15, verbose=0)
    self.assertEqual(before, model.rows.embedding_variables[0].total_count().numpy()[0])

  def test_tables_are_weights(self):
    model = _functional()
    self.assertLen(model.trainable_weights, 4 + 4)


class CallTest(parameterized.TestCase):

  def test_ids_of_every_kind(self):
    layer = sok.layers.Embedding(2, combiner="sum", initializer="ones")
    expected = [[2., 2.], [0., 0.], [1., 1.]]
    ragged = tf.ragged.constant([[7, -3], [], [7]], dtype=tf.int64)
    self.assertEqual(expected, layer(ragged).numpy().tolist())
    self.assertEqual(expected, layer(ragged.to_sparse()).numpy().tolist())
    self.assertEqual([[3., 3.]], layer(tf.constant([[1, 2, 3]])).numpy().tolist())

  def test_weights(self):
    layer = sok.layers.Embedding(1, combiner="mean", initializer="ones")
    got = layer(tf.constant([[1, 2]]), weights=tf.constant([[1., 3.]]))
    self.assertEqual([[1.]], got.numpy().tolist())

  def test_a_row_per_id(self):
    layer = sok.layers.Embedding(3, initializer="ones")
    self.assertEqual([2, 2, 3], layer(tf.constant([[1, 2], [3, 4]])).shape.as_list())
    ragged = layer(tf.ragged.constant([[1], [2, 3]], dtype=tf.int64))
    self.assertEqual([[[1.] * 3], [[1.] * 3] * 2], ragged.to_list())

  def test_half_precision(self):
    layer = sok.layers.Embedding(3, combiner="sum", dtype="mixed_float16")
    self.assertEqual(tf.float16, layer(tf.constant([[1]])).dtype)

  def test_wrong_use(self):
    with self.assertRaisesRegex(ValueError, "2 tables got the combiners"):
      sok.layers.Embedding([2, 3], combiner=["sum"])
    layer = sok.layers.Embedding([2, 3], combiner="sum")
    with self.assertRaisesRegex(ValueError, "2 tables got 1 inputs"):
      layer([tf.constant([[1]])])
    with self.assertRaisesRegex(ValueError, "weights need a combiner"):
      sok.layers.Embedding(2)(tf.constant([[1]]), weights=tf.constant([[1.]]))


class SavingTest(absltest.TestCase):

  def setUp(self):
    super(SavingTest, self).setUp()
    ids, labels = _data()
    self.given = _columns(ids[:64])
    self.model = _functional()
    self.model.compile(keras.optimizers.Adam(.02), "binary_crossentropy")
    self.model.fit(_columns(ids), labels, batch_size=512, verbose=0)
    self.expected = self.model.predict(self.given, verbose=0).tolist()
    self.folder = self.create_tempdir().full_path

  def test_checkpoint(self):
    path = tf.train.Checkpoint(model=self.model).save(os.path.join(self.folder, "ckpt"))
    other = _functional()
    tf.train.Checkpoint(model=other).restore(path)
    self.assertEqual(self.expected, other.predict(self.given, verbose=0).tolist())

  def test_weights(self):
    # Keras 2.11 has no files that layers write themselves.
    path = os.path.join(self.folder, "w.weights.h5")
    try:
      self.model.save_weights(path)
    except NotImplementedError as e:
      self.assertIn("cannot save a table in an HDF5 file", str(e))
      path = os.path.join(self.folder, "weights")
      self.model.save_weights(path)
    other = _functional()
    other.load_weights(path)
    self.assertEqual(self.expected, other.predict(self.given, verbose=0).tolist())

  def test_a_model_file(self):
    path = os.path.join(self.folder, "model.keras")
    try:
      self.model.save(path)
    except NotImplementedError:
      self.skipTest("this Keras has no files that layers write themselves")
    with keras.utils.custom_object_scope({"Embedding": sok.layers.Embedding}):
      other = keras.models.load_model(path)
    self.assertEqual(self.expected, other.predict(self.given, verbose=0).tolist())


if __name__ == "__main__":
  absltest.main()
