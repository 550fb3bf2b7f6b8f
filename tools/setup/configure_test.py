# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of ./configure and of the search for an interpreter.

Every error is one sentence with what is missing and how to get it.
"""

import os
import stat
import subprocess
import sys

from absl.testing import absltest

_RUNFILES = os.path.join(
    os.environ["TEST_SRCDIR"], os.environ["TEST_WORKSPACE"])


class ConfigureTest(absltest.TestCase):

  def setUp(self):
    super().setUp()
    self.folder = self.create_tempdir().full_path
    self.output = os.path.join(self.folder, "bazelrc")

  def configure(self, **environ):
    """Runs ./configure; returns (exit code, stdout, stderr)."""
    return self.run_tool(["configure", "--output", self.output], environ)

  def find_python(self, **environ):
    """Runs only the search; returns (exit code, stdout, stderr)."""
    return self.run_tool(["tools/setup/find_python.sh"], environ)

  def run_tool(self, command, environ):
    # HOME is replaced so that an interpreter that pyenv or uv keeps in it is not found.
    full = {"PATH": "/usr/bin:/bin", "HOME": self.folder}
    full.update(environ)
    done = subprocess.run(
        [os.path.join(_RUNFILES, command[0])] + command[1:],
        env=full,
        cwd=self.folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        universal_newlines=True)
    return done.returncode, done.stdout, done.stderr

  def script(self, name, body):
    path = os.path.join(self.folder, name)
    with open(path, "w") as f:
      f.write("#!/bin/bash\n%s\n" % body)
    os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
    return path

  def bare_python(self):
    """Returns an interpreter of an environment without any package."""
    folder = os.path.join(self.folder, "bare")
    subprocess.check_call([sys.executable, "-m", "venv", "--without-pip", folder])
    return os.path.join(folder, "bin", "python")

  def assert_one_sentence(self, stderr, *parts):
    lines = stderr.strip().splitlines()
    self.assertLen(lines, 1, stderr)
    for part in parts:
      self.assertIn(part, lines[0])

  def test_writes_what_it_found(self):
    self.script("nvcc", "echo 'Cuda compilation tools, release 12.4, V12.4.1'")
    code, stdout, stderr = self.configure(
        PYTHON=sys.executable, PATH=self.folder + ":/usr/bin:/bin")
    self.assertEqual(code, 0, stderr)
    self.assertIn("TensorFlow  1.15", stdout)
    self.assertIn("Horovod", stdout)
    self.assertIn("CUDA        release 12.4", stdout)
    with open(self.output) as f:
      text = f.read()
    self.assertIn("common --repo_env=SOK_PYTHON=%s\n" % sys.executable, text)
    # bazel query and bazel fetch ignore options of "build".
    options = [line for line in text.splitlines() if not line.startswith("#")]
    self.assertEqual([o for o in options if not o.startswith("common --repo_env=")], [])
    self.assertRegex(text, r"SOK_TF_VERSION=1\.15\.\d+\n")
    self.assertRegex(text, r"SOK_TF_CXX11_ABI=[01]\n")
    self.assertIn("SOK_TF_CXX_STANDARD=c++14\n", text)
    self.assertIn("SOK_TF_LIBRARY=libtensorflow_framework.so.1\n", text)
    self.assertIn("SOK_NVCC=%s/nvcc\n" % self.folder, text)

  def test_an_unchanged_file_is_left_alone(self):
    self.configure(PYTHON=sys.executable)
    os.utime(self.output, (1, 1))
    self.configure(PYTHON=sys.executable)
    self.assertEqual(os.stat(self.output).st_mtime, 1)

  def test_python_without_tensorflow(self):
    code, _, stderr = self.configure(PYTHON=self.bare_python())
    self.assertEqual(code, 1)
    self.assert_one_sentence(stderr, "has no TensorFlow", "make setup")
    self.assertFalse(os.path.exists(self.output))

  def test_other_tensorflow(self):
    python = self.bare_python()
    package = os.path.join(
        os.path.dirname(python), "../lib/python3.7/site-packages/tensorflow")
    os.makedirs(package)
    with open(os.path.join(package, "__init__.py"), "w") as f:
      f.write("__version__ = '2.4.0'\n")
    code, _, stderr = self.configure(PYTHON=python)
    self.assertEqual(code, 1)
    self.assert_one_sentence(stderr, "TensorFlow 1.15 or 2.11 or 2.15 or 2.21 is needed",
                             "2.4.0", "make setup", "make wheel TF=2.15")

  def test_takes_the_flags_of_tensorflow_2x(self):
    python = self.bare_python()
    package = os.path.join(
        os.path.dirname(python), "../lib/python3.7/site-packages/tensorflow")
    os.makedirs(package)
    library = os.path.join(package, "libtensorflow_framework.so.2")
    with open(os.path.join(package, "__init__.py"), "w") as f:
      f.write("""
