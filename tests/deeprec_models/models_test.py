# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Every model trains by the launcher as stock TensorFlow trains it, and is served."""

import json
import os
import re
import subprocess
import sys
import tempfile

from absl.testing import absltest
import numpy as np

import cluster
import data
import embedding_variable
import parts
import preloaded
import train
import zoo

_HERE = os.path.dirname(os.path.abspath(__file__))
_TRAIN = os.path.join(_HERE, "train.py")
_LAUNCH = ["-c", "import sys\nfrom embedding_variable.deeprec import main\n"
           "sys.exit(main.main(sys.argv[1:]))"]
_MODELS = ["bst", "dbmtl", "dcn", "dcnv2", "deepfm", "dien", "din", "dlrm", "dssm", "esmm",
           "masknet", "mmoe", "ple", "wdl"]
_ROWS = 1024
_SECONDS = 600


class ModelsTest(absltest.TestCase):

  @classmethod
  def setUpClass(cls):
    super(ModelsTest, cls).setUpClass()
    cls.python = preloaded.Interpreter(["embedding_variable"])
    cls.data = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
    columns = {}
    for inputs in (zoo.INPUTS, parts.PLAIN, parts.WITH_HISTORIES,
                   parts.TWO_TASKS):
      columns.update(data.write(os.path.join(cls.data, train.folder_of(inputs)), _ROWS,
                                inputs))
    cls.columns = os.path.join(cls.data, "eval.json")
    with open(cls.columns, "w") as f:
      json.dump({k: np.asarray(v).tolist() for k, v in columns.items()}, f)

  @classmethod
  def tearDownClass(cls):
    cls.python.close()
    super(ModelsTest, cls).tearDownClass()

  def _start(self, words, env=None):
    output = tempfile.TemporaryFile(mode="w+")
    process = self.python.start(words, output, dict(os.environ, **(env or {})))

    def end():
      process.kill()
      process.wait()
      output.close()

    self.addCleanup(end)
    return process, output

  def _train(self, models, output, *flags, by_launcher=True, env=None):
    """Starts a program that trains models."""
    return self._start((_LAUNCH if by_launcher else []) + [
        _TRAIN, "--models=" + ",".join(models), "--data_location=" + self.data,
        "--output_dir=" + output] + list(flags), env)

  def _end(self, process, output):
    """Returns what a program printed; it must succeed."""
    try:
      code = process.wait(_SECONDS)
    except subprocess.TimeoutExpired:
      code = "still running"
    output.seek(0)
    printed = output.read()
    self.assertEqual(code, 0, printed[-4000:])
    return printed

  def _of_models(self, printed):
    """Returns a dict from names to what each model printed."""
    texts = re.split(r"^model (\w+)$", printed, flags=re.M)[1:]
    return dict(zip(texts[::2], texts[1::2]))

  def _served(self, models, folder, library=""):
    """Returns a dict from names to the mean of what each model predicts."""
    result = subprocess.run(
        [sys.executable, os.path.join(_HERE, "serve.py"), folder, self.columns,
         ",".join(models), library], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        timeout=_SECONDS)
    printed = result.stdout.decode("utf-8", "replace")
    self.assertEqual(result.returncode, 0, printed[-4000:])
    return {name: float(mean) for name, mean in
            re.findall(r"^(\w+) predicts (\S+)$", printed, re.M)}

  def test_default_flags(self):
    # With one batch in the data, the order in which threads stage batches has no effect,
    # and AdamAsync is Adam: every row of a table that has a gradient has one in each step.
    flags = ["--batch_size=%d" % _ROWS, "--steps=5"]
    exported = os.path.join(self.create_tempdir().full_path, "exported")
    folder = self.create_tempdir().full_path
    # Programs by the launcher take longer, so they share the models.
    programs = [self._train(models, folder, "--saved_model=" + exported, *flags)
                for models in (_MODELS[::2], _MODELS[1::2])]
    stock = self._train(_MODELS, self.create_tempdir().full_path, "--tf", *flags,
                        by_launcher=False)
    expected, found = self._of_models(self._end(*stock)), {}
    for program in programs:
      found.update(self._of_models(self._end(*program)))
    served = self._served(_MODELS, exported)
    self.assertCountEqual(expected, _MODELS)
    for name in _MODELS:
      with self.subTest(name):
        stock, own = [np.array(re.findall(r"^step (\d+) loss (\S+)$", text, re.M), float)
                      for text in (expected[name], found[name])]
        self.assertEqual(own[:, 0].tolist(), [1, 2, 3, 4, 5])
        np.testing.assert_allclose(own, stock, rtol=1e-5)
        self.assertLess(own[-1, 1], own[0, 1])
        stock, own = [np.array(re.findall(r"AUC (\S+) mean (\S+)$", text, re.M), float)
                      for text in (expected[name], found[name])]
        np.testing.assert_allclose(own, stock, rtol=1e-4)
        np.testing.assert_allclose(served[name], own[0, 1], rtol=1e-5)

  def test_embedding_variables(self):
    # Each kind of lookup: columns, sequence columns, tables that a model looks up itself.
    models = ["bst", "deepfm", "din"]
    exported = os.path.join(self.create_tempdir().full_path, "exported")
    # A model is saved after 10 steps and restored into a new graph.
    found = self._of_models(self._end(*self._train(
        models, self.create_tempdir().full_path, "--ev=True", "--batch_size=128",
        "--stop_at=10", "--steps=16", "--saved_model=" + exported)))
    served = self._served(models, exported, embedding_variable.library_path())
    for name in models:
      with self.subTest(name):
        steps = np.array(re.findall(r"^step (\d+) loss (\S+)$", found[name], re.M), float)
        self.assertEqual(steps[:, 0].tolist(), list(range(1, 17)))
        self.assertLess(np.mean(steps[-4:, 1]), np.mean(steps[:4, 1]))
        batches, mean = re.search(r"eval batches (\d+) AUC \S+ mean (\S+)$", found[name],
                                  re.M).groups()
        self.assertEqual(int(batches), _ROWS // 4 // 128)
        np.testing.assert_allclose(served[name], float(mean), rtol=1e-5)

  def test_parameter_server(self):
    """One parameter server and two workers train a model; one process continues."""
    # Both jobs run at the same time: a worker waits 30 seconds for the chief.
    jobs = {}
    for name in ("din", "mmoe"):
      folder = self.create_tempdir().full_path
      jobs[name] = folder, [
          self._train([name], folder, "--batch_size=128", "--steps=40",
                      "--saved_model=" + os.path.join(folder, "exported"),
                      env={"TF_CONFIG": json.dumps(task)})
          for task in cluster.tasks({"ps": 1, "chief": 1, "worker": 1})]
    for name, (folder, (server, chief, worker)) in jobs.items():
      with self.subTest(name):
        losses = [np.array(re.findall(r"^step \d+ loss (\S+)$", self._end(*task), re.M),
                           float) for task in (chief, worker)]
        self.assertIsNone(server[0].poll())
        server[0].kill()
        self.assertGreaterEqual(sum(map(len, losses)), 40)
        self.assertTrue(all(map(len, losses)), losses)
        self.assertLess(np.mean(losses[0][-5:]), np.mean(losses[0][:5]))
        self._served([name], os.path.join(folder, "exported"))
        self._continues(name, folder)

  def _continues(self, name, folder):
    """One process restores a job's checkpoint, trains a step, and is served."""
    exported = os.path.join(folder, "continued")
    printed = self._end(*self._train([name], folder, "--batch_size=128", "--steps=40",
                                     "--saved_model=" + exported))
    (step,) = re.findall(r"^step (\d+) loss", printed, re.M)
    self.assertGreater(int(step), 40)
    mean = re.search(r"AUC \S+ mean (\S+)$", printed, re.M).group(1)
    np.testing.assert_allclose(self._served([name], exported)[name], float(mean),
                               rtol=1e-5)


if __name__ == "__main__":
  absltest.main()
