# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checks that the installed TensorFlow is a build for CUDA 10.0, and examines it."""

import ast
import collections
import os

from embedding_variable.gpu import errors
from embedding_variable.gpu import fatbin

_REMEDY = ("Remedy: pip install tensorflow==1.15.0 (Python 3.7), which is one; so is "
           "tensorflow-gpu 1.15.x.")

_KERNELS = "python/_pywrap_tensorflow_internal.so"
_ABOUT = "python/platform/build_info.py"

# version: "1.15.0"; folder: that of tensorflow_core; library: path of the library with the
# kernels; modules: its GPU code, list of fatbin.Module.
Build = collections.namedtuple("Build", ["version", "folder", "library", "modules"])


def _constants(path):
  """Returns {name: value} of a module's top-level assignments."""
  with open(path) as f:
    tree = ast.parse(f.read(), path)
  found = {}
  for node in tree.body:
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
      try:
        found[node.targets[0].id] = ast.literal_eval(node.value)
      except ValueError:
        pass
  return found


def examine(folder, version):
  """Examines a TensorFlow installation.

  Args:
    folder: folder of tensorflow_core, as returned by tf.sysconfig.get_lib().
    version: tf.__version__.

  Returns:
    Build.

  Raises:
    GpuError: it is not 1.15, not a build for CUDA 10.0, or incomplete; the message
      names the wheel to install.
  """
  what = "TensorFlow %s in %s" % (version, folder)
  if version.split(".")[:2] != ["1", "15"]:
    raise errors.GpuError("%s is no 1.15. %s" % (what, _REMEDY))
  library = os.path.join(folder, _KERNELS)
  try:
    about = _constants(os.path.join(folder, _ABOUT))
    modules = fatbin.modules(library)
  except (OSError, SyntaxError, ValueError) as e:
    raise errors.GpuError("%s cannot be read: %s. %s" % (what, e, _REMEDY))
  if not about.get("is_cuda_build") or not modules:
    raise errors.GpuError(
        "%s is a build without CUDA, which has no GPU devices. %s" % (what, _REMEDY))
  # "10" in 1.15.0, may be "10.0" in other builds.
  cuda = str(about.get("cuda_version_number", ""))
  if cuda not in ("10", "10.0"):
    raise errors.GpuError("%s is a build for CUDA %s: CUDA 10.0 is needed. %s" %
                          (what, cuda or "of unknown version", _REMEDY))
  return Build(version, folder, library, modules)


def installed():
  """Returns the Build of the TensorFlow that this Python imports."""
  import tensorflow as tf  # pylint: disable=g-import-not-at-top
  return examine(tf.sysconfig.get_lib(), tf.__version__)
