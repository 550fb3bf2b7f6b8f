# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The models train by the launcher, with DeepRec's defaults and with its other flags."""

import json
import os
import re
import socket
import subprocess
import tempfile
import time

from absl.testing import absltest
import numpy as np

import make_data
import preloaded

_HERE = os.path.dirname(os.path.abspath(__file__))
_LAUNCH = ["-c", "import sys\nfrom embedding_variable.deeprec import main\n"
           "sys.exit(main.main(sys.argv[1:]))"]
_ROWS = 2048
_SECONDS = 400


class ModelsTest(absltest.TestCase):

  @classmethod
  def setUpClass(cls):
    super(ModelsTest, cls).setUpClass()
    cls.python = preloaded.Interpreter(["embedding_variable"])
    cls.data = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
    make_data.write(cls.data, _ROWS)

  @classmethod
  def tearDownClass(cls):
    cls.python.close()
    super(ModelsTest, cls).tearDownClass()

  def _start(self, model, *flags, by_launcher=True, env=None):
    output = tempfile.TemporaryFile(mode="w+")
    words = (_LAUNCH if by_launcher else []) + [
        os.path.join(_HERE, model + ".py"), "--data_location=" + self.data] + list(flags)
    process = self.python.start(words, output, dict(os.environ, **(env or {})))

    def end():
      process.kill()
      process.wait()
      output.close()

    self.addCleanup(end)
    return process, output

  def _end(self, process, output, deadline=_SECONDS):
    """Returns what a program printed; it must succeed."""
    try:
      code = process.wait(deadline)
    except subprocess.TimeoutExpired:
      code = "still running"
    output.seek(0)
    printed = output.read()
    self.assertEqual(code, 0, printed[-4000:])
    return printed

  def _losses(self, printed):
    return [float(v) for v in re.findall(r"^step \d+ loss (\S+)$", printed, re.M)]

  def test_losses_are_those_of_stock_tensorflow(self):
    # Those of all models are compared in //tests/deeprec_models. With one batch in the
    # data, the order in which threads stage batches has no effect.
    flags = ["--batch_size=%d" % _ROWS, "--steps=5", "--no_eval"]
    programs = [
        self._start("wdl", "--optimizer=adam",
                    "--output_dir=" + self.create_tempdir().full_path, *flags),
        self._start("wdl", "--tf", "--output_dir=" + self.create_tempdir().full_path,
                    *flags, by_launcher=False)]
    found, expected = [self._end(*p) for p in programs]
    self.assertLen(self._losses(expected), 5)
    np.testing.assert_allclose(self._losses(found), self._losses(expected), rtol=1e-5)
    for name in ("ParquetDataset", "tf.staged", "version of TensorFlow"):
      self.assertLen(re.findall("^deeprec: %s: stand-in: " % name, found, re.M), 1)
    for name in ("do_smart_stage", "do_op_fusion", "START_STATISTIC_STEP", "MALLOC_CONF"):
      self.assertLen(re.findall("^deeprec: %s: no effect: " % name, found, re.M), 1)

  def test_all_flags_then_resumes(self):
    folder = self.create_tempdir().full_path
    flags = ["--batch_size=256", "--ev=True", "--ev_filter=counter",
             "--ev_elimination=gstep", "--workqueue=True", "--group_embedding=localized",
             "--micro_batch=2", "--bf16", "--output_dir=" + folder]
    printed = self._end(*self._start("wdl", "--steps=8", *flags))
    self.assertLen(self._losses(printed), 8)
    self.assertIn("deeprec: WorkQueue: stand-in: ", printed)
    # The files for evaluation were taken in training, and are handed out again.
    self.assertIn("eval batches 4 ", printed)
    printed = self._end(*self._start("wdl", "--steps=12", *flags))
    self.assertIn("\nstep 9 loss ", printed)

  def test_parameter_server(self):
    sockets = [socket.socket() for _ in range(3)]
    for s in sockets:
      s.bind(("localhost", 0))
    hosts = ["localhost:%d" % s.getsockname()[1] for s in sockets]
    for s in sockets:
      s.close()
    cluster = {"ps": hosts[:1], "chief": hosts[1:2], "worker": hosts[2:]}
    folder = self.create_tempdir().full_path

    def start(task):
      config = {"cluster": cluster, "task": {"type": task, "index": 0}}
      return self._start("dlrm", "--workqueue=True", "--ev=True", "--protocol=grpc++",
                         "--batch_size=128", "--epochs=6", "--output_dir=" + folder,
                         env={"TF_CONFIG": json.dumps(config)})

    server = start("ps")
    workers = [start("chief"), start("worker")]
    deadline = time.time() + _SECONDS
    printed = [self._end(*w, deadline=max(1, deadline - time.time())) for w in workers]
    self.assertIsNone(server[0].poll())
    for text in printed:
      self.assertIn("deeprec: protocol grpc++: stand-in: grpc", text)
      self.assertIn("trained to the end", text)
    losses = [self._losses(text) for text in printed]
    self.assertLess(np.mean(losses[0][-5:]), np.mean(losses[0][:5]))
    # Six works of 16 batches; each batch is trained by one worker.
    self.assertLessEqual(sum(map(len, losses)), 6 * _ROWS // 128)


if __name__ == "__main__":
  absltest.main()
