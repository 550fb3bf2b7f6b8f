# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes .bazelrc.user, which describes this machine to the build.

./configure runs it with the interpreter that the build uses.
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys

_ROOT = os.path.dirname(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

_HEADER = "# Written by ./configure; run it again instead of editing this.\n"


def _fail(sentence):
  sys.exit("./configure: " + sentence)


def _supported():
  """Returns {minor version: the Pythons that have a wheel of it}, oldest first."""
  with open(os.path.join(_ROOT, "python", "embedding_variable",
                         "tensorflow_versions.json")) as f:
    return {tensorflow: facts["pythons"] for tensorflow, facts in json.load(f).items()}


_SUPPORTED = _supported()


def check_python():
  """Exits with a message unless a supported TensorFlow has a wheel for this Python."""
  python = "%d.%d" % sys.version_info[:2]
  if not any(python in pythons for pythons in _SUPPORTED.values()):
    newest = list(_SUPPORTED.values())[-1][-1]
    _fail("expected Python 3.7 for TensorFlow 1.15, or 3.7 to %s for TensorFlow 2.x, got "
          "%s at %s: set PYTHON to another, or run make setup." %
          (newest, python, sys.executable))


def find_tensorflow():
  """Returns (name, value) pairs about the installed TensorFlow.

  Exits with a message if there is none or its version is not supported.
  """
  remedy = ("run make setup, or %s -m pip install tensorflow==1.15.5 "
            "'protobuf<3.21'" % sys.executable)
  os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
  try:
    import tensorflow as tf  # pylint: disable=g-import-not-at-top
  except ModuleNotFoundError as e:
    if e.name != "tensorflow":
      _fail("TensorFlow in %s lacks the module %s: %s." %
            (sys.executable, e.name, remedy))
    _fail("%s has no TensorFlow: %s." % (sys.executable, remedy))
  except Exception as e:  # pylint: disable=broad-except
    _fail("TensorFlow cannot be imported in %s (%s): %s." %
          (sys.executable, (str(e).splitlines() or [repr(e)])[0], remedy))
  version = getattr(tf, "__version__", "unknown")
  if ".".join(version.split(".")[:2]) not in _SUPPORTED:
    _fail("TensorFlow %s is needed, %s has %s: %s; make wheel TF=2.15 builds for "
          "TensorFlow 2.15." %
          (" or ".join(_SUPPORTED), sys.executable, version, remedy))
  flags = tf.sysconfig.get_compile_flags()
  abi = _flag(flags, "-D_GLIBCXX_USE_CXX11_ABI=")
  if not abi:
    _fail("tf.sysconfig.get_compile_flags() of TensorFlow %s names no C++ ABI: %s." %
          (version, remedy))
  library_dir = tf.sysconfig.get_lib()
  # Its soname ends in the major version.
  library_name = "libtensorflow_framework.so." + version.split(".")[0]
  library = os.path.join(library_dir, library_name)
  if not os.path.exists(library):
    _fail("TensorFlow %s has no %s: %s." % (version, library, remedy))
  return [
      ("SOK_TF_VERSION", version),
      ("SOK_TF_INCLUDE", tf.sysconfig.get_include()),
      ("SOK_TF_LIBRARY_DIR", library_dir),
      ("SOK_TF_LIBRARY", library_name),
      ("SOK_TF_CXX11_ABI", abi),
      # TensorFlow 1.15 names no standard; its headers need C++14 at most.
      ("SOK_TF_CXX_STANDARD", _flag(flags, "-std=", "--std=") or "c++14"),
  ]


def _flag(flags, *prefixes):
  """Returns the value of the first flag with one of the prefixes, or None."""
  for flag in flags:
    if flag.startswith(prefixes):
      return flag.split("=")[1]
  return None


def find_packages():
  """Returns {package: version} of all installed packages."""
  try:
    from importlib import metadata  # pylint: disable=g-import-not-at-top
  except ImportError:  # Python 3.7
    import pkg_resources  # pylint: disable=g-import-not-at-top
    return {d.key: d.version for d in pkg_resources.working_set}
  return {d.metadata["Name"].lower(): d.version for d in metadata.distributions()}


def find_nvcc():
  """Returns the path of the CUDA compiler, or None."""
  for home in (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH")):
    if home and os.access(os.path.join(home, "bin", "nvcc"), os.X_OK):
      return os.path.join(home, "bin", "nvcc")
  found = shutil.which("nvcc")
  if not found and os.access("/usr/local/cuda/bin/nvcc", os.X_OK):
    found = "/usr/local/cuda/bin/nvcc"
  return found


def cuda_release(nvcc):
  """Returns the release that `nvcc --version` prints, for the report."""
  try:
    text = subprocess.check_output(
        [nvcc, "--version"], universal_newlines=True)
  except (OSError, subprocess.CalledProcessError):
    return "of unknown release"
  for line in text.splitlines():
    if "release" in line:
      return "release " + line.split("release")[1].split(",")[0].strip()
  return "of unknown release"


def main():
  parser = argparse.ArgumentParser(
      prog="./configure",
      description="Writes .bazelrc.user for Bazel. Honours $PYTHON, $CUDA_HOME.")
  parser.add_argument(
      "--output",
      default=os.path.join(_ROOT, ".bazelrc.user"),
      help="file to write (default: .bazelrc.user of this checkout)")
  output = parser.parse_args().output

  check_python()
  facts = [("SOK_PYTHON", sys.executable)] + find_tensorflow()
  packages = find_packages()
  listed = "\n".join("%s==%s" % p for p in sorted(packages.items()))
  # Makes Bazel read the packages again when one of them changed.
  facts.append(("SOK_PACKAGES", hashlib.sha256(listed.encode()).hexdigest()[:16]))
  horovod = packages.get("horovod")
  facts.append(("SOK_HOROVOD", horovod or ""))
  nvcc = find_nvcc()
  facts.append(("SOK_NVCC", nvcc or ""))

  lines = [_HEADER]
  # "common" also applies to bazel query, fetch and the like, so that they load the same
  # repositories as build.
  lines += ["common --repo_env=%s=%s\n" % fact for fact in facts]
  text = "".join(lines)
  try:
    with open(output) as f:
      unchanged = f.read() == text
  except OSError:
    unchanged = False
  if not unchanged:
    with open(output, "w") as f:
      f.write(text)

  facts = dict(facts)
  print("Python      %s" % sys.executable)
  print("TensorFlow  %s, C++ ABI %s" %
        (facts["SOK_TF_VERSION"], facts["SOK_TF_CXX11_ABI"]))
  print("Horovod     %s" % (horovod or "not found: one process only"))
  if nvcc:
    print("CUDA        %s at %s" % (cuda_release(nvcc), nvcc))
  else:
    print("CUDA        not found: the build leaves its CUDA code out")


if __name__ == "__main__":
  main()
