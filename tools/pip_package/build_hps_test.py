# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checks the contents of the wheel that build_hps builds."""

import os
import platform
import re
import subprocess
import tempfile
import zipfile

from absl.testing import absltest

_SOURCE = "addons/hierarchical_parameter_server/python/hierarchical_parameter_server"
_LIBRARY = "hierarchical_parameter_server/libhierarchical_parameter_server.so"

# In the wheel if the build has nvcc.
_CUDA_LIBRARY = "hierarchical_parameter_server/libhierarchical_parameter_server_cuda.so"
_HAVE_CUDA = os.environ["HAVE_CUDA"] == "1"

# Libraries that every Linux has, and TensorFlow's own, which TensorFlow loads.
_KNOWN = {"libstdc++.so.6", "libm.so.6", "libgcc_s.so.1", "libc.so.6", "libpthread.so.0",
          "libdl.so.2", "librt.so.1", "ld-linux-x86-64.so.2",
          "libtensorflow_framework.so.1"}


class BuildHpsTest(absltest.TestCase):

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    runfiles = os.path.join(os.environ["TEST_SRCDIR"], os.environ["TEST_WORKSPACE"])
    cls.builder = os.path.join(runfiles, "tools/pip_package/build_hps")
    cls.tree = os.path.dirname(os.path.realpath(os.path.join(runfiles, "WORKSPACE")))
    cls.path = cls.build(tempfile.mkdtemp(dir=os.environ["TEST_TMPDIR"]))
    with zipfile.ZipFile(cls.path) as wheel:
      cls.files = {name: wheel.read(name) for name in wheel.namelist()}

  @classmethod
  def build(cls, folder):
    return subprocess.check_output([cls.builder, folder],
                                   universal_newlines=True).strip()

  def test_name(self):
    tag = "manylinux2014" if platform.machine() == "x86_64" else "linux"
    self.assertRegex(
        os.path.basename(self.path),
        r"^sok_stock_tf_hps-\d+\.\d+\.\d+-py3-none-%s_%s\.whl$" %
        (tag, platform.machine()))

  def test_auditwheel_agrees(self):
    # Imported late; `make setup` installs it.
    from auditwheel import wheel_abi  # pylint: disable=g-import-not-at-top
    if platform.machine() != "x86_64":
      self.skipTest("other machines' wheels are tagged linux")
    found = wheel_abi.analyze_wheel_abi(self.path)
    # Another name of manylinux2014.
    self.assertEqual(found.sym_tag, "manylinux_2_17_x86_64")
    self.assertEqual(set(found.external_refs["manylinux_2_17_x86_64"]["libs"]) - _KNOWN,
                     set())

  def needed(self, library):
    """Returns the names of the libraries that one of the wheel's libraries is linked
    to."""
    path = os.path.join(self.create_tempdir().full_path, "lib.so")
    with open(path, "wb") as f:
      f.write(self.files[library])
    dynamic = subprocess.check_output(["readelf", "-d", path], universal_newlines=True)
    self.assertNotRegex(dynamic, r"\((RPATH|RUNPATH)\)")
    return set(re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic))

  def test_the_library_needs_the_system_and_tensorflow_alone(self):
    needed = self.needed(_LIBRARY)
    self.assertContainsSubset(needed, _KNOWN)
    self.assertIn("libtensorflow_framework.so.1", needed)

  def test_the_cuda_library_needs_the_system_alone(self):
    if not _HAVE_CUDA:
      self.skipTest("built without nvcc")
    self.assertContainsSubset(self.needed(_CUDA_LIBRARY),
                              _KNOWN - {"libtensorflow_framework.so.1"})

  def test_every_module_but_tests_and_helpers_is_shipped_and_the_library(self):
    top = os.path.join(self.tree, _SOURCE)
    expected = {_LIBRARY, "hierarchical_parameter_server/tensorflow_version.txt"}
    expected |= {_CUDA_LIBRARY} if _HAVE_CUDA else set()
    for folder, _, names in os.walk(top, followlinks=True):
      relative = os.path.relpath(folder, top)
      expected.update(
          os.path.normpath(os.path.join("hierarchical_parameter_server", relative, name))
          for name in names if name.endswith(".py") and
          not name.endswith("_test.py") and name != "testing.py")
    shipped = {f for f in self.files if ".dist-info/" not in f}
    self.assertEqual(shipped, expected)

  def test_metadata(self):
    metadata, = [text.decode() for name, text in self.files.items()
                 if name.endswith("/METADATA")]
    version = os.path.basename(self.path).split("-")[1]
    for line in ("Name: sok-stock-tf-hps", "Version: " + version,
                 "Requires-Dist: tensorflow<1.16,>=1.15", "Requires-Dist: numpy",
                 "Requires-Python: >=3.7,<3.8"):
      self.assertIn("\n%s\n" % line, "\n" + metadata)
    self.assertNotIn("Requires-Dist: sparse", metadata)

  def test_same_tree_gives_the_same_bytes(self):
    again = self.build(self.create_tempdir().full_path)
    with open(self.path, "rb") as f, open(again, "rb") as g:
      self.assertEqual(f.read(), g.read())


if __name__ == "__main__":
  absltest.main()
