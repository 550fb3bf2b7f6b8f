# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checks the includes between folders of the C++ tree against the design's table."""

import re

from absl.testing import absltest
from absl.testing import parameterized

import tree

_ENGINE = "kernels/engine/"
_ENGINE_FOLDERS = frozenset([
    "base", "ids", "table", "policy", "storage", "combine", "optimizer",
    "gpu_step", "rows", "embedding", "checkpoint"
])

# Each folder with the folders that it may include.
MAY_USE = {
    # Replacements for libc functions, which are linked into every library.
    "tools/build_defs": [],
    "kernels/engine/base": [],
    "kernels/engine/ids": ["kernels/engine/base"],
    "kernels/engine/table": ["kernels/engine/base"],
    "kernels/engine/policy": ["kernels/engine/base"],
    "kernels/engine/storage": ["kernels/engine/base", "kernels/engine/policy"],
    "kernels/engine/combine": ["kernels/engine/base"],
    "kernels/engine/optimizer": ["kernels/engine/base"],
    # Kernels of a step over many tables, independent of how rows are found.
    "kernels/engine/gpu_step": [
        _ENGINE + folder for folder in ("base", "combine", "optimizer")
    ],
    # Dot products of a sample's vectors, without tables or rows.
    "kernels/engine/interaction": ["kernels/engine/base"],
    # Storages of rows, behind one interface.
    "kernels/engine/rows": [
        _ENGINE + folder
        for folder in ("base", "ids", "storage", "policy", "combine", "optimizer",
                       "gpu_step")
    ],
    "kernels/engine/embedding": [
        _ENGINE + folder for folder in _ENGINE_FOLDERS - {"checkpoint"}
    ],
    # Saves and restores tables through their public interface.
    "kernels/engine/checkpoint": [
        _ENGINE + folder for folder in ("base", "ids", "embedding")
    ],
    "kernels/engine/testing": [_ENGINE + "interaction"] + [
        _ENGINE + folder for folder in _ENGINE_FOLDERS
    ],
    # CUDA 10.0's libraries for TensorFlow's GPU build, not part of the op library.
    "kernels/cuda10": [],
    "kernels/tf/bridge": ["tensorflow", "kernels/engine/base"],
    # The names of combiners and storages are values of op attributes.
    "kernels/tf/ops": ["tensorflow"] + [
        _ENGINE + folder for folder in ("base", "combine", "rows")
    ],
    "kernels/tf/resources": [
        "tensorflow", "kernels/tf/bridge"
    ] + [_ENGINE + folder for folder in _ENGINE_FOLDERS],
    "kernels/tf/op_kernels": [
        "tensorflow", "kernels/tf/bridge", "kernels/tf/resources",
        _ENGINE + "interaction"
    ] + [_ENGINE + folder for folder in _ENGINE_FOLDERS],
    # File readers, which use only the engine's Status.
    "addons/hugectr/reader": ["kernels/engine/base"],
    "addons/sparse_operation_kit/exchange": [
        _ENGINE + folder for folder in _ENGINE_FOLDERS
    ],
    # Interface between the op library and its CUDA library.
    "addons/sparse_operation_kit/cuda": [
        "addons/sparse_operation_kit/exchange", _ENGINE + "base", _ENGINE + "interaction",
        _ENGINE + "rows"
    ],
    "addons/sparse_operation_kit/tf": [
        "tensorflow", "kernels/tf/bridge", "kernels/tf/ops", "kernels/tf/resources",
        "kernels/tf/op_kernels", "addons/sparse_operation_kit/exchange"
    ] + [_ENGINE + folder for folder in _ENGINE_FOLDERS],
}

