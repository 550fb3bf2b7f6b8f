# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""A utest over two hosts with a network between them."""

import os
import re

from absl.testing import absltest

import network
import ranks

_UTEST = os.path.join(
    os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))),
    "addons/sparse_operation_kit/python/sok_variables_utest.py")


_CASES = ["SokVariablesTest.test_" + case for case in (
    "static_faces", "all2all_dense_embedding_trains",
    "variables_beside_embedding_variables")]


class TwoHostsTest(absltest.TestCase):

  def test_utest(self):
    try:
      with network.two_hosts() as hosts, \
          ranks.Ranks(2, _UTEST, *_CASES, hosts=hosts) as job:
        for rank in range(2):
          code = job.wait(rank, 240)
          self.assertEqual(code, 0, job.output(rank)[-10000:])
          self.assertEqual(
              re.search(r"Ran (\d+) tests", job.output(rank)).group(1), str(len(_CASES)))
        for host in hosts:
          # Rows, gradients and the rendezvous went over the wire.
          self.assertGreater(host.sent_bytes(), 10 * 1000)
    except network.Unavailable as e:
      self.skipTest("no network namespaces: %s" % e)


if __name__ == "__main__":
  absltest.main()
