# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of jobs whose tables are spread over ranks."""

import json
import os

from absl.testing import absltest
import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

from embedding_variable.checkpoint_format import tensor_names
from sparse_operation_kit import experiment as sok

import horovod_job
import ranks
import spread_checkpoint_job

_PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                        "spread_checkpoint_job.py")
_TABLES = 4


def _table(path, name):
  """Returns key -> (value, slot) of a table, which may be saved in parts."""
  reader = tf.train.load_checkpoint(path)
  found = {}
  for tensor in reader.get_variable_to_shape_map():
    part = tensor_names.without_column(tensor, tensor_names.KEYS)
    if part is None or not tensor.startswith(name) or "/Adagrad" in tensor:
      continue
    keys = reader.get_tensor(tensor).tolist()
    rows = zip(*[
        reader.get_tensor(tensor_names.tensor(prefix, tensor_names.VALUES))
        for prefix in (part, tensor_names.slot(part, "Adagrad"))
    ])
    for key, row in zip(keys, rows):
      assert key not in found, "key %d of %s twice" % (key, name)
      found[key] = row
  return found


def _counted(path, name):
  """Returns key -> count of the keys that a filter has not admitted."""
  reader = tf.train.load_checkpoint(path)
  found = {}
  for tensor in reader.get_variable_to_shape_map():
    part = tensor_names.without_column(tensor, tensor_names.KEYS_FILTERED)
    if part is None or not tensor.startswith(name) or "/Adagrad" in tensor:
      continue
    keys = reader.get_tensor(tensor).tolist()
    counts = reader.get_tensor(
        tensor_names.tensor(part, tensor_names.FREQS_FILTERED)).tolist()
    found.update(zip(keys, counts))
  return found


def setUpModule():
  # This process is a job with one rank.
  hvd.init()
  sok.init()


