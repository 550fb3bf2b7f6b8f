# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checks the contents of the wheel that build_sok builds."""

import os
import platform
import re
import subprocess
import tempfile
import zipfile

from absl.testing import absltest

_LIBRARY = "embedding_variable/libembedding_variable.so"
_OTHER_LIBRARIES = [
    "embedding_variable/gpu/libev_cublas10.so",
    "embedding_variable/gpu/libev_cudart10.so",
    "embedding_variable/gpu/libev_nothing.so",
]

# In the wheel if the build has nvcc.
_CUDA_LIBRARY = "embedding_variable/libembedding_variable_cuda.so"
_HAVE_CUDA = os.environ["HAVE_CUDA"] == "1"
if _HAVE_CUDA:
  _OTHER_LIBRARIES.append(_CUDA_LIBRARY)

# Libraries that may be needed at run time: TensorFlow's, found by its soname, and those
# that every Linux has.
_ALLOWED_LIBRARIES = {
    "libtensorflow_framework.so.1", "libstdc++.so.6", "libm.so.6", "libgcc_s.so.1",
    "libc.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "ld-linux-x86-64.so.2",
}

# Import roots of the packages in the source tree.
_SOURCES = {
    "embedding_variable": "python/embedding_variable",
    "sparse_operation_kit":
        "addons/sparse_operation_kit/python/sparse_operation_kit",
}


def _workspace():
  """Returns the root of the source tree."""
  runfiles = os.path.join(os.environ["TEST_SRCDIR"], os.environ["TEST_WORKSPACE"])
  return os.path.dirname(os.path.realpath(os.path.join(runfiles, "WORKSPACE")))


