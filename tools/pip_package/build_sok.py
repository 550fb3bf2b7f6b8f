# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Builds sok_stock_tf-<version>-<tag>.whl in a folder, for the configured TensorFlow.

  bazel build //tools/pip_package:build_sok
  bazel-bin/tools/pip_package/build_sok [OUT_DIR]        # default: dist

The CUDA library is in the wheel if ./configure found nvcc, unless --without_cuda is given.
The target build_sok_without_cuda is the same program and does not depend on that library.
"""

import argparse
import os

import distributions
import platform_tag
import wheel_contents
import wheel_file

_NAME = distributions.SOK

_SUMMARY = ("Embedding variables and SparseOperationKit's pooled lookup for stock "
            "TensorFlow %s")

# Folder of each package in the runfiles. A library is shipped in the package that uses
# it.
_PACKAGES = {
    "embedding_variable": "python/embedding_variable",
    "sparse_operation_kit":
        "addons/sparse_operation_kit/python/sparse_operation_kit",
}
_LIBRARIES = {
    "embedding_variable": [
        "kernels/tf/libembedding_variable.so",
        "kernels/tf/tensorflow_version.txt",
    ],
    "embedding_variable/gpu": [
        "kernels/cuda10/libev_cublas10.so",
        "kernels/cuda10/libev_cudart10.so",
        "kernels/cuda10/libev_nothing.so",
    ],
}

# Only in builds with nvcc. The op library, in the same folder, loads it at the first use
# of a GPU.
_CUDA_LIBRARY = "kernels/tf/libembedding_variable_cuda.so"

_SHIPPED = (".py", ".so", ".json")

_FIELDS = [
    ("Metadata-Version", "2.1"),
    ("Name", _NAME),
    ("Author", "The SparseOperationKit Authors"),
    ("License", "Apache-2.0"),
    ("Classifier", "License :: OSI Approved :: Apache Software License"),
    ("Classifier", "Operating System :: POSIX :: Linux"),
    ("Classifier", "Topic :: Scientific/Engineering :: Artificial Intelligence"),
    ("Requires-Dist", "absl-py"),
    ("Requires-Dist", "numpy"),
    ("Provides-Extra", "horovod"),
    ("Requires-Dist", "horovod>=0.28.1; extra == 'horovod'"),
    ("Description-Content-Type", "text/markdown"),
]


def collect(root, without_cuda=False):
  """Returns {path in the wheel: bytes} of both packages and the libraries."""
  files = wheel_contents.collect("build_sok", root, _PACKAGES, _SHIPPED)
  for folder, libraries in _LIBRARIES.items():
    for library in libraries:
      path = "%s/%s" % (folder, os.path.basename(library))
      files[path] = wheel_contents.read(os.path.join(root, library))
  if not without_cuda:
    files.update(wheel_contents.if_built(root, "embedding_variable", _CUDA_LIBRARY))
  return files


def tag(files):
  """Returns the wheel's tag.

  The libraries use no Python symbol, so any Python 3 of that TensorFlow will do. The
  platform follows from the symbol versions that they need of the system.

  Args:
    files: {path in the wheel: bytes}.
  """
  libraries = [data for path, data in sorted(files.items()) if path.endswith(".so")]
  return "py3-none-" + platform_tag.of_libraries(libraries)


def main():
  parser = argparse.ArgumentParser(prog="build_sok", description=__doc__)
  parser.add_argument("out_dir", nargs="?", default="dist")
  parser.add_argument("--without_cuda", action="store_true",
                      help="leave the CUDA library out")
  arguments = parser.parse_args()
  out_dir = arguments.out_dir
  root = wheel_contents.runfiles(__file__)
  tensorflow = wheel_contents.built_for(root, "kernels/tf")
  version = distributions.wheel_version(wheel_contents.version(root), tensorflow)
  fields = _FIELDS[:2] + [("Version", version), ("Summary", _SUMMARY % tensorflow)]
  fields += _FIELDS[2:] + distributions.metadata_fields(tensorflow)
  description = wheel_contents.description(root, "README.md")
  os.makedirs(out_dir, exist_ok=True)
  files = collect(root, arguments.without_cuda)
  path = os.path.join(out_dir, wheel_file.file_name(_NAME, version, tag(files)))
  # Replaced atomically, because another process may be installing the old one.
  wheel_file.write(
      path + ".part",
      _NAME,
      version,
      tag(files),
      files,
      wheel_file.metadata_text(fields, description),
      wheel_contents.read(os.path.join(root, "LICENSE")))
  os.replace(path + ".part", path)
  print(path)


if __name__ == "__main__":
  main()