class SpreadCheckpointTest(absltest.TestCase):

  def setUp(self):
    super(SpreadCheckpointTest, self).setUp()
    self._folder = self.create_tempdir().full_path

  def _run(self, num_ranks, mode, steps, folder=None):
    result = ranks.run(num_ranks, _PROGRAM, mode, folder or self._folder, steps)
    self.assertEqual(result.returncode, 0, result.output[-8000:])
    return result

  def _losses(self, steps, folder=None):
    with open(os.path.join(folder or self._folder, "losses_%d.json" % steps)) as f:
      return {int(k): v for k, v in json.load(f).items()}

  def _check_same(self, path, expected_path):
    for i in range(_TABLES):
      found, expected = (_table(p, "table_%d" % i) for p in (path, expected_path))
      self.assertCountEqual(found, expected)
      self.assertGreater(len(expected), 20)
      for key, rows in expected.items():
        np.testing.assert_allclose(found[key], rows, rtol=1e-4, atol=1e-5)
    self.assertEqual(_counted(path, "table_3"), _counted(expected_path, "table_3"))
    self.assertNotEmpty(_counted(path, "table_3"))

  def _restores(self, folder=None):
    """Restores in this process."""
    with tf.Graph().as_default():
      spread_checkpoint_job.restore(folder or self._folder, 0)

  def test_a_job_resumes_with_other_numbers_of_ranks(self):
    alone = self.create_tempdir().full_path
    with tf.Graph().as_default():
      spread_checkpoint_job.train(alone, 14)
    expected, found = self._losses(14, alone), {}
    # A job with more ranks, fewer, the same number, and one.
    for num_ranks, steps in ((2, 4), (3, 8), (2, 10), (2, 12), (1, 14)):
      self._run(num_ranks, "train", steps)
      found.update(self._losses(steps))
      names = {n.split("-")[0] for n, _ in tf.train.list_variables(self._folder)
               if n.startswith("table_0") and "Adagrad" not in n}
      self.assertCountEqual(names, ["table_0"] if num_ranks == 1 else
                            ["table_0/part_%d" % r for r in range(num_ranks)])
    self.assertCountEqual(found, range(14))
    for step in range(14):
      self.assertAlmostEqual(found[step], expected[step], delta=1e-3, msg=str(step))
    self._check_same(tf.train.latest_checkpoint(self._folder),
                     tf.train.latest_checkpoint(alone))
    self.assertEqual(tf.train.load_variable(self._folder, "dense"), 14)
    self.assertEqual(tf.train.load_variable(self._folder, "global_step"), 14)
    # The folder has only checkpoints, as rank 0 alone would leave it.
    self.assertFalse([n for n in os.listdir(self._folder) if "_part_" in n])

  def test_a_plain_saver_and_the_placement_of_rows(self):
    self._run(2, "saver", 6)
    path = tf.train.latest_checkpoint(self._folder)
    self._run(3, "restore", 0)
    placements = ([0, 1, 2], [2], [2, 0, 0], [0, 1, 2])
    for i, places in enumerate(placements):
      everything = []
      for rank in range(3):
        with open(os.path.join(self._folder, "keys_%d.json" % rank)) as f:
          keys = json.load(f)[i]
        self.assertEqual({places[k % len(places)] for k in keys} - {rank}, set())
        everything.extend(keys)
      self.assertCountEqual(everything, _table(path, "table_%d" % i))

  def test_other_ways_to_save(self):
    folders = {mode: os.path.join(self._folder, mode)
               for mode in ("sharded", "by_seconds", "estimator")}
    self._run(2, "other_ways", 0)
    self._restores(folders["sharded"])
    # Ranks with different clocks save at the same steps.
    state = tf.train.get_checkpoint_state(folders["by_seconds"])
    self.assertGreater(len(state.all_model_checkpoint_paths), 2)
    self.assertEqual(tf.train.load_variable(folders["estimator"], "global_step"), 11)
    self._run(3, "restore", 0, folders["estimator"])

  def _fails(self, mode, message, env=None, num_ranks=2, gone=(), steps=3):
    """Runs a job in which every rank must fail on its own with the error `message`."""
    env = horovod_job.environment(**(env or {}))
    with ranks.Ranks(num_ranks, _PROGRAM, mode, self._folder, steps, env=env) as job:
      for rank in range(num_ranks):
        code = job.wait(rank, 120)
        self.assertIsNotNone(code, job.output(rank)[-4000:])
        self.assertNotEqual(code, 0)
        if rank not in gone:
          self.assertRegex(job.output(rank), message)

  def test_mistakes_that_are_found_before_a_step(self):
    output = self._run(2, "mistakes", 3).output
    for rank in range(2):
      self.assertRegex(
          output, r"\[%d\]<stdout>:rank_0_only: a table that is spread over ranks is saved "
          r"by all ranks together, .* rank 0: CheckpointSaverHook\(.*, every 600 s\), "
          r"rank 1: no CheckpointSaverHook" % rank)
      self.assertRegex(
          output, r"\[%d\]<stdout>:estimator_on_rank_0: a table that is spread over ranks is "
          r"saved .*rank 0: CheckpointSaverHook\(.*, every 4 steps\), rank 1: "
          r"CheckpointSaverHook" % rank)
      self.assertRegex(
          output, r"\[%d\]<stdout>:late_lookup: embedding variable 't' is spread over ranks "
          r"by a lookup that was built after the Saver" % rank)

  def test_a_rank_that_is_killed_while_it_saves(self):
    self._fails("saver", r"FAILED after [0-9.]+ s: RankError: checkpoint/save: ",
                {"RANK_1": "killed"}, num_ranks=3, gone=[1])
    self._check_only_the_first_is_left()

  def test_a_rank_that_saves_to_another_path(self):
    self._fails("saver", r"FAILED after .*ValueError: checkpoint/save: the path of a "
                r"checkpoint: expected the same on all ranks, got rank 0: .*model.ckpt-4; "
                r"rank 1: .*model.ckpt_of_mine-4", {"RANK_1": "another path"})
    self._check_only_the_first_is_left()

  def test_a_rank_that_does_not_save(self):
    self._fails("saver", r"FAILED after [0-9.]+ s: ",
                {"RANK_1": "goes on", "TIMEOUT": "5"})
    self._check_only_the_first_is_left()

  def _check_only_the_first_is_left(self):
    self.assertEqual(tf.train.latest_checkpoint(self._folder),
                     os.path.join(self._folder, "model.ckpt-3"))
    left = {n.split(".")[1] for n in os.listdir(self._folder) if n != "checkpoint"}
    self.assertEqual(left, {"ckpt-3"})
    self._restores()


if __name__ == "__main__":
  absltest.main()
