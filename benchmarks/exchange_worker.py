# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Measures training steps over ranks. Each rank is a process of this program.

`benchmarks/exchange.py` starts it under Horovod. Rank 0 prints one line of JSON.
"""

import json
import resource
import time
import warnings

from absl import app
from absl import flags
import numpy as np

# TensorFlow's generated code triggers NumPy's FutureWarnings.
warnings.simplefilter("ignore", FutureWarning)

import horovod.tensorflow as hvd  # pylint: disable=g-import-not-at-top
import tensorflow as tf

import embedding_variable
from embedding_variable.variables import config_pb2
from sparse_operation_kit.exchange import spread_lookup
import sparse_operation_kit as sok

import defaults
import ids as id_lib

FLAGS = flags.FLAGS

NAIVE = "naive"

flags.DEFINE_enum("variant", "sok", ["sok", NAIVE], "Kind of lookup.")
flags.DEFINE_string("dtype", "float32", "Type of rows between ranks.")
flags.DEFINE_string("exchange", "horovod", "Carrier of lookups between ranks.")
flags.DEFINE_enum("storage", "dram", ["dram", "hbm"], "Storage of the rows.")
flags.DEFINE_integer("threads", 0, "Threads that one op may use; 0: TensorFlow's "
                                   "default.")
flags.DEFINE_integer("hotness", 1, "Ids per sample and table.")
flags.DEFINE_integer("dim", 16, "Floats per row.")
flags.DEFINE_integer("tables", defaults.TABLES, "Number of tables.")
flags.DEFINE_integer("batch", 2048, "Samples per step and rank.")
flags.DEFINE_integer("steps", 30, "Measured steps.")
flags.DEFINE_integer("warmup_steps", 8, "Steps before the clock starts.")
flags.DEFINE_integer("profiled_steps", 0, "Steps after the measured ones whose ops rank"
                                          " 0 prints.")

_ROWS = 200 * 1000
_NUM_BATCHES = 4


def naive_lookup(variables, ids, hotness):
  """Looks up by gathering all keys on all ranks and sending partial sums.

  Args:
    variables: list of T embedding variables; key k is on rank k % W.
    ids: int64 `[T, B * hotness]`.
    hotness: ids per sample.

  Returns:
    (outputs, bytes): float32 `[B, T * dim]`, and the number of bytes that a rank sends to
    others in a step, forward and backward.
  """
  ranks, batch = hvd.size(), ids.shape.as_list()[1] // hotness
  lengths = tf.fill([len(variables) * batch], tf.constant(hotness, tf.int64))
  # Adding a value that depends on the input keeps Grappler from folding the lengths, so
  # that they are sent in every step.
  lengths += tf.reduce_min(ids[:, :1]) * 0
  all_ids = hvd.allgather(tf.reshape(ids, [-1]), name="naive/keys")
  all_lengths = hvd.allgather(lengths, name="naive/lengths")
  all_ids = tf.reshape(all_ids, [ranks, len(variables), batch * hotness])
  all_lengths = tf.reshape(all_lengths, [ranks, len(variables), batch])
  features = []
  for t in range(len(variables)):
    keys = tf.reshape(all_ids[:, t], [-1])
    samples = tf.repeat(tf.range(ranks * batch, dtype=tf.int64),
                        tf.reshape(all_lengths[:, t], [-1]))
    mine = tf.equal(keys % ranks, hvd.rank())
    kept = tf.boolean_mask(samples, mine)
    features.append(tf.SparseTensor(
        tf.stack([kept, tf.zeros_like(kept)], 1), tf.boolean_mask(keys, mine),
        [ranks * batch, 1]))
  partial = embedding_variable.lookup_sparse(
      variables, features, combiners=["sum"] * len(variables))
  partial = tf.concat(partial, axis=1)
  width = partial.shape.as_list()[1]
  received, _ = hvd.alltoall(partial, splits=tf.constant([batch] * ranks, tf.int32),
                             name="naive/rows")
  outputs = tf.reduce_sum(tf.reshape(received, [ranks, batch, width]), axis=0)
  keys = 8 * len(variables) * batch * (hotness + 1)
  return outputs, (ranks - 1) * (keys + 2 * 4 * batch * width)


def sok_lookup(variables, ids, hotness):
  """Looks up by sok.lookup_sparse; like `naive_lookup`, but bytes is a function.

  It returns a tensor to fetch and may be called once the gradient has been built.
  """
  batch = ids.shape.as_list()[1] // hotness
  splits = tf.range(0, batch * hotness + 1, hotness, dtype=tf.int64)
  features = [tf.RaggedTensor.from_row_splits(ids[t], splits, validate=False)
              for t in range(len(variables))]
  outputs = tf.concat(sok.lookup_sparse(
      variables, features, combiners=["sum"] * len(variables)), axis=1)

  def sent():
    parts = []
    for call in spread_lookup.exchanges():
      width = 4 if call.wire == "float32" else 2
      parts += [(call.key_splits, 8), (call.row_splits, width)]
      parts += [(grads, width) for grads in call.grad_splits]
    return tf.add_n([
        size * (tf.reduce_sum(tf.cast(s, tf.int64)) - tf.cast(s[hvd.rank()], tf.int64))
        for s, size in parts
    ])

  return outputs, sent


def profile(session, train, feeds):
  """Prints the ops of rank 0 that took at least 0.1 ms, with ms from the step's start.

  A traced step is slower than an untraced one; only the order and overlap of ops matter.
  """
  options = tf.compat.v1.RunOptions(trace_level=tf.compat.v1.RunOptions.FULL_TRACE)
  for feed in feeds:
    metadata = tf.compat.v1.RunMetadata()
    begin = time.perf_counter()
    session.run(train, feed, options=options, run_metadata=metadata)
    took = 1000. * (time.perf_counter() - begin)
    if hvd.rank():
      continue
    ops = [(op.all_start_micros + op.op_start_rel_micros,
            op.all_start_micros + op.op_end_rel_micros, op.node_name)
           for device in metadata.step_stats.dev_stats for op in device.node_stats]
    first = min(start for start, _, _ in ops)
    print("step of %.1f ms, %d ops" % (took, len(ops)))
    for start, end, name in sorted(ops):
      if end - start >= 100:
        print("  %8.2f to %8.2f: %8.2f  %s" % (
            (start - first) / 1000., (end - first) / 1000., (end - start) / 1000., name))


def measure():
  """Measures a training step. Returns a dict.

  step_ms (median), bytes (mean over ranks and steps) and loss. Of this process: core_ms
  (mean processor time), system_ms (the kernel's share of it), and page_faults (mean).
  """
  workload = defaults.Workload(
      "zipf", FLAGS.hotness, FLAGS.dim, tables=FLAGS.tables, batch=FLAGS.batch,
      rows=_ROWS)
  batches = id_lib.batches(workload, _NUM_BATCHES, 1 + hvd.rank(),
                           defaults.ZIPF_EXPONENT)
  option = tf.EmbeddingVariableOption(storage_option=tf.StorageOption(
      storage_type=config_pb2.StorageType.Value(FLAGS.storage.upper())))
  variables = [
      tf.get_embedding_variable("table_%02d" % t, embedding_dim=FLAGS.dim,
                                initializer=tf.ones_initializer(), ev_option=option)
      for t in range(FLAGS.tables)
  ]
  ids = tf.compat.v1.placeholder(
      tf.int64, [FLAGS.tables, FLAGS.batch * FLAGS.hotness])
  lookup = naive_lookup if FLAGS.variant == NAIVE else sok_lookup
  outputs, sent = lookup(variables, ids, FLAGS.hotness)
  loss = 2. * tf.reduce_sum(outputs)
  train = tf.compat.v1.train.AdagradOptimizer(defaults.LEARNING_RATE).minimize(loss)
  if callable(sent):
    # A single rank exchanges nothing.
    sent = sent() if hvd.size() > 1 else 0
  times, sizes = [], []
  usage = None
  with tf.compat.v1.Session() as session:
    session.run(tf.compat.v1.global_variables_initializer())
    for step in range(FLAGS.warmup_steps + FLAGS.steps):
      feed = {ids: batches[step % _NUM_BATCHES]}
      if step == FLAGS.warmup_steps:
        usage = resource.getrusage(resource.RUSAGE_SELF)
      begin = time.perf_counter()
      # Fetches the loss, to wait for the GPU; enqueueing work alone takes no time.
      session.run([train, loss], feed)
      if step >= FLAGS.warmup_steps:
        times.append(1000. * (time.perf_counter() - begin))
    usage = [b - a for a, b in zip(usage, resource.getrusage(resource.RUSAGE_SELF))]
    profile(session, train, [{ids: batches[step % _NUM_BATCHES]}
                             for step in range(FLAGS.profiled_steps)])
    for batch in batches:
      sizes.append(session.run([tf.constant(sent) if isinstance(sent, int) else sent,
                                train, loss], {ids: batch})[0])
    value = session.run(loss, {ids: batches[0]})
  mean = np.array([np.mean(sizes)])
  with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    number = tf.compat.v1.placeholder(tf.float64, [1])
    mean = session.run(hvd.allreduce(number, op=hvd.Average, name="bytes"),
                       {number: mean})
  user, system, faults = usage[0], usage[1], usage[6]  # fields of getrusage
  return {"step_ms": float(np.median(times)), "bytes": float(mean[0]),
          "loss": float(value), "core_ms": 1000. * (user + system) / FLAGS.steps,
          "system_ms": 1000. * system / FLAGS.steps,
          "page_faults": float(faults) / FLAGS.steps}


def main(argv):
  if len(argv) > 1:
    raise app.UsageError("unexpected arguments: %s" % " ".join(argv[1:]))
  hvd.init()
  sok.init(exchange=FLAGS.exchange, exchange_dtype=FLAGS.dtype,
           intra_op_parallelism_threads=FLAGS.threads or None)
  result = measure()
  if hvd.rank() == 0:
    print(json.dumps(result))


if __name__ == "__main__":
  app.run(main)
