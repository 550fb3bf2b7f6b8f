# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The installed wheel is complete, and imports come from it."""

import os
import re
import subprocess
import sys

from absl.testing import absltest

try:
  from importlib import metadata
except ImportError:
  import importlib_metadata as metadata  # Python 3.7; TensorFlow requires it.

_DISTRIBUTION = "sok-stock-tf"

_PACKAGES = {
    _DISTRIBUTION: ["embedding_variable", "sparse_operation_kit"],
    "sok-stock-tf-hps": ["hierarchical_parameter_server"],
    "sok-stock-tf-hugectr": ["hugectr"],
    "sok-stock-tf-serving": ["embedding_variable_serving"],
}

_TOOLS = [
    (_DISTRIBUTION, "embedding_variable"),
    (_DISTRIBUTION, "embedding_variable.gpu"),
    ("sok-stock-tf-hps", "hierarchical_parameter_server"),
    ("sok-stock-tf-hugectr", "hugectr"),
]


# Uses a GPU. Prints whether the CUDA library is loaded before and after, and the error if
# there is one.
_USE_A_GPU = """
import tensorflow as tf
import embedding_variable as ev
from embedding_variable.variables import config_pb2
def is_loaded():
  with open("/proc/self/maps") as f:
    return "libembedding_variable_cuda.so" in f.read()
option = ev.EmbeddingVariableOption(storage_option=ev.StorageOption(
    storage_type=config_pb2.StorageType.%s))
tf.get_embedding_variable("v", 4, ev_option=option)
with tf.Session() as session:
  print(is_loaded())
  try:
    session.run(tf.global_variables_initializer())
    error = "none"
  except tf.errors.OpError as e:
    error = e.message
print(is_loaded())
print(error.replace(chr(10), " "))
"""


def _python(code):
  """Runs code in a fresh interpreter; returns its output."""
  return subprocess.check_output([sys.executable, "-I", "-c", code],
                                 stderr=subprocess.DEVNULL,
                                 universal_newlines=True).strip()


def _required(distribution, extra=None):
  """Returns the names of what a distribution, or one of its extras, requires."""
  names = set()
  for line in metadata.requires(distribution):
    requirement, _, marker = line.partition(";")
    found = re.search(r"extra == '(\w+)'", marker)
    if (found.group(1) if found else None) == extra:
      names.add(re.match(r"[\w-]+", requirement).group())
  return names


class PackageTest(absltest.TestCase):

  def test_packages_come_from_the_environment(self):
    for package in ("embedding_variable", "sparse_operation_kit"):
      path = _python("import %s as p; print(p.__file__)" % package)
      self.assertStartsWith(path, sys.prefix)
      self.assertIn("site-packages", path)

  def test_library_lies_beside_its_package(self):
    import embedding_variable  # pylint: disable=g-import-not-at-top
    folder = os.path.dirname(embedding_variable.__file__)
    self.assertTrue(os.path.exists(os.path.join(folder, "libembedding_variable.so")))

  def test_the_cuda_library_is_loaded_when_a_gpu_is_first_used(self):
    import embedding_variable  # pylint: disable=g-import-not-at-top
    library = os.path.join(os.path.dirname(embedding_variable.__file__),
                           "libembedding_variable_cuda.so")
    has_cuda = os.path.exists(library)
    before, after, error = _python(_USE_A_GPU % "HBM").splitlines()
    self.assertEqual(before, "False")
    self.assertEqual(after, str(has_cuda))
    self.assertEqual("(there is no %s)" % library in error, not has_cuda, error)
    self.assertEqual("built without nvcc" in error, not has_cuda, error)
    _, after, error = _python(_USE_A_GPU % "DRAM").splitlines()
    self.assertEqual((after, error), ("False", "none"))

  def test_nothing_that_it_requires_is_missing(self):
    required = {"tensorflow", "numpy", "absl-py"}
    if metadata.version("tensorflow").startswith("1."):
      required.add("protobuf")
    self.assertContainsSubset(required, _required(_DISTRIBUTION))
    subprocess.check_output([sys.executable, "-m", "pip", "check"])

  def test_horovod_is_no_requirement(self):
    self.assertNotIn("horovod", _required(_DISTRIBUTION))
    self.assertIn("horovod", _required(_DISTRIBUTION, "horovod"))

  def test_every_package_and_tool_says_the_version_of_its_distribution(self):
    for distribution, packages in _PACKAGES.items():
      version = metadata.version(distribution)
      for package in packages:
        self.assertEqual(_python("import %s as p; print(p.__version__)" % package), version)
    for distribution, tool in _TOOLS:
      version = metadata.version(distribution)
      printed = subprocess.check_output(
          [sys.executable, "-I", "-W", "ignore", "-m", tool, "--version"],
          stderr=subprocess.DEVNULL, universal_newlines=True)
      self.assertEqual(printed, "%s %s\n" % (tool.split(".")[0], version))

  def test_the_addon_requires_this_distribution_as_it_is_installed(self):
    self.assertIn(_DISTRIBUTION, _required("sok-stock-tf-hugectr"))

  def test_no_test_is_shipped(self):
    import embedding_variable  # pylint: disable=g-import-not-at-top
    import sparse_operation_kit  # pylint: disable=g-import-not-at-top
    for package in (embedding_variable, sparse_operation_kit):
      for _, _, names in os.walk(os.path.dirname(package.__file__)):
        self.assertEmpty([n for n in names if n.endswith(("_test.py", "_utest.py"))])

  def test_import_writes_nothing_to_standard_output(self):
    self.assertEqual(_python("import sparse_operation_kit"), "")


if __name__ == "__main__":
  absltest.main()
