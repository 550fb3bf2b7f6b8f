# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of pip_backend and setup.py in a checkout with a stub for Bazel.

`make test` builds its wheel by `pip wheel .` with the real Bazel.
"""

import os
import shutil
import stat
import subprocess
import sys

from absl.testing import absltest

_RUNFILES = os.path.join(os.environ["TEST_SRCDIR"], os.environ["TEST_WORKSPACE"])

_FILES = ("setup.py", "pyproject.toml", "tools/pip_package/distributions.py",
          "python/embedding_variable/tensorflow_versions.json",
          "tools/pip_package/pip_backend.py",
          "tools/setup/configure.py")

# Writes the program that builds the wheel, as a real build does.
_BAZEL = r"""#!/bin/bash
echo "$@" >>asked
for a in "$@"; do [[ $a == --bazelrc=* ]] && cp "${a#--bazelrc=}" configuration; done
mkdir -p bazel-bin/tools/pip_package
printf '#!/bin/bash\nmkdir -p "$1"; touch "$1/a-1-py3-none-any.whl"\n' \
  >bazel-bin/tools/pip_package/build_sok
chmod +x bazel-bin/tools/pip_package/build_sok
"""


class PipBackendTest(absltest.TestCase):

  def setUp(self):
    super().setUp()
    self.root = os.path.join(self.create_tempdir().full_path, "checkout")
    for name in _FILES:
      path = os.path.join(self.root, name)
      os.makedirs(os.path.dirname(path), exist_ok=True)
      shutil.copy(os.path.join(_RUNFILES, name), path)
    self.tools = os.path.join(self.root, "bin")
    os.makedirs(self.tools)
    for tool in ("bash", "cp", "mkdir", "touch", "chmod", "g++"):
      os.symlink(shutil.which(tool, path="/usr/bin:/bin"),
                 os.path.join(self.tools, tool))
    self.write("bin/bazel", _BAZEL)

  def write(self, name, text):
    path = os.path.join(self.root, name)
    with open(path, "w") as f:
      f.write(text)
    os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)

  def read(self, name):
    with open(os.path.join(self.root, name)) as f:
      return f.read()

  def run_python(self, *command, **kwargs):
    """Runs Python in the checkout; returns (exit code, stdout, stderr)."""
    python = kwargs.get("python", sys.executable)
    done = subprocess.run(
        [python] + list(command), cwd=self.root, env={"PATH": self.tools},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        universal_newlines=True)
    return done.returncode, done.stdout, done.stderr

  def hook(self, call, **kwargs):
    return self.run_python(
        "-c", "import sys; sys.path.insert(0, 'tools/pip_package'); "
        "import pip_backend; print(pip_backend.%s)" % call, **kwargs)

  def bare_python(self):
    """Returns an interpreter of an environment without any package."""
    folder = os.path.join(self.create_tempdir().full_path, "bare")
    subprocess.check_call([sys.executable, "-m", "venv", "--without-pip", folder])
    return os.path.join(folder, "bin", "python")

  def test_a_configured_checkout_is_built_as_it_is(self):
    self.write(".bazelrc.user", "")
    self.assertEqual(self.hook("get_requires_for_build_wheel()"), (0, "[]\n", ""))
    code, out, err = self.hook("build_wheel('out')")
    self.assertEqual((code, out), (0, "a-1-py3-none-any.whl\n"), err)
    self.assertEqual(os.listdir(os.path.join(self.root, "out")), [out.strip()])
    self.assertStartsWith(self.read("asked"), "build ")
    self.assertIn("//tools/pip_package:build_sok", self.read("asked"))

  def test_another_is_configured_for_the_build_alone(self):
    self.assertEqual(self.hook("get_requires_for_build_wheel()"), (0, "[]\n", ""))
    code, out, err = self.hook("build_wheel('out')")
    self.assertEqual(code, 0, err)
    self.assertEndsWith(out, "a-1-py3-none-any.whl\n")
    self.assertIn("SOK_PYTHON=" + sys.executable, self.read("configuration"))
    self.assertFalse(os.path.exists(os.path.join(self.root, ".bazelrc.user")))

  def test_without_tensorflow_pip_fetches_it(self):
    python = self.bare_python()
    code, out, err = self.hook("get_requires_for_build_wheel()", python=python)
    self.assertEqual(code, 0, err)
    self.assertIn("tensorflow<1.16,>=1.15", out)
    code, _, err = self.hook("build_wheel('out')", python=python)
    self.assertEqual(code, 1)
    self.assertIn("has no TensorFlow", err)
    self.assertIn("--no-build-isolation", err)
    self.assertFalse(os.path.exists(os.path.join(self.root, "asked")))

  def test_without_bazel(self):
    self.write(".bazelrc.user", "")
    os.remove(os.path.join(self.tools, "bazel"))
    for call in ("get_requires_for_build_wheel()", "build_wheel('out')"):
      code, _, err = self.hook(call)
      self.assertEqual(code, 1)
      self.assertEqual(len(err.splitlines()), 1, err)
      self.assertIn("no bazel is on the PATH: make setup", err)

  def test_a_build_that_fails(self):
    self.write(".bazelrc.user", "")
    self.write("bin/bazel", "#!/bin/bash\nexit 3\n")
    code, _, err = self.hook("build_wheel('out')")
    self.assertEqual(code, 1)
    self.assertIn("Bazel failed", err)
    self.assertFalse(os.path.exists(os.path.join(self.root, "out")))

  def test_setup_py(self):
    self.write(".bazelrc.user", "")
    code, out, err = self.run_python("setup.py", "bdist_wheel")
    self.assertEqual(code, 0, err)
    self.assertTrue(os.path.exists(out.splitlines()[-1]))
    self.assertEqual(os.listdir(os.path.join(self.root, "dist")),
                     ["a-1-py3-none-any.whl"])
    code, _, err = self.run_python("setup.py", "develop")
    self.assertNotEqual(code, 0)
    self.assertIn("develop", err)

  def test_pip_finds_the_backend(self):
    self.write(".bazelrc.user", "")
    # Fails, because pip would open the wheel and the stub's wheel is empty.
    self.write("bin/bazel", _BAZEL.replace(
        'touch "$1/a-1-py3-none-any.whl"', 'exit 7'))
    code, out, err = self.run_python(
        "-m", "pip", "wheel", "--no-deps", "--no-index", "-w", "out", ".")
    self.assertNotEqual(code, 0)
    self.assertIn("exit status 7", out + err)


if __name__ == "__main__":
  absltest.main()
