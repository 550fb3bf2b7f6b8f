# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Trains a click model in Keras on TensorFlow 2.x, and shows every way to keep it.

  python examples/train_keras.py

The data is made: clicks depend on a score of each user and of each item, and ids are any
int64. The program needs TensorFlow 2.11 or later, with Keras 2 or Keras 3.
"""

import os
import tempfile

from absl import app
from absl import flags
import numpy as np
import tensorflow as tf

import sparse_operation_kit as sok

FLAGS = flags.FLAGS

flags.DEFINE_integer("samples", 60000, "Samples of the training data.")
flags.DEFINE_integer("users", 2000, "Number of users, and of items.")
flags.DEFINE_integer("epochs", 3, "Passes over the data.")
flags.DEFINE_integer("batch", 512, "Samples per step.")

keras = tf.keras


def make_data(samples, users, seed):
  """Returns (user ids `[N, 1]`, item ids `[N, 1]`, labels `[N]`)."""
  scores = np.random.RandomState(0).normal(size=[2, users])
  random = np.random.RandomState(seed)
  ids = random.randint(0, users, [2, samples])
  chance = 1. / (1. + np.exp(-2. * (scores[0][ids[0]] + scores[1][ids[1]])))
  labels = (random.uniform(size=samples) < chance).astype(np.float32)
  ids = ids * 2 ** 40 - 2 ** 50  # any int64 is an id
  return ids[0][:, np.newaxis], ids[1][:, np.newaxis], labels


def make_model():
  """Returns a model with a table of users and a table of items."""
  users = keras.Input((1,), dtype="int64", name="users")
  items = keras.Input((1,), dtype="int64", name="items")
  rows = sok.layers.Embedding([16, 16], combiner="sum", initializer="uniform",
                              name="tables")([users, items])
  hidden = keras.layers.Dense(32, activation="relu")(keras.layers.Concatenate()(rows))
  model = keras.Model([users, items], keras.layers.Dense(1, activation="sigmoid")(hidden))
  model.compile(keras.optimizers.Adam(0.005), "binary_crossentropy",
                metrics=[keras.metrics.AUC(name="auc")])
  return model


def same(a, b):
  """Returns "the same" for equal arrays; "the same to 1e-6" if only nearly equal."""
  if np.array_equal(a, b):
    return "the same"
  np.testing.assert_allclose(a, b, atol=1e-6)
  return "the same to 1e-6"


def main(unused_argv):
  users, items, labels = make_data(FLAGS.samples, FLAGS.users, seed=1)
  test_users, test_items, test_labels = make_data(10000, FLAGS.users, seed=2)
  model = make_model()
  model.fit([users, items], labels, batch_size=FLAGS.batch, epochs=FLAGS.epochs, verbose=2)
  test = [test_users, test_items]
  auc = model.evaluate(test, test_labels, batch_size=1000, verbose=0)[1]
  print("AUC %.4f on %d samples" % (auc, len(test_labels)))
  for table in model.get_layer("tables").embedding_variables:
    print("table %s: %d rows of %d" % ((table.op.name,) + tuple(table.total_count().numpy())))

  expected = model.predict(test, batch_size=1000, verbose=0)
  with tempfile.TemporaryDirectory() as folder:
    path = tf.train.Checkpoint(model=model).save(os.path.join(folder, "ckpt"))
    restored = make_model()
    tf.train.Checkpoint(model=restored).restore(path).expect_partial()
    print("checkpoint: predictions are",
          same(expected, restored.predict(test, batch_size=1000, verbose=0)))

    served = tf.Module()
    served.model = model
    spec = [tf.TensorSpec([None, 1], tf.int64)] * 2
    served.score = tf.function(lambda u, i: model([u, i]), input_signature=spec)
    tf.saved_model.save(served, os.path.join(folder, "saved"))
    loaded = tf.saved_model.load(os.path.join(folder, "saved"))
    print("SavedModel: predictions are",
          same(expected, loaded.score(tf.constant(test_users),
                                      tf.constant(test_items)).numpy()))
  if FLAGS.samples >= 60000 and auc < .8:
    raise SystemExit("AUC is below 0.8")


if __name__ == "__main__":
  app.run(main)
