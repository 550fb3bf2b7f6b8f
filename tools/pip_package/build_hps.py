# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Builds sok_stock_tf_hps-<version>-<tag>.whl in a folder.

  bazel build //tools/pip_package:build_hps
  bazel-bin/tools/pip_package/build_hps [OUT_DIR]        # default: dist

The CUDA library is in the wheel if ./configure found nvcc.
"""

import argparse
import os

import distributions
import platform_tag
import wheel_contents
import wheel_file

_NAME = distributions.HPS

_SUMMARY = "Embedding tables served inside a TensorFlow %s graph"

_ADDON = "addons/hierarchical_parameter_server"
_PACKAGE = "hierarchical_parameter_server"

# In the same folder as the package.
_LIBRARY = "libhierarchical_parameter_server.so"

# Only in builds with nvcc. The op library loads it for a cache in GPU memory.
_CUDA_LIBRARY = "tf/libhierarchical_parameter_server_cuda.so"


def fields(version, tensorflow):
  """Returns the (field, value) pairs of METADATA.

  Args:
    version: string, of the wheel.
    tensorflow: string, the minor version that the library was compiled against.
  """
  return [
      ("Metadata-Version", "2.1"),
      ("Name", _NAME),
      ("Version", version),
      ("Summary", _SUMMARY % tensorflow),
      ("Author", "The SparseOperationKit Authors"),
      ("License", "Apache-2.0"),
      ("Classifier", "License :: OSI Approved :: Apache Software License"),
      ("Classifier", "Operating System :: POSIX :: Linux"),
      ("Classifier", "Topic :: Scientific/Engineering :: Artificial Intelligence"),
      ("Requires-Dist", "numpy"),
      ("Description-Content-Type", "text/markdown"),
  ] + distributions.metadata_fields(tensorflow)


def main():
  parser = argparse.ArgumentParser(prog="build_hps", description=__doc__)
  parser.add_argument("out_dir", nargs="?", default="dist")
  out_dir = parser.parse_args().out_dir
  root = wheel_contents.runfiles(__file__)
  tensorflow = wheel_contents.built_for(root, _ADDON + "/tf")
  version = distributions.wheel_version(wheel_contents.version(root), tensorflow)
  description = wheel_contents.description(root, _ADDON + "/README.md")
  files = wheel_contents.collect(
      "build_hps", root, {_PACKAGE: _ADDON + "/python/" + _PACKAGE}, (".py",))
  library = wheel_contents.read(os.path.join(root, _ADDON, "tf", _LIBRARY))
  files["%s/%s" % (_PACKAGE, _LIBRARY)] = library
  files[_PACKAGE + "/tensorflow_version.txt"] = wheel_contents.read(
      os.path.join(root, _ADDON, "tf", "tensorflow_version.txt"))
  cuda = wheel_contents.if_built(root, _PACKAGE, _ADDON + "/" + _CUDA_LIBRARY)
  files.update(cuda)
  # The libraries use no Python symbol.
  tag = "py3-none-" + platform_tag.of_libraries([library] + list(cuda.values()))
  os.makedirs(out_dir, exist_ok=True)
  path = os.path.join(out_dir, wheel_file.file_name(_NAME, version, tag))
  # Replaced atomically, because another process may be installing the old one.
  wheel_file.write(
      path + ".part", _NAME, version, tag, files,
      wheel_file.metadata_text(fields(version, tensorflow), description),
      wheel_contents.read(os.path.join(root, "LICENSE")))
  os.replace(path + ".part", path)
  print(path)


if __name__ == "__main__":
  main()
