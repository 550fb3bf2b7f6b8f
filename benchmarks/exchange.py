# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes bytes and time per step of lookups over ranks to benchmarks/results/exchange.md.

  python benchmarks/exchange.py --ranks=2

Each line is measured by a Horovod job of its own. "Naive" gathers all ids on all ranks
and sends each rank a partial sum for every sample and table, as NVIDIA's SOK does.
"""

import itertools
import json
import os
import re
import subprocess
import sys
import textwrap

from absl import app
from absl import flags

import defaults
import machine

FLAGS = flags.FLAGS

_HERE = os.path.dirname(os.path.abspath(__file__))
_COLUMNS = 118  # width of the page

flags.DEFINE_integer("ranks", 2, "Number of processes.", lower_bound=2)
flags.DEFINE_integer("rounds", 3, "Jobs per line; the median counts.", lower_bound=1)
flags.DEFINE_integer("batch", 2048, "Samples per step and rank.")
flags.DEFINE_integer("steps", 30, "Measured steps per job.")
flags.DEFINE_list("dims", [str(d) for d in defaults.DIMS], "Floats per row.")
flags.DEFINE_list("exchanges", ["memory"], "Carriers to measure besides Horovod.")
flags.DEFINE_string("out", os.path.join(_HERE, "results"), "Folder of the results.")

# (label, flags of the worker).
_VARIANTS = [
    ("naive all-gather", ["--variant=naive"]),
    ("float32", []),
    ("float16", ["--dtype=float16"]),
]


def variants():
  """Returns (label, flags of the worker) of each line of the table."""
  ours = [("float32, by %s" % e, ["--exchange=" + e]) for e in FLAGS.exchanges]
  return _VARIANTS + ours


def run_job(hotness, dim, arguments):
  """Runs one job. Returns the result of rank 0."""
  command = [
      sys.executable, "-m", "horovod.runner.launch", "-np", str(FLAGS.ranks), "-H",
      "localhost:%d" % FLAGS.ranks, sys.executable,
      os.path.join(_HERE, "exchange_worker.py"), "--hotness=%d" % hotness,
      "--dim=%d" % dim, "--batch=%d" % FLAGS.batch, "--steps=%d" % FLAGS.steps
  ] + arguments
  env = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="2")
  process = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           env=env, universal_newlines=True)
  found = re.search(r"(\{.*\})", process.stdout)
  if process.returncode or not found:
    raise RuntimeError("%s ended with status %d:\n%s" % (
        " ".join(command), process.returncode, process.stderr[-4000:]))
  return json.loads(found.group(1))


def median_job(results):
  """Returns the job with the median step time."""
  return sorted(results, key=lambda r: r["step_ms"])[len(results) // 2]


def page(table, ranks, batch, description, command):
  """Returns the page as Markdown.

  Args:
    table: list of (hotness, dim, list of (label, result)), naive first.
    ranks, batch: ints.
    description: from `machine.describe`.
    command: string.
  """
  about = (
      "%d ranks on one machine, over Gloo unless noted, %d tables, "
      "batch %d per rank, Adagrad, sum "
      "pooling, Zipf %.2f over 200,000 rows a table. MB: what one rank sends to all others "
      "in a step, ids, rows and gradients together. \"Naive\" gathers all ids on all ranks "
      "and sends every rank a partial sum for every sample and table, forward and "
      "backward; its tables and updates are the same. Ranks on one machine share its cores "
      "and memory: over a network the bytes weigh more." %
      (ranks, defaults.TABLES, batch, defaults.ZIPF_EXPONENT))
  lines = [
      "# Lookups over ranks: bytes and time per training step",
      "",
      textwrap.fill(about, _COLUMNS, break_on_hyphens=False),
      "",
      "| ids per sample | dim | exchange | MB per step | naive / this | ms per step | "
      "naive / this |",
      "| --- | --- | --- | --- | --- | --- | --- |",
  ]
  for hotness, dim, results in table:
    naive = results[0][1]
    for label, result in results:
      lines.append("| %d | %d | %s | %.2f | %.2fx | %.1f | %.2fx |" % (
          hotness, dim, label, result["bytes"] / 1e6,
          naive["bytes"] / result["bytes"], result["step_ms"],
          naive["step_ms"] / result["step_ms"]))
  lines += ["", "## Machine", ""]
  lines += ["- %s: %s" % (k, description[k]) for k in sorted(description)]
  lines += ["- command: `%s`" % command, ""]
  return "\n".join(lines)


def main(argv):
  if len(argv) > 1:
    raise app.UsageError("unexpected arguments: %s" % " ".join(argv[1:]))
  description = machine.describe(os.path.dirname(_HERE))
  table = []
  dims = [int(dim) for dim in FLAGS.dims]
  for hotness, dim in itertools.product(defaults.HOTNESS, dims):
    results = []
    for label, arguments in variants():
      jobs = [run_job(hotness, dim, arguments) for _ in range(FLAGS.rounds)]
      results.append((label, median_job(jobs)))
      print("hotness %d dim %d %-20s %8.2f MB %8.1f ms" % (
          hotness, dim, label, results[-1][1]["bytes"] / 1e6,
          results[-1][1]["step_ms"]), flush=True)
    table.append((hotness, dim, results))
  os.makedirs(FLAGS.out, exist_ok=True)
  path = os.path.join(FLAGS.out, "exchange.md")
  command = "python benchmarks/exchange.py " + " ".join(sys.argv[1:])
  with open(path, "w") as f:
    f.write(page(table, FLAGS.ranks, FLAGS.batch, description, command.strip()))
  print("wrote %s" % path)


if __name__ == "__main__":
  app.run(main)
