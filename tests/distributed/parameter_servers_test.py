# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs `train_and_evaluate` of a canned Estimator with one process per TF_CONFIG task."""

import json
import os
import re
import socket
import subprocess
import tempfile
import time

from absl.testing import absltest
import tensorflow as tf

import preloaded

_JOB = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                    "parameter_servers_job.py")
_STEPS = 40
_SECONDS = 500


class ParameterServersTest(absltest.TestCase):

  @classmethod
  def setUpClass(cls):
    super(ParameterServersTest, cls).setUpClass()
    cls.python = preloaded.Interpreter(["embedding_variable"])

  @classmethod
  def tearDownClass(cls):
    cls.python.close()
    super(ParameterServersTest, cls).tearDownClass()

  def _start(self, cluster, task, index, *arguments):
    """Starts one task, which is killed at the end of the test."""
    config = {"cluster": cluster, "task": {"type": task, "index": index}}
    output = tempfile.TemporaryFile(mode="w+")
    process = self.python.start([_JOB] + list(arguments), output,
                                dict(os.environ, TF_CONFIG=json.dumps(config)))

    def end():
      process.kill()
      process.wait()
      output.close()

    self.addCleanup(end)
    return process, output

  def test_train_and_evaluate(self):
    tasks = [("ps", 0), ("ps", 1), ("chief", 0), ("worker", 0)]
    sockets = [socket.socket() for _ in tasks]
    for s in sockets:
      s.bind(("localhost", 0))
    cluster = {}
    for (task, _), s in zip(tasks, sockets):
      cluster.setdefault(task, []).append("localhost:%d" % s.getsockname()[1])
    for s in sockets:
      s.close()
    model_dir = self.create_tempdir().full_path
    started = {
        (task, index): self._start(cluster, task, index, model_dir, _STEPS)
        for task, index in tasks + [("evaluator", 0)]
    }
    deadline = time.time() + _SECONDS
    for (task, index), (process, output) in started.items():
      if task == "ps":
        continue
      try:
        code = process.wait(timeout=max(1, deadline - time.time()))
      except subprocess.TimeoutExpired:
        code = "still running"
      output.seek(0)
      printed = output.read()
      self.assertEqual(code, 0, "%s %d: %s" % (task, index, printed[-4000:]))
      self.assertIn("done", printed)
      if task != "evaluator":
        self.assertIn("tables on /job:ps/task:0 /job:ps/task:1", printed)
    for (task, index), (process, _) in started.items():
      if task == "ps":
        self.assertIsNone(process.poll(), "parameter server %d ended" % index)
    saved = tf.train.load_checkpoint(tf.train.latest_checkpoint(model_dir))
    self.assertGreaterEqual(saved.get_tensor("global_step"), _STEPS)
    keys = [name for name in saved.get_variable_to_shape_map()
            if re.search(r"/part_\d-keys$", name)]
    # Two parts of the linear model's weights and two of the embedding.
    self.assertLen(keys, 4)
    self.assertTrue(os.listdir(os.path.join(model_dir, "eval")))


if __name__ == "__main__":
  absltest.main()
