# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Measures how soon a table in memory-mapped files answers its first lookup.

  bazel run //addons/hierarchical_parameter_server/benchmark:start_up

Makes a table of `rows` x `width` in a temporary folder ($TMPDIR). Only `written` of its
rows, at random positions, have values; the rest of the file is a hole, which reads as
zeros and takes no disk space. `--whole` writes every row. The table is served once,
which creates its index. Then, for each number of ids and each of `runs`, it drops the
files' pages from the system's cache. A new process starts the server, looks up ids
whose rows have values, and compares every float.

Prints seconds: from the call that starts the server to the rows (`answer`), the part of
it before the lookup (`start`), the whole process with its import of TensorFlow
(`process`), and the same with all pages in the cache (`warm`). `reading` is the
estimated time to read the files once, at the rate measured for the index file.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

from absl import app
from absl import flags
import numpy as np

FLAGS = flags.FLAGS
flags.DEFINE_integer("rows", 32700000, "Rows of the table.", lower_bound=1)
flags.DEFINE_integer("width", 128, "Floats of a row.", lower_bound=1)
flags.DEFINE_integer("written", 20000, "Rows that have values.", lower_bound=1)
flags.DEFINE_bool("whole", False, "All rows have values.")
flags.DEFINE_list("ids", ["1", "32", "4096"], "Ids of the first lookup.")
flags.DEFINE_integer("runs", 3, "Processes for each number of ids.", lower_bound=1)
flags.DEFINE_string("serve", "", "For the processes that this one starts.")

# Rows and bytes written or read at once.
_PIECE = 100000
_BYTES = 4 << 20


def key_of(numbers):
  """Returns the keys of the rows with these numbers."""
  return np.asarray(numbers, np.int64) * 7 + 3


def rows_of(numbers, width):
  """Returns the rows with these numbers, [n, width]; no float is 0."""
  numbers = np.asarray(numbers, np.float32)[:, np.newaxis]
  return np.float32(1) + numbers % 4093 + np.arange(width, dtype=np.float32) / 1024


def write_table(folder):
  """Writes the table; returns the sorted numbers of the rows with values."""
  os.makedirs(folder)
  rows, width = FLAGS.rows, FLAGS.width
  with open(os.path.join(folder, "key"), "wb") as f:
    for begin in range(0, rows, _PIECE):
      key_of(np.arange(begin, min(rows, begin + _PIECE))).astype("<i8").tofile(f)
  numbers = np.arange(rows)
  with open(os.path.join(folder, "emb_vector"), "wb") as f:
    if FLAGS.whole:
      for begin in range(0, rows, _PIECE):
        rows_of(numbers[begin:begin + _PIECE], width).astype("<f4").tofile(f)
    else:
      wanted = np.random.RandomState(1).randint(0, rows, FLAGS.written)
      numbers = np.unique(wanted)
      # Written in random order, so that neighbouring rows are not adjacent on disk.
      for number in wanted:
        f.seek(int(number) * width * 4)
        rows_of([number], width).astype("<f4").tofile(f)
      f.truncate(rows * width * 4)
  return numbers


def paths(folder):
  """Yields the files below a folder."""
  for root, _, names in os.walk(folder):
    for name in sorted(names):
      yield os.path.join(root, name)


def drop_pages(folder):
  """Writes dirty pages to disk and drops the files' pages from the cache."""
  for path in paths(folder):
    fd = os.open(path, os.O_RDONLY)
    try:
      os.fsync(fd)
      os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
      os.close(fd)


def read_once(path):
  """Returns the size of a file in bytes and the seconds to read it."""
  begin, total = time.perf_counter(), 0
  with open(path, "rb", buffering=0) as f:
    while True:
      piece = f.read(_BYTES)
      if not piece:
        return total, time.perf_counter() - begin
      total += len(piece)


def write_config(folder):
  """Writes the configuration; returns its path."""
  path = os.path.join(folder, "ps.json")
  with open(path, "w") as f:
    json.dump({
        "models": [{
            "model": "m", "sparse_files": ["t"],
            "embedding_vecsize_per_table": [FLAGS.width],
            "maxnum_catfeature_query_per_table_per_sample": [1],
            "default_value_for_each_table": [-1.], "deployed_device_list": [0],
            "max_batch_size": 1 << 20}],
        "volatile_db": {"type": "multi_process_hash_map"}}, f)
  return path


def serve(config):
  """Runs in the new process: prints `start answer`, in seconds."""
  # Imported in this function, since the measuring process needs no TensorFlow.
  import tensorflow as tf  # pylint: disable=g-import-not-at-top
  import hierarchical_parameter_server as hps  # pylint: disable=g-import-not-at-top
  numbers = np.load(config + ".npy")
  with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    begin = time.perf_counter()
    hps.start(config)
    started = time.perf_counter()
    ids = tf.constant(key_of(numbers))
    rows = session.run(hps.LookupLayer("m", 0, FLAGS.width, tf.float32)(ids))
    answered = time.perf_counter()
  np.testing.assert_array_equal(rows, rows_of(numbers, FLAGS.width))
  print("%.4f %.4f" % (started - begin, answered - begin))


def run_process(config, numbers):
  """Returns the seconds of start, answer and process of a new process."""
  np.save(config + ".npy", numbers)
  begin = time.perf_counter()
  output = subprocess.check_output(
      [sys.executable, "-W", "ignore", os.path.abspath(__file__), "--serve=" + config,
       "--width=%d" % FLAGS.width],
      env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)), universal_newlines=True)
  took = time.perf_counter() - begin
  start, answer = output.split("\n")[-2].split()
  return float(start), float(answer), took


def main(argv):
  del argv
  if FLAGS.serve:
    serve(FLAGS.serve)
    return
  folder = tempfile.mkdtemp()
  try:
    begin = time.perf_counter()
    table = os.path.join(folder, "t")
    numbers = write_table(table)
    config = write_config(folder)
    print("%d x %d, %.1f GB, %d rows have values; written in %.1f s" % (
        FLAGS.rows, FLAGS.width, FLAGS.rows * FLAGS.width * 4e-9, len(numbers),
        time.perf_counter() - begin), flush=True)
    random = np.random.RandomState(2)
    print("the first start makes the index: %.2f s to the answer" %
          run_process(config, numbers[:1])[1], flush=True)
    drop_pages(folder)
    size, took = read_once(os.path.join(table, "hps_index"))
    total = sum(os.path.getsize(path) for path in paths(table))
    print("the index, %.0f MB, is read in %.2f s: reading all %.1f GB at that rate %.1f s" %
          (size * 1e-6, took, total * 1e-9, took * total / size), flush=True)
    print("%6s %4s  %9s %9s %9s  %9s" % ("ids", "run", "start", "answer", "process", "warm"))
    for count in [int(c) for c in FLAGS.ids]:
      for run in range(FLAGS.runs):
        chosen = random.choice(numbers, count)
        drop_pages(folder)
        start, answer, process = run_process(config, chosen)
        warm = run_process(config, chosen)[1]
        print("%6d %4d  %9.3f %9.3f %9.3f  %9.3f" % (
            count, run, start, answer, process, warm), flush=True)
  finally:
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
  app.run(main)
