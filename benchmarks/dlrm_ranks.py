# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Times DLRM on several ranks. Each rank is a process of this program with its own GPU.

  benchmarks/gpu/run_dlrm.sh            starts it for 1 and 2 GPUs and prints a table
  python benchmarks/dlrm_ranks.py       one rank

Measures three graphs, to separate the costs of a step:

  whole    lookups, DLRM, the gradients of both, Adagrad
  dense    the same with the pooled rows replaced by a constant
  sparse   lookups and their update alone; the loss is the sum of the outputs

The model: 13 numbers through an MLP of 512-256-D, 26 tables, dot products of all pairs,
an MLP of 1024-1024-512-256-1. A variable in CPU memory holds the ids, where an input
pipeline leaves them. With --ids=there the ids are in GPU memory and lookups read them
from it. With --ids=fetched they are in GPU memory too, but TensorFlow copies them to CPU
memory before the lookups. Rank 0 prints one line of JSON for each graph: medians over
steps, of the slowest rank.

On TensorFlow 2.x it builds the same graphs; 2.21 needs TF_USE_LEGACY_KERAS=1.
"""

import json
import os
import time
import warnings

from absl import app
from absl import flags
import numpy as np

# Set before TensorFlow is loaded: each process sees one GPU.
if "HOROVOD_LOCAL_RANK" in os.environ and "CUDA_VISIBLE_DEVICES" not in os.environ:
  os.environ["CUDA_VISIBLE_DEVICES"] = os.environ["HOROVOD_LOCAL_RANK"]

# TensorFlow's generated code triggers NumPy's FutureWarnings.
warnings.simplefilter("ignore", FutureWarning)

import horovod.tensorflow as hvd  # pylint: disable=g-import-not-at-top
import tensorflow as tf

import embedding_variable
from embedding_variable.variables import config_pb2
from sparse_operation_kit import experiment as sok

import defaults
import ids as id_lib
import mixed_precision
import pair_dots
import policies

tf.compat.v1.disable_v2_behavior()

FLAGS = flags.FLAGS

WHOLE, DENSE, SPARSE = GRAPHS = ("whole", "dense", "sparse")

flags.DEFINE_list("graphs", list(GRAPHS), "Which graphs to time.")
flags.DEFINE_string("exchange", "nccl", "Carrier of lookups between ranks.")
flags.DEFINE_string("device", "/gpu:0", "Device of the model.")
flags.DEFINE_enum("storage", "hbm", ["hbm", "dram", "hbm_dram"], "Storage of the rows.")
flags.DEFINE_float("memory_part", .1, "The part of a table's rows that fits in GPU memory, "
                                      "with --storage=hbm_dram.")
flags.DEFINE_enum("ids", "here", ["here", "fetched", "there"],
                  "Memory of the ids: CPU memory (here), the memory of --device (there), "
                  "or the latter with a copy to CPU memory before lookups (fetched).")
flags.DEFINE_list("batch", ["16384"], "Samples per step and rank; several are timed one "
                                      "after another.")
flags.DEFINE_integer("dim", 128, "Floats per row.")
flags.DEFINE_integer("tables", defaults.TABLES, "Number of tables.")
flags.DEFINE_integer("rows", 500 * 1000, "Rows of a table.")
flags.DEFINE_enum("distribution", "zipf", list(defaults.DISTRIBUTIONS),
                  "Distribution of the ids over a table's rows.")
flags.DEFINE_integer("num_batches", 4, "Batches of ids that the steps rotate through.")
flags.DEFINE_integer("steps", 30, "Measured steps.")
flags.DEFINE_integer("warmup_steps", 15, "Steps before the clock starts.")
flags.DEFINE_integer("threads", 0, "Threads that one op may use; 0: TensorFlow's "
                                   "default.")
flags.DEFINE_list("bottom", ["512", "256"], "Widths of the bottom MLP, before D.")
flags.DEFINE_list("top", ["1024", "1024", "512", "256"], "Widths of the top MLP, before 1.")
flags.DEFINE_enum("interaction", "ours", ["ours", "matmul"],
                  "Ops for dot products of pairs: embedding_variable.dot_interaction, "
                  "or TensorFlow's matmul.")
flags.DEFINE_string("trace", "", "File for a Chrome trace of one step of the last graph.")

_NUMBERS = 13

# Collection of the variables that hold the model's input.
_DATA = "benchmark_data"


def _mlp(x, widths, name, last_is_linear=False):
  for i, width in enumerate(widths):
    x = tf.compat.v1.layers.dense(
        x, width, name="%s_%d" % (name, i),
        activation=None if last_is_linear and i + 1 == len(widths) else tf.nn.relu)
  return x


def dlrm(numbers, vectors):
  """Returns the logits `[B]` for numbers `[B, 13]` and a list of vectors `[B, D]`."""
  dim = vectors[0].shape.as_list()[1]
  bottom = _mlp(numbers, [int(w) for w in FLAGS.bottom] + [dim], "bottom")
  vectors = [bottom] + vectors
  if FLAGS.interaction == "ours":
    dots = embedding_variable.dot_interaction(vectors)
  else:
    dots = pair_dots.matmul_dots(tf.stack(vectors, axis=1))
  features = mixed_precision.aligned([bottom, dots])
  top = _mlp(features, [int(w) for w in FLAGS.top] + [1], "top", last_is_linear=True)
  return tf.reshape(top, [-1])


def _data(name, initializer, shape=None):
  """Returns a variable that is not part of the model."""
  return tf.compat.v1.get_variable(
      name, shape, initializer=initializer, trainable=False, use_resource=True,
      collections=[_DATA])


def _lookup(variables, batch_of, samples):
  """Returns the pooled rows of the step's batch, and the variable that holds all ids."""
  workload = defaults.Workload(FLAGS.distribution, 1, FLAGS.dim, tables=FLAGS.tables,
                               batch=samples, rows=FLAGS.rows)
  with tf.device("/cpu:0"):
    all_ids = tf.compat.v1.placeholder(
        tf.int64, [FLAGS.num_batches, FLAGS.tables, samples])
    # tf.slice reads its arguments from CPU memory; computing them there avoids a copy
    # from the GPU.
    begin = tf.stack([batch_of, 0, 0])
  with tf.device("/cpu:0" if FLAGS.ids == "here" else FLAGS.device):
    kept = _data("ids", all_ids)
    # Neither a slice of the first dimension nor its parts are copied.
    batch = tf.slice(kept, begin, [1, FLAGS.tables, samples])[0]
    if FLAGS.ids == "here":
      ids = tf.unstack(batch, num=FLAGS.tables)
    else:
      # TensorFlow 1.15 unstacks int64 in CPU memory only.
      ids = [batch[t] for t in range(FLAGS.tables)]
    splits = tf.constant(np.arange(samples + 1), tf.int64)
  if FLAGS.ids == "fetched":
    with tf.device("/cpu:0"):
      ids, splits = [tf.identity(i) for i in ids], tf.identity(splits)
  features = [tf.RaggedTensor.from_row_splits(i, splits, validate=False) for i in ids]
  outputs = sok.lookup_sparse(variables, features, combiners=["sum"] * FLAGS.tables,
                              **mixed_precision.lookup_options())
  values = id_lib.batches(workload, FLAGS.num_batches, 1 + hvd.rank(),
                          defaults.ZIPF_EXPONENT)
  return outputs, {all_ids: values}


