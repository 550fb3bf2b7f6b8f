# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checks the contents of the wheel that build_hugectr builds."""

import ctypes
import os
import platform
import re
import subprocess
import tempfile
import zipfile

from absl.testing import absltest

_SOURCE = "addons/hugectr/python/hugectr"

_LIBRARY = "hugectr/data/libhugectr_reader.so"

# Libraries that every Linux has.
_SYSTEM = {"libstdc++.so.6", "libm.so.6", "libgcc_s.so.1", "libc.so.6", "libpthread.so.0",
           "libdl.so.2", "ld-linux-x86-64.so.2"}


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
    tag = "manylinux2014" if platform.machine() == "x86_64" else "linux"
    self.assertRegex(
        os.path.basename(self.path),
        r"^sok_stock_tf_hugectr-\d+\.\d+\.\d+-py3-none-%s_%s\.whl$" %
        (tag, platform.machine()))

  def test_auditwheel_agrees(self):
    # Imported late; `make setup` installs it.
    from auditwheel import wheel_abi  # pylint: disable=g-import-not-at-top
    if platform.machine() != "x86_64":
      self.skipTest("other machines' wheels are tagged linux")
    found = wheel_abi.analyze_wheel_abi(self.path)
    # Another name of manylinux2014.
    self.assertEqual(found.sym_tag, "manylinux_2_17_x86_64")
    self.assertEqual(found.external_refs["manylinux_2_17_x86_64"]["libs"], {})

  def test_the_library_needs_the_system_alone_and_exports_what_python_calls(self):
    path = os.path.join(self.create_tempdir().full_path, "lib.so")
    with open(path, "wb") as f:
      f.write(self.files[_LIBRARY])
    text = subprocess.check_output(["readelf", "--wide", "--dynamic", "--dyn-syms", path],
                                   universal_newlines=True)
    self.assertNotRegex(text, r"\((RPATH|RUNPATH)\)")
    self.assertEmpty(set(re.findall(r"\(NEEDED\).*\[(.*)\]", text)) - _SYSTEM)
    exported = []
    for line in text.splitlines():
      fields = line.split()
      # Number, value, size, type, binding, visibility, section, name.
      if len(fields) >= 8 and fields[0].rstrip(":").isdigit() and fields[6] != "UND":
        if fields[4] != "LOCAL" and fields[5] != "HIDDEN":
          exported.append(fields[7])
    self.assertCountEqual(exported, [
        "hugectr_" + name for name in ("close", "close_pool", "error", "first_outside",
                                       "join", "next", "open_norm", "open_pool",
                                       "open_raw", "ready", "release")])
    self.assertIsNotNone(ctypes.CDLL(path).hugectr_error)

  def test_every_module_but_tests_and_helpers_is_shipped_and_the_schema(self):
    top = os.path.join(self.tree, _SOURCE)
    expected = {"hugectr/config/schema.json", _LIBRARY, "hugectr2onnx/__init__.py",
                "hugectr2onnx/converter.py"}
    for folder, _, names in os.walk(top):
      relative = os.path.relpath(folder, top)
      expected.update(
          os.path.normpath(os.path.join("hugectr", relative, name)) for name in names
          if name.endswith(".py") and not name.endswith("_test.py") and
          name not in ("testing.py", "oracle.py", "small_model.py", "small_scripts.py",
                       "write_schema.py",
                       "numpy_readers.py"))
    shipped = {f for f in self.files if ".dist-info/" not in f}
    self.assertEqual(shipped, expected)

  def test_metadata(self):
    metadata, = [text.decode() for name, text in self.files.items()
                 if name.endswith("/METADATA")]
    version = os.path.basename(self.path).split("-")[1]
    for line in ("Name: sok-stock-tf-hugectr", "Version: " + version,
                 "Requires-Dist: sok-stock-tf<0.2,>=0.1",
                 "Provides-Extra: inference",
                 "Requires-Dist: sok-stock-tf-hps<0.2,>=0.1; extra == 'inference'",
                 "Requires-Dist: numpy", "Requires-Dist: pyarrow<26,>=6; python_version < '3.12'",
                 "Requires-Dist: pyarrow-hotfix>=0.7",
                 "Requires-Python: >=3.7,<3.14",
                 "Classifier: Programming Language :: Python :: 3.13"):
      self.assertIn("\n%s\n" % line, "\n" + metadata)
    wheel, = [text.decode() for name, text in self.files.items()
              if name.endswith("/WHEEL")]
    tag = os.path.basename(self.path)[:-len(".whl")].split("-", 2)[2]
    self.assertIn("\nRoot-Is-Purelib: false\nTag: %s\n" % tag, wheel)

  def test_same_tree_gives_the_same_bytes(self):
    again = self.build(self.create_tempdir().full_path)
    with open(self.path, "rb") as f, open(again, "rb") as g:
      self.assertEqual(f.read(), g.read())


if __name__ == "__main__":
  absltest.main()
