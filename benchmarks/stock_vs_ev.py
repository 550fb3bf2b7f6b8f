# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Measures one training step with dense variables or embedding variables.

One process measures one variant of one workload and prints one line of JSON last, so that
variants do not share memory, threads or caches. `benchmarks/run.py` starts these
processes in turn. To run one alone:

  python benchmarks/stock_vs_ev.py --variant=stock --distribution=zipf \
      --hotness=10 --dim=16

Both sides run the same graph except for the tables and their lookup. A variable of the
graph holds all ids; a step takes a slice of it without a copy. The cost of the slice
alone is measured too ("input"). Every row exists before the clock starts.
"""

import collections
import json
import os
import resource
import time
import warnings

from absl import app
from absl import flags
import numpy as np

# TensorFlow's generated code triggers NumPy's FutureWarnings.
warnings.simplefilter("ignore", FutureWarning)

import tensorflow as tf  # pylint: disable=g-import-not-at-top

import defaults
import ids as id_lib
import policies

FLAGS = flags.FLAGS

flags.DEFINE_enum("variant", defaults.STOCK, defaults.ALL_VARIANTS,
                  "Tables and lookup to measure.")
flags.DEFINE_enum("distribution", "zipf", defaults.DISTRIBUTIONS,
                  "How ids spread over rows.")
flags.DEFINE_integer("hotness", 1, "Ids per sample and table.")
flags.DEFINE_integer("dim", 16, "Floats per row.")
flags.DEFINE_integer("tables", defaults.TABLES, "Number of tables.")
flags.DEFINE_integer("batch", defaults.BATCH, "Samples per step.")
flags.DEFINE_integer("rows", 0, "Rows per table; 0 takes the shared default.")
flags.DEFINE_enum("tower", defaults.SUM_TOWER, defaults.TOWERS, "Dense part.")
flags.DEFINE_integer("warmup_steps", 10, "Steps before the clock starts.")
flags.DEFINE_integer("min_steps", 20, "Minimum number of measured steps.")
flags.DEFINE_float("min_seconds", 5.0, "Minimum measured seconds.")
flags.DEFINE_integer("num_batches", 16, "Batches that the steps rotate through.")
flags.DEFINE_integer("seed", 1, "Seed of the ids.")
flags.DEFINE_integer("threads", 0, "Intra-op threads; 0 lets TensorFlow choose.")
flags.DEFINE_enum("storage", "dram", ("dram", "hbm", "hbm_dram", "ssd"),
                  "Storage of the embedding variables' rows.")
flags.DEFINE_string("device", "", "TensorFlow's device of tables, lookup and dense "
                    "part, as /gpu:0.")
flags.DEFINE_string("ids_device", "/cpu:0", "TensorFlow's device of the ids.")
flags.DEFINE_bool("pinned", False, "Uses pinned memory for tensors in CPU memory if "
                                   "TensorFlow has GPUs "
                                   "(GPUOptions.force_gpu_compatible).")
flags.DEFINE_string("storage_path", "", "Directory of the rows' files, with "
                    "--storage=ssd: one directory in it per table.")
flags.DEFINE_float("memory_part", 0.1, "The part of the rows that fits in memory with "
                                       "--storage=ssd, in GPU memory with hbm_dram.")
flags.DEFINE_string("timeline", "", "Writes one step's Chrome trace here.")

_FILL_ROWS = 50 * 1000


def storage_option(name, workload):
  """Returns the storage options of one table, from the flags."""
  from embedding_variable.variables import config_pb2
  # A value and Adagrad's slot.
  row_bytes = 2 * 4 * workload.dim
  rows_in_memory = int(FLAGS.memory_part * workload.rows_per_table)
  if FLAGS.storage == "hbm_dram":
    return tf.StorageOption(
        storage_type=config_pb2.StorageType.HBM_DRAM,
        storage_size=[rows_in_memory * row_bytes],
        cache_strategy=config_pb2.CacheStrategy.LFU)
  if FLAGS.storage != "ssd":
    return tf.StorageOption(
        storage_type=config_pb2.StorageType.Value(FLAGS.storage.upper()))
  if not FLAGS.storage_path:
    raise app.UsageError("--storage=ssd needs --storage_path")
  # 16 bytes more per row in memory.
  return tf.StorageOption(
      storage_type=config_pb2.StorageType.DRAM_SSDHASH,
      storage_path=os.path.join(FLAGS.storage_path, name),
      storage_size=[rows_in_memory * (row_bytes + 16)],
      cache_strategy=config_pb2.CacheStrategy.LFU)


def table_option(name, workload):
  """Returns the options of one table, from the flags."""
  return tf.EmbeddingVariableOption(storage_option=storage_option(name, workload),
                                    **policies.options())


class Tables(object):
  """The tables of one variant and their lookup."""

  def __init__(self, variant, workload):
    self._variant = variant
    self._workload = workload
    initializer = tf.compat.v1.ones_initializer()
    self.variables = []
    for i in range(workload.tables):
      name = "table_%02d" % i
      if variant in (defaults.EV_SOK, defaults.EV_NN):
        import sparse_operation_kit  # pylint: disable=unused-import
        variable = tf.get_embedding_variable(
            name, embedding_dim=workload.dim, initializer=initializer,
            ev_option=table_option(name, workload))
      else:
        variable = tf.compat.v1.get_variable(
            name, [workload.rows_per_table, workload.dim],
            initializer=initializer,
            use_resource=variant == defaults.RESOURCE)
      self.variables.append(variable)

  @property
  def hashed(self):
    return self._variant in (defaults.EV_SOK, defaults.EV_NN)

  def lookup(self, sp_ids):
    """Pools each table's ids by sum: list of float32 [batch, dim]."""
    if self._variant == defaults.EV_SOK:
      import sparse_operation_kit as sok
      sok.init()
      return sok.lookup_sparse(
          self.variables, sp_ids, combiners=["sum"] * len(sp_ids))
    return [
        tf.nn.embedding_lookup_sparse(v, ids, None, combiner="sum")
        for v, ids in zip(self.variables, sp_ids)
    ]


