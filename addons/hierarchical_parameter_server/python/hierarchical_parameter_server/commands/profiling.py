# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""profile: how fast a table is looked up."""

import os
import threading
import time

import numpy as np
import tensorflow as tf

from hierarchical_parameter_server import serving
from hierarchical_parameter_server.commands import looking_up
from hierarchical_parameter_server.commands import tables

# Batches that are made before the clock runs; they are looked up in turns.
_BATCHES = 64
_BAR = 50


def zipf(random, count, exponent, size):
  """Returns numbers below `count`: k with a probability of about (k + 1) ** -exponent.

  By the inverse of the continuous distribution on [1, count + 1), so that any table's size
  and any exponent but 1 will do.
  """
  power = 1. - exponent
  top = (count + 1.)**power
  drawn = (1. + random.uniform(size=size) * (top - 1.))**(1. / power)
  return np.minimum(drawn.astype(np.int64) - 1, count - 1)


def batches(stream, keys, batch, exponent, seed):
  """Returns a list of batches of keys.

  Args:
    stream: "zipf", "uniform" or "repeated" (of which there is one).
    keys: [n], a table's.
    batch: ids of each.
    exponent: of zipf.
    seed: int.
  """
  random = np.random.RandomState(seed)
  if stream == "zipf":
    # Which keys are frequent has nothing to do with where they lie.
    step = next(s for s in range(len(keys) * 5 // 8 | 1, 2 * len(keys) + 3, 2)
                if np.gcd(s, len(keys)) == 1)
    return [np.asarray(keys[zipf(random, len(keys), exponent, batch) * step % len(keys)])
            for _ in range(_BATCHES)]
  count = 1 if stream == "repeated" else _BATCHES
  return [np.asarray(keys[random.randint(0, len(keys), batch)]) for _ in range(count)]


def _chart(seconds, out):
  low, high = np.percentile(seconds, [0, 99.5])
  counts, edges = np.histogram(seconds, 20, (low, max(high, low + 1e-9)))
  for count, edge in zip(counts, edges):
    bar = "#" * (_BAR * count // max(counts.max(), 1))
    print("%10.1f us %s %d" % (edge * 1e6, bar, count), file=out)


def profile(args, out, err):
  """Measures, and prints latencies, throughput and where rows came from."""
  del err
  for name, least in (("batch", 1), ("iterations", 1), ("warmup", 0), ("threads", 1)):
    if getattr(args, name) < least:
      raise ValueError("--%s: want at least %d, got %d" %
                       (name, least, getattr(args, name)))
  if args.exponent <= 1:
    raise ValueError("--exponent: want more than 1, got %g" % args.exponent)
  plan = serving.check(args.config)["plan"]
  serving.start(args.config)
  model, number, before = tables.find(args.model, args.table)
  folder, = [t["folder"] for t in plan["tables"]
             if (t["model"], t["table"]) == (model, before["table"])]
  dtype = looking_up.key_type(args.config)
  keys = np.memmap(os.path.join(folder, "key"), "<i8", "r")
  made = [b.astype(dtype.as_numpy_dtype)
          for b in batches(args.stream, keys, args.batch, args.exponent, args.seed)]
  seconds = [[] for _ in range(args.threads)]
  trouble = []
  with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    call = tables.lookup_callable(session, model, number, before["width"], dtype)
    for i in range(args.warmup):
      call(made[i % len(made)])
    before = tables.find(model, number)[2]

    def run(thread):
      try:
        for i in range(args.iterations):
          begin = time.perf_counter()
          call(made[(i * args.threads + thread) % len(made)])
          seconds[thread].append(time.perf_counter() - begin)
      except tf.errors.OpError as e:
        trouble.append(e)

    begin = time.perf_counter()
    threads = [threading.Thread(target=run, args=(t,)) for t in range(args.threads)]
    for thread in threads:
      thread.start()
    for thread in threads:
      thread.join()
    total = time.perf_counter() - begin
  if trouble:
    raise trouble[0]
  after = tables.find(model, number)[2]
  measured = np.concatenate(seconds)
  asked = after["keys"] - before["keys"]
  print("%s, %d x %d, stream %s, batch %d, %d callers, %d lookups" %
        (after["tag"], len(keys), after["width"], args.stream, args.batch, args.threads,
         len(measured)), file=out)
  print("latency  p50 %.1f us  p95 %.1f us  p99 %.1f us  mean %.1f us" %
        tuple(1e6 * v for v in list(np.percentile(measured, [50, 95, 99])) +
              [measured.mean()]), file=out)
  print("of these in the op on average %.1f us" %
        ((after["nanoseconds"] - before["nanoseconds"]) * 1e-3 / len(measured)), file=out)
  print("throughput  %.0f lookups/s  %.3g ids/s  %.3g GB/s of rows" %
        (len(measured) / total, asked / total, asked * after["width"] * 4e-9 / total),
        file=out)
  print("rows from  volatile %.2f %%  persistent %.2f %%  default %.2f %%" % tuple(
      100. * (after[f] - before[f]) / asked
      for f in ("from_volatile", "from_persistent", "defaults")), file=out)
  if args.chart:
    _chart(measured, out)
  return True
