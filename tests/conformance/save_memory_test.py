# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Measures the memory that saving and restoring a large table needs beyond the table."""

import os
import subprocess
import sys
import threading

from absl.testing import absltest
import tensorflow as tf

import embedding_variable  # pylint: disable=unused-import

_ROWS, _DIM, _BATCH = 3000000, 32, 100000
_MIB = 1 << 20
_LIMIT_MIB = 256


def _resident_mib(what):
  """Returns VmRSS or VmHWM of this process, in MiB."""
  with open("/proc/self/status") as f:
    for line in f:
      if line.startswith(what + ":"):
        return int(line.split()[1]) / 1024
  raise ValueError(what)


def _peak_of(body):
  """Returns the peak growth of the process's memory during `body`, in MiB."""
  start = _resident_mib("VmRSS")
  with open("/proc/self/clear_refs", "w") as f:
    f.write("5")  # resets the high-water mark
  body()
  return _resident_mib("VmHWM") - start


def _main(task, path):
  variable = tf.get_embedding_variable("v", _DIM, steps_to_live=10**6)
  step = tf.train.get_or_create_global_step()
  first = tf.placeholder(tf.int64, [])
  ids = (first + tf.range(_BATCH, dtype=tf.int64)) * 7919 - 10**9
  loss = tf.reduce_sum(tf.nn.embedding_lookup(variable, ids))
  train = tf.train.AdagradOptimizer(.1).minimize(loss, global_step=step)
  saver = tf.train.Saver()
  init = tf.global_variables_initializer()
  stats, size = variable.stats(), variable.total_count()
  # One thread, because per-thread buffers do not depend on the table.
  config = tf.ConfigProto(intra_op_parallelism_threads=1,
                          inter_op_parallelism_threads=2 if task == "train" else 1)
  with tf.Session(config=config) as session:
    session.run(init)
    session.run(train, {first: 0})
    if task != "restore":
      for i in range(0, _ROWS, _BATCH):
        session.run(train, {first: i})
      ended = threading.Event()

      def train_all():
        """Changes row after row while the table is saved."""
        i = 0
        while not ended.is_set():
          session.run(train, {first: i})
          i = (i + _BATCH) % _ROWS

      threads = [threading.Thread(target=train_all)] if task == "train" else []

      def save():
        for thread in threads:
          thread.start()
        saver.save(session, path)
        ended.set()
        for thread in threads:
          thread.join()

      peak = _peak_of(save)
    else:
      # Restores into an empty table, whose memory has been freed.
      session.run(init)
      peak = _peak_of(lambda: saver.restore(session, path))
      peak -= session.run(stats)[1:3].sum() / _MIB
    rows = session.run(size)[0]
    table = session.run(stats)[1:3].sum() / _MIB
  print("RESULT %d %.1f %.1f" % (rows, table, peak))


class SaveMemoryTest(absltest.TestCase):

  def _run(self, task, path):
    """Returns the MiB of the table, and the MiB that the task needed beyond it."""
    done = subprocess.run(
        [sys.executable, os.path.abspath(__file__), task, path],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    output = done.stdout.decode() + done.stderr.decode()
    self.assertEqual(done.returncode, 0, output)
    result = [l for l in output.splitlines() if l.startswith("RESULT ")][0].split()
    self.assertEqual(int(result[1]), _ROWS)
    print(task, "of a table of", result[2], "MiB needed", result[3], "MiB beside it")
    return float(result[2]), float(result[3])

  def test_at_most_256_mib(self):
    path = os.path.join(self.create_tempdir().full_path, "model.ckpt")
    table, peak = self._run("save", path)
    self.assertGreater(table, _ROWS * _DIM * 8 / _MIB)
    self.assertLess(peak, _LIMIT_MIB)
    _, peak = self._run("train", path)
    self.assertLess(peak, _LIMIT_MIB)
    _, peak = self._run("restore", path)
    self.assertLess(peak, _LIMIT_MIB)


if __name__ == "__main__":
  if len(sys.argv) == 3 and sys.argv[1] in ("save", "train", "restore"):
    _main(*sys.argv[1:])
  else:
    absltest.main()
