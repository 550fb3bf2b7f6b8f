# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Incremental checkpoints of a job whose tables are spread over ranks.

To kill a rank at more random times:

  bazel test //tests/distributed:spread_incremental_test --test_arg=--kills=50 \\
      --test_filter=SpreadIncrementalTest.test_a_rank_is_killed_at_any_time
"""

import glob
import os
import pickle
import random
import re
import signal
import sys
import time

from absl import flags
from absl.testing import absltest
import horovod.tensorflow as hvd
import tensorflow as tf

import embedding_variable
from embedding_variable.ops import checkpoint_ops
from sparse_operation_kit import experiment as sok

import horovod_job
import ranks
import spread_incremental_job

_PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                        "spread_incremental_job.py")
flags.DEFINE_integer("kills", 1, "Number of jobs in which a rank is killed at a random "
                                 "time.")
flags.DEFINE_integer("seed", 1, "Seed of the times of the kills.")

_COUNTED = 3  # the table with a CounterFilter


def _placements(num_ranks):
  """Returns the owner rank of each table's keys, as the job places them."""
  everywhere, last = list(range(num_ranks)), num_ranks - 1
  return everywhere, [last], [last, 0, 0], everywhere


def setUpModule():
  # This process is a job with one rank.
  hvd.init()
  sok.init()


