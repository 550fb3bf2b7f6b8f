# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Starts a program on several ranks of this machine, and waits until it ends."""

import collections
import os
import signal
import subprocess
import sys
import time

# returncode: horovodrun's; None if it was killed. output: what all ranks printed, with
# "[rank]<stdout>:" or "[rank]<stderr>:" before each line. seconds: duration.
Result = collections.namedtuple("Result", ["returncode", "output", "seconds"])

# Variables of the test that starts the job, which would confuse its ranks.
_OWN = ("XML_OUTPUT_FILE", "TEST_SHARD_INDEX", "TEST_SHARD_STATUS_FILE",
        "TEST_TOTAL_SHARDS", "TESTBRIDGE_TEST_ONLY", "GTEST_SHARD_INDEX",
        "GTEST_TOTAL_SHARDS", "TEST_PREMATURE_EXIT_FILE")


def environment(**variables):
  """Returns the environment of a rank: short timeouts, a quiet TensorFlow."""
  env = {k: v for k, v in os.environ.items() if k not in _OWN}
  env.update(
      TF_CPP_MIN_LOG_LEVEL="1",
      PYTHONWARNINGS="ignore",
      # A rank that is alone in a collective means that a test is wrong, so report it
      # soon.
      HOROVOD_STALL_CHECK_TIME_SECONDS="10",
      HOROVOD_STALL_SHUTDOWN_TIME_SECONDS="40")
  env.update(variables)
  return env


def command(num_ranks, program, *arguments):
  """Returns the command line that starts a Python program on ranks."""
  return [
      sys.executable, "-m", "horovod.runner.launch", "-np", str(num_ranks), "-H",
      "localhost:%d" % num_ranks, sys.executable, program
  ] + [str(a) for a in arguments]


def run(num_ranks, program, *arguments, timeout=280, env=None):
  """Runs a Python program on ranks 0, 1, ... of this machine.

  Args:
    num_ranks: int.
    program: path.
    *arguments: arguments of the program.
    timeout: seconds after which all processes are killed.
    env: dict, or None for `environment()`.

  Returns:
    A Result.
  """
  begin = time.time()
  process = subprocess.Popen(
      command(num_ranks, program, *arguments), env=env or environment(),
      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
  try:
    output, _ = process.communicate(timeout=timeout)
    code = process.returncode
  except subprocess.TimeoutExpired:
    code = None
    os.killpg(process.pid, signal.SIGTERM)
    try:
      output, _ = process.communicate(timeout=10)
    except subprocess.TimeoutExpired:
      os.killpg(process.pid, signal.SIGKILL)
      output, _ = process.communicate()
  return Result(code, output.decode("utf-8", "replace"), time.time() - begin)
