# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs each complete Python script of the README and the guides; checks their links.

A complete script is a fenced block that imports TensorFlow; other blocks are fragments.
"""

import glob
import os
import re
import subprocess
import sys
import tempfile

from absl.testing import absltest

import preloaded

_FENCE = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
_COMMAND = re.compile(r'^python -c "([^"`]*)"$', re.MULTILINE)
_LINK = re.compile(r"\[[^\]]*\]\(([^)#]+)(?:#[^)]*)?\)")


def documents():
  """Returns the paths of the README and of every page of docs/."""
  root = os.getcwd()
  return [os.path.join(root, "README.md")] + sorted(
      glob.glob(os.path.join(root, "docs", "**", "*.md"), recursive=True))


def scripts(text):
  """Returns the complete scripts in a page that holds for TensorFlow 1.15.

  tests/eager/guide_test.py runs those of a page that works with TensorFlow 2.x alone.
  """
  if "*Works with* TensorFlow 2" in text:
    return []
  return [block for block in _FENCE.findall(text)
          if "import tensorflow" in block]


class DocumentsTest(absltest.TestCase):

  @classmethod
  def setUpClass(cls):
    super(DocumentsTest, cls).setUpClass()
    # Scripts import this project's packages themselves.
    cls.python = preloaded.Interpreter(["horovod.tensorflow"])

  @classmethod
  def tearDownClass(cls):
    cls.python.close()
    super(DocumentsTest, cls).tearDownClass()

  def test_finds_the_pages_and_their_scripts(self):
    names = [os.path.basename(p) for p in documents()]
    self.assertIn("README.md", names)
    self.assertIn("embedding_variables.md", names)
    with open(documents()[0]) as f:
      self.assertLen(scripts(f.read()), 2)

  def test_scripts_run(self):
    for path in documents():
      with open(path) as f:
        found = scripts(f.read())
      for i, script in enumerate(found):
        with self.subTest(page=path, script=i):
          with tempfile.TemporaryDirectory() as directory:
            env = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path),
                       TF_CPP_MIN_LOG_LEVEL="2")
            done = self.python.run(["-c", script], env, directory, timeout=120)
          self.assertEqual(done.returncode, 0, done.stdout)

  def test_commands_of_one_line_run(self):
    ran = 0
    for path in documents():
      with open(path) as f:
        commands = _COMMAND.findall(f.read())
      for command in commands:
        env = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
        done = subprocess.run([sys.executable, "-W", "ignore", "-c", command], env=env,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(done.returncode, 0, "%s: %s" % (path, done.stdout.decode()))
        ran += 1
    self.assertGreater(ran, 0)

  def test_a_failing_script_would_be_noticed(self):
    page = "```python\nimport tensorflow as tf\nraise SystemExit(3)\n```\n"
    script, = scripts(page)
    done = self.python.run(["-c", script])
    self.assertEqual(done.returncode, 3)

  def test_links_between_pages_lead_somewhere(self):
    known = {os.path.realpath(p) for p in documents()}
    for path in documents():
      with open(path) as f:
        targets = _LINK.findall(f.read())
      for target in targets:
        if not target.endswith(".md") or "://" in target:
          continue
        if os.path.basename(target) in ("CONTRIBUTING.md", "CHANGELOG.md"):
          continue  # in the root folder, not among the guides
        linked = os.path.realpath(
            os.path.join(os.path.dirname(path), target))
        # Runfiles are links into the source tree.
        base = os.path.realpath(os.path.join(os.path.dirname(os.path.realpath(path)),
                                             target))
        # Pages of results are not guides and exist only in the source tree.
        self.assertTrue(linked in known or base in known or os.path.isfile(base),
                        "%s links to %s, which does not exist" % (path, target))


if __name__ == "__main__":
  absltest.main()