def _dense(inputs, units, name, activation=tf.nn.relu):
  with tf.compat.v1.variable_scope(name):
    kernel = tf.compat.v1.get_variable("kernel", [inputs.shape[1], units])
    bias = tf.compat.v1.get_variable(
        "bias", [units], initializer=tf.compat.v1.zeros_initializer())
  return activation(tf.matmul(inputs, kernel) + bias)


def dlrm_tower(outputs, batch):
  """DLRM's dense layers: numeric MLP, pairwise dots, top MLP. Returns a loss."""
  dim = outputs[0].shape.as_list()[1]
  numeric = tf.random.stateless_uniform([batch, 13], seed=[1, 2])
  labels = tf.cast(tf.random.stateless_uniform([batch, 1], seed=[3, 4]) < 0.25,
                   tf.float32)
  hidden = _dense(_dense(numeric, 64, "bottom_0"), dim, "bottom_1")
  vectors = tf.stack([hidden] + outputs, axis=1)
  dots = tf.matmul(vectors, vectors, transpose_b=True)
  count = len(outputs) + 1
  lower = [i * count + j for i in range(count) for j in range(i)]
  pairs = tf.gather(tf.reshape(dots, [-1, count * count]), lower, axis=1)
  top = tf.concat([hidden, pairs], axis=1)
  top = _dense(_dense(top, 256, "top_0"), 128, "top_1")
  logits = _dense(top, 1, "logit", tf.identity)
  return tf.reduce_mean(
      tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits))


