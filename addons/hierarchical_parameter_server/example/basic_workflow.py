# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Train with plain TensorFlow, convert the table, serve it from a saved model.

  python basic_workflow.py --folder=served

Also shows sparse features with a combiner, two tables, and how the dense layers'
weights are restored from the training's checkpoint without its tables.
"""

import json
import os

from absl import app
from absl import flags
import numpy as np
import tensorflow as tf

import hierarchical_parameter_server as hps
from hierarchical_parameter_server import convert

FLAGS = flags.FLAGS
flags.DEFINE_string("folder", "served", "Where everything is written.")
flags.DEFINE_integer("steps", 100, "Training steps.", lower_bound=1)

_USERS, _TAGS, _DIM = 1000, 300, 8


def dense_part(user_rows, tag_rows):
  """Applies the layers above the tables; the same in training and serving."""
  hidden = tf.concat([user_rows, tag_rows], 1)
  hidden = tf.layers.dense(hidden, 16, tf.nn.relu, name="hidden")
  return tf.layers.dense(hidden, 1, name="score")


def some_batch(random, size=64):
  """Returns (user ids [B], tags of each as a SparseTensorValue, labels [B, 1])."""
  users = random.randint(0, _USERS, size)
  counts = random.randint(0, 4, size)  # some samples have no tag
  indices = [[b, k] for b, count in enumerate(counts) for k in range(count)]
  tags = tf.SparseTensorValue(
      np.reshape(np.array(indices, np.int64), [-1, 2]),
      random.randint(0, _TAGS, counts.sum()).astype(np.int64), [size, 4])
  return users, tags, (users % 2)[:, None].astype(np.float32)


def train(folder):
  """Trains; returns the checkpoint, a batch and its predictions."""
  random = np.random.RandomState(1)
  with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    users = tf.compat.v1.placeholder(tf.int64, [None])
    tags = tf.compat.v1.sparse_placeholder(tf.int64, [None, 4])
    labels = tf.compat.v1.placeholder(tf.float32, [None, 1])
    user_table = tf.compat.v1.get_variable("users", [_USERS, _DIM])
    tag_table = tf.compat.v1.get_variable("tags", [_TAGS, _DIM])
    tag_rows = tf.nn.safe_embedding_lookup_sparse(tag_table, tags, combiner="mean")
    scores = dense_part(tf.nn.embedding_lookup(user_table, users), tag_rows)
    loss = tf.compat.v1.losses.sigmoid_cross_entropy(labels, scores)
    step = tf.compat.v1.train.AdamOptimizer(0.01).minimize(loss)
    session.run(tf.compat.v1.global_variables_initializer())
    for _ in range(FLAGS.steps):
      session.run(step, dict(zip((users, tags, labels), some_batch(random))))
    given = some_batch(random)
    expected = session.run(scores, dict(zip((users, tags), given)))
    path = tf.compat.v1.train.Saver().save(session, os.path.join(folder, "model.ckpt"))
  return path, given, expected


def write_config(folder):
  """Writes the server's configuration with two tables; returns its path."""
  path = os.path.join(folder, "ps.json")
  with open(path, "w") as f:
    json.dump({"models": [{
        "model": "ctr",
        "sparse_files": ["tables/users", "tables/tags"],
        "embedding_table_names": ["users", "tags"],
        "embedding_vecsize_per_table": [_DIM, _DIM],
        "maxnum_catfeature_query_per_table_per_sample": [1, 4],
        "default_value_for_each_table": [0.0, 0.0],
        "deployed_device_list": [0],
        "max_batch_size": 1024,
    }]}, f, indent=2)
  return path


def save_for_serving(folder, config, checkpoint):
  """Builds and saves the serving graph; returns the saved model's folder."""
  saved = os.path.join(folder, "saved")
  with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    users = tf.compat.v1.placeholder(tf.int64, [None], "users")
    tags = tf.compat.v1.sparse_placeholder(tf.int64, [None, 4], "tags")
    user_layer = hps.LookupLayer("ctr", 0, _DIM, tf.float32, config, 1024)
    tag_layer = hps.SparseLookupLayer("ctr", 1, _DIM, tf.float32, config, 1024)
    scores = dense_part(user_layer(users), tag_layer(tags, None, combiner="mean"))
    # All variables of this graph are dense; the checkpoint's tables are not restored.
    tf.compat.v1.train.Saver().restore(session, checkpoint)
    tf.compat.v1.saved_model.simple_save(
        session, saved, {"users": users, "tags": tags}, {"scores": scores})
  return saved


def predict(saved, given):
  """Returns the saved model's scores for a batch."""
  with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    model = tf.compat.v1.saved_model.load(session, ["serve"], saved)
    signature = model.signature_def["serving_default"]
    tags = signature.inputs["tags"].coo_sparse
    users, sparse, _ = given
    return session.run(signature.outputs["scores"].name, {
        signature.inputs["users"].name: users,
        tags.indices_tensor_name: sparse.indices,
        tags.values_tensor_name: sparse.values,
        tags.dense_shape_tensor_name: sparse.dense_shape,
    })


def main(argv):
  del argv
  os.makedirs(FLAGS.folder, exist_ok=True)
  checkpoint, given, expected = train(FLAGS.folder)
  written = convert.from_checkpoint(
      checkpoint, os.path.join(FLAGS.folder, "tables"), [], dense=["users", "tags"])
  print("tables: %s" % written)
  config = write_config(FLAGS.folder)
  saved = save_for_serving(FLAGS.folder, config, checkpoint)
  difference = np.abs(predict(saved, given) - expected).max()
  print("largest difference between training and serving: %g" % difference)
  if difference > 1e-6:
    raise SystemExit("predictions differ")


if __name__ == "__main__":
  app.run(main)
