# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The part of lookup_speed.py for --device=gpu: lookups whose rows end in GPU memory.

Compares the server, with its cache in GPU memory, with a variable in GPU memory and a
variable in host memory, whose rows are copied. A step ends when the GPU has finished
it. Soft placement is off by default: an op that TensorFlow's GPU build lacks raises
an error.
"""

import os

import numpy as np
import tensorflow as tf

import hierarchical_parameter_server as hps
from hierarchical_parameter_server.commands import profiling

# Most ids of a stream; they are kept in memory.
_MOST_IDS = 1 << 25
# Rows assigned at once.
_PIECE = 250000
WAYS = ("gpu", "cpu", "server")


def stream_batches(stream, rows, batch, cached):
  """Returns batches of a stream, in total at least twice the rows that the cache holds.

  With fewer, all would be cached after the first round, whatever the stream.
  """
  kind = "zipf" if stream.startswith("zipf") else stream
  exponent = float(stream[4:]) if kind == "zipf" else 0.
  wanted = min(max(2 * cached, 64 * batch), _MOST_IDS)
  each = 1 if kind == "repeated" else -(-wanted // (64 * batch))
  made = profiling.batches(kind, np.arange(rows), batch * each, exponent, seed=5)
  return [part for long in made for part in np.split(long, each)]


def _variable(session, where, source):
  """Returns a variable on a device with the rows of a table."""
  rows, width = source.shape
  with tf.device(where):
    variable = tf.compat.v1.get_variable(
        "table_" + where.strip("/:0"), [rows, width], initializer=tf.zeros_initializer())
    session.run(variable.initializer)
    at = tf.compat.v1.placeholder(tf.int32, [])
    end = tf.compat.v1.placeholder(tf.int32, [])
    piece = tf.compat.v1.placeholder(tf.float32, [None, width])
    assign = variable[at:end].assign(piece).op
  for begin in range(0, rows, _PIECE):
    part = source[begin:begin + _PIECE]
    session.run(assign, {at: begin, end: begin + len(part), piece: part})
  return variable


def _check_combined(session, width, rows):
  """Compares SparseLookupLayer's result on the GPU with that on the CPU."""
  lists = [[], [3, 5, 3], [7], [], list(range(8)), [2, 2, rows + 7], []]
  lists = [[i if i > rows else i % rows for i in row] for row in lists]
  places = [[r, c] for r, row in enumerate(lists) for c in range(len(row))]
  ids = np.array([i for row in lists for i in row], np.int64)
  shape = [len(lists), max(len(row) for row in lists)]
  weights = np.random.RandomState(7).uniform(.1, 2, len(ids)).astype(np.float32)
  layer = hps.SparseLookupLayer("m", 0, width, tf.float32)
  for combiner in ("sum", "mean", "sqrtn"):
    for weighted in (False, True):
      found = []
      for where in ("/cpu:0", "/gpu:0"):
        with tf.device("/cpu:0"):
          sp_ids = tf.SparseTensor(places, tf.constant(ids), shape)
          sp_weights = tf.SparseTensor(places, tf.constant(weights), shape)
        with tf.device(where):
          found.append(layer(sp_ids, sp_weights if weighted else None, combiner=combiner,
                             max_norm=50.))
      np.testing.assert_allclose(*session.run(found), rtol=1e-5, atol=1e-5)
  print("combined rows on the GPU are those of the CPU")


def _hits():
  table = hps.metrics()["models"][0]["tables"][0]
  return table["keys"], table["from_cache"]


def run(folder, config, sizes, flags, measure):
  """Measures, and prints a line per stream and batch size.

  Args:
    folder: the table's.
    config: path of the configuration.
    sizes: list of ints.
    flags: lookup_speed.py's.
    measure: function(calls, batches, seconds) that returns the seconds of each call.
  """
  if "gpu" in flags.ways and flags.rows * flags.width >= 2**31:
    raise ValueError("--ways: expected no gpu with %d x %d floats: TensorFlow 1.15 assigns slices "
                     "of a variable on a GPU by 32-bit places" % (flags.rows, flags.width))
  source = np.memmap(os.path.join(folder, "emb_vector"), "<f4", "r",
                     shape=(flags.rows, flags.width))
  hps.start(config)  # before TensorFlow takes the GPU's memory
  session_config = tf.compat.v1.ConfigProto(
      allow_soft_placement=flags.soft_placement,
      intra_op_parallelism_threads=flags.threads)
  session_config.gpu_options.allow_growth = True
  # Rows are not fetched, so TensorFlow must wait for the GPU at the end of a step.
  os.environ["TF_SYNC_ON_FINISH"] = "true"
  with tf.Graph().as_default(), tf.compat.v1.Session(config=session_config) as session:
    names = [d.name for d in session.list_devices() if d.device_type == "GPU"]
    if not names:
      raise RuntimeError("--device=gpu: this TensorFlow has no GPU")
    with tf.device("/cpu:0"):
      ids = tf.compat.v1.placeholder(tf.int64, [None])
    ways = {}
    with tf.device("/gpu:0"):
      # The same ids for all, where a model on the GPU would have them.
      device_ids = tf.identity(ids) if flags.ids_on_gpu else ids
      ways["server"] = hps.LookupLayer("m", 0, flags.width, tf.float32)(device_ids)
    if "gpu" in flags.ways:
      variable = _variable(session, "/gpu:0", source)
      with tf.device("/gpu:0"):
        ways["gpu"] = tf.nn.embedding_lookup(variable, device_ids)
    if "cpu" in flags.ways:
      with tf.device("/cpu:0"):
        variable = _variable(session, "/cpu:0", source)
        rows = tf.nn.embedding_lookup(variable, ids)
      with tf.device("/gpu:0"):
        ways["cpu"] = tf.identity(rows)
    sample = np.random.RandomState(2).randint(0, flags.rows, min(sizes[-1], 10000))
    for _ in range(2):  # once from the tiers, once from the cache
      found = session.run(ways, {ids: sample})
      for way in ways:
        np.testing.assert_array_equal(found[way], source[sample])
    _check_combined(session, flags.width, flags.rows)
    if flags.check:
      print("the same rows")
      return
    order = [way for way in WAYS if way in ways]
    # With soft placement (on the test device), rows are fetched: its stream runs late
    # and must not write to memory that was freed.
    calls = [session.make_callable(ways[way] if flags.soft_placement else ways[way].op, [ids])
             for way in order]
    cached = int(flags.gpucacheper * flags.rows)
    print("%d x %d, cache of %d rows, ids from %s; p50/p99 in microseconds" %
          (flags.rows, flags.width, cached, "the GPU" if flags.ids_on_gpu else "the host"))
    print("%-10s %7s" % ("stream", "batch") +
          "".join("  %21s" % w for w in order) + "   hits %  GB/s of rows")
    for stream in flags.streams:
      for size in sizes:
        batches = stream_batches(stream, flags.rows, size, cached)
        before = _hits()
        took = measure(calls, batches, flags.seconds)
        after = _hits()
        values = [1e6 * np.percentile(t, [50, 99]) for t in took]
        hits = 100. * (after[1] - before[1]) / (after[0] - before[0])
        served = values[order.index("server")][0]
        print("%-10s %7d" % (stream, size) +
              "".join("  %10.1f %10.1f" % tuple(v) for v in values) +
              "  %7.2f  %8.2f" % (hits, size * flags.width * 4e-3 / served), flush=True)
