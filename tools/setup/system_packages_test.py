# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of system_packages.sh with stubs for the tools that it calls."""

import os
import stat
import subprocess

from absl.testing import absltest

_SCRIPT = os.path.join(
    os.environ["TEST_SRCDIR"], os.environ["TEST_WORKSPACE"],
    "tools/setup/system_packages.sh")

# Tools that the script itself calls.
_BASICS = ("bash", "cat", "dirname", "env", "head", "mkdir", "tail")
_PRESENT = ("g++", "make", "git", "python3", "redis-server", "h2load")

# Optional packages that this machine lacks.
_OPTIONAL = [
    package for package, header in (
        ("librocksdb-dev", "rocksdb/c.h"),
        ("libhiredis-dev", "hiredis/hiredis.h"),
        ("librdkafka-dev", "librdkafka/rdkafka.h"),
    ) if not os.path.exists("/usr/include/" + header)
]
_INSTALL = "install -y --no-install-recommends "


class SystemPackagesTest(absltest.TestCase):

  def setUp(self):
    super().setUp()
    self.folder = self.create_tempdir().full_path
    self.bin = os.path.join(self.folder, "bin")
    os.makedirs(self.bin)
    for tool in _BASICS:
      os.symlink("/usr/bin/" + tool, os.path.join(self.bin, tool))
    for tool in _PRESENT:
      self.pretend(tool)
    if not os.path.exists("/usr/src/googletest/googletest/src/gtest-all.cc"):
      self.skipTest("this machine's GoogleTest sources are not Debian's")

  def pretend(self, tool, body="exit 0"):
    path = os.path.join(self.bin, tool)
    with open(path, "w") as f:
      f.write("#!/bin/bash\n%s\n" % body)
    os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)

  def calls(self):
    try:
      with open(os.path.join(self.folder, "calls")) as f:
        return f.read().splitlines()
    except OSError:
      return []

  def run_script(self, part="all"):
    """Returns (exit code, stderr)."""
    done = subprocess.run(
        ["/bin/bash", _SCRIPT, part],
        cwd=self.folder,
        env={"PATH": self.bin},
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        universal_newlines=True)
    return done.returncode, done.stderr

  def calls_for(self, *packages):
    """Returns the arguments of the expected apt-get calls."""
    asked = [_INSTALL + " ".join(packages)] if packages else []
    return asked + ([_INSTALL + " ".join(_OPTIONAL)] if _OPTIONAL else [])

  def test_nothing_missing_is_silent(self):
    if _OPTIONAL:
      self.skipTest("not here: " + ", ".join(_OPTIONAL))
    self.pretend("bazel")
    self.assertEqual(self.run_script(), (0, ""))

  def test_an_unavailable_server_is_named_and_left_out(self):
    self.pretend("bazel")
    os.unlink(os.path.join(self.bin, "redis-server"))
    self.pretend("id", "echo 0")
    self.pretend("apt-get", "exit 100")
    code, stderr = self.run_script()
    self.assertEqual(code, 0, stderr)
    self.assertIn("not found and not installed: redis-server", stderr)

  def test_a_server_is_not_requested_without_root(self):
    self.pretend("bazel")
    os.unlink(os.path.join(self.bin, "redis-server"))
    self.pretend("id", "echo 1000")
    self.pretend("apt-get", 'echo "$@" >>calls')
    code, stderr = self.run_script()
    self.assertEqual(code, 0, stderr)
    self.assertIn("not found and not installed: redis-server", stderr)
    self.assertEmpty(self.calls())

  def test_the_build_needs_no_server(self):
    os.unlink(os.path.join(self.bin, "redis-server"))
    self.pretend("id", "echo 0")
    self.pretend("apt-get", 'echo "$@" >>calls')
    code, stderr = self.run_script("build")
    self.assertEqual(code, 0, stderr)
    self.assertEqual(self.calls(), [_INSTALL + "bazel-bootstrap"])

  def test_a_server_is_installed_after_what_the_build_needs(self):
    os.unlink(os.path.join(self.bin, "redis-server"))
    self.pretend("id", "echo 0")
    self.pretend("apt-get", 'echo "$@" >>calls')
    code, stderr = self.run_script()
    self.assertEqual(code, 0, stderr)
    self.assertEqual(self.calls(), [
        _INSTALL + "bazel-bootstrap",
        _INSTALL + " ".join(["redis-server"] + _OPTIONAL)
    ])

  def test_without_root_names_the_missing_packages(self):
    self.pretend("id", "echo 1000")
    self.pretend("apt-get", 'echo "$@" >>calls')
    code, stderr = self.run_script()
    self.assertEqual(code, 1)
    self.assertLen(stderr.splitlines(), 1)
    self.assertIn("Missing: bazel-bootstrap, and root rights are not", stderr)
    self.assertIn("apt-get install bazel-bootstrap", stderr)
    self.assertEmpty(self.calls())

  def test_without_apt_names_the_missing_tools(self):
    self.pretend("id", "echo 0")
    code, stderr = self.run_script()
    self.assertEqual(code, 1)
    self.assertLen(stderr.splitlines(), 1)
    self.assertIn("Bazel 4.2.3", stderr)

  def test_root_installs_only_what_is_missing(self):
    self.pretend("id", "echo 0")
    self.pretend("apt-get", 'echo "$@" >>calls')
    code, stderr = self.run_script()
    self.assertEqual(code, 0, stderr)
    self.assertEqual(self.calls(), self.calls_for("bazel-bootstrap"))

  def test_a_python_to_fetch_python37_with(self):
    self.pretend("id", "echo 0")
    self.pretend("bazel")
    self.pretend("python3", "exit 1")
    self.pretend("apt-get", 'echo "$@" >>calls')
    code, stderr = self.run_script()
    self.assertEqual(code, 0, stderr)
    self.assertEqual(self.calls(), self.calls_for("python3-venv"))

  def test_old_package_lists_are_refreshed(self):
    self.pretend("id", "echo 0")
    self.pretend(
        "apt-get", 'echo "$1" >>calls\n[[ "$1" == update ]] && echo >updated\n'
        "[[ -e updated ]]")
    code, stderr = self.run_script()
    self.assertEqual(code, 0, stderr)
    self.assertEqual(self.calls()[:3], ["install", "update", "install"])

  def test_no_network_is_one_sentence(self):
    self.pretend("id", "echo 0")
    self.pretend("apt-get", "exit 100")
    code, stderr = self.run_script()
    self.assertEqual(code, 1)
    self.assertIn("is the network available?", stderr.splitlines()[-1])

  def test_sudo_is_used_if_it_needs_no_password(self):
    self.pretend("id", "echo 1000")
    self.pretend("apt-get", 'echo "$@" >>calls')
    self.pretend("sudo", 'shift\necho "sudo $1" >>calls\n"$@"')
    code, stderr = self.run_script()
    self.assertEqual(code, 0, stderr)
    self.assertIn("sudo env", self.calls())
    self.assertIn(_INSTALL + "bazel-bootstrap", self.calls())


if __name__ == "__main__":
  absltest.main()
