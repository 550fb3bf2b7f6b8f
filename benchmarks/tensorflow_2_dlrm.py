# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Measures a training step of DLRM in a tf.function of TensorFlow 2.x on one GPU.

  python benchmarks/tensorflow_2_dlrm.py [--xla] [--precision=mixed_bfloat16]

The model is that of dlrm_ranks.py: 13 numbers through an MLP of 512-256-D, 26 tables, dot
products of all pairs, an MLP of 1024-1024-512-256-1, Adagrad everywhere. With --xla the
dense layers are one jit-compiled function, and the lookups are outside of it. With a mixed
precision, products of the dense layers are computed in it; parameters, rows and the loss
are float32. It runs with an installed wheel, and prints the median step in milliseconds,
samples per second, and the losses of the first and of the last step.
"""

import time

from absl import app
from absl import flags
import numpy as np
import tensorflow as tf

import embedding_variable
from embedding_variable.variables import config_pb2
import sparse_operation_kit as sok

import defaults
import ids as id_lib
import pair_dots

FLAGS = flags.FLAGS

flags.DEFINE_string("device", "/gpu:0", "Device of the model.")
flags.DEFINE_enum("storage", "hbm", ["hbm", "dram"], "Storage of the rows.")
flags.DEFINE_bool("xla", False, "Compile the dense layers by XLA.")
flags.DEFINE_enum("precision", "float32",
                  ["float32", "tf32", "mixed_bfloat16", "mixed_float16"],
                  "Number format of the products of dense layers.")
flags.DEFINE_integer("batch", 65536, "Samples per step.")
flags.DEFINE_integer("dim", 128, "Floats per row.")
flags.DEFINE_integer("tables", defaults.TABLES, "Number of tables.")
flags.DEFINE_integer("rows", 500 * 1000, "Rows of a table.")
flags.DEFINE_integer("steps", 40, "Measured steps.")
flags.DEFINE_integer("warmup_steps", 20, "Steps before the clock starts.")
flags.DEFINE_list("bottom", ["512", "256"], "Widths of the bottom MLP, before D.")
flags.DEFINE_list("top", ["1024", "1024", "512", "256"], "Widths of the top MLP, before 1.")

_NUMBERS = 13
_NUM_BATCHES = 4


class Dense(tf.Module):
  """The dense layers; parameters are float32."""

  def __init__(self, compute_type):
    super(Dense, self).__init__()
    self._type = compute_type
    bottom = [_NUMBERS] + [int(w) for w in FLAGS.bottom] + [FLAGS.dim]
    vectors = FLAGS.tables + 1
    pairs = vectors * (vectors - 1) // 2
    top = [FLAGS.dim + pairs] + [int(w) for w in FLAGS.top] + [1]
    self.bottom, self.top = self._parameters(bottom), self._parameters(top)
    self.loss = tf.function(self._loss, jit_compile=FLAGS.xla)

  def _parameters(self, widths):
    random = np.random.RandomState(3)
    layers = []
    for n, m in zip(widths, widths[1:]):
      limit = np.sqrt(6. / (n + m))
      weights = random.uniform(-limit, limit, [n, m]).astype(np.float32)
      layers.append((tf.Variable(weights), tf.Variable(np.zeros(m, np.float32))))
    return layers

  def _mlp(self, x, layers, last_is_linear=False):
    for i, (weights, bias) in enumerate(layers):
      # With `+` the gradients of all biases take 3 ms more per step on an H200.
      x = tf.nn.bias_add(tf.matmul(x, tf.cast(weights, self._type)),
                         tf.cast(bias, self._type))
      if not last_is_linear or i + 1 < len(layers):
        x = tf.nn.relu(x)
    return x

  def _loss(self, numbers, labels, pooled):
    bottom = self._mlp(tf.cast(numbers, self._type), self.bottom)
    vectors = [bottom] + [tf.cast(rows, self._type) for rows in pooled]
    if FLAGS.xla or self._type != tf.float32:
      dots = pair_dots.matmul_dots(tf.stack(vectors, axis=1))
    else:
      dots = embedding_variable.dot_interaction(vectors)
    logits = self._mlp(tf.concat([bottom, dots], axis=1), self.top, last_is_linear=True)
    return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(
        labels=labels, logits=tf.cast(tf.reshape(logits, [-1]), tf.float32)))


def _batches():
  """Returns a list of batches; a batch has the ids of each table, in CPU memory."""
  workload = defaults.Workload("zipf", 1, FLAGS.dim, tables=FLAGS.tables,
                               batch=FLAGS.batch, rows=FLAGS.rows)
  values = id_lib.batches(workload, _NUM_BATCHES, 1, defaults.ZIPF_EXPONENT)
  with tf.device("/cpu:0"):
    return [[tf.constant(ids) for ids in batch] for batch in values]


def _tables():
  option = embedding_variable.EmbeddingVariableOption(
      storage_option=embedding_variable.StorageOption(
          storage_type=config_pb2.StorageType.Value(FLAGS.storage.upper())))
  return [
      embedding_variable.get_embedding_variable(
          "table_%02d" % t, FLAGS.dim, initializer=tf.ones_initializer(),
          ev_option=option)
      for t in range(FLAGS.tables)
  ]


def main(unused_argv):
  if not tf.executing_eagerly():
    raise app.UsageError("this benchmark needs TensorFlow 2.x, got %s" % tf.__version__)
  compute_type = {"mixed_bfloat16": tf.bfloat16, "mixed_float16": tf.float16}.get(
      FLAGS.precision, tf.float32)
  tf.config.experimental.enable_tensor_float_32_execution(FLAGS.precision == "tf32")
  batches = _batches()
  with tf.device("/cpu:0"):
    splits = tf.constant(np.arange(FLAGS.batch + 1), tf.int64)
  with tf.device(FLAGS.device):
    tables, dense = _tables(), Dense(compute_type)
    numbers = tf.random.uniform([FLAGS.batch, _NUMBERS], seed=3)
    labels = tf.constant(np.arange(FLAGS.batch) % 2, tf.float32)
  variables = tables + list(dense.trainable_variables)
  optimizer = tf.compat.v1.train.AdagradOptimizer(defaults.LEARNING_RATE)

  @tf.function
  def step(ids):
    features = [tf.RaggedTensor.from_row_splits(i, splits, validate=False) for i in ids]
    with tf.device(FLAGS.device):
      with tf.GradientTape() as tape:
        pooled = sok.lookup_sparse(tables, features, combiners=["sum"] * len(tables))
        loss = dense.loss(numbers, labels, pooled)
      optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
    return loss

  times, losses = [], []
  for n in range(FLAGS.warmup_steps + FLAGS.steps):
    begin = time.perf_counter()
    # Reads the loss, to wait for the GPU.
    losses.append(float(step(batches[n % _NUM_BATCHES])))
    times.append(1000. * (time.perf_counter() - begin))
  ms = float(np.median(times[FLAGS.warmup_steps:]))
  print("TensorFlow %s, DLRM dim %d, %d samples, %s%s: %.2f ms, %.2f M samples/s, "
        "loss %.4f to %.4f" % (
            tf.__version__, FLAGS.dim, FLAGS.batch, FLAGS.precision,
            " with XLA" if FLAGS.xla else "", ms, FLAGS.batch / ms / 1000., losses[0],
            losses[-1]))


if __name__ == "__main__":
  app.run(main)