class BuildSokTest(absltest.TestCase):

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    runfiles = os.path.join(os.environ["TEST_SRCDIR"], os.environ["TEST_WORKSPACE"])
    cls.builder = os.path.join(runfiles, "tools/pip_package/build_sok")
    cls.folder = tempfile.mkdtemp(dir=os.environ["TEST_TMPDIR"])
    cls.path = cls.build(cls.folder)
    with zipfile.ZipFile(cls.path) as wheel:
      cls.files = {name: wheel.read(name) for name in wheel.namelist()}

  @classmethod
  def build(cls, folder):
    output = subprocess.check_output([cls.builder, folder], universal_newlines=True)
    return output.strip()

  def dist_info(self, name):
    found = [f for f in self.files if f.endswith(".dist-info/" + name)]
    self.assertLen(found, 1)
    return self.files[found[0]].decode("utf-8")

  def readelf(self, *flags, library=_LIBRARY):
    path = os.path.join(self.create_tempdir().full_path, "lib.so")
    with open(path, "wb") as f:
      f.write(self.files[library])
    return subprocess.check_output(
        ["readelf", "--wide"] + list(flags) + [path], universal_newlines=True)

  def test_only_the_wheel_is_left(self):
    self.assertEqual(os.listdir(self.folder), [os.path.basename(self.path)])
    self.assertRegex(
        os.path.basename(self.path),
        r"^sok_stock_tf-\d+\.\d+\.\d+-py3-none-\w+linux\w+\.whl$")

  def test_every_module_but_tests_is_shipped(self):
    for package, source in _SOURCES.items():
      top = os.path.join(_workspace(), source)
      expected = set()
      for folder, _, names in os.walk(top):
        relative = os.path.relpath(folder, top)
        expected.update(
            os.path.normpath(os.path.join(package, relative, name))
            for name in names
            if name.endswith(".py") and not name.endswith("_test.py"))
      shipped = {
          f for f in self.files if f.startswith(package + "/") and f.endswith(".py")
      }
      helpers = {f for f in expected if re.search(r"/testing(/|\.py$)", f)}
      self.assertEqual(expected - helpers, shipped,
                       "a module is in no BUILD rule that the package depends on")

  def test_nothing_else_is_shipped(self):
    for name in self.files:
      self.assertRegex(
          name,
          r"^(embedding_variable|sparse_operation_kit)/.*\.py$|^%s$|"
          r"^embedding_variable/deeprec/names\.json$|"
          r"^embedding_variable/tensorflow_version(s\.json|\.txt)$|"
          r"^sok_stock_tf-[^/]+\.dist-info/(LICENSE|METADATA|WHEEL|RECORD)$" %
          "|".join(map(re.escape, [_LIBRARY] + _OTHER_LIBRARIES)))

  def test_names_the_version_of_tensorflow(self):
    self.assertEqual(self.files["embedding_variable/tensorflow_version.txt"], b"1.15\n")

  def test_metadata(self):
    metadata = self.dist_info("METADATA")
    for line in ("Name: sok-stock-tf", "License: Apache-2.0",
                 "Requires-Dist: tensorflow<1.16,>=1.15", "Requires-Dist: protobuf<3.21",
                 "Requires-Dist: numpy", "Requires-Dist: absl-py",
                 "Provides-Extra: horovod", "Requires-Python: >=3.7,<3.8"):
      self.assertIn("\n%s\n" % line, "\n" + metadata)
    required = [l for l in metadata.splitlines()
                if l.startswith("Requires-Dist: ") and "extra ==" in l]
    self.assertEqual(required, [
        "Requires-Dist: horovod>=0.28.1; extra == 'horovod'",
        "Requires-Dist: sok-stock-tf-serving[fast]<0.2,>=0.1; extra == 'serving'"])

  def test_description_has_no_link_into_the_source_tree(self):
    metadata = self.dist_info("METADATA")
    self.assertNotRegex(metadata, r"\]\((?!\w+:)")
    self.assertIn("CPU memory (`DRAM`, the default), GPU memory (`HBM`) (docs/gpu.md)", metadata)

  def test_licence_is_apache(self):
    licence = self.dist_info("LICENSE")
    self.assertIn("Apache License", licence)
    self.assertIn("Version 2.0", licence)

  def test_tag_in_the_name_is_the_one_inside(self):
    tag = re.search(r"^Tag: (.*)$", self.dist_info("WHEEL"), re.M).group(1)
    self.assertTrue(self.path.endswith("-%s.whl" % tag))

  def test_runs_on_systems_of_2014(self):
    if platform.machine() != "x86_64":
      self.skipTest("other machines' wheels are tagged linux")
    self.assertIn("-py3-none-manylinux2014_x86_64.whl", self.path)

  def test_auditwheel_agrees(self):
    # Imported late; `make setup` installs it.
    from auditwheel import wheel_abi  # pylint: disable=g-import-not-at-top
    if platform.machine() != "x86_64":
      self.skipTest("other machines' wheels are tagged linux")
    found = wheel_abi.analyze_wheel_abi(self.path)
    # Another name of manylinux2014.
    tag = "manylinux_2_17_x86_64"
    self.assertEqual(found.sym_tag, tag)
    self.assertEqual(found.external_refs[tag]["blacklist"], {})
    # TensorFlow loads its own library before ours; the build puts cuBLAS beside ours.
    self.assertEqual(sorted(found.external_refs[tag]["libs"]),
                     ["libcublas_behind.so", "libtensorflow_framework.so.1"])

  def test_no_path_of_the_build_machine(self):
    folders = {_workspace(), os.environ["TEST_SRCDIR"].split("/execroot/")[0]}
    if len(os.path.expanduser("~")) > 1:
      folders.add(os.path.expanduser("~"))
    for name, data in self.files.items():
      for folder in folders:
        self.assertNotIn(folder.encode() + b"/", data, "%s names %s" % (name, folder))

  def test_library_has_no_search_path(self):
    self.assertNotRegex(self.readelf("--dynamic"), r"\((RPATH|RUNPATH)\)")

  def test_library_needs_only_allowed_libraries(self):
    needed = set(
        re.findall(r"\(NEEDED\).*\[(.*)\]", self.readelf("--dynamic")))
    self.assertIn("libtensorflow_framework.so.1", needed)
    self.assertEmpty(needed - _ALLOWED_LIBRARIES)

  def test_other_libraries_have_no_search_path_and_need_the_system_alone(self):
    for library in _OTHER_LIBRARIES:
      text = self.readelf("--dynamic", library=library)
      self.assertNotRegex(text, r"\((RPATH|RUNPATH)\)")
      needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", text))
      # The build puts this library beside the one that needs it.
      needed -= {"libcublas_behind.so"}
      self.assertEmpty(needed - _ALLOWED_LIBRARIES, library)
      self.assertNotIn("libtensorflow_framework.so.1", needed)

  def exported(self, library):
    """Returns the names of the symbols that a library exports."""
    names = []
    for line in self.readelf("--dyn-syms", library=library).splitlines():
      fields = line.split()
      # Number, value, size, type, binding, visibility, section, name.
      if len(fields) >= 8 and fields[0].rstrip(":").isdigit() and fields[6] != "UND":
        if fields[4] != "LOCAL" and fields[5] != "HIDDEN":
          names.append(fields[7])
    return names

  def test_library_exports_nothing(self):
    self.assertEmpty(self.exported(_LIBRARY))

  def test_the_cuda_library_exports_one_function(self):
    self.assertEqual(_CUDA_LIBRARY in self.files, _HAVE_CUDA)
    if not _HAVE_CUDA:
      self.skipTest("built without nvcc")
    self.assertEqual(self.exported(_CUDA_LIBRARY), ["ev_cuda_library"])

  def test_both_libraries_are_of_one_build(self):
    if not _HAVE_CUDA:
      self.skipTest("built without nvcc")
    ids = [set(re.findall(br"\d+\.\d+\.\d+-[0-9a-f]{16}-abi[01]", self.files[library]))
           for library in (_LIBRARY, _CUDA_LIBRARY)]
    self.assertLen(ids[0], 1)
    self.assertEqual(ids[0], ids[1])

  def test_the_wheel_without_cuda_lacks_that_library_alone(self):
    path = subprocess.check_output(
        [self.builder + "_without_cuda", "--without_cuda", self.create_tempdir().full_path],
        universal_newlines=True).strip()
    self.assertEqual(os.path.basename(path), os.path.basename(self.path))
    with zipfile.ZipFile(path) as wheel:
      self.assertEqual(set(wheel.namelist()), set(self.files) - {_CUDA_LIBRARY})

  def test_same_tree_gives_the_same_bytes(self):
    again = self.build(self.create_tempdir().full_path)
    with open(self.path, "rb") as f, open(again, "rb") as g:
      self.assertEqual(f.read(), g.read())


if __name__ == "__main__":
  absltest.main()
