# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Measures tensorflow_2_step.py's model with TensorFlow Recommenders Addons (TFRA).

  python3.11 -m venv tfra
  tfra/bin/pip install tensorflow-cpu==2.16.2 tf_keras==2.16.0
  tfra/bin/pip install --no-deps tensorflow-recommenders-addons==0.8.1 typeguard
  TF_USE_LEGACY_KERAS=1 tfra/bin/python benchmarks/tfra_step.py

With --device=/gpu:0 the tables are HierarchicalKV's, with all rows in GPU memory. TFRA's
newest wheel for GPUs is 0.7.2, which requires TensorFlow 2.15. There the program must run
without TF_USE_LEGACY_KERAS, whose package is not installed:

  tfra/bin/pip install tensorflow==2.15.1
  tfra/bin/pip install --no-deps tensorflow-recommenders-addons-gpu==0.7.2 typeguard

The tables are TFRA's dynamic embedding variables, the optimizer is Adagrad wrapped in its
DynamicEmbeddingOptimizer, and the step is a tf.function, which TFRA's lookups need shadow
variables for.
Prints the median and the best step in milliseconds.
"""

import time

from absl import app
from absl import flags
import numpy as np
import tensorflow as tf
import tensorflow_recommenders_addons.dynamic_embedding as de

import defaults
import ids as id_lib

FLAGS = flags.FLAGS

flags.DEFINE_integer("tables", defaults.TABLES, "Number of tables.")
flags.DEFINE_integer("batch", defaults.BATCH, "Samples per step.")
flags.DEFINE_integer("dim", 16, "Floats per row.")
flags.DEFINE_integer("rows", defaults.ZIPF_ROWS, "Different ids of a table.")
flags.DEFINE_integer("steps", 60, "Measured steps.")
flags.DEFINE_string("device", "/cpu:0", "Device of the tables and of the model.")
flags.DEFINE_enum("lookup", "unique", ["unique", "plain"],
                  "Whether ids are deduplicated before a table's lookup.")


def _creator():
  """Returns what makes a table's hash table; None: TFRA's default, in CPU memory."""
  if "gpu" not in FLAGS.device.lower():
    return None
  capacity = 1 << (FLAGS.rows - 1).bit_length()
  return de.HkvHashTableCreator(de.HkvHashTableConfig(
      init_capacity=capacity, max_capacity=capacity,
      max_hbm_for_values=4 * FLAGS.dim * capacity))


def _look_up(shadow, ids):
  """Returns the rows [batch, dim] of a table's shadow variable."""
  if FLAGS.lookup == "unique":
    return de.shadow_ops.embedding_lookup_unique(shadow, ids, FLAGS.dim, True)
  return de.shadow_ops.embedding_lookup(shadow, ids)


def main(unused_argv):
  ids = id_lib.draw(np.random.RandomState(1), "zipf", FLAGS.rows,
                    [FLAGS.tables, FLAGS.batch], defaults.ZIPF_EXPONENT)
  ids = [tf.constant(i, tf.int64) for i in ids]
  with tf.device(FLAGS.device):
    tables = [
        de.get_variable("t%d" % t, dim=FLAGS.dim, devices=[FLAGS.device], kv_creator=_creator(),
                        initializer=tf.keras.initializers.RandomNormal(0, .01))
        for t in range(FLAGS.tables)
    ]
    shadows = [de.shadow_ops.ShadowVariable(table, name="shadow_%d" % t)
               for t, table in enumerate(tables)]
    weight = tf.Variable(np.full([FLAGS.tables * FLAGS.dim, 1], .01, np.float32))
  optimizer = de.DynamicEmbeddingOptimizer(tf.keras.optimizers.legacy.Adagrad(.1))

  @tf.function
  def step():
    with tf.device(FLAGS.device):
      with tf.GradientTape() as tape:
        pooled = [_look_up(shadow, i) for shadow, i in zip(shadows, ids)]
        loss = tf.reduce_mean(tf.nn.softplus(tf.matmul(tf.concat(pooled, 1), weight)))
      variables = shadows + [weight]
      optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
    return loss

  losses, times = [], []
  for _ in range(10 + FLAGS.steps):
    begin = time.time()
    losses.append(float(step()))
    times.append(1e3 * (time.time() - begin))
  found = times[10:]
  print("TensorFlow %s, TFRA, %s lookup: median %.2f ms, best %.2f ms, loss %.4f to %.4f" %
        (tf.__version__, FLAGS.lookup, np.median(found), min(found), losses[0], losses[-1]))


if __name__ == "__main__":
  app.run(main)
