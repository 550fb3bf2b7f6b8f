# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The command `profile`: measures lookups of a table."""

import os
import threading
import time

import numpy as np
import tensorflow as tf

from hierarchical_parameter_server import serving
from hierarchical_parameter_server.commands import charts
from hierarchical_parameter_server.commands import looking_up
from hierarchical_parameter_server.commands import tables

# Batches made before the timing starts; lookups cycle through them.
_BATCHES = 64

STREAMS = ("repeated", "zipf", "uniform")


def zipf(random, count, exponent, size):
  """Draws numbers below `count`: k with a probability of about (k + 1) ** -exponent.

  Inverts the continuous distribution on [1, count + 1), which works for any table size
  and any exponent except 1.
  """
  power = 1. - exponent
  top = (count + 1.)**power
  drawn = (1. + random.uniform(size=size) * (top - 1.))**(1. / power)
  return np.minimum(drawn.astype(np.int64) - 1, count - 1)


def batches(stream, keys, batch, exponent, seed):
  """Returns a list of batches of keys.

  Args:
    stream: "zipf", "uniform" or "repeated" (a single batch).
    keys: [n], the table's keys.
    batch: ids per batch.
    exponent: exponent of the Zipf distribution.
    seed: int.
  """
  random = np.random.RandomState(seed)
  if stream == "zipf":
    # Spreads the frequent keys over the table.
    step = next(s for s in range(len(keys) * 5 // 8 | 1, 2 * len(keys) + 3, 2)
                if np.gcd(s, len(keys)) == 1)
    return [np.asarray(keys[zipf(random, len(keys), exponent, batch) * step % len(keys)])
            for _ in range(_BATCHES)]
  count = 1 if stream == "repeated" else _BATCHES
  return [np.asarray(keys[random.randint(0, len(keys), batch)]) for _ in range(count)]


def _tiers(facts):
  """Returns the metrics fields that count a table's ids by the source of their row."""
  return [f for f in facts if f.startswith("from_")] + ["defaults"]


class _Measured:
  """Results of the lookups of one stream.

  Attributes:
    seconds: float [n], of each lookup.
    total: seconds for all.
    before, after: the table's metrics.
  """

  def __init__(self, seconds, total, before, after):
    self.seconds, self.total = seconds, total
    self.before, self.after = before, after

  def gained(self, field):
    return self.after[field] - self.before[field]

  def shares(self):
    """Returns [(tier, percent of the ids)]."""
    return [(f.replace("from_", "").replace("defaults", "default"),
             100. * self.gained(f) / self.gained("keys")) for f in _tiers(self.after)]

  def percentiles(self, *wanted):
    """Returns these percentiles in microseconds."""
    return [1e6 * v for v in np.percentile(self.seconds, wanted)]


def _measure(call, made, facts, args):
  """Looks up the batches in rotation; returns a _Measured.

  Args:
    call: maps ids to rows.
    made: batches.
    facts: returns the table's metrics.
    args: the command's.
  """
  seconds = [[] for _ in range(args.threads)]
  trouble = []
  for i in range(args.warmup):
    call(made[i % len(made)])
  before = facts()

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
  return _Measured(np.concatenate(seconds), total, before, facts())


def _report(stream, rows, measured, args, out):
  """Prints the results of one stream."""
  number, width = len(measured.seconds), measured.after["width"]
  asked = measured.gained("keys")
  print("%s, %d x %d, stream %s, batch %d, %d callers, %d lookups" %
        (measured.after["tag"], rows, width, stream, args.batch, args.threads, number),
        file=out)
  print("latency  p50 %.1f us  p95 %.1f us  p99 %.1f us  mean %.1f us" %
        tuple(measured.percentiles(50, 95, 99) + [measured.seconds.mean() * 1e6]), file=out)
  print("of these in the op on average %.1f us" %
        (measured.gained("nanoseconds") * 1e-3 / number), file=out)
  print("throughput  %.0f lookups/s  %.3g ids/s  %.3g GB/s of rows" %
        (number / measured.total, asked / measured.total,
         asked * width * 4e-9 / measured.total), file=out)
  print("rows from  " + "  ".join("%s %.2f %%" % s for s in measured.shares()), file=out)
  unavailable = measured.gained("unavailable")
  if unavailable:
    print("%d ids have the default row because a tier was unavailable" % unavailable, file=out)


def _table(found, out):
  """Prints a line per stream."""
  tiers = [tier for tier, _ in next(iter(found.values())).shares()]
  print("%-9s %10s %10s %12s" % ("stream", "p50 us", "p99 us", "lookups/s") +
        "".join(" %12s" % (tier + " %") for tier in tiers), file=out)
  for stream, measured in found.items():
    print("%-9s %10.1f %10.1f %12.0f" % tuple(
        [stream] + measured.percentiles(50, 99) +
        [len(measured.seconds) / measured.total]) +
          "".join(" %12.2f" % share for _, share in measured.shares()), file=out)


def profile(args, out, err):
  """Measures lookups; prints latencies, throughput and the sources of rows."""
  del err
  for name, least in (("batch", 1), ("iterations", 1), ("warmup", 0), ("threads", 1)):
    if getattr(args, name) < least:
      raise ValueError("--%s: expected at least %d, got %d" %
                       (name, least, getattr(args, name)))
  if args.exponent <= 1:
    raise ValueError("--exponent: expected more than 1, got %g" % args.exponent)
  if args.chart_file:
    charts.check(args.chart_file)
  plan = serving.check(args.config)["plan"]
  serving.start(args.config)
  model, number, facts = tables.find(args.model, args.table)
  folder, = [t["folder"] for t in plan["tables"]
             if (t["model"], t["table"]) == (model, facts["table"])]
  dtype = looking_up.key_type(args.config)
  keys = np.memmap(os.path.join(folder, "key"), "<i8", "r")
  found = {}
  with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    call = tables.lookup_callable(session, model, number, facts["width"], dtype)
    for stream in STREAMS if args.stream == "all" else [args.stream]:
      made = [b.astype(dtype.as_numpy_dtype)
              for b in batches(stream, keys, args.batch, args.exponent, args.seed)]
      found[stream] = _measure(call, made, lambda: tables.find(model, number)[2], args)
      _report(stream, len(keys), found[stream], args, out)
      if args.chart:
        charts.text(found[stream].seconds, out)
  if len(found) > 1:
    _table(found, out)
  if args.chart_file:
    charts.write(args.chart_file, {s: m.seconds for s, m in found.items()},
                 "%s, batch %d, %d callers" % (facts["tag"], args.batch, args.threads))
    print("chart: " + args.chart_file, file=out)
  return True