__version__ = '2.15.1'
class sysconfig:
  get_compile_flags = lambda: ['-I/a', '-D_GLIBCXX_USE_CXX11_ABI=1', '--std=c++17']
  get_include = lambda: '/a'
  get_lib = lambda: %r
""" % package)
    # find_packages reads it.
    os.symlink(os.path.dirname(__import__("pkg_resources").__file__),
               os.path.join(package, "..", "pkg_resources"))
    code, _, stderr = self.configure(PYTHON=python)
    self.assertEqual(code, 1)
    self.assert_one_sentence(stderr, "has no", "libtensorflow_framework.so.2")
    open(library, "w").close()
    code, stdout, stderr = self.configure(PYTHON=python)
    self.assertEqual(code, 0, stderr)
    self.assertIn("TensorFlow  2.15.1, C++ ABI 1", stdout)
    with open(self.output) as f:
      text = f.read()
    for fact in ("SOK_TF_LIBRARY=libtensorflow_framework.so.2", "SOK_TF_CXX11_ABI=1",
                 "SOK_TF_CXX_STANDARD=c++17"):
      self.assertIn("common --repo_env=%s\n" % fact, text)

  def test_tensorflow_that_cannot_be_imported(self):
    python = self.bare_python()
    package = os.path.join(
        os.path.dirname(python), "../lib/python3.7/site-packages/tensorflow")
    os.makedirs(package)
    with open(os.path.join(package, "__init__.py"), "w") as f:
      f.write("raise TypeError('descriptors cannot be created')\n")
    code, _, stderr = self.configure(PYTHON=python)
    self.assertEqual(code, 1)
    self.assert_one_sentence(stderr, "cannot be imported",
                             "descriptors cannot be created", "make setup")

  def test_python_is_no_python(self):
    code, _, stderr = self.configure(PYTHON="/bin/false")
    self.assertEqual(code, 1)
    self.assert_one_sentence(stderr, "$PYTHON is '/bin/false'", "Python 3.7")

  def test_no_python_37_at_all(self):
    tools = os.path.join(self.folder, "tools")
    os.makedirs(tools)
    for tool in ("bash", "dirname", "head", "tail", "id"):
      os.symlink("/usr/bin/" + tool, os.path.join(tools, tool))
    code, _, stderr = self.configure(PATH=tools)
    self.assertEqual(code, 1)
    self.assert_one_sentence(stderr, "No Python 3.7 was found", "uv python install 3.7",
                             "PYTHON")

  def test_finds_python37_on_the_path(self):
    self.script("python3.7", 'exec %s "$@"' % sys.executable)
    code, stdout, stderr = self.find_python(PATH=self.folder + ":/usr/bin:/bin")
    self.assertEqual(code, 0, stderr)
    self.assertEqual(stdout.strip(), sys.executable)

  def test_a_broken_shim_on_the_path_is_passed_over(self):
    self.script("python3.7", "exit 127")
    self.script("uv", '[[ "$1 $2" == "python find" ]] && echo %s' % sys.executable)
    code, stdout, stderr = self.find_python(PATH=self.folder + ":/usr/bin:/bin")
    self.assertEqual(code, 0, stderr)
    self.assertEqual(stdout.strip(), sys.executable)

  def test_finds_pyenvs(self):
    versions = os.path.join(self.folder, "root/versions/3.7.9/bin")
    os.makedirs(versions)
    self.script("root/versions/3.7.9/bin/python3.7", 'exec %s "$@"' % sys.executable)
    self.script("pyenv", "echo %s/root" % self.folder)
    code, stdout, stderr = self.find_python(PATH=self.folder + ":/usr/bin:/bin")
    self.assertEqual(code, 0, stderr)
    self.assertEqual(stdout.strip(), sys.executable)


if __name__ == "__main__":
  absltest.main()
