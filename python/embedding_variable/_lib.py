# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Loads libembedding_variable.so; no other module does.

The library is compiled against one minor version of TensorFlow and cannot work with
another. The version is checked first, because the loader would only fail with a list of
undefined symbols.
"""

import json
import os
import threading

from embedding_variable.tf_names import tf

_LIBRARY = "libembedding_variable.so"

# File beside the library: the minor version that it was compiled against.
_BUILT_FOR = "tensorflow_version.txt"


def _supported():
  """Returns the minor versions that this package can be built for, oldest first.

  The file has for each of them the Pythons with a wheel of it, the one that the set-up
  takes, and what the project's wheels require besides. Build, set-up and pages read it too.
  """
  folder = os.path.dirname(os.path.abspath(__file__))
  with open(os.path.join(folder, "tensorflow_versions.json")) as f:
    return tuple(json.load(f))


SUPPORTED = _supported()

_lock = threading.Lock()
_module = None


def check_version(version, built_for):
  """Raises ImportError unless the library was built for this version of TensorFlow.

  Args:
    version: string such as "1.15.5".
    built_for: string, the minor version that the library was compiled against.

  Raises:
    ImportError: it is another minor version.
  """
  minor = ".".join(version.split(".")[:2])
  if minor == built_for:
    return
  build = ""
  if minor in SUPPORTED:
    build = ", or build a wheel for TensorFlow %s: make wheel TF=%s" % (minor, minor)
  raise ImportError(
      "this embedding_variable was built for TensorFlow %s, but TensorFlow %s is "
      "installed. It can be built for TensorFlow %s. Remedy: pip install "
      "'tensorflow==%s.*'%s" %
      (built_for, version or "of unknown version", ", ".join(SUPPORTED), built_for, build))


def library_path():
  """Returns the path of the library.

  In a wheel it is next to the package; in a program run by Bazel, in the kernels'
  directory of the source tree.

  Raises:
    ImportError: it is in neither place.
  """
  return _find(_LIBRARY)


def _find(name):
  """Returns the path of a file that is installed beside this module."""
  package = os.path.dirname(os.path.abspath(__file__))
  root = os.path.dirname(os.path.dirname(package))
  candidates = [
      os.path.join(package, name),
      os.path.join(root, "kernels", "tf", name),
  ]
  for path in candidates:
    if os.path.exists(path):
      return path
  raise ImportError(
      "%s was not found (looked at: %s). Remedy: install the wheel, or build "
      "//kernels/tf:%s and run through Bazel." % (name, ", ".join(candidates), _LIBRARY))


def _built_for():
  """Returns the minor version that the library was compiled against."""
  with open(_find(_BUILT_FOR)) as f:
    return f.read().strip()


def load():
  """Loads the library once; returns the module of generated op functions (`ev_gather`,
  ...).

  Raises:
    ImportError: TensorFlow has another version, or the library is missing or does not
      match the installed TensorFlow.
  """
  global _module
  with _lock:
    if _module is None:
      check_version(tf.__version__, _built_for())
      path = library_path()
      try:
        _module = tf.load_op_library(path)
      except tf.errors.OpError as e:
        raise ImportError(
            "%s does not load into TensorFlow %s: %s" %
            (path, tf.__version__, e.message))
    return _module
