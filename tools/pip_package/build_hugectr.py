# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Builds sok_stock_tf_hugectr-<version>-<tag>.whl in a folder.

  bazel build //tools/pip_package:build_hugectr
  bazel-bin/tools/pip_package/build_hugectr [OUT_DIR]        # default: dist
"""

import argparse
import os

import distributions
import platform_tag
import wheel_contents
import wheel_file

_NAME = distributions.HUGECTR

_SUMMARY = "HugeCTR's Session over a JSON configuration, on stock TensorFlow 1.15"

_PACKAGES = {"hugectr": "addons/hugectr/python/hugectr",
             "hugectr2onnx": "addons/hugectr/python/hugectr2onnx"}

_SHIPPED = (".py", ".json")

# In the package of the module that loads it.
_LIBRARY = "hugectr/data/libhugectr_reader.so"
_BUILT = "addons/hugectr/reader/libhugectr_reader.so"


def fields(version):
  """Returns the (field, value) pairs of METADATA."""
  return [
      ("Metadata-Version", "2.1"),
      ("Name", _NAME),
      ("Version", version),
      ("Summary", _SUMMARY),
      ("Author", "The SparseOperationKit Authors"),
      ("License", "Apache-2.0"),
      ("Classifier", "License :: OSI Approved :: Apache Software License"),
      ("Classifier", "Operating System :: POSIX :: Linux"),
  ] + [("Classifier", "Programming Language :: Python :: " + python)
       for python in distributions.PYTHONS] + [
      ("Classifier", "Topic :: Scientific/Engineering :: Artificial Intelligence"),
      ("Requires-Python", ">=3.7,<3.14"),
      ("Requires-Dist", "numpy"),
      ("Requires-Dist", "pyarrow>=6"),
      # Before 14.0.1 pyarrow executes code that a file contains.
      ("Requires-Dist", "pyarrow-hotfix>=0.7"),
      # Requires the same minor version, because it calls internal modules of SOK.
      ("Requires-Dist", distributions.SOK + distributions.compatible(version)),
      ("Provides-Extra", "horovod"),
      ("Requires-Dist", distributions.SOK + "[horovod]; extra == 'horovod'"),
      ("Provides-Extra", "inference"),
      ("Requires-Dist", distributions.HPS + distributions.compatible(version) +
       "; extra == 'inference'"),
      ("Description-Content-Type", "text/markdown"),
  ]


def main():
  parser = argparse.ArgumentParser(prog="build_hugectr", description=__doc__)
  parser.add_argument("out_dir", nargs="?", default="dist")
  out_dir = parser.parse_args().out_dir
  root = wheel_contents.runfiles(__file__)
  version = wheel_contents.version(root)
  description = wheel_contents.description(root, "addons/hugectr/README.md")
  files = wheel_contents.collect("build_hugectr", root, _PACKAGES, _SHIPPED)
  files[_LIBRARY] = wheel_contents.read(os.path.join(root, _BUILT))
  # The library uses no Python symbol.
  tag = "py3-none-" + platform_tag.of_libraries([files[_LIBRARY]])
  os.makedirs(out_dir, exist_ok=True)
  path = os.path.join(out_dir, wheel_file.file_name(_NAME, version, tag))
  # Replaced atomically, because another process may be installing the old one.
  wheel_file.write(
      path + ".part", _NAME, version, tag, files,
      wheel_file.metadata_text(fields(version), description),
      wheel_contents.read(os.path.join(root, "LICENSE")))
  os.replace(path + ".part", path)
  print(path)


if __name__ == "__main__":
  main()