def _storage_option():
  storage_type = config_pb2.StorageType.Value(FLAGS.storage.upper())
  if FLAGS.storage != "hbm_dram":
    return tf.StorageOption(storage_type=storage_type)
  # A value and Adagrad's slot.
  row_bytes = 2 * 4 * FLAGS.dim
  return tf.StorageOption(storage_type=storage_type,
                          storage_size=[int(FLAGS.memory_part * FLAGS.rows) * row_bytes],
                          cache_strategy=config_pb2.CacheStrategy.LFU)


def _tables():
  option = tf.EmbeddingVariableOption(storage_option=_storage_option(),
                                      **policies.options())
  return [
      tf.get_embedding_variable("table_%02d" % t, embedding_dim=FLAGS.dim,
                                initializer=mixed_precision.initial_rows(FLAGS.rows, 1 + t),
                                ev_option=option)
      for t in range(FLAGS.tables)
  ]


def build(graph_name, samples):
  """Builds a graph; returns (train op, loss, placeholder of the batch's number, feeds)."""
  batch_of = tf.compat.v1.placeholder(tf.int32, [])
  feeds = {}
  with tf.device(FLAGS.device):
    if graph_name == DENSE:
      outputs = [
          _data("pooled_%d" % t, tf.random_uniform_initializer(-.1, .1),
                [samples, FLAGS.dim])
          for t in range(FLAGS.tables)
      ]
      outputs = [tf.cast(v, FLAGS.dtype) for v in outputs]
    else:
      outputs, feeds = _lookup(_tables(), batch_of, samples)
    if graph_name == SPARSE:
      loss = tf.add_n([tf.reduce_sum(tf.cast(x, tf.float32)) for x in outputs])
    else:
      numbers = _data("numbers", tf.random_uniform_initializer(0., 1.),
                      [samples, _NUMBERS])
      labels = _data("labels", tf.constant(np.arange(samples) % 2, tf.float32))
      loss = mixed_precision.loss(labels, mixed_precision.logits(dlrm, numbers, outputs))
    optimizer = sok.DistributedOptimizer(mixed_precision.adagrad())
    train = optimizer.minimize(mixed_precision.scaled(loss))
  return train, loss, batch_of, feeds


