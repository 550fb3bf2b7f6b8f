# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs the examples, which check themselves, as programs and as notebooks."""

import json
import os
import sys

from absl.testing import absltest

import notebooks
import preloaded


class ExampleTest(absltest.TestCase):

  @classmethod
  def setUpClass(cls):
    super(ExampleTest, cls).setUpClass()
    # Examples import this project's packages themselves.
    cls.python = preloaded.Interpreter(["tensorflow"])

  @classmethod
  def tearDownClass(cls):
    cls.python.close()
    super(ExampleTest, cls).tearDownClass()

  def run_python(self, *words, cwd=None):
    env = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path), TF_CPP_MIN_LOG_LEVEL="2")
    return self.python.run(words, env, cwd)

  def run_example(self, name):
    folder = os.path.dirname(os.path.abspath(__file__))
    done = self.run_python(
        os.path.join(folder, name),
        "--folder=" + os.path.join(self.create_tempdir().full_path, "here"))
    self.assertEqual(done.returncode, 0, done.stdout)
    return done.stdout

  def test_notebooks_are_the_programs(self):
    folder = os.path.dirname(os.path.abspath(__file__))
    for name in notebooks.NAMES:
      with open(os.path.join(folder, name + ".py")) as f:
        expected = notebooks.notebook(f.read())
      with open(os.path.join(folder, name + ".ipynb")) as f:
        self.assertEqual(f.read(), expected,
                         "run addons/hierarchical_parameter_server/example/notebooks.py")

  def test_a_notebooks_cells_run_one_after_the_other(self):
    folder = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(folder, "pretrained_embeddings.ipynb")) as f:
      cells = json.load(f)["cells"]
    self.assertEqual(cells[0]["cell_type"], "markdown")
    code = "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "code")
    done = self.run_python("-c", code, cwd=self.create_tempdir().full_path)
    self.assertIn("after; 17 trained weights", done.stdout)

  def test_basic_workflow(self):
    self.assertIn("largest difference", self.run_example("basic_workflow.py"))

  def test_sok_training_to_inference(self):
    self.assertIn("largest difference", self.run_example("sok_training_to_inference.py"))

  def test_pretrained_embeddings(self):
    self.assertRegex(self.run_example("pretrained_embeddings.py"),
                     "after; 17 trained weights")


if __name__ == "__main__":
  absltest.main()
