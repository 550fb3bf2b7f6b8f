# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Utests on two hosts that are connected by a network."""

import os
import re

from absl.testing import absltest
from absl.testing import parameterized

import network
import ranks

_ADDONS = os.path.join(
    os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "addons")

_SOK = ["SokVariablesTest.test_" + case for case in (
    "static_faces", "all2all_dense_embedding_trains",
    "variables_beside_embedding_variables")]

_HUGECTR = ["SessionUtest.test_" + case for case in (
    "nodes_of_one_device_each", "ranks_train_as_one_process_does0")]


class TwoHostsTest(parameterized.TestCase):

  @parameterized.parameters(
      ("sparse_operation_kit/python/sok_variables_utest.py", _SOK),
      ("hugectr/python/session_utest.py", _HUGECTR))
  def test_utest(self, utest, cases):
    try:
      with network.two_hosts() as hosts, \
          ranks.Ranks(2, os.path.join(_ADDONS, utest), *cases, hosts=hosts) as job:
        for rank in range(2):
          code = job.wait(rank, 240)
          self.assertEqual(code, 0, job.output(rank)[-10000:])
          self.assertEqual(
              re.search(r"Ran (\d+) tests", job.output(rank)).group(1), str(len(cases)))
        for host in hosts:
          # The rendezvous, rows and gradients passed through the network.
          self.assertGreater(host.sent_bytes(), 10 * 1000)
    except network.Unavailable as e:
      self.skipTest("no network namespaces: %s" % e)


if __name__ == "__main__":
  absltest.main()
