# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Saves a table during training: a checkpoint is the state at one moment."""

import os
import threading

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

import embedding_variable  # pylint: disable=unused-import
from embedding_variable.ops import checkpoint_ops

_DIM = 8
# Several chunks of 4 MiB.
_ROWS = 100000
_RATE, _START = .5, .25


class _Model(object):
  """A table whose rows are all equal after each step and identify the step."""

  def __init__(self, **options):
    self.graph = tf.Graph()
    with self.graph.as_default():
      self.table = tf.get_embedding_variable(
          "v", _DIM, initializer=tf.ones_initializer(), steps_to_live=10**6, **options)
      step = tf.train.get_or_create_global_step()
      self.extra = tf.placeholder_with_default(np.zeros([0], np.int64), [None])
      ids = tf.concat([tf.range(_ROWS, dtype=tf.int64), self.extra], 0)
      loss = tf.reduce_sum(tf.nn.embedding_lookup(self.table, ids))
      self.train = tf.train.AdagradOptimizer(
          _RATE, initial_accumulator_value=_START).minimize(loss, global_step=step)
      self.saver = tf.train.Saver()
      self.path = tf.placeholder(tf.string, [])
      self.save = checkpoint_ops.save_tables(self.path, [checkpoint_ops.SavedTable(
          self.table.handle, "v", tf.int64, {"Adagrad": _START})])
      init = tf.global_variables_initializer()
    self.session = tf.Session(graph=self.graph)
    self.session.run(init)

  def step(self, extra=()):
    self.session.run(self.train, {self.extra: np.array(extra, np.int64)})

  def size(self):
    with self.graph.as_default():
      return self.session.run(self.table.total_count())[0]


def _value_after(steps):
  value, slot = np.float32(1), np.float32(_START)
  for _ in range(steps):
    slot += np.float32(1)
    value -= np.float32(_RATE) / np.sqrt(slot)
  return value, slot


class SaveWhileTrainingTest(parameterized.TestCase):

  def _check(self, path, steps=None, num_keys=_ROWS):
    """Checks that the checkpoint is the state after `steps` steps (None: any step)."""
    reader = tf.train.load_checkpoint(path)
    slot = reader.get_tensor("v/Adagrad-values")
    steps = int(round(slot[0, 0] - _START)) if steps is None else steps
    value, expected_slot = _value_after(steps)
    np.testing.assert_array_equal(slot, np.full([num_keys, _DIM], expected_slot))
    values = reader.get_tensor("v-values")
    np.testing.assert_allclose(values, np.full([num_keys, _DIM], value), rtol=1e-5)
    self.assertLen(np.unique(values), 1)
    self.assertEqual(set(reader.get_tensor("v-versions")), {steps - 1})
    np.testing.assert_array_equal(np.sort(reader.get_tensor("v-keys")), range(num_keys))
    return steps

  def test_training_continues_while_the_disk_blocks(self):
    """The file of values is a pipe, which is read only after some steps."""
    model = _Model()
    for _ in range(3):
      model.step()
    path = os.path.join(self.create_tempdir().full_path, "model.ckpt")
    # Files: keys and metadata, values, slots, versions.
    pipe = path + ".data-00001-of-00004"
    os.mkfifo(pipe)
    saving = threading.Thread(
        target=lambda: model.session.run(model.save, {model.path: path}))
    saving.start()
    with open(pipe, "rb") as f:
      first = f.read(1)  # the save has begun and will soon block
      for i in range(4):
        model.step([_ROWS + i])
      self.assertTrue(saving.is_alive())
      self.assertFalse(os.path.exists(path + ".index"))
      self.assertEqual(model.size(), _ROWS + 4)
      written = first + f.read()
    saving.join()
    os.remove(pipe)
    with open(pipe, "wb") as f:
      f.write(written)
    self._check(path, steps=3)
    # Rows that were trained meanwhile exist and can be saved.
    model.step(range(_ROWS, _ROWS + 4))
    model.session.run(model.save, {model.path: path})
    slot = tf.train.load_checkpoint(path).get_tensor("v/Adagrad-values")
    self.assertEqual(sorted(set(slot[:, 0])), [2 + _START, 8 + _START])

  def test_saves_during_a_training_loop(self):
    model = _Model()
    model.step()
    folder = self.create_tempdir().full_path
    stop, errors = threading.Event(), []

    def train():
      try:
        while not stop.is_set():
          model.step()
      except Exception as e:  # pylint: disable=broad-except
        errors.append(e)

    thread = threading.Thread(target=train)
    thread.start()
    try:
      last = 0
      for i in range(5):
        path = model.saver.save(model.session, os.path.join(folder, "model.ckpt"),
                                global_step=i)
        steps = self._check(path)
        self.assertGreaterEqual(steps, last)
        last = steps
    finally:
      stop.set()
      thread.join()
    self.assertEqual(errors, [])
    restored = _Model()
    restored.saver.restore(restored.session, path)
    with restored.graph.as_default():
      keys, _, versions, _ = restored.session.run(restored.table.export())
    self.assertLen(keys, _ROWS)
    self.assertEqual(set(versions), {last - 1})


if __name__ == "__main__":
  absltest.main()