def _slowest(value):
  """Returns the largest value of all ranks."""
  with tf.Graph().as_default(), _session() as session, tf.device("/cpu:0"):
    number = tf.compat.v1.placeholder(tf.float64, [1])
    return float(np.max(session.run(hvd.allgather(number, name="slowest"),
                                    {number: [value]})))


def _session():
  return tf.compat.v1.Session(config=tf.compat.v1.ConfigProto(
      allow_soft_placement=True,
      gpu_options=tf.compat.v1.GPUOptions(allow_growth=True)))


def measure(graph_name, samples):
  """Returns a dict: ms per step, samples per second of all ranks, loss before and
  after."""
  with tf.Graph().as_default():
    tf.compat.v1.set_random_seed(3)
    train, loss, batch_of, feeds = build(graph_name, samples)
    fill = tf.compat.v1.variables_initializer(tf.compat.v1.get_collection(_DATA))
    times = []
    with _session() as session:
      session.run(tf.compat.v1.global_variables_initializer())
      session.run(fill, feeds)
      session.run(hvd.broadcast_global_variables(0))
      first = session.run(loss, {batch_of: 0})
      for n in range(FLAGS.warmup_steps + FLAGS.steps):
        begin = time.perf_counter()
        # Fetches the loss, to wait for the GPU; enqueueing work alone takes no time.
        session.run([train, loss], {batch_of: n % FLAGS.num_batches})
        times.append(1000. * (time.perf_counter() - begin))
      last = session.run(loss, {batch_of: 0})
      if FLAGS.trace:
        _trace(session, train, {batch_of: 0})
  mixed_precision.check_finite([float(first), float(last)], graph_name)
  ms = _slowest(float(np.median(times[FLAGS.warmup_steps:])))
  return {"graph": graph_name, "ranks": hvd.size(), "batch": samples,
          "exchange": FLAGS.exchange, "ids": FLAGS.ids, "policy": FLAGS.policy,
          "storage": FLAGS.storage, "num_batches": FLAGS.num_batches,
          "distribution": FLAGS.distribution, "row_wise": FLAGS.row_wise,
          "interaction": FLAGS.interaction, "dtype": FLAGS.dtype, "step_ms": round(ms, 3),
          "samples_per_second": round(samples * hvd.size() / ms * 1000.),
          "loss": [float(first), float(last)]}


def _trace(session, train, feed):
  from tensorflow.python.client import timeline  # pylint: disable=g-import-not-at-top
  metadata = tf.compat.v1.RunMetadata()
  session.run(train, feed, run_metadata=metadata, options=tf.compat.v1.RunOptions(
      trace_level=tf.compat.v1.RunOptions.FULL_TRACE))
  if hvd.rank() == 0:
    with open(FLAGS.trace, "w") as f:
      f.write(timeline.Timeline(metadata.step_stats).generate_chrome_trace_format())


def main(argv):
  if len(argv) > 1:
    raise app.UsageError("unexpected arguments: %s" % " ".join(argv[1:]))
  hvd.init()
  sok.init(exchange=FLAGS.exchange if hvd.size() > 1 else None,
           intra_op_parallelism_threads=FLAGS.threads or None)
  for samples in FLAGS.batch:
    for graph_name in FLAGS.graphs:
      result = measure(graph_name, int(samples))
      if hvd.rank() == 0:
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
  app.run(main)
