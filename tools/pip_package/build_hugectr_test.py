# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Looks into the wheel that build_hugectr leaves."""

import os
import subprocess
import tempfile
import zipfile

from absl.testing import absltest

_SOURCE = "addons/hugectr/python/hugectr"


class BuildHugectrTest(absltest.TestCase):

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    runfiles = os.path.join(os.environ["TEST_SRCDIR"], os.environ["TEST_WORKSPACE"])
    cls.builder = os.path.join(runfiles, "tools/pip_package/build_hugectr")
    cls.tree = os.path.dirname(os.path.realpath(os.path.join(runfiles, "WORKSPACE")))
    cls.path = cls.build(tempfile.mkdtemp(dir=os.environ["TEST_TMPDIR"]))
    with zipfile.ZipFile(cls.path) as wheel:
      cls.files = {name: wheel.read(name) for name in wheel.namelist()}

  @classmethod
  def build(cls, folder):
    return subprocess.check_output([cls.builder, folder],
                                   universal_newlines=True).strip()

  def test_name(self):
    self.assertRegex(os.path.basename(self.path),
                     r"^sparse_operation_kit_hugectr-\d+\.\d+\.\d+-py3-none-any\.whl$")

  def test_every_module_but_tests_and_helpers_is_shipped_and_the_schema(self):
    top = os.path.join(self.tree, _SOURCE)
    expected = {"hugectr/config/schema.json"}
    for folder, _, names in os.walk(top):
      relative = os.path.relpath(folder, top)
      expected.update(
          os.path.normpath(os.path.join("hugectr", relative, name)) for name in names
          if name.endswith(".py") and not name.endswith("_test.py") and
          name not in ("testing.py", "oracle.py", "small_model.py"))
    shipped = {f for f in self.files if ".dist-info/" not in f}
    self.assertEqual(shipped, expected)

  def test_metadata(self):
    metadata, = [text.decode() for name, text in self.files.items()
                 if name.endswith("/METADATA")]
    version = os.path.basename(self.path).split("-")[1]
    for line in ("Name: sparse-operation-kit-hugectr", "Version: " + version,
                 "Requires-Dist: sparse-operation-kit==" + version,
                 "Requires-Dist: numpy", "Requires-Dist: pyarrow<=12.0.1,>=6",
                 "Requires-Python: >=3.7,<3.8"):
      self.assertIn("\n%s\n" % line, "\n" + metadata)
    wheel, = [text.decode() for name, text in self.files.items()
              if name.endswith("/WHEEL")]
    self.assertIn("\nRoot-Is-Purelib: true\nTag: py3-none-any\n", wheel)

  def test_same_tree_gives_the_same_bytes(self):
    again = self.build(self.create_tempdir().full_path)
    with open(self.path, "rb") as f, open(again, "rb") as g:
      self.assertEqual(f.read(), g.read())


if __name__ == "__main__":
  absltest.main()
