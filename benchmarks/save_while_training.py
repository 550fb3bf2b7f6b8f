# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Measures how much a save slows down a training loop on the same table, and vice versa.

  bazel run //benchmarks:save_while_training

One thread trains a table with Adagrad and Zipf-distributed ids; another calls
`Saver.save`. Prints one line per round. With `--storage=hbm --device=/gpu:0
--policy=counter` the table is on a GPU, which counts the occurrences of its keys until a
save collects them.
"""

import os
import shutil
import tempfile
import threading
import time

from absl import app
from absl import flags
import numpy as np
import tensorflow as tf

import embedding_variable  # pylint: disable=unused-import
from embedding_variable.variables import config_pb2
import policies

FLAGS = flags.FLAGS

flags.DEFINE_integer("rows", 3000000, "Rows of the table.")
flags.DEFINE_integer("dim", 32, "Floats per row.")
flags.DEFINE_integer("batch", 8192, "Ids per step.")
flags.DEFINE_float("zipf", 1.05, "Exponent of the ids' distribution.")
flags.DEFINE_enum("storage", "dram", ("dram", "hbm"), "Storage of the rows.")
flags.DEFINE_string("device", "/cpu:0", "TensorFlow's device of the table.")
flags.DEFINE_integer("rounds", 5, "Number of saves without training, and of saves "
                                  "during training.")
flags.DEFINE_string("directory", None, "Folder of the saves; default: a temporary "
                                       "folder.")


class _Model(object):
  """A table of `rows` rows, and batches of ids."""

  def __init__(self):
    storage = tf.StorageOption(
        storage_type=config_pb2.StorageType.Value(FLAGS.storage.upper()))
    with tf.device(FLAGS.device):
      variable = tf.get_embedding_variable(
          "v", FLAGS.dim, ev_option=tf.EmbeddingVariableOption(
              storage_option=storage, **policies.options()))
    self._ids = tf.placeholder(tf.int64, [None])
    if FLAGS.storage == "hbm":
      # Rows in GPU memory are best looked up by sok.lookup_sparse.
      import sparse_operation_kit as sok  # pylint: disable=g-import-not-at-top
      sok.init()
      one_each = tf.RaggedTensor.from_row_lengths(self._ids, tf.ones_like(self._ids))
      loss = tf.reduce_sum(sok.lookup_sparse(variable, one_each, "sum"))
    else:
      loss = tf.reduce_sum(tf.nn.embedding_lookup(variable, self._ids))
    self._train = tf.train.AdagradOptimizer(.1).minimize(loss)
    self.saver = tf.train.Saver(max_to_keep=1)
    self.session = tf.Session()
    self.session.run(tf.global_variables_initializer())
    for i in range(0, FLAGS.rows, 100000):
      self.step(np.arange(i, min(i + 100000, FLAGS.rows)))
    random = np.random.RandomState(1)
    weights = np.arange(1, FLAGS.rows + 1, dtype=np.float64)**-FLAGS.zipf
    cumulated = np.cumsum(weights) / np.sum(weights)
    places = random.permutation(FLAGS.rows)
    # Rounding can place an index beyond the end.
    self._batches = [
        places[np.minimum(np.searchsorted(cumulated, random.rand(FLAGS.batch)),
                          FLAGS.rows - 1)] for _ in range(100)
    ]

  def step(self, ids):
    self.session.run(self._train, {self._ids: ids})

  def train_until(self, stop):
    """Trains until stop() returns true. Returns the end time of each step."""
    ends = [time.time()]
    while not stop():
      self.step(self._batches[len(ends) % len(self._batches)])
      ends.append(time.time())
    return ends


def _save(model, folder):
  """Returns the begin and end times of the save."""
  begin = time.time()
  model.saver.save(model.session, os.path.join(folder, "model.ckpt"),
                   write_meta_graph=False)
  return begin, time.time()


def _round(model, folder):
  """Saves while the table is trained. Returns the costs of both."""
  ended = threading.Event()
  ends = []
  thread = threading.Thread(target=lambda: ends.extend(model.train_until(ended.is_set)))
  thread.start()
  time.sleep(1)
  begin, end = _save(model, folder)
  ended.set()
  thread.join()
  ends = np.array(ends)
  before = ends[ends <= begin]
  # Includes a step that waits for the save, because it ends when the save does.
  within = ends[(ends > begin) & (ends <= end)]
  longest = np.max(np.diff(ends[len(before) - 1:]))
  return end - begin, (len(before) - 1) / (before[-1] - before[0]), len(within), longest


def main(_):
  folder = FLAGS.directory or tempfile.mkdtemp()
  model = _Model()
  print("load %.1f" % os.getloadavg()[0])
  for _ in range(FLAGS.rounds):
    before = time.process_time()
    begin, end = _save(model, folder)
    print("save alone %.2f s, %.2f s of processor time" % (
        end - begin, time.process_time() - before), flush=True)
  for _ in range(FLAGS.rounds):
    seconds, rate, steps, longest = _round(model, folder)
    print("save %.2f s, %.1f steps/s before, %d steps meanwhile (%.1f/s), longest %.3f s" %
          (seconds, rate, steps, steps / seconds, longest), flush=True)
  if FLAGS.directory is None:
    shutil.rmtree(folder)


if __name__ == "__main__":
  app.run(main)
