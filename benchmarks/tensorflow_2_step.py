# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Measures one training step in a graph, in a tf.function and in eager execution.

  .build/tf-2.15/bin/python benchmarks/tensorflow_2_step.py

26 tables, 4096 samples with an id each (Zipf 1.05), Adagrad; every step reads its ids from
a tf.data.Dataset. On TensorFlow 1.15 only the graph is measured. "Without tables" is the
time of the rest of a step: reading ids, dense layers and their gradients. It runs with an
installed wheel. The modes take turns; each prints the median and the best step in
milliseconds. With --device=/gpu:0 --storage=hbm, rows and model are on a GPU, and ids are
in CPU memory.
"""

import time

from absl import app
from absl import flags
import numpy as np
import tensorflow as tf

import embedding_variable as ev
from embedding_variable.variables import config_pb2
import sparse_operation_kit as sok

import defaults
import ids as id_lib

FLAGS = flags.FLAGS

flags.DEFINE_integer("tables", 26, "Number of tables.")
flags.DEFINE_integer("batch", 4096, "Samples per step.")
flags.DEFINE_integer("dim", 16, "Floats per row.")
flags.DEFINE_integer("rows", defaults.ZIPF_ROWS, "Different ids of a table.")
flags.DEFINE_string("device", "/cpu:0", "Device of the tables and of the model.")
flags.DEFINE_enum("storage", "dram", ["dram", "hbm"], "Storage of the rows.")
flags.DEFINE_integer("rounds", 5, "Turns of each mode.")
flags.DEFINE_integer("steps", 60, "Steps per turn.")

v1 = tf.compat.v1


def _dataset(ids):
  """Returns a Dataset of tuples with a tensor of each table's ids."""
  return tf.data.Dataset.from_tensors(tuple(ids)).repeat().prefetch(2)


def _sparse(ids):
  """Returns a SparseTensor with an id per sample for each of several tensors."""
  rows = np.stack([np.arange(FLAGS.batch), np.zeros(FLAGS.batch)], 1).astype(np.int64)
  with tf.device("/cpu:0"):
    return [tf.SparseTensor(rows, values, [FLAGS.batch, 1]) for values in ids]


def _tables():
  option = ev.EmbeddingVariableOption(storage_option=ev.StorageOption(
      storage_type=config_pb2.StorageType.Value(FLAGS.storage.upper())))
  return [ev.get_embedding_variable("t%d" % t, FLAGS.dim, ev_option=option)
          for t in range(FLAGS.tables)]


def _pooled(tables, ids):
  return sok.lookup_sparse(tables, _sparse(ids), combiners=["sum"] * len(tables))


def _loss(pooled, weight):
  return tf.reduce_mean(tf.nn.softplus(tf.matmul(tf.concat(pooled, 1), weight)))


def _weight():
  return np.full([FLAGS.tables * FLAGS.dim, 1], .01, np.float32)


def _graph(ids):
  """Returns a function that runs a step in a session."""
  with tf.Graph().as_default(), tf.device(FLAGS.device):
    tables = _tables()
    weight = v1.get_variable("weight", initializer=_weight(), use_resource=True)
    with tf.device("/cpu:0"):
      batch = v1.data.make_one_shot_iterator(_dataset(ids)).get_next()
    loss = _loss(_pooled(tables, batch), weight)
    train = v1.train.AdagradOptimizer(.1).minimize(loss)
    session = v1.Session(config=v1.ConfigProto(
        allow_soft_placement=True, gpu_options=v1.GPUOptions(allow_growth=True)))
    session.run(v1.global_variables_initializer())
  return lambda: session.run([loss, train])


def _eager(ids, wrap):
  """Returns a function that runs a step by a tape."""
  with tf.device(FLAGS.device):
    tables, weight = _tables(), tf.Variable(_weight())
  batches = iter(_dataset(ids))
  optimizer = v1.train.AdagradOptimizer(.1)

  def step():
    variables = tables + [weight]
    with tf.device(FLAGS.device):
      with tf.GradientTape() as tape:
        loss = _loss(_pooled(tables, next(batches)), weight)
      optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
    return loss

  step = wrap(step)
  return lambda: float(step())


def _without_tables(ids):
  """Returns a function that reads ids and runs the model, with constant outputs of tables."""
  with tf.device(FLAGS.device):
    pooled = [tf.random.normal([FLAGS.batch, FLAGS.dim]) for _ in range(FLAGS.tables)]
    weight = tf.Variable(_weight())
  batches = iter(_dataset(ids))
  optimizer = v1.train.AdagradOptimizer(.1)

  @tf.function
  def step():
    read = next(batches)
    with tf.device(FLAGS.device):
      with tf.GradientTape() as tape:
        outputs = [tf.identity(p) for p in pooled]
        tape.watch(outputs)
        loss = _loss(outputs, weight)
      grads = tape.gradient(loss, outputs + [weight])
      optimizer.apply_gradients([(grads.pop(), weight)])
    # Returns an element of each, because TensorFlow drops ops whose results are not used.
    return loss, [g[0, 0] for g in grads], [ids[0] for ids in read]

  return lambda: float(step()[0])


def main(unused_argv):
  ids = id_lib.draw(np.random.RandomState(1), "zipf", FLAGS.rows,
                    [FLAGS.tables, FLAGS.batch], defaults.ZIPF_EXPONENT)
  modes = {"graph": _graph(ids)}
  if tf.executing_eagerly():
    modes["tf.function"] = _eager(ids, tf.function)
    modes["eager"] = _eager(ids, lambda step: step)
    modes["tf.function without tables"] = _without_tables(ids)
  times = {name: [] for name in modes}
  for _ in range(FLAGS.rounds):
    for name, step in modes.items():
      for _ in range(10):
        step()
      for _ in range(FLAGS.steps):
        begin = time.time()
        step()
        times[name].append(1e3 * (time.time() - begin))
  for name, found in times.items():
    print("TensorFlow %s, %s: median %.2f ms, best %.2f ms" %
          (tf.__version__, name, np.median(found), min(found)))


if __name__ == "__main__":
  app.run(main)
