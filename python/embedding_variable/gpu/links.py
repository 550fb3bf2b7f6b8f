# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Creates the folder of libraries with CUDA 10.0's names."""

import collections
import os
import shutil
import tempfile

from embedding_variable.gpu import cuda_libraries
from embedding_variable.gpu import elf
from embedding_variable.gpu import errors

_CUDART, _CUDNN = "libcudart.so.10.0", "libcudnn.so.7"
_CUBLAS, _CUBLAS_BEHIND = "libcublas.so.10.0", "libcublas_behind.so"

# Name under which TensorFlow loads it -> our library.
_OURS = collections.OrderedDict([
    (_CUDART, "libev_cudart10.so"),
    (_CUBLAS, "libev_cublas10.so"),
    # TensorFlow only requires that the library can be opened when it creates a device;
    # each op that uses cuDNN then fails by itself.
    (_CUDNN, "libev_nothing.so"),
])


def our_library(name):
  """Returns the path of one of our libraries.

  In a wheel it is in the package; in a program run by Bazel, in the kernels' directory.

  Raises:
    GpuError: it is in neither place.
  """
  package = os.path.dirname(os.path.abspath(__file__))
  root = os.path.dirname(os.path.dirname(os.path.dirname(package)))
  looked_at = [os.path.join(package, name), os.path.join(root, "kernels", "cuda10", name)]
  for path in looked_at:
    if os.path.exists(path):
      return path
  raise errors.GpuError("%s was not found (looked at: %s). Remedy: install the wheel "
                        "again." % (name, ", ".join(looked_at)))


def plan(cuda, cudart=None):
  """Returns the content of the folder.

  Args:
    cuda: a cuda_libraries.Cuda.
    cudart: path of a libcudart.so.10.0 to use instead of ours, or None.

  Returns:
    OrderedDict from file names to absolute paths.

  Raises:
    GpuError: `cudart` is not such a library, or ours are missing.
  """
  found = collections.OrderedDict(
      (name, our_library(ours)) for name, ours in _OURS.items())
  if cudart:
    try:
      soname = elf.Elf(cudart).soname
    except (OSError, ValueError) as e:
      raise errors.GpuError("--cudart: %s" % e)
    if soname != _CUDART:
      raise errors.GpuError("--cudart: %s is %s, expected %s" % (cudart, soname, _CUDART))
    found[_CUDART] = os.path.abspath(cudart)
  for name, path in cuda.paths.items():
    # Our library wraps cuBLAS and opens it by this name.
    link = _CUBLAS_BEHIND if name == "cublas" else "lib%s.so.10.0" % name
    found[link] = os.path.realpath(path)
  for name, path in cuda_libraries.with_dependencies(cuda).items():
    found.setdefault(name, path)
  return found


def lay_out(planned, folder):
  """Creates the folder, or replaces it atomically.

  It is a link to a folder next to it. Our libraries are copied, since an update of the
  wheel may replace them; NVIDIA's are links.

  Args:
    planned: the result of plan().
    folder: to create or replace.
  """
  parent = os.path.dirname(folder)
  made = tempfile.mkdtemp(prefix=os.path.basename(folder) + "-", dir=parent)
  os.chmod(made, 0o755)
  ours = {our_library(name) for name in _OURS.values()}
  for name, path in planned.items():
    target = os.path.join(made, name)
    if path in ours:
      shutil.copy(path, target)
      os.chmod(target, 0o755)
    else:
      os.symlink(path, target)
  old = os.path.realpath(folder) if os.path.islink(folder) else None
  os.symlink(os.path.basename(made), made + ".link")
  os.replace(made + ".link", folder)
  if old:
    shutil.rmtree(old, ignore_errors=True)
