# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs the benchmarks of the server with small sizes."""

import os
import shutil
import subprocess
import sys
import unittest
from unittest import mock

from absl.testing import absltest


# Stands for LoadGen, which setup does not install: sends two queries.
_LOADGEN = """
import collections, os, threading
TestScenario = TestMode = collections.namedtuple("Names", "Server, PerformanceOnly")(1, 2)
QuerySampleResponse = collections.namedtuple("Response", "id, data, size")
Sample = collections.namedtuple("Sample", "id, index")
ended = threading.Semaphore(0)
class TestSettings: pass
class LogSettings:
  class log_output: pass
def QuerySamplesComplete(responses):
  assert responses[0].id in (70, 71)
  ended.release()
def ConstructSUT(issue, flush): return issue
def ConstructQSL(total, most, load, unload): return total
def StartTestWithLogSettings(issue, total, settings, logs):
  issue([Sample(70, 0), Sample(71, total - 1)])
  for _ in range(2):
    assert ended.acquire(timeout=60)
  with open(os.path.join(logs.log_output.outdir, "mlperf_log_summary.txt"), "w") as f:
    f.write("Completed samples per second    : %.2f\\nResult is : VALID\\n"
            "50.00 percentile latency (ns)   : 1500000\\n"
            "99.00 percentile latency (ns)   : 2500000\\n" % settings.server_target_qps)
def DestroyQSL(qsl): pass
def DestroySUT(sut): pass
"""


class SpeedTest(absltest.TestCase):

  def run_program(self, name, *flags):
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), name)
    return subprocess.check_output(
        [sys.executable, "-W", "ignore", program] + list(flags),
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path),
                 TMPDIR=self.create_tempdir().full_path), universal_newlines=True)

  @unittest.skipIf(shutil.which("h2load") is None, "h2load is missing (package nghttp2-client)")
  def test_speed(self):
    output = self.run_program(
        "speed.py", "--tables=2", "--rows=100", "--dim=4", "--batch=8", "--seconds=1",
        "--clients=2", "--num_reloads=2", "--reload_seconds=1")
    for line in (r"session\.run +batch +8 +\d", r"gRPC +batch +8 .*% of session\.run",
                 r"REST +batch +8 +\d", r"gRPC +batch +1 +\d", r"REST, half rate +batch +1 +\d",
                 r"gRPC, +2 reloads .*p99\.9 +\d"):
      self.assertRegex(output, line)

  def test_loadgen(self):
    folder = self.create_tempdir()
    folder.create_file("mlperf_loadgen.py", _LOADGEN)
    with mock.patch.object(sys, "path", [folder.full_path] + sys.path):
      output = self.run_program("loadgen.py", "--tables=2", "--rows=100", "--dim=4", "--qps=3,5",
                                "--requests=3")
    self.assertEqual([line for line in output.splitlines() if line.startswith("target")], [
        "target %d queries/s: %d.00 completed, p50 1.50 ms, p99 2.50 ms, VALID" % (qps, qps)
        for qps in (3, 5)])

  def test_freshness(self):
    output = self.run_program("freshness.py", "--rows=1000", "--dim=4", "--changed=50",
                              "--every=0.3", "--deltas=3", "--batch=16")
    self.assertRegex(output, r"age of a step .* median \d+\.\d\d s, most \d")
    self.assertRegex(output, r"training step: median \d")


if __name__ == "__main__":
  absltest.main()