class StepGraph(object):
  """Input, lookup, loss and update of one workload in the default graph."""

  def __init__(self, variant, workload, num_batches):
    self.workload = workload
    with tf.device(FLAGS.device or None):
      self.tables = Tables(variant, workload)
    flat_ids = self._input(workload, num_batches)
    with tf.device(FLAGS.device or None):
      self._train(workload, flat_ids)

  def _input(self, workload, num_batches):
    """Returns the ids of a step, table by table: list of int64 [batch * hotness]."""
    shape = [num_batches, workload.tables, workload.batch * workload.hotness]
    with tf.device("/cpu:0"):
      self.batches_in = tf.compat.v1.placeholder(tf.int64, shape)
      cursor = tf.compat.v1.get_variable(
          "cursor", [], tf.int64, initializer=tf.compat.v1.zeros_initializer(),
          trainable=False, use_resource=True)
      turn = cursor.assign_add(1, read_value=True) % num_batches
      # tf.slice reads its arguments from CPU memory; computing them there avoids a copy
      # from the GPU.
      begin = tf.stack([turn, 0, 0])
      size = tf.constant([1] + shape[1:], tf.int64)
    with tf.device(FLAGS.ids_device):
      # Slices of a resource variable's value share its buffer.
      self._batches = tf.compat.v1.get_variable(
          "batches", shape, tf.int64, initializer=tf.compat.v1.zeros_initializer(),
          trainable=False, use_resource=True)
      # Fed values are in NumPy's memory. The result of an op is in TensorFlow's memory.
      made = tf.concat([self.batches_in[:1], self.batches_in[1:]], axis=0)
      self.load_batches = self._batches.assign(made)
      batch = tf.slice(self._batches, begin, size)[0]
      if "gpu" in FLAGS.ids_device.lower():
        # TensorFlow 1.15 unstacks int64 in CPU memory only.
        flat_ids = [batch[t] for t in range(shape[1])]
      else:
        flat_ids = tf.unstack(batch)
      # Fetches one element of each: with a group, TensorFlow would prune the rest.
      firsts = [ids[0] for ids in flat_ids]
    with tf.device("/cpu:0"):
      self.input_only = tf.add_n(firsts)
    return flat_ids

  def _train(self, workload, flat_ids):
    """Builds lookup, loss and update."""
    samples = np.repeat(np.arange(workload.batch), workload.hotness)
    places = np.tile(np.arange(workload.hotness), workload.batch)
    with tf.device(FLAGS.ids_device):
      indices = tf.constant(np.stack([samples, places], axis=1), tf.int64)
      dense_shape = tf.constant([workload.batch, workload.hotness], tf.int64)
    sp_ids = [tf.SparseTensor(indices, ids, dense_shape) for ids in flat_ids]
    outputs = self.tables.lookup(sp_ids)
    if workload.tower == defaults.DLRM_TOWER:
      self.loss = dlrm_tower(outputs, workload.batch)
    elif workload.tower == defaults.TOTAL_TOWER:
      self.loss = 2.0 * tf.reduce_sum(tf.add_n(outputs))
    else:
      self.loss = 2.0 * tf.add_n([tf.reduce_sum(o) for o in outputs])
    optimizer = tf.compat.v1.train.AdagradOptimizer(defaults.LEARNING_RATE)
    self.train_op = optimizer.minimize(self.loss)
    if self.tables.hashed:
      # Zero gradients insert keys; under Adagrad they change nothing else.
      self.fill_keys = tf.compat.v1.placeholder(tf.int64, [None])
      zeros = tf.zeros([tf.size(self.fill_keys), workload.dim])
      slices = tf.IndexedSlices(zeros, self.fill_keys)
      self.fill = optimizer.apply_gradients(
          [(slices, v) for v in self.tables.variables])

  def prepare(self, session, batches):
    """Initializes, loads the ids, and creates every row."""
    session.run(tf.compat.v1.global_variables_initializer())
    session.run(self.load_batches.op, {self.batches_in: batches})
    if self.tables.hashed:
      order = np.random.RandomState(0).permutation(self.workload.rows_per_table)
      for begin in range(0, len(order), _FILL_ROWS):
        session.run(self.fill, {self.fill_keys: order[begin:begin + _FILL_ROWS]})


def time_steps(session, fetches, warmup_steps, min_steps, min_seconds):
  """Runs `fetches` repeatedly.

  Returns:
    (seconds of each run, seconds of processor time per run).
  """
  call = session.make_callable(fetches)
  for _ in range(warmup_steps):
    call()
  seconds = []
  cpu_start = time.process_time()
  end = time.perf_counter() + min_seconds
  while len(seconds) < min_steps or time.perf_counter() < end:
    start = time.perf_counter()
    call()
    seconds.append(time.perf_counter() - start)
  return seconds, (time.process_time() - cpu_start) / len(seconds)


def trace(session, fetches):
  """Returns the step statistics (RunMetadata) of one step."""
  metadata = tf.compat.v1.RunMetadata()
  session.run(fetches, run_metadata=metadata, options=tf.compat.v1.RunOptions(
      trace_level=tf.compat.v1.RunOptions.FULL_TRACE))
  return metadata


def time_by_op(session, fetches, steps=5, top=8):
  """Returns the op types that take most of a step's time.

  Times of ops that run in parallel add up to more than the step takes.

  Returns:
    dict of op type to milliseconds per step, the median of some steps.
  """
  graph = session.graph
  rows = collections.defaultdict(lambda: [0.0] * steps)
  for step in range(steps):
    for device in trace(session, fetches).step_stats.dev_stats:
      for node in device.node_stats:
        try:
          kind = graph.get_operation_by_name(node.node_name).type
        except (KeyError, ValueError):
          # Nodes that Grappler and the executor added.
          kind = "other"
        rows[kind][step] += (node.op_end_rel_micros - node.op_start_rel_micros) / 1e3
  medians = sorted(((np.median(v), k) for k, v in rows.items()), reverse=True)
  return collections.OrderedDict((k, round(float(v), 3)) for v, k in medians[:top])


