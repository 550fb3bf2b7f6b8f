# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The smallest training script with embedding variables and sok.lookup_sparse.

  python demo.py --steps=20 --optimizer=adam

It runs with or without Horovod installed. Everything but the two lines marked
"sok" and the creation of the tables is ordinary TensorFlow 1.15.
"""

from absl import app
from absl import flags
import numpy as np
import tensorflow as tf

try:
  import horovod.tensorflow as hvd
except ImportError:
  hvd = None

from sparse_operation_kit import experiment as sok

FLAGS = flags.FLAGS

flags.DEFINE_integer("steps", 10, "Training steps.", lower_bound=1)
flags.DEFINE_integer("batch_size", 64, "Samples per step.", lower_bound=1)
flags.DEFINE_integer("max_ids", 5, "A sample has up to this many ids per table.",
                     lower_bound=1)
flags.DEFINE_integer("id_space", 1000, "Number of different ids.",
                     lower_bound=1)
flags.DEFINE_list("dims", ["3", "16"], "Row length of each table.")
flags.DEFINE_enum("combiner", "sum", ["sum", "mean"], "How rows are pooled.")
flags.DEFINE_enum("optimizer", "adagrad", ["adagrad", "adam", "sgd"],
                  "A stock optimizer.")
flags.DEFINE_float("learning_rate", 0.1, "Learning rate.")
flags.DEFINE_integer("seed", 0, "Seed of the ids.")


def random_ids(rng):
  """Ids of one table for one batch: SparseTensorValue [batch, max_ids]."""
  lengths = rng.randint(0, FLAGS.max_ids + 1, FLAGS.batch_size)
  samples = np.repeat(np.arange(FLAGS.batch_size), lengths)
  starts = np.cumsum(lengths) - lengths
  places = np.arange(len(samples)) - starts[samples]
  # Any int64 is an id.
  ids = rng.randint(-FLAGS.id_space // 2, FLAGS.id_space // 2, len(samples))
  return tf.compat.v1.SparseTensorValue(
      np.stack([samples, places], axis=1).astype(np.int64), ids.astype(np.int64),
      [FLAGS.batch_size, FLAGS.max_ids])


def main(argv):
  if len(argv) > 1:
    raise app.UsageError("unexpected arguments: %s" % " ".join(argv[1:]))
  tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.INFO)
  if hvd is not None:
    hvd.init()
  sok.init()                                                              # sok

  tables, ids = [], []
  for i, dim in enumerate(FLAGS.dims):
    table = tf.get_embedding_variable(
        "var_%d" % i, embedding_dim=int(dim),
        initializer=tf.ones_initializer(tf.float32))
    table.target_gpu = -1  # spread over all ranks
    tables.append(table)
    ids.append(tf.compat.v1.sparse_placeholder(tf.int64))
  pooled = sok.lookup_sparse(                                             # sok
      tables, ids, combiners=[FLAGS.combiner] * len(tables))
  loss = tf.add_n([tf.reduce_sum(tf.multiply(e, 2.0)) for e in pooled])

  optimizer = {
      "adagrad": tf.compat.v1.train.AdagradOptimizer,
      "adam": tf.compat.v1.train.AdamOptimizer,
      "sgd": tf.compat.v1.train.GradientDescentOptimizer,
  }[FLAGS.optimizer](FLAGS.learning_rate)
  train_op = optimizer.apply_gradients(optimizer.compute_gradients(loss))

  rng = np.random.RandomState(FLAGS.seed)
  with tf.compat.v1.Session() as sess:
    sess.run(tf.compat.v1.global_variables_initializer())
    for step in range(FLAGS.steps):
      feed = {placeholder: random_ids(rng) for placeholder in ids}
      _, loss_value = sess.run([train_op, loss], feed)
      print("step %d: loss %.4f" % (step, loss_value))
    for table, count in zip(tables, sess.run([t.total_count() for t in tables])):
      print("%s has %d rows of %d floats" % (table.op.name, count[0], count[1]))


if __name__ == "__main__":
  app.run(main)
