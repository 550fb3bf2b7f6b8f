# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Compares lookups of a table in host memory with tf.nn.embedding_lookup.

  bazel run //addons/hierarchical_parameter_server/benchmark:lookup_speed

Writes a table of `rows` x `width` to a temporary folder ($TMPDIR) and loads it into a
dense variable and into the server. Both look up the same batches alternately in one
session. The rows stay in the graph: nothing is copied to Python. For each stream and
batch size it prints the median and 99th percentile of both, and the ratio of the
medians (variable to server).

With `--device=gpu` the rows end in GPU memory. It compares the server, whose cache
holds the share `--gpucacheper` of the rows, a variable in GPU memory and a variable in
host memory. It also prints the cache's hit rate, and checks SparseLookupLayer on the
GPU. For a table as in upstream's published times, which needs 50 GB of memory and
minutes to write:

  python lookup_speed.py --device=gpu --rows=32700000 --seconds=1 --ways=cpu

`--check` only compares the rows of all; those of another `--row_type` are near the
variable's.
"""

import json
import os
import shutil
import tempfile
import time

from absl import app
from absl import flags
import numpy as np
import tensorflow as tf

import hierarchical_parameter_server as hps
from hierarchical_parameter_server.commands import profiling

import on_gpu

FLAGS = flags.FLAGS
flags.DEFINE_integer("rows", 10000000, "Rows of the table.", lower_bound=1)
flags.DEFINE_integer("width", 128, "Floats of a row.", lower_bound=1)
flags.DEFINE_list("batches", ["32", "256", "1024", "4096", "16384", "65536", "131072"],
                  "Ids of a lookup.")
flags.DEFINE_list("streams", ["repeated", "zipf1.05", "zipf1.2", "uniform"], "Streams.")
flags.DEFINE_string("type", "parallel_hash_map", "volatile_db.type.")
flags.DEFINE_enum("row_type", "float32", ["float32", "float16", "uint8"],
                  "row_type_per_table: how the server stores rows.")
flags.DEFINE_float("seconds", 2., "Time for each way, stream and batch.")
flags.DEFINE_integer("threads", 0, "intra_op_parallelism_threads; 0: TensorFlow decides.")
flags.DEFINE_enum("device", "cpu", ["cpu", "gpu"], "Where rows end.")
flags.DEFINE_float("gpucacheper", .2, "Share of the rows that the cache on a GPU has.")
flags.DEFINE_bool("ids_on_gpu", False, "With --device=gpu: ids are in its memory, too.")
flags.DEFINE_list("ways", ["gpu", "cpu"],
                  "With --device=gpu: where variables are that are measured beside.")
flags.DEFINE_bool("soft_placement", False,
                  "With --device=gpu, for the test device: TensorFlow moves ops that it has no "
                  "kernels for, and rows are fetched.")
flags.DEFINE_bool("check", False, "Compare rows; measure nothing.")

# Rows written and assigned at once.
_PIECE = 250000


def write_table(folder, rows, width):
  """Writes the table: random floats for the keys 0 to rows - 1."""
  os.makedirs(folder)
  random = np.random.default_rng(1)
  with open(os.path.join(folder, "key"), "wb") as f:
    np.arange(rows, dtype="<i8").tofile(f)
  with open(os.path.join(folder, "emb_vector"), "wb") as f:
    for begin in range(0, rows, _PIECE):
      count = min(_PIECE, rows - begin)
      random.random((count, width), dtype="<f4").tofile(f)


def write_config(folder, width, most, kind, **more):
  """Writes the configuration with additional keys for the model; returns its path."""
  path = os.path.join(folder, "ps.json")
  with open(path, "w") as f:
    json.dump({
        "models": [dict({
            "model": "m", "sparse_files": ["t"], "embedding_vecsize_per_table": [width],
            "maxnum_catfeature_query_per_table_per_sample": [1],
            "default_value_for_each_table": [0.], "deployed_device_list": [0],
            "row_type_per_table": [FLAGS.row_type], "max_batch_size": most}, **more)],
        "volatile_db": {"type": kind}}, f)
  return path


def stream_batches(stream, keys, batch):
  """Returns batches of a stream: "zipf1.2", "uniform" or "repeated"."""
  kind = "zipf" if stream.startswith("zipf") else stream
  exponent = float(stream[4:]) if kind == "zipf" else 0.
  return profiling.batches(kind, keys, batch, exponent, seed=5)


def measure(calls, batches, seconds):
  """Returns the seconds of each call, a list per implementation; they run alternately.
  """
  took = [[] for _ in calls]
  for call in calls:
    for batch in batches[:8]:
      call(batch)
  end = time.perf_counter() + seconds * len(calls)
  turn = 0
  while time.perf_counter() < end or len(took[0]) < 20:
    # Runs ten calls of each in turn, so that neither always inherits the other's
    # caches.
    for way, call in enumerate(calls):
      for i in range(10):
        batch = batches[(turn * 10 + i) % len(batches)]
        begin = time.perf_counter()
        call(batch)
        took[way].append(time.perf_counter() - begin)
    turn += 1
  return took


def main(argv):
  del argv
  if FLAGS.device == "gpu" and FLAGS.row_type != "float32":
    raise app.UsageError("--row_type: expected float32 with --device=gpu; cache_benchmark "
                         "measures the other types there")
  folder = tempfile.mkdtemp()
  try:
    table = os.path.join(folder, "t")
    write_table(table, FLAGS.rows, FLAGS.width)
    sizes = [int(b) for b in FLAGS.batches]
    if FLAGS.device == "gpu":
      config = write_config(folder, FLAGS.width, max(sizes + [100]), FLAGS.type,
                            gpucache=True, gpucacheper=FLAGS.gpucacheper)
      on_gpu.run(table, config, sizes, FLAGS, measure)
      return
    config = write_config(folder, FLAGS.width, max(sizes), FLAGS.type)
    session_config = tf.compat.v1.ConfigProto(
        intra_op_parallelism_threads=FLAGS.threads, device_count={"GPU": 0})
    with tf.Graph().as_default(), tf.compat.v1.Session(config=session_config) as session:
      variable = tf.compat.v1.get_variable(
          "table", [FLAGS.rows, FLAGS.width], initializer=tf.zeros_initializer())
      session.run(variable.initializer)
      source = np.memmap(os.path.join(table, "emb_vector"), "<f4", "r",
                         shape=(FLAGS.rows, FLAGS.width))
      at = tf.compat.v1.placeholder(tf.int32, [])
      piece = tf.compat.v1.placeholder(tf.float32, [None, FLAGS.width])
      assign = variable[at:at + tf.shape(piece)[0]].assign(piece).op
      for begin in range(0, FLAGS.rows, _PIECE):
        session.run(assign, {at: begin, piece: source[begin:begin + _PIECE]})
      ids = tf.compat.v1.placeholder(tf.int64, [None])
      stock = tf.nn.embedding_lookup(variable, ids)
      begin = time.time()
      hps.start(config)
      print("%d x %d, %s, started in %.2f s" %
            (FLAGS.rows, FLAGS.width, FLAGS.type, time.time() - begin))
      ours = hps.LookupLayer("m", 0, FLAGS.width, tf.float32)(ids)
      sample = np.random.RandomState(2).randint(0, FLAGS.rows, min(sizes[-1], 10000))
      # Starts again like another process, which finds the index that the first start
      # wrote.
      hps.stop()
      begin = time.time()
      hps.start(config)
      session.run(ours.op, {ids: sample[:32]})
      print("started again, and answered 32 ids, in %.3f s" % (time.time() - begin))
      # Rows of numbers from 0 to 1.
      np.testing.assert_allclose(*session.run([stock, ours], {ids: sample}), rtol=0,
                                 atol=0 if FLAGS.row_type == "float32" else .0021)
      if FLAGS.check:
        print("the same rows")
        return
      host_bytes = hps.metrics()["models"][0]["tables"][0]["volatile"]["host_bytes"]
      print("%.1f bytes of memory per row" % (host_bytes / FLAGS.rows))
      # Runs operations, so that the rows are not fetched.
      calls = [session.make_callable(way.op, [ids]) for way in (stock, ours)]
      print("%-10s %7s  %22s  %22s  %s" % (
          "stream", "batch", "variable p50/p99 us", "server p50/p99 us", "ratio"))
      keys = np.arange(FLAGS.rows)
      for stream in FLAGS.streams:
        for size in sizes:
          took = measure(calls, stream_batches(stream, keys, size), FLAGS.seconds)
          values = [1e6 * np.percentile(t, [50, 99]) for t in took]
          print("%-10s %7d  %10.1f %11.1f  %10.1f %11.1f  %.2f" % (
              stream, size, values[0][0], values[0][1], values[1][0], values[1][1],
              values[0][0] / values[1][0]), flush=True)
  finally:
    hps.stop()
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
  app.run(main)
