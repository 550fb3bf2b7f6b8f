# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Loads libhierarchical_parameter_server.so; no other module does."""

import os
import threading

import tensorflow as tf

_LIBRARY = "libhierarchical_parameter_server.so"

# File beside the library: the minor version of TensorFlow that it was compiled against.
_BUILT_FOR = "tensorflow_version.txt"

_lock = threading.Lock()
_module = None


def library_path():
  """Returns the path of the op library, for programs that load a graph without Python.

  In a wheel it is next to the package; in a program run by Bazel, in the addon's tf
  folder.

  Raises:
    ImportError: it is in neither place.
  """
  return _find(_LIBRARY)


def _find(name):
  package = os.path.dirname(os.path.abspath(__file__))
  addon = os.path.dirname(os.path.dirname(package))
  candidates = [os.path.join(package, name), os.path.join(addon, "tf", name)]
  for path in candidates:
    if os.path.exists(path):
      return path
  raise ImportError(
      "%s was not found (looked at: %s). Remedy: install the wheel, or build "
      "//addons/hierarchical_parameter_server/tf:%s and run through Bazel." %
      (name, ", ".join(candidates), _LIBRARY))


def load():
  """Loads the library once; returns the module of generated op functions (`hps_lookup`,
  ...).

  Raises:
    ImportError: TensorFlow has another minor version than the one that the library was
      compiled against, or the library is missing or incompatible.
  """
  global _module
  with _lock:
    if _module is None:
      with open(_find(_BUILT_FOR)) as f:
        built_for = f.read().strip()
      if tf.__version__.split(".")[:2] != built_for.split("."):
        raise ImportError(
            "this hierarchical_parameter_server was built for TensorFlow %s, but "
            "TensorFlow %s is installed. Remedy: pip install 'tensorflow==%s.*'" %
            (built_for, tf.__version__, built_for))
      path = library_path()
      try:
        _module = tf.load_op_library(path)
      except tf.errors.OpError as e:
        raise ImportError("%s does not load into TensorFlow %s: %s" %
                          (path, tf.__version__, e.message))
      # Rows are served, not trained.
      tf.no_gradient("HpsLookup")
    return _module
