# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Rows per second of ParquetDataset beside pyarrow alone, on generated files.

  bazel run //benchmarks:parquet_rate

Each reader reads the same file in the same run, in turns; the best of `--rounds` counts,
since the machine may be shared. "pyarrow" reads record batches and drops them.
"""

import os
import tempfile
import time

from absl import app
from absl import flags
import numpy as np
import tensorflow as tf

from embedding_variable.deeprec import parquet_dataset
from embedding_variable.tools import arrow

import machine

FLAGS = flags.FLAGS

flags.DEFINE_integer("rows", 1000000, "Rows of each file.")
flags.DEFINE_integer("batch", 2048, "Rows of a batch.")
flags.DEFINE_integer("rounds", 5, "Rounds.")

_KINDS = ("26 int64 and 13 float columns", "5 string columns", "5 columns of int64 lists")


def _columns(kind, rows):
  numbers = np.random.RandomState(0)
  if kind == _KINDS[0]:
    columns = {"I%d" % i: numbers.rand(rows).astype(np.float32) for i in range(13)}
    columns.update({"C%d" % i: numbers.randint(0, 2**40, rows) for i in range(26)})
    return columns
  if kind == _KINDS[1]:
    return {"C%d" % i: ["key_%d" % k for k in numbers.randint(0, 2**20, rows)]
            for i in range(5)}
  return {"C%d" % i: [list(range(k)) for k in numbers.randint(0, 5, rows)]
          for i in range(5)}


def _pyarrow(path):
  pa = arrow.load()
  with pa.parquet.ParquetFile(path, memory_map=True) as f:
    for _ in f.iter_batches(FLAGS.batch):
      pass


def _dataset(path):
  """Returns a function that reads all batches; it is built once."""
  graph = tf.Graph()
  with graph.as_default():
    dataset = parquet_dataset.ParquetDataset(path, FLAGS.batch).prefetch(2)
    iterator = tf.data.make_initializable_iterator(dataset)
    read = tf.group(*tf.nest.flatten(iterator.get_next()))
  session = tf.Session(graph=graph)

  def run(_):
    session.run(iterator.initializer)
    try:
      while True:
        session.run(read)
    except tf.errors.OutOfRangeError:
      pass

  return run


def _seconds(function, path):
  begin = time.time()
  function(path)
  return time.time() - begin


def main(_):
  pa = arrow.load()
  print(machine.describe(os.environ.get("BUILD_WORKSPACE_DIRECTORY", ".")))
  with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "a.parquet")
    for kind in _KINDS:
      pa.parquet.write_table(pa.table(_columns(kind, FLAGS.rows)), path,
                             row_group_size=max(1, FLAGS.rows // 8))
      readers = (("pyarrow", _pyarrow), ("ParquetDataset", _dataset(path)))
      best = {}
      for _ in range(FLAGS.rounds):
        for name, function in readers:
          best[name] = min(best.get(name, 1e9), _seconds(function, path))
      print("%s: %s" % (kind, ", ".join(
          "%s %.2f M rows/s" % (name, FLAGS.rows / best[name] / 1e6)
          for name, _ in readers)))


if __name__ == "__main__":
  app.run(main)