# Folders of the hierarchical parameter server; only tf includes TensorFlow.
_HPS = "addons/hierarchical_parameter_server/"
_HPS_ENGINE = [_ENGINE + "base"]
MAY_USE.update({
    # Stored rows in fewer bytes.
    _HPS + "rows": _HPS_ENGINE,
    _HPS + "database/testing": [_HPS + "database", _HPS + "rows"] + _HPS_ENGINE,
    _HPS + "source/testing": [_HPS + "source", _HPS + "database"] + _HPS_ENGINE,
    _HPS + "database": [_HPS + "files", _HPS + "rows"] + _HPS_ENGINE,
    # Table directories: keys and rows in memory-mapped files.
    _HPS + "files": [_HPS + "config", _HPS + "rows"] + _HPS_ENGINE,
    _HPS + "config": [_HPS + "rows"] + _HPS_ENGINE,
    # Sources of changing rows.
    _HPS + "source": [_HPS + "database", _HPS + "config"] + _HPS_ENGINE,
    # A cache on the test device, and tests that hold for every cache.
    _HPS + "cache/testing": [_HPS + "cache", _HPS + "rows", _ENGINE + "testing"] + _HPS_ENGINE,
    # The hash table in GPU memory, which only the cache uses.
    _HPS + "cache/table": _HPS_ENGINE,
    # Rows on a device, above the databases.
    _HPS + "cache": [_HPS + "cache/table", _HPS + "rows"] + _HPS_ENGINE,
    # Interface between the op library and its CUDA library.
    _HPS + "cuda": [_HPS + "cache"] + _HPS_ENGINE,
    _HPS + "server": [
        _HPS + folder for folder in ("database", "files", "config", "rows", "source", "cache")
    ] + _HPS_ENGINE,
    # Programs that measure the server on a GPU.
    _HPS + "benchmark": [
        _HPS + folder for folder in ("config", "cache", "rows", "server")
    ] + _HPS_ENGINE,
    # The server's ops; the engine finds distinct ids.
    _HPS + "tf": ["tensorflow", "kernels/tf/bridge", _ENGINE + "ids"] + [
        _HPS + folder
        for folder in ("database", "files", "config", "source", "cache", "server")
    ] + _HPS_ENGINE,
})

# Additional folders for the tests of a folder: a row home is tested under a table that is
# saved and restored, and a configuration with the types of databases that the server has.
TESTS_MAY_USE = {
    "kernels/engine/rows": ["kernels/engine/embedding", "kernels/engine/checkpoint"],
    _HPS + "config": [_HPS + "server"],
}

# Programs outside the engine that measure it.
_OUTSIDE = ("benchmarks/", "tests/")

_CPP = (".h", ".cc", ".cu", ".cuh", ".inc")
_INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)

# Headers that come with TensorFlow's.
_FRAMEWORK = ("tensorflow/", "absl/", "google/protobuf/", "Eigen/", "unsupported/Eigen",
              "third_party/eigen3")
_GTEST = ("gtest/", "gmock/")


def folder_of(path):
  """Returns the folder that contains a path, or None."""
  for folder in MAY_USE:
    if path.startswith(folder + "/"):
      return folder
  return None


def target_of(header):
  """Returns the folder, "tensorflow", "gtest", "system" or "unknown"."""
  if header.startswith(_FRAMEWORK):
    return "tensorflow"
  if header.startswith(_GTEST):
    return "gtest"
  return folder_of(header) or "unknown"


def is_test(path):
  """Returns whether a file is a test or a benchmark."""
  stem = path.rsplit(".", 1)[0]
  return stem.endswith(("_test", "_benchmark"))


def violations(path, text):
  """Returns a line for each include that the table does not allow."""
  folder = folder_of(path)
  if folder is None:
    return ["%s: lies in no folder of the table" % path]
  allowed = {folder, *MAY_USE[folder]}
  if is_test(path):
    allowed |= {"gtest", "kernels/engine/testing", *TESTS_MAY_USE.get(folder, [])}
    if folder.startswith(_HPS):
      allowed |= {
          _HPS + "cache/testing", _HPS + "database/testing", _HPS + "source/testing"
      }
  if folder in ("kernels/engine/testing", _HPS + "cache/testing",
                _HPS + "database/testing"):
    allowed |= {"gtest"}
  found = []
  for bracket, header in _INCLUDE.findall(text):
    target = target_of(header)
    if target == "unknown" and bracket == "<":
      continue  # a system header
    if target not in allowed:
      found.append("%s: %s may not include %s (%s)" % (path, folder, header, target))
  return found