class SpreadIncrementalTest(absltest.TestCase):

  def setUp(self):
    super(SpreadIncrementalTest, self).setUp()
    self._folder = self.create_tempdir().full_path

  def _run(self, num_ranks, mode, tag, **env):
    result = ranks.run(num_ranks, _PROGRAM, mode, self._folder, tag,
                       env=horovod_job.environment(**env))
    self.assertEqual(result.returncode, 0, result.output[-8000:])
    return result

  def _state(self, name, num_ranks):
    """Returns the combined (step, dense, [rows, counted] of each table) of all ranks.

    Each key must be on one rank, its owner rank.
    """
    tables = [({}, {}) for _ in range(4)]
    for rank in range(num_ranks):
      with open(os.path.join(self._folder, "%s_%d.pickle" % (name, rank)), "rb") as f:
        state = pickle.load(f)
      for found, all_found, places in zip(state["tables"], tables,
                                          _placements(num_ranks)):
        for keys, all_keys in zip(found, all_found):
          self.assertEqual({places[k % len(places)] for k in keys} - {rank}, set())
          all_keys.update(keys)
    return state["step"], state["dense"], tables

  def _deltas(self, folder=""):
    """Returns [step of the full checkpoint, sequence number] of each delta, in order."""
    paths = glob.glob(os.path.join(self._folder, folder, ".incremental_checkpoint",
                                   "*.index"))
    names = [os.path.basename(p)[:-len(".index")].split("-") for p in paths]
    return sorted([int(n[1]), int(n[3])] for n in names)

  def _only_checkpoints(self):
    for folder in ("", ".incremental_checkpoint"):
      self.assertEmpty([n for n in os.listdir(os.path.join(self._folder, folder))
                        if "part" in n])

  def _restores(self, name, num_ranks):
    """Restores in this process and compares with the ranks' contents."""
    with tf.Graph().as_default():
      spread_incremental_job.restore(self._folder, "alone")
    self.assertEqual(self._state("restored_alone", 1), self._state(name, num_ranks))

  def test_a_chain_restores_at_any_number_of_ranks(self):
    jobs = (3, 2, 3)
    for i, num_ranks in enumerate(jobs):
      output = self._run(num_ranks, "chain", str(i), TF_RECORD_VERSION="1").output
      if not i:
        continue
      was = jobs[i - 1]
      self.assertIn("IMPORTED: the lookups of embedding variable 'table_0' were built for "
                    "%d ranks, and this job has %d" % (was, num_ranks), output)
      saved = self._state("saved_%d" % (i - 1), was)
      self.assertEqual(self._state("restored_%d" % i, num_ranks), saved)
      self.assertEqual(saved[:2], (12 * i, 12. * i))
      self.assertNotEmpty(saved[2][_COUNTED][1])
      self._check_pulled(self._state("pulled_%d" % i, num_ranks), saved, 12 * i - 2)
    with absltest.mock.patch.dict(os.environ, TF_RECORD_VERSION="1"):
      self._restores("saved_2", 3)
    self.assertEqual(self._deltas(), [[3 + 12 * i, n] for i in range(3) for n in (1, 2, 3)])
    self._only_checkpoints()
    self._check_files()

  def test_a_publication(self):
    self._run(2, "publish", "0")
    step, _, tables = self._state("saved_0", 2)
    state = embedding_variable.publications.read(self._folder)
    self.assertEqual((state["version"], state["step"], len(state["deltas"])), (1, step, 2))
    with tf.compat.v1.Session(graph=tf.Graph()) as session:
      tf.compat.v1.saved_model.load(session, ["serve"], os.path.join(self._folder, "1"))
      for sequence in (1, 2):
        prefix = embedding_variable.publication_checks.check_delta(self._folder, state, sequence)
        session.run("save/deltas/restore_tables", {"save/deltas/prefix:0": prefix})
      graph = session.graph
      found = sorted(graph.get_collection("embedding_variables"), key=lambda v: v.op.name)
      for table, (rows, _) in zip(found, tables):
        exported = session.run(checkpoint_ops.export_table(table.handle))
        self.assertEqual({key: row.tobytes() for key, row in zip(
            exported.keys.tolist(), exported.values)}, {k: r[0] for k, r in rows.items()})

  def _check_pulled(self, pulled, saved, since):
    """Checks that pulled rows of the last steps are the previous job's, without slots."""
    for (rows, _), (found, _) in zip(saved[2], pulled[2]):
      newer = {k: (v, m) for k, (v, _, m) in rows.items() if m[0] >= since}
      self.assertBetween(len(newer), 1, len(rows) - 1)
      self.assertEqual({k: (v, m) for k, (v, _, m) in found.items()}, newer)

  def _check_files(self):
    """Checks that all ranks write one delta: changes by key, each rank's in its own
    part."""
    reader = tf.train.load_checkpoint(glob.glob(os.path.join(
        self._folder, ".incremental_checkpoint", "model.ckpt-3-*-00002.index"))[0][:-6])
    self.assertEqual(reader.get_tensor("table_2-sparse_incr_placement").tolist(),
                     [2, 0, 0])
    replaces = [reader.get_tensor("table_0/part_%d-sparse_incr_replaces" % r).tolist()
                for r in range(3)]
    self.assertEqual(replaces, [[1], [0], [0]])
    self.assertNotEmpty(reader.get_tensor("table_0/part_1-sparse_incr_erased_keys"))
    self.assertEqual(reader.get_tensor("dense"), 9)

  def test_a_monitored_training_session(self):
    self._run(2, "monitored", "a")
    self._restores("saved_a", 2)
    self.assertEqual(self._state("saved_a", 2)[0], 10)
    self.assertEqual(self._deltas(), [[0, 1], [0, 2], [6, 1], [6, 2]])

  def test_hooks(self):
    output = self._run(2, "hooks", "").output
    for rank in (0, 1):
      self.assertRegex(
          output, r"\[%d\]<stdout>:REFUSED: .*rank 0: CheckpointSaverHook\(.*, every 5 steps,"
          r" incremental every 2 steps\), rank 1: .*incremental every 3 steps\)" % rank)
    # Full checkpoints at 0 and at the end; between them, deltas by rank 0's clock.
    self.assertIn([0, 1], self._deltas("_by_seconds"))
    self.assertEqual(self._deltas("_estimator"), [[0, 1], [0, 2], [5, 1], [5, 2]])
    for folder in ("_by_seconds", "_estimator"):
      self.assertIsNotNone(tf.train.latest_checkpoint(os.path.join(self._folder, folder)))

  def test_a_graph_that_rank_0_built(self):
    output = self._run(2, "imported", "a").output
    for rank in (0, 1):
      said = re.findall(r"\[%d\]<stdout>:REFUSED: embedding variable 'table_\d' is spread "
                        r"over ranks, and this Saver was imported" % rank, output)
      self.assertLen(said, 2)
    self.assertEqual(self._state("restored_a", 2), self._state("saved_a", 2))

  def test_a_delta_that_failed_is_in_the_next_one(self):
    output = self._run(2, "mistakes", "a").output
    for rank in (0, 1):
      self.assertRegex(
          output, r"\[%d\]<stdout>:UNLIKE: checkpoint/save: the path of a checkpoint: expected "
          r"the same on all ranks, got rank 0: .*model.ckpt-1-[0-9a-f]+-00001; rank 1: "
          r".*model.ckpt-2 and incremental ones" % rank)
    self.assertIn("[1]<stdout>:FAILED: ResourceExhaustedError: the disk is full", output)
    self.assertIn("[0]<stdout>:FAILED: RankError: checkpoint/save: rank 1 failed: "
                  "ResourceExhaustedError: the disk is full", output)
    self.assertIn("LEFT: []", output)
    self.assertEqual(self._deltas(), [[1, 1]])
    self._restores("saved_a", 2)

  def _fails(self, num_ranks, gone=None, **env):
    """Runs a job whose second delta fails; every rank must report an error.

    Args:
      gone: the rank that is killed.
    """
    env = horovod_job.environment(**env)
    with ranks.Ranks(num_ranks, _PROGRAM, "failing", self._folder, "x", env=env) as job:
      for rank in range(num_ranks):
        code = job.wait(rank, 120)
        self.assertIsNotNone(code, job.output(rank)[-4000:])
        if rank != gone:
          self.assertEqual(code, 3, job.output(rank)[-4000:])
          self.assertRegex(job.output(rank), r"FAILED after [0-9.]+ s: ")
      return [job.output(rank) for rank in range(num_ranks)]

  def test_a_rank_that_is_killed_before_it_writes(self):
    said = self._fails(3, RANK="1", DOES="is killed before", gone=1)
    for rank in (0, 2):
      self.assertRegex(said[rank], "FAILED after [0-9.]+ s: RankError: checkpoint/save: ")
    self._only_checkpoints()
    self._restores("first_x", 3)

  def test_rank_0_is_killed_when_all_is_written(self):
    said = self._fails(2, RANK="0", DOES="is killed after", gone=0)
    self.assertRegex(said[1], "FAILED after [0-9.]+ s: RankError: checkpoint/save: ")
    self._restores("second_x", 2)

  def test_a_rank_is_killed_at_any_time(self):
    draw = random.Random(flags.FLAGS.seed)
    for _ in range(flags.FLAGS.kills):
      self._folder = self.create_tempdir().full_path
      with ranks.Ranks(2, _PROGRAM, "saves", self._folder, "") as job:
        self.assertTrue(job.wait_for(1, "SAVED 2", 120), job.output(1)[-4000:])
        time.sleep(draw.random())
        job.signal(draw.randint(0, 1), signal.SIGKILL)
        for rank in range(2):
          self.assertIsNotNone(job.wait(rank, 60), job.output(rank)[-4000:])
        complete = max(int(n) for rank in range(2)
                       for n in re.findall(r"SAVED (\d+)\n", job.output(rank)))
      with tf.Graph().as_default():
        spread_incremental_job.restore(self._folder, "alone")
      found = self._state("restored_alone", 1)
      # The next save may be complete although its message was not printed.
      last = found[0] - 1
      print("complete: %d, restored: %d" % (complete, last), file=sys.stderr)
      self.assertIn(last, (complete, complete + 1))
      self.assertEqual(found, self._state("at_%d" % last, 2))

  def test_a_rank_that_does_not_save(self):
    said = self._fails(2, RANK="1", DOES="goes on", TIMEOUT="5")
    # Either rank may be the first to exceed the timeout.
    self.assertRegex(said[0], r"FAILED after [0-9.]+ s: RankError: checkpoint/save: "
                     r"(rank 0 has waited for 5 s. Not all ranks take part in it|another "
                     r"rank is gone)")
    self._restores("first_x", 2)


if __name__ == "__main__":
  absltest.main()
