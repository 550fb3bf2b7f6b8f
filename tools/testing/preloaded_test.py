# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that a preloaded program behaves like one that Python itself starts."""

import os
import signal
import subprocess
import sys
import tempfile

from absl.testing import absltest
from absl.testing import parameterized

import preloaded

# Prints everything about its start that a program can see.
_LOOK = """
import atexit, os, sys
atexit.register(print, "its exit handler")
print(__name__, sorted(globals()), sys.argv, os.getcwd(), os.environ.get("COLOUR"))
print(__file__ if "__file__" in globals() else "no file", __doc__, sys.path[0])
print("an error", file=sys.stderr)
sys.exit(7)
"""


class PreloadedTest(parameterized.TestCase):

  @classmethod
  def setUpClass(cls):
    super(PreloadedTest, cls).setUpClass()
    # A module that is slow to import and not imported yet.
    cls.interpreter = preloaded.Interpreter(["wave"])
    cls.folder = tempfile.mkdtemp()

  @classmethod
  def tearDownClass(cls):
    cls.interpreter.close()
    super(PreloadedTest, cls).tearDownClass()

  def start(self, *words, **kwargs):
    self.output = tempfile.TemporaryFile()
    self.addCleanup(self.output.close)
    return self.interpreter.start(words, self.output, **kwargs)

  def printed(self):
    self.output.seek(0)
    return self.output.read().decode()

  def program(self, text):
    path = os.path.join(self.folder, self.id() + ".py")
    with open(path, "w") as f:
      f.write(text)
    return path

  @parameterized.parameters("a script", "a file")
  def test_sees_what_a_program_of_pythons_sees(self, how):
    words = ["-c", _LOOK, "a b"] if how == "a script" else [self.program(_LOOK), "a b"]
    env = dict(os.environ, COLOUR="blue", PYTHONUNBUFFERED="1")
    expected = subprocess.run([sys.executable] + words, env=env, cwd=self.folder,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    program = self.start(*words, env=env, cwd=self.folder)
    self.assertEqual(program.wait(60), 7)
    self.assertEqual(expected.returncode, 7)
    self.assertEqual(self.printed(), expected.stdout.decode())
    self.assertIn("its exit handler", self.printed())

  def test_keeps_no_variable_of_the_interpreters_environment(self):
    self.assertIn("PATH", os.environ)
    program = self.start("-c", "import os; print(sorted(os.environ))", env={"A": "1"})
    self.assertEqual(program.wait(60), 0)
    self.assertEqual(self.printed(), "['A']\n")

  def test_finds_the_modules_imported(self):
    program = self.start("-c", "import sys; print('wave' in sys.modules)")
    self.assertEqual(program.wait(60), 0)
    self.assertEqual(self.printed(), "True\n")

  def test_an_exception_is_printed_and_is_exit_status_1(self):
    program = self.start(self.program("def f():\n  raise ValueError('no good')\nf()\n"))
    self.assertEqual(program.wait(60), 1)
    self.assertRegex(self.printed(), "(?s)Traceback.*line 2, in f.*ValueError: no good")

  def test_no_end_within_the_timeout_and_a_signal(self):
    program = self.start("-c", "import time; print('begun'); time.sleep(600)")
    self.assertIsNone(program.poll())
    with self.assertRaises(subprocess.TimeoutExpired):
      program.wait(.01)
    self.assertEqual(os.getpgid(program.pid), program.pid)
    program.kill()
    self.assertEqual(program.wait(60), -signal.SIGKILL)
    self.assertEqual(program.poll(), -signal.SIGKILL)

  def test_programs_draw_different_random_numbers(self):
    drawn = set()
    for _ in range(3):
      self.assertEqual(self.start("-c", "import random; print(random.random())").wait(60),
                       0)
      drawn.add(self.printed())
    self.assertLen(drawn, 3)

  def test_many_programs_at_once(self):
    script = "import sys; sys.stdin.read(); sys.exit(int(sys.argv[1]))"
    programs = [self.start("-c", script, str(i)) for i in range(20)]
    self.assertEqual([p.wait(60) for p in programs], list(range(20)))

  def test_runs_a_program_to_its_end(self):
    done = self.interpreter.run(["-c", "print('here'); raise SystemExit(3)"])
    self.assertEqual((done.returncode, done.stdout), (3, "here\n"))
    with self.assertRaises(subprocess.TimeoutExpired):
      self.interpreter.run(["-c", "import time; time.sleep(600)"], timeout=.1)

  def test_a_module_that_cannot_be_imported_is_an_error(self):
    interpreter = preloaded.Interpreter(["no_such_module"])
    with tempfile.TemporaryFile() as output:
      with self.assertRaisesRegex(preloaded.Error, "the interpreter .*has ended"):
        interpreter.start(["-c", ""], output)
    interpreter.close()


if __name__ == "__main__":
  absltest.main()
