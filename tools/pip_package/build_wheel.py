# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Builds one of the project's wheels from its runfiles, for the configured TensorFlow.

build_sok, build_hps, build_hugectr and build_serving call main() with a Wheel.
"""

import argparse
import collections
import os
import sys

import distributions
import platform_tag
import wheel_contents
import wheel_file

# name: that of the distribution. summary: may have a %s for TensorFlow's minor version. page: the
# description, a path in the source tree. packages: {package: its folder in the runfiles}.
# libraries: {folder in the wheel: paths of files in the runfiles}; those of CUDA code are
# shipped if they were built. built_for: folder of the op library, whose
# tensorflow_version.txt names the one TensorFlow that the wheel works with; None: any.
# requires: function of the version; returns (field, value) pairs.
Wheel = collections.namedtuple("Wheel", [
    "name", "summary", "page", "packages", "libraries", "cuda_libraries", "built_for",
    "requires"])

_SHIPPED = (".py", ".so", ".json")


def collect(wheel, root, without_cuda=False):
  """Returns {path in the wheel: bytes} of the packages and the libraries."""
  files = wheel_contents.collect(wheel.name, root, wheel.packages, _SHIPPED)
  for folder, paths in wheel.libraries.items():
    for path in paths:
      files["%s/%s" % (folder, os.path.basename(path))] = wheel_contents.read(
          os.path.join(root, path))
  for folder, path in wheel.cuda_libraries.items():
    if not without_cuda:
      files.update(wheel_contents.if_built(root, folder, path))
  return files


def fields(wheel, version, tensorflow):
  """Returns the (field, value) pairs of METADATA.

  Args:
    wheel: Wheel.
    version: string, of the wheel.
    tensorflow: string, the minor version that its op library was compiled against, or None.
  """
  pairs = [
      ("Metadata-Version", "2.1"),
      ("Name", wheel.name),
      ("Version", version),
      ("Summary", wheel.summary % tensorflow if tensorflow else wheel.summary),
      ("Author", "The SparseOperationKit Authors"),
      ("License", "Apache-2.0"),
      ("Classifier", "License :: OSI Approved :: Apache Software License"),
      ("Classifier", "Operating System :: POSIX :: Linux"),
      ("Classifier", "Topic :: Scientific/Engineering :: Artificial Intelligence"),
      ("Requires-Dist", "numpy"),
  ] + wheel.requires(version) + distributions.python_fields(tensorflow)
  if tensorflow:
    pairs += [("Requires-Dist", r) for r in distributions.requirements(tensorflow)]
  return pairs + [("Description-Content-Type", "text/markdown")]


def main(wheel, program):
  """Builds a wheel in the folder of the command line, and prints its path.

  Args:
    wheel: Wheel.
    program: `__file__` of the caller.
  """
  parser = argparse.ArgumentParser(
      prog=os.path.splitext(os.path.basename(program))[0],
      description=sys.modules["__main__"].__doc__)
  parser.add_argument("out_dir", nargs="?", default="dist")
  parser.add_argument("--without_cuda", action="store_true",
                      help="leave the CUDA library out")
  arguments = parser.parse_args()
  root = wheel_contents.runfiles(program)
  version, tensorflow = wheel_contents.version(root), None
  if wheel.built_for:
    tensorflow = wheel_contents.built_for(root, wheel.built_for)
    version = distributions.wheel_version(version, tensorflow)
  files = collect(wheel, root, arguments.without_cuda)
  # The libraries use no Python symbol, so any Python 3 will do. The platform follows from
  # the symbol versions that they need of the system.
  libraries = [data for path, data in sorted(files.items()) if path.endswith(".so")]
  tag = "py3-none-" + (platform_tag.of_libraries(libraries) if libraries else "any")
  description = wheel_contents.description(root, wheel.page)
  os.makedirs(arguments.out_dir, exist_ok=True)
  path = os.path.join(arguments.out_dir, wheel_file.file_name(wheel.name, version, tag))
  # Replaced atomically, because another process may be installing the old one.
  wheel_file.write(
      path + ".part", wheel.name, version, tag, files,
      wheel_file.metadata_text(fields(wheel, version, tensorflow), description),
      wheel_contents.read(os.path.join(root, "LICENSE")))
  os.replace(path + ".part", path)
  print(path)
