# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of many_tests: every case of every program is in the one log."""

import os
import subprocess
import sys

from absl.testing import absltest

import many_tests
import test_log

_PASSING = """
import os, sys
from absl.testing import absltest
class A(absltest.TestCase):
  def test_one(self):
    self.assertIn("tensorflow", sys.modules)
    self.create_tempfile("x")
  def test_two(self):
    self.skipTest("no such machine")
if __name__ == "__main__":
  absltest.main()
"""

_FAILING = _PASSING.replace("class A", "class B").replace("assertIn", "assertNotIn")

_CRASHING = "import os; os.abort()"


class ManyTestsTest(absltest.TestCase):

  def run_programs(self, *texts):
    folder = self.create_tempdir().full_path
    paths = []
    for i, text in enumerate(texts):
      paths.append(os.path.join(folder, "program_%d.py" % i))
      with open(paths[-1], "w") as f:
        f.write(text)
    xml = os.path.join(folder, "test.xml")
    done = subprocess.run(
        [sys.executable, many_tests.__file__] + paths,
        env=dict(os.environ, XML_OUTPUT_FILE=xml, TEST_TMPDIR=folder,
                 PYTHONPATH=os.pathsep.join(sys.path)),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
    return done, test_log.count_xml(xml, "all")

  def test_all_pass(self):
    done, counts = self.run_programs(_PASSING, _PASSING.replace("class A", "class C"))
    self.assertEqual(done.returncode, 0, done.stdout)
    self.assertEqual(counts.line(), "2 passed, 0 failed, 2 skipped")
    self.assertIn("all __main__.C.test_two: disabled", counts.skipped)
    self.assertIn("program_1.py: exit status 0, 2 cases", done.stdout)

  def test_failures_and_crashes_do_not_hide_what_follows(self):
    done, counts = self.run_programs(_CRASHING, _FAILING, _PASSING)
    self.assertEqual(done.returncode, 1, done.stdout)
    self.assertEqual(counts.line(), "1 passed, 2 failed, 2 skipped")
    self.assertIn("all __main__.B.test_one", counts.failed)
    self.assertRegex(counts.failed[0], "program_0.py")
    self.assertRegex(done.stdout, "FAILED .*program_0.py\nFAILED .*program_1.py\n")

  def test_no_program_is_an_error(self):
    self.assertEqual(many_tests.main(["many_tests"]), 1)


if __name__ == "__main__":
  absltest.main()
