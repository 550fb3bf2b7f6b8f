# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs one *_utest.py on ranks, as a test.

  utest_on_ranks.py --ranks=2 --utest=addons/.../distributed_lookup_utest.py
"""

import os
import re

from absl import flags
from absl.testing import absltest

import horovod_job
import nvidia_driver
import ranks

FLAGS = flags.FLAGS
flags.DEFINE_integer("ranks", 2, "Number of ranks.")
flags.DEFINE_string("utest", None, "The program, relative to the repository.")
flags.DEFINE_list("args", [], "Its arguments.")
flags.DEFINE_string("through", None, "A program that runs it, also relative to the "
                                     "repository.")
flags.DEFINE_string("exchange", "horovod", "Carrier of its lookups.")
flags.DEFINE_bool("horovodrun", False, "Whether horovodrun starts the ranks.")
flags.DEFINE_bool("needs_gpu", False, "Whether it is skipped if there is no GPU.")
flags.mark_flag_as_required("utest")


class UtestOnRanks(absltest.TestCase):

  def test_every_rank_passes(self):
    # Checked once, not by every rank.
    why = nvidia_driver.why_no_gpu() if FLAGS.needs_gpu else None
    if why:
      self.skipTest(why)
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    words = [os.path.join(root, p) for p in (FLAGS.through, FLAGS.utest) if p]
    env = horovod_job.environment(SOK_EXCHANGE=FLAGS.exchange)
    if FLAGS.horovodrun:
      result = horovod_job.run(FLAGS.ranks, *(words + FLAGS.args), env=env)
    else:
      result = ranks.run(
          FLAGS.ranks, *(words + FLAGS.args), env=env,
          modules=ranks.WITHOUT_PACKAGE if FLAGS.through else ranks.WITH_PACKAGE)
    tail = result.output[-20000:]
    self.assertIsNotNone(result.returncode, "ran too long:\n" + tail)
    self.assertEqual(result.returncode, 0, tail)
    # Every rank prints its number of cases, which must be equal and not zero.
    counts = re.findall(r"Ran (\d+) tests? in", result.output)
    self.assertLen(counts, FLAGS.ranks, tail)
    self.assertLen(set(counts), 1, tail)
    self.assertGreater(int(counts[0]), 0, tail)
    skipped = re.findall(r"OK \(skipped=(\d+)\)", result.output)
    if skipped == counts:
      # A test whose cases are all skipped counts as skipped, not as passed.
      why = re.search(r"every case is skipped: (.*)", result.output)
      self.skipTest(why.group(1) if why else "every case was skipped on every rank")


if __name__ == "__main__":
  absltest.main()
