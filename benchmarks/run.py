# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""`make bench`: measures against stock TensorFlow and writes benchmarks/results/.

Each measurement is a process of its own. Variants take turns, and every other round runs
in reverse order, so that a machine that warms up or slows down favors none.

  python benchmarks/run.py                           # everything
  python benchmarks/run.py --only=zipf_hot10 --rounds=1
"""

import json
import os
import re
import subprocess
import sys
import time
import warnings

from absl import app
from absl import flags

import defaults
import engine_programs
import machine
import report

FLAGS = flags.FLAGS

_HERE = os.path.dirname(os.path.abspath(__file__))
_ROOT = os.path.dirname(_HERE)

flags.DEFINE_string("out", os.path.join(_HERE, "results"), "Folder of the results.")
flags.DEFINE_integer("rounds", 3, "Processes per variant and workload.",
                     lower_bound=1)
flags.DEFINE_float("min_seconds", 4.0, "Measured seconds per process.")
flags.DEFINE_string("only", "", "Regular expression: the workloads to run.")
flags.DEFINE_multi_enum("variants", list(defaults.VARIANTS), defaults.ALL_VARIANTS,
                        "Variants to compare.")
flags.DEFINE_bool("training", True, "Run the training benchmark.")
flags.DEFINE_bool("engine", True, "Run the engine's benchmarks.")


def _say(message):
  print(message)
  sys.stdout.flush()


def measure(workload, variant, min_seconds):
  """Runs stock_vs_ev.py in a process. Returns its result."""
  command = [
      sys.executable, os.path.join(_HERE, "stock_vs_ev.py"),
      "--variant=" + variant, "--distribution=" + workload.distribution,
      "--hotness=%d" % workload.hotness, "--dim=%d" % workload.dim,
      "--tower=" + workload.tower, "--tables=%d" % workload.tables,
      "--batch=%d" % workload.batch, "--rows=%d" % workload.rows,
      "--min_seconds=%g" % min_seconds]
  env = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="2")
  process = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           env=env, universal_newlines=True)
  if process.returncode:
    raise RuntimeError("%s ended with status %d:\n%s" % (
        " ".join(command), process.returncode, process.stderr[-4000:]))
  return json.loads(process.stdout.strip().splitlines()[-1])


def schedule(workloads, variants, rounds):
  """Yields (workload, variant) in the order of measurement."""
  for workload in workloads:
    for i in range(rounds):
      for variant in variants[::-1] if i % 2 else variants:
        yield workload, variant


def _tensorflow_version():
  with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import tensorflow as tf  # pylint: disable=g-import-not-at-top
  return tf.__version__


def run_training(description, command):
  """Measures, and writes training.json, .md and .png."""
  workloads = [w for w in defaults.training_workloads()
               if re.search(FLAGS.only, w.name)]
  if not workloads:
    raise app.UsageError("no workload matches --only=%s" % FLAGS.only)
  plan = list(schedule(workloads, FLAGS.variants, FLAGS.rounds))
  runs = []
  start = time.time()
  for i, (workload, variant) in enumerate(plan):
    result = measure(workload, variant, FLAGS.min_seconds)
    runs.append(result)
    left = (time.time() - start) / (i + 1) * (len(plan) - i - 1)
    _say("[%d/%d, %d min left] %-24s %-8s %8.1f ms" % (
        i + 1, len(plan), round(left / 60), workload.name, variant,
        result["net_ms"]))
  table = report.combine(runs)
  stem = os.path.join(FLAGS.out, "training")
  with open(stem + ".json", "w") as f:
    json.dump({"machine": description, "command": command, "runs": runs}, f,
              indent=1, sort_keys=True)
    f.write("\n")
  with open(stem + ".md", "w") as f:
    f.write(report.page(table, description, command))
  report.chart(table, stem + ".png")
  for workload, variants in table.items():
    ratios = [(v, report.ratio(variants, v)) for v in variants
              if v != defaults.STOCK]
    _say("%-24s %s" % (workload, "  ".join(
        "%s %.2fx" % (v, r) for v, r in ratios if r is not None)))
  _say("wrote %s.{json,md,png}" % stem)


def main(argv):
  if len(argv) > 1:
    raise app.UsageError("unexpected arguments: %s" % " ".join(argv[1:]))
  os.makedirs(FLAGS.out, exist_ok=True)
  command = "python benchmarks/run.py " + " ".join(sys.argv[1:])
  description = machine.describe(_ROOT)
  description["tensorflow"] = _tensorflow_version()
  if FLAGS.training:
    run_training(description, command.strip())
  if FLAGS.engine:
    path = engine_programs.run(_ROOT, FLAGS.out, description, command.strip())
    _say("wrote %s" % path)


if __name__ == "__main__":
  app.run(main)
