# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checks the contents of the wheel that build_serving builds."""

import os
import subprocess
import tempfile
import zipfile

from absl.testing import absltest

_SOURCE = "addons/serving/python/embedding_variable_serving"


class BuildServingTest(absltest.TestCase):

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    runfiles = os.path.join(os.environ["TEST_SRCDIR"], os.environ["TEST_WORKSPACE"])
    cls.tree = os.path.dirname(os.path.realpath(os.path.join(runfiles, "WORKSPACE")))
    cls.path = subprocess.check_output(
        [os.path.join(runfiles, "tools/pip_package/build_serving"),
         tempfile.mkdtemp(dir=os.environ["TEST_TMPDIR"])], universal_newlines=True).strip()
    with zipfile.ZipFile(cls.path) as wheel:
      cls.files = {name: wheel.read(name) for name in wheel.namelist()}

  def test_name(self):
    self.assertRegex(os.path.basename(self.path),
                     r"^sok_stock_tf_serving-\d+\.\d+\.\d+-py3-none-any\.whl$")

  def test_every_module_but_tests_is_shipped(self):
    top = os.path.join(self.tree, _SOURCE)
    expected = set()
    for folder, _, names in os.walk(top):
      relative = os.path.relpath(folder, top)
      expected.update(
          os.path.normpath(os.path.join("embedding_variable_serving", relative, name))
          for name in names if name.endswith(".py") and
          not name.endswith("_test.py") and name != "testing.py")
    self.assertEqual({f for f in self.files if ".dist-info/" not in f}, expected)

  def test_metadata(self):
    metadata, = [text.decode() for name, text in self.files.items()
                 if name.endswith("/METADATA")]
    for line in ("Name: sok-stock-tf-serving", "Requires-Dist: sok-stock-tf<0.2,>=0.1",
                 "Requires-Dist: grpcio>=1.48", "Requires-Dist: uvicorn>=0.22",
                 "Requires-Dist: orjson>=3.9; extra == 'fast'",
                 "Requires-Python: >=3.7,<3.14"):
      self.assertIn("\n%s\n" % line, "\n" + metadata)
    wheel, = [text.decode() for name, text in self.files.items() if name.endswith("/WHEEL")]
    self.assertIn("\nRoot-Is-Purelib: true\nTag: py3-none-any\n", wheel)


if __name__ == "__main__":
  absltest.main()