def write_timeline(metadata, path):
  """Writes a trace in the format of chrome://tracing."""
  from tensorflow.python.client import timeline
  with open(path, "w") as f:
    f.write(timeline.Timeline(metadata.step_stats).generate_chrome_trace_format())


def summary(seconds, cpu_seconds):
  """Returns median, quartiles, processor time and count; times in milliseconds."""
  ms = np.asarray(seconds) * 1e3
  low, median, high = np.percentile(ms, [25, 50, 75])
  return {"median_ms": round(median, 3), "q25_ms": round(low, 3),
          "q75_ms": round(high, 3), "cpu_ms": round(cpu_seconds * 1e3, 3),
          "steps": len(seconds)}


def session_config(threads=0):
  """Returns the ConfigProto for --device and --pinned; 0 threads means one per core."""
  config = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=threads,
                                    allow_soft_placement=bool(FLAGS.device))
  config.gpu_options.allow_growth = True
  config.gpu_options.force_gpu_compatible = FLAGS.pinned
  return config


def measure(variant, workload, num_batches, seed, threads, warmup_steps,
            min_steps, min_seconds, timeline_path=""):
  """Measures one variant of one workload.

  Returns:
    dict: "step", "forward" and "input" (each with median_ms, quartiles, steps),
    "net_ms" (step minus input), "op_ms" (see time_by_op), the workload, unique ids
    per step, peak memory and the first and the last loss.
  """
  batches = id_lib.batches(workload, num_batches, seed, defaults.ZIPF_EXPONENT)
  unique = np.mean([len(np.unique(b)) for b in batches[0]])
  with tf.Graph().as_default():
    tf.compat.v1.set_random_seed(seed)
    graph = StepGraph(variant, workload, num_batches)
    with tf.compat.v1.Session(config=session_config(threads)) as session:
      prepare_start = time.perf_counter()
      graph.prepare(session, batches)
      prepare_seconds = time.perf_counter() - prepare_start
      first_loss = float(session.run(graph.loss))
      step = time_steps(session, [graph.train_op, graph.loss],
                        warmup_steps, min_steps, min_seconds)
      last_loss = float(session.run(graph.loss))
      forward = time_steps(session, [graph.loss], 2,
                           max(1, min_steps // 2), min_seconds / 4)
      inputs = time_steps(session, [graph.input_only], 2, min_steps, 0.2)
      ops = time_by_op(session, [graph.train_op, graph.loss])
      if timeline_path:
        write_timeline(trace(session, [graph.train_op, graph.loss]), timeline_path)
  step, forward, inputs = summary(*step), summary(*forward), summary(*inputs)
  return {
      "variant": variant,
      "workload": workload.name,
      "tables": workload.tables,
      "rows_per_table": workload.rows_per_table,
      "batch": workload.batch,
      "unique_ids_per_table": round(float(unique), 1),
      "step": step,
      "forward": forward,
      "input": inputs,
      "op_ms": ops,
      "net_ms": round(step["median_ms"] - inputs["median_ms"], 3),
      "samples_per_second": round(workload.batch / step["median_ms"] * 1e3),
      "prepare_seconds": round(prepare_seconds, 1),
      "peak_rss_gb": round(
          resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 2),
      "first_loss": first_loss,
      "last_loss": last_loss,
  }


def main(argv):
  if len(argv) > 1:
    raise app.UsageError("unexpected arguments: %s" % argv[1:])
  tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)
  workload = defaults.Workload(
      distribution=FLAGS.distribution, hotness=FLAGS.hotness, dim=FLAGS.dim,
      tower=FLAGS.tower, tables=FLAGS.tables, batch=FLAGS.batch,
      rows=FLAGS.rows)
  result = measure(
      FLAGS.variant, workload, FLAGS.num_batches, FLAGS.seed, FLAGS.threads,
      FLAGS.warmup_steps, FLAGS.min_steps, FLAGS.min_seconds, FLAGS.timeline)
  print(json.dumps(result, sort_keys=True))


if __name__ == "__main__":
  app.run(main)
