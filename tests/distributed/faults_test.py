# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""If a rank fails, the others end with an error within a bounded time.

The ranks do not run under horovodrun, because it would end the other ranks itself.
"""

import os
import signal
import time

from absl.testing import absltest

import horovod_job
import ranks

_HERE = os.path.dirname(os.path.abspath(__file__))
_PROGRAM = os.path.join(_HERE, "failing_job.py")
_GRADIENTS_PROGRAM = os.path.join(_HERE, "failing_gradients_job.py")
# A library with stand-ins for GPUs and NCCL.
_TEST_GPU = os.path.join(os.path.dirname(_HERE), "exchange_device", "test_gpu.py")

# Seconds to wait for an immediate error; most of it is for slow machines.
_SOON = 40.
_LIMIT = 4.

# Start of an exchange's error with any carrier, and the rest of Horovod's error, which
# does not name the lost rank.
_EXCHANGE = r"InternalError: sok_exchange/[a-z]+: the exchange between ranks failed: "
_GONE = _EXCHANGE + "a rank is gone, or has ended before the others. Horovod says: "


class FaultsTest(absltest.TestCase):

  def _start(self, mode, num_ranks, *arguments, **variables):
    job = ranks.Ranks(num_ranks, _PROGRAM, mode, *arguments,
                      env=horovod_job.environment(**variables))
    self.addCleanup(job.__exit__)
    for rank in range(num_ranks):
      self.assertTrue(job.wait_for(rank, "trained", 150), job.output(rank))
    return job

  def _ends_with_an_error(self, job, rank, timeout=_SOON, words="sok_exchange"):
    code = job.wait(rank, timeout)
    output = job.output(rank)
    self.assertIsNotNone(code, "rank %d hangs: %s" % (rank, output[-5000:]))
    self.assertGreater(code, 0, output[-5000:])  # an exception, not a signal
    self.assertIn("Error", output)
    self.assertRegex(output, words)

  def test_killed(self):
    job = self._start("wait", 3)
    job.signal(2, signal.SIGKILL)
    self._ends_with_an_error(job, 0, words=_GONE)
    self._ends_with_an_error(job, 1, words=_GONE)

  def test_the_first_rank_is_killed(self):
    # Horovod's coordinator.
    job = self._start("wait", 2)
    job.signal(0, signal.SIGKILL)
    self._ends_with_an_error(job, 1, words=_GONE)

  def test_killed_with_an_exchange_through_memory(self):
    job = self._start("wait", 3, SOK_EXCHANGE="memory")
    job.signal(2, signal.SIGKILL)
    self._ends_with_an_error(job, 0, words=_EXCHANGE + "rank 2 is gone")
    self._ends_with_an_error(job, 1, words=_EXCHANGE + "rank 2 is gone")

  def test_frozen_with_an_exchange_through_memory(self):
    # The error comes first. Horovod ends once its transport has given up on the rank.
    job = self._start("wait", 2, _LIMIT, SOK_EXCHANGE="memory",
                      HOROVOD_GLOO_TIMEOUT_SECONDS="5")
    job.signal(1, signal.SIGSTOP)
    self._ends_with_an_error(job, 0, words="a rank has waited too long")

  def test_waits_outside_of_an_exchange_through_memory(self):
    job = self._start("extra_and_wait", 2, _LIMIT, SOK_EXCHANGE="memory")
    self._ends_with_an_error(job, 1, words="Not all ranks take part in it")
    self.assertIn("a rank has waited too long", job.output(1))
    self.assertNotIn("got more than all others", job.output(1))

  def test_extra_lookup_with_an_exchange_through_memory(self):
    job = self._start("extra", 2, SOK_EXCHANGE="memory")
    self._ends_with_an_error(job, 1, words="rank 0 is gone")
    self.assertEqual(job.wait(0, _SOON), 0, job.output(0))

  def test_raises(self):
    job = self._start("raise", 2)
    self._ends_with_an_error(job, 1, words="a bug in this rank's input")
    self._ends_with_an_error(job, 0)

  def test_frozen(self):
    job = self._start("wait", 2, HOROVOD_GLOO_TIMEOUT_SECONDS="5")
    job.signal(1, signal.SIGSTOP)
    self._ends_with_an_error(job, 0, words=_GONE)

  def test_extra_lookup_while_the_others_end(self):
    job = self._start("extra", 2)
    self._ends_with_an_error(job, 1, words=_GONE)
    self.assertEqual(job.wait(0, _SOON), 0, job.output(0))

  def test_extra_lookup_while_the_others_wait_outside_of_it(self):
    job = self._start("extra_and_wait", 2, _LIMIT)
    begin = time.time()
    self._ends_with_an_error(job, 1, words="Not all ranks take part in it")
    self.assertGreater(time.time() - begin, _LIMIT / 2)
    self.assertIn("rank 1 has waited", job.output(1))
    self.assertRegex(job.output(1), _EXCHANGE + "a rank has waited too long")
    self.assertNotIn("got more than all others", job.output(1))

  def test_ranks_that_look_up_other_tables(self):
    job = ranks.Ranks(2, _PROGRAM, "other_lookup", env=horovod_job.environment())
    self.addCleanup(job.__exit__)
    for rank in range(2):
      self._ends_with_an_error(job, rank, timeout=150)
    self.assertIn("sent the keys of another lookup", job.output(0) + job.output(1))

  def test_ranks_that_exchange_other_types(self):
    job = ranks.Ranks(2, _PROGRAM, "other_dtype", env=horovod_job.environment())
    self.addCleanup(job.__exit__)
    for rank in range(2):
      self._ends_with_an_error(job, rank, timeout=150)
    self.assertRegex(job.output(0) + job.output(1),
                     "rank [01] exchanges rows as (bfloat16, this rank as float32|"
                     "float32, this rank as bfloat16).*exchange_dtype")

  def test_ranks_that_ask_for_other_carriers(self):
    # The last rank uses Horovod, so it does not wait for the others in sok.init.
    job = ranks.Ranks(3, _PROGRAM, "other_carrier",
                      env=horovod_job.environment(SOK_EXCHANGE="memory"))
    self.addCleanup(job.__exit__)
    for rank in range(2):
      self._ends_with_an_error(
          job, rank, timeout=150, words="exchange: expected the same on all ranks, got "
          "rank 0: memory; rank 1: memory; rank 2: horovod")
    self._ends_with_an_error(job, 2)

  def test_killed_while_gradients_are_summed_by_horovod(self):
    job = ranks.Ranks(2, _GRADIENTS_PROGRAM, "wait", env=horovod_job.environment())
    self.addCleanup(job.__exit__)
    for rank in range(2):
      self.assertTrue(job.wait_for(rank, "trained", 150), job.output(rank))
    job.signal(1, signal.SIGKILL)
    self._ends_with_an_error(
        job, 0, words="InternalError: .*: summing the gradients of 'layer' over ranks "
        "failed: a rank is gone")

  def _start_gradients(self, mode, num_ranks, *arguments):
    job = ranks.Ranks(num_ranks, _TEST_GPU, _GRADIENTS_PROGRAM, mode, *arguments,
                      env=horovod_job.environment(SOK_EXCHANGE="nccl"),
                      modules=ranks.WITHOUT_PACKAGE)
    self.addCleanup(job.__exit__)
    return job

  def test_killed_while_gradients_are_summed_by_nccl(self):
    job = self._start_gradients("wait", 3)
    for rank in range(3):
      self.assertTrue(job.wait_for(rank, "trained", 150), job.output(rank))
    job.signal(2, signal.SIGKILL)
    for rank in range(2):
      self._ends_with_an_error(
          job, rank, words="summing the gradients of 'layer' over ranks failed")

  def test_raises_while_gradients_are_summed_by_nccl(self):
    # The failed rank leaves like one that has finished; the others must not wait for it.
    job = self._start_gradients("raise", 2)
    self.assertTrue(job.wait_for(1, "trained", 150), job.output(1))
    begin = time.time()
    self._ends_with_an_error(job, 0, words="over ranks failed: rank 1 is gone")
    self._ends_with_an_error(job, 1, words="a bug in this rank's input")
    self.assertLess(time.time() - begin, 15.)

  def test_waits_outside_while_gradients_are_summed_by_nccl(self):
    job = self._start_gradients("less", 2, str(_LIMIT))
    self.assertTrue(job.wait_for(0, "trained", 150), job.output(0))
    self._ends_with_an_error(job, 0, words="a rank has waited too long")
    self.assertIn("in sok_gradients. Not all ranks take part in it", job.output(0))
    self.assertIn("summing the gradients of 'layer'", job.output(0))

  def test_ranks_whose_gradients_have_other_shapes(self):
    job = self._start_gradients("other_shape", 2)
    for rank in range(2):
      self._ends_with_an_error(job, rank, timeout=150, words="gradients of 'layer'")
    self.assertRegex(job.output(0) + job.output(1), "rank [01] sums different gradients")

  def test_nothing_wrong(self):
    job = self._start("none", 2, _LIMIT)
    for rank in range(2):
      self.assertEqual(job.wait(rank, _SOON), 0, job.output(rank))
      self.assertIn("ended", job.output(rank))


if __name__ == "__main__":
  absltest.main()