class ArrowsTest(parameterized.TestCase):

  def test_the_tree_obeys(self):
    sources = [p for p in tree.files(*_CPP) if not p.startswith(_OUTSIDE)]
    self.assertGreater(len(sources), 20)
    found = []
    for path in sources:
      found += violations(path, tree.read(path))
    self.assertEmpty(found, "\n" + "\n".join(found))

  def test_no_framework_under_the_engine(self):
    word = re.compile(r"tensorflow/|tensorflow::|namespace tensorflow")
    for path in tree.files(*_CPP):
      if path.startswith(_ENGINE):
        for bracket, header in _INCLUDE.findall(tree.read(path)):
          self.assertNotEqual(target_of(header), "tensorflow", path)
        self.assertNotRegex(tree.read(path), word, path)

  @parameterized.parameters(
      ("kernels/engine/table/cpu/a.cc", "kernels/engine/ids/unique.h"),
      ("kernels/engine/base/a.h", "kernels/engine/table/cpu/hash_index.h"),
      ("kernels/engine/optimizer/a.h", "tensorflow/core/framework/op.h"),
      ("kernels/engine/combine/a.h", "absl/types/span.h"),
      ("kernels/engine/combine/a.cc", "gtest/gtest.h"),
      ("kernels/engine/combine/a.cc", "kernels/engine/testing/oracle.h"),
      ("kernels/engine/embedding/a.cc", "kernels/tf/bridge/status.h"),
      ("kernels/engine/embedding/a.cc", "neighbour.h"),
      ("kernels/tf/ops/a.cc", "kernels/engine/embedding/embedding_table.h"),
      ("kernels/tf/bridge/a.cc", "kernels/engine/embedding/embedding_table.h"),
      ("kernels/tf/resources/a.cc", "kernels/tf/op_kernels/checks.h"),
      ("kernels/tf/op_kernels/a.cc", "addons/sparse_operation_kit/exchange/route.h"),
      ("kernels/engine/rows/gpu/a.cc", "kernels/engine/embedding/table_impl.h"),
      ("kernels/engine/rows/a.cc", "kernels/engine/table/cpu/hash_index.h"),
      ("kernels/engine/embedding/a.cc", _HPS + "cache/table/table_set.h"),
      (_HPS + "cache/table/a.cu", "kernels/engine/embedding/table_impl.h"),
      ("kernels/engine/embedding/a.cc", "kernels/engine/checkpoint/tensor_names.h"),
      ("kernels/engine/checkpoint/a.cc", "kernels/engine/rows/row_home.h"),
      ("kernels/engine/checkpoint/a.cc", "kernels/tf/bridge/checkpoint_reader.h"),
      ("kernels/tf/bridge/a.cc", "kernels/engine/checkpoint/save_table.h"),
      ("kernels/engine/ids/a.cc", "addons/sparse_operation_kit/exchange/route.h"),
      ("addons/sparse_operation_kit/exchange/a.cc", "kernels/tf/bridge/status.h"),
      ("addons/sparse_operation_kit/exchange/a.cc", "tensorflow/core/framework/op.h"),
      ("addons/hugectr/reader/a.cc", "kernels/engine/ids/unique.h"),
      ("kernels/elsewhere/a.cc", "kernels/engine/base/span.h"),
      ("kernels/cuda10/a.cc", "kernels/engine/base/status.h"),
      (_HPS + "database/a.cc", "kernels/engine/embedding/embedding_table.h"),
      (_HPS + "database/a.cc", _HPS + "server/server.h"),
      (_HPS + "database/a.cc", _HPS + "database/testing/database_contract.h"),
      (_HPS + "server/a.cc", "tensorflow/core/framework/op.h"),
      (_HPS + "server/a.cc", _HPS + "cache/table/table_set.h"),
      (_HPS + "server/a.cc", _HPS + "cache/testing/host_device_cache.h"),
      (_HPS + "cuda/a.cc", _HPS + "server/server.h"),
      ("addons/sparse_operation_kit/cuda/a.cc", "tensorflow/core/framework/op.h"),
      ("addons/sparse_operation_kit/exchange/a.cc",
       "addons/sparse_operation_kit/cuda/cuda_library.h"),
      ("kernels/engine/base/a.cc", "kernels/cuda10/errors.h"),
  )
  def test_refuses(self, path, header):
    self.assertLen(violations(path, '#include "%s"\n' % header), 1)

  @parameterized.parameters(
      ("kernels/engine/table/cpu/a.cc", "kernels/engine/base/span.h"),
      ("kernels/engine/table/cpu/a.cc", "kernels/engine/table/cpu/b.h"),
      ("kernels/engine/storage/dram/a.cc", "kernels/engine/policy/admission.h"),
      ("kernels/engine/embedding/a.cc", "kernels/engine/ids/unique.h"),
      ("kernels/engine/ids/a_test.cc", "gtest/gtest.h"),
      ("kernels/engine/ids/a_test.cc", "kernels/engine/testing/oracle.h"),
      ("kernels/tf/op_kernels/a.cc", "kernels/tf/resources/ev_resource.h"),
      ("kernels/tf/op_kernels/a.cc", "tensorflow/core/framework/op.h"),
  )
  def test_allows(self, path, header):
    self.assertEmpty(violations(path, '  # include "%s"\n' % header))

  def test_the_system_is_free(self):
    self.assertEmpty(
        violations("kernels/engine/base/a.cc", "#include <sys/mman.h>\n#include <vector>\n"))


if __name__ == "__main__":
  absltest.main()
