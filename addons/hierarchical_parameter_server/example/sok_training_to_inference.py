# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Train a model with SparseOperationKit, dump its tables, serve them.

  python sok_training_to_inference.py --folder=served

The serving part needs neither sparse_operation_kit nor embedding_variable.
"""

import json
import os

from absl import app
from absl import flags
import numpy as np
import tensorflow as tf

import hierarchical_parameter_server as hps
from hierarchical_parameter_server import convert
import sparse_operation_kit as sok

FLAGS = flags.FLAGS
flags.DEFINE_string("folder", "served", "Where everything is written.")
flags.DEFINE_integer("steps", 50, "Training steps.", lower_bound=1)

# Width of the rows of each table.
_WIDTHS = (8, 8, 16)
_SLOTS = 3  # ids per sample in each table


def dense_part(tables):
  """Applies the layers above the tables' rows, [B, slots, width] each."""
  flat = tf.concat([tf.reshape(rows, [-1, _SLOTS * width])
                    for rows, width in zip(tables, _WIDTHS)], 1)
  return tf.layers.dense(tf.layers.dense(flat, 16, tf.nn.relu, name="hidden"), 1,
                         name="score")


def train(folder):
  """Trains; returns the dense layers' checkpoint, a batch and its predictions."""
  random = np.random.RandomState(2)
  with tf.Graph().as_default():
    ids = [tf.compat.v1.placeholder(tf.int64, [None, _SLOTS]) for _ in _WIDTHS]
    variables = [tf.get_embedding_variable("table%d" % t, embedding_dim=width)
                 for t, width in enumerate(_WIDTHS)]
    scores = dense_part([tf.nn.embedding_lookup(v, i) for v, i in zip(variables, ids)])
    labels = tf.compat.v1.placeholder(tf.float32, [None, 1])
    loss = tf.compat.v1.losses.sigmoid_cross_entropy(labels, scores)
    step = tf.compat.v1.train.AdagradOptimizer(0.05).minimize(loss)
    with tf.compat.v1.Session() as session:
      session.run(tf.compat.v1.global_variables_initializer())
      for _ in range(FLAGS.steps):
        # Any int64 is a valid id.
        batch = [random.randint(-10**12, 10**12, [32, _SLOTS]) for _ in ids]
        feed = dict(zip(ids, batch))
        feed[labels] = (batch[0][:, :1] % 2).astype(np.float32)
        session.run(step, feed)
      expected = session.run(scores, dict(zip(ids, batch)))
      sok.dump(os.path.join(folder, "dump"), variables, session=session)
      dense = [v for v in tf.compat.v1.trainable_variables() if "table" not in v.name]
      path = tf.compat.v1.train.Saver(dense).save(
          session, os.path.join(folder, "dense.ckpt"))
  return path, batch, expected


def main(argv):
  del argv
  os.makedirs(FLAGS.folder, exist_ok=True)
  checkpoint, batch, expected = train(FLAGS.folder)
  tables = os.path.join(FLAGS.folder, "tables")
  written = convert.from_sok_dump(os.path.join(FLAGS.folder, "dump"), tables)
  print("tables: %s" % written)
  names = sorted(written)
  config = os.path.join(FLAGS.folder, "ps.json")
  with open(config, "w") as f:
    json.dump({
        "supportlonglong": True,
        "models": [{
            "model": "dlrm",
            "sparse_files": ["tables/" + name for name in names],
            "embedding_table_names": names,
            "embedding_vecsize_per_table": [written[name][1] for name in names],
            "maxnum_catfeature_query_per_table_per_sample": [_SLOTS] * len(names),
            "default_value_for_each_table": [0.0] * len(names),
            "deployed_device_list": [0],
            "max_batch_size": 1024,
        }],
        # Rows stay in the files, shared with other processes on this machine.
        "volatile_db": {"type": "multi_process_hash_map"},
    }, f, indent=2)
  with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    ids = [tf.compat.v1.placeholder(tf.int64, [None, _SLOTS]) for _ in _WIDTHS]
    rows = [hps.LookupLayer("dlrm", t, width, tf.float32, config, 1024)(ids[t])
            for t, width in enumerate(_WIDTHS)]
    scores = dense_part(rows)
    tf.compat.v1.train.Saver().restore(session, checkpoint)
    served = session.run(scores, dict(zip(ids, batch)))
  difference = np.abs(served - expected).max()
  print("largest difference between training and serving: %g" % difference)
  if difference > 1e-6:
    raise SystemExit("predictions differ")


if __name__ == "__main__":
  app.run(main)
