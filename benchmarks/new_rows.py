# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Compares a training step that creates its rows with one whose rows exist.

Every id of every batch is a random 60-bit number. With --new_part only that part of the
ids is, and the others are drawn by Zipf's law. The first time a batch is used, the update
inserts its keys, creates their rows and slots, and the tables grow. The second time the
same rows exist. Each variant prints one line; they run one after another, each in its own
process:

  python benchmarks/new_rows.py
  python benchmarks/new_rows.py --variant=ev_sok --dim=64 --rounds=1
  python benchmarks/new_rows.py --variant=ev_sok --batch=65536 --new_part=0.02

Memory is touched and freed before the clock starts, because on a virtual machine the
first touch of a page costs the host more than the steps that are measured.
"""

import os
import resource
import subprocess
import sys
import time

from absl import app
from absl import flags
import numpy as np

import defaults
import ids as id_lib
import stock_vs_ev

FLAGS = flags.FLAGS

_HERE = os.path.dirname(os.path.abspath(__file__))

flags.DEFINE_integer("steps", 60, "Batches, each of new ids.", lower_bound=8)
flags.DEFINE_integer("rounds", 3, "Processes for each variant, in turn.", lower_bound=1)
flags.DEFINE_float("new_part", 1.0, "The part of the ids that are new.", lower_bound=0.0,
                   upper_bound=1.0)
flags.DEFINE_float("touch_gb", 3.0, "Memory to touch beforehand, GB.")

# Steps of a pass that are not counted.
_WARMUP = 5


def new_ids(steps, workload):
  """Returns int64 [steps, tables, batch * hotness]; duplicates are very unlikely."""
  shape = [steps, workload.tables, workload.batch * workload.hotness]
  result = id_lib.aligned(shape, np.int64)
  rng = np.random.RandomState(3)
  result[:] = rng.randint(1 << 40, 1 << 60, size=shape)
  if FLAGS.new_part < 1.0:
    old = id_lib.draw(rng, "zipf", FLAGS.rows or defaults.ZIPF_ROWS, shape[1:],
                      defaults.ZIPF_EXPONENT)
    for batch in result:
      is_old = rng.random_sample(shape[1:]) >= FLAGS.new_part
      batch[is_old] = old[is_old]
  return result


def _pass(call, steps):
  """Runs `steps` steps. Returns ms per step: median, user time, system time."""
  seconds, before = [], None
  for step in range(steps):
    if step == _WARMUP:
      before = resource.getrusage(resource.RUSAGE_SELF)
    start = time.perf_counter()
    call()
    seconds.append(time.perf_counter() - start)
  after = resource.getrusage(resource.RUSAGE_SELF)
  counted = steps - _WARMUP
  return (1e3 * float(np.median(seconds[_WARMUP:])),
          1e3 * (after.ru_utime - before.ru_utime) / counted,
          1e3 * (after.ru_stime - before.ru_stime) / counted)


def measure(variant, workload, steps):
  """Returns {"born": (ms, user ms, system ms), "present": the same}."""
  tf = stock_vs_ev.tf
  batches = new_ids(steps, workload)
  with tf.Graph().as_default():
    graph = stock_vs_ev.StepGraph(variant, workload, steps)
    with tf.compat.v1.Session(config=stock_vs_ev.session_config()) as session:
      session.run(tf.compat.v1.global_variables_initializer())
      session.run(graph.load_batches.op, {graph.batches_in: batches})
      call = session.make_callable([graph.train_op, graph.loss])
      return {"born": _pass(call, steps), "present": _pass(call, steps)}


def line(variant, workload, result):
  """Returns the printed form of `measure`'s result."""
  born, present = result["born"], result["present"]
  return ("%-8s dim %3d, %2d ids per sample, %g new: rows born %6.2f ms (user %6.2f, system "
          "%6.2f), present %6.2f ms (user %6.2f, system %6.2f), ratio %.2f" % (
              (variant, workload.dim, workload.hotness, FLAGS.new_part) + born + present +
              (born[0] / present[0],)))


def _touch(gigabytes):
  for _ in range(2):
    block = np.ones(int(gigabytes * (1 << 27)))
    del block


def main(argv):
  if len(argv) > 1:
    raise app.UsageError("unexpected arguments: %s" % argv[1:])
  if FLAGS["variant"].present:
    _touch(FLAGS.touch_gb)
    workload = defaults.Workload(
        distribution="uniform", hotness=FLAGS.hotness, dim=FLAGS.dim,
        tables=FLAGS.tables, batch=FLAGS.batch)
    result = measure(FLAGS.variant, workload, FLAGS.steps)
    print(line(FLAGS.variant, workload, result))
    return
  for _ in range(FLAGS.rounds):
    for variant in (defaults.EV_SOK, defaults.EV_NN):
      sys.stdout.flush()
      subprocess.run(
          [sys.executable, os.path.abspath(__file__), "--variant=" + variant] +
          sys.argv[1:], check=True, env=dict(os.environ, TF_CPP_MIN_LOG_LEVEL="2"))


if __name__ == "__main__":
  app.run(main)
