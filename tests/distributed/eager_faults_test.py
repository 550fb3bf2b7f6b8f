# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""If a rank that trains eager tables fails, the others end within a bounded time."""

import os
import signal

from absl.testing import absltest
from absl.testing import parameterized

import horovod_job
import ranks

_PROGRAM = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
                        "eager", "failing_ranks_job.py")

# Seconds to wait for an immediate error; most of it is for slow machines.
_SOON = 40.
_LIMIT = 4.

_MODES = ("eager", "function", "fit")

# The start of the error in eager execution; that of a function names the op.
_WORDS = {"eager": r"InternalError: sok_exchange/\w+: the exchange between ranks failed: "
                   r"a rank is gone, or has ended before the others",
          "function": r"sok_exchange/", "fit": r"Error"}


class EagerFaultsTest(parameterized.TestCase):

  def _start(self, mode, fault, *arguments, **variables):
    job = ranks.Ranks(2, _PROGRAM, mode, fault, *arguments,
                      env=horovod_job.environment(**variables))
    self.addCleanup(job.__exit__)
    return job

  def _ends_with_an_error(self, job, rank, words):
    code = job.wait(rank, _SOON)
    output = job.output(rank)
    self.assertIsNotNone(code, "rank %d hangs: %s" % (rank, output[-5000:]))
    self.assertGreater(code, 0, output[-5000:])  # an exception, not a signal
    self.assertRegex(output, words)

  @parameterized.parameters(*_MODES)
  def test_killed(self, mode):
    job = self._start(mode, "wait")
    for rank in range(2):
      self.assertTrue(job.wait_for(rank, "trained", 150), job.output(rank))
    job.signal(1, signal.SIGKILL)
    self._ends_with_an_error(job, 0, _WORDS[mode])

  @parameterized.parameters(*_MODES)
  def test_raises(self, mode):
    job = self._start(mode, "raise")
    self._ends_with_an_error(job, 1, "a bug in this rank's input")
    self._ends_with_an_error(job, 0, _WORDS[mode])

  def test_killed_with_an_exchange_through_memory(self):
    job = self._start("function", "wait", SOK_EXCHANGE="memory")
    for rank in range(2):
      self.assertTrue(job.wait_for(rank, "trained", 150), job.output(rank))
    job.signal(1, signal.SIGKILL)
    self._ends_with_an_error(job, 0, "the exchange between ranks failed: rank 1 is gone")

  @parameterized.parameters("eager", "function")
  def test_extra_lookup(self, mode):
    job = self._start(mode, "extra", _LIMIT)
    self._ends_with_an_error(job, 1, "Not all ranks take part in it")
    self.assertNotIn("got more than all others", job.output(1))

  @parameterized.parameters("eager", "function")
  def test_other_table(self, mode):
    job = self._start(mode, "other_table")
    self._ends_with_an_error(job, 0, "sent the keys of another lookup")
    self._ends_with_an_error(job, 1, "sent the keys of another lookup|is gone")


if __name__ == "__main__":
  absltest.main()
