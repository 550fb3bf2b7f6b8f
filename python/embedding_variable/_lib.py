# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Loads libembedding_variable.so; no other module does.

The library is compiled against TensorFlow 1.15 and cannot work with another version.
The version is checked first, because the loader would only fail with a list of
undefined symbols.
"""

import os
import threading

import tensorflow as tf

_LIBRARY = "libembedding_variable.so"

_lock = threading.Lock()
_module = None


def check_version(version):
  """Raises ImportError unless `version` is a TensorFlow version that the library
  supports.

  Args:
    version: string such as "1.15.5".

  Raises:
    ImportError: the version is not in [1.15, 1.16).
  """
  parts = version.split(".")
  if parts[:2] != ["1", "15"]:
    raise ImportError(
        "embedding_variable works with TensorFlow >=1.15,<1.16, but TensorFlow %s "
        "is installed. Remedy: pip install 'tensorflow==1.15.5' (Python 3.7)." %
        version)


def library_path():
  """Returns the path of the library.

  In a wheel it is next to the package; in a program run by Bazel, in the kernels'
  directory of the source tree.

  Raises:
    ImportError: it is in neither place.
  """
  package = os.path.dirname(os.path.abspath(__file__))
  root = os.path.dirname(os.path.dirname(package))
  candidates = [
      os.path.join(package, _LIBRARY),
      os.path.join(root, "kernels", "tf", _LIBRARY),
  ]
  for path in candidates:
    if os.path.exists(path):
      return path
  raise ImportError(
      "%s was not found (looked at: %s). Remedy: install the wheel, or build "
      "//kernels/tf:%s and run through Bazel." %
      (_LIBRARY, ", ".join(candidates), _LIBRARY))


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
      check_version(tf.__version__)
      path = library_path()
      try:
        _module = tf.load_op_library(path)
      except tf.errors.OpError as e:
        raise ImportError(
            "%s does not load into TensorFlow %s: %s" %
            (path, tf.__version__, e.message))
    return _module
