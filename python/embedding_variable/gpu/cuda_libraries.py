# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Finds the libraries of CUDA 12 or 13 that replace those of CUDA 10.0.

All come from one place, since libraries of different CUDA versions do not work together
in a process: either a toolkit, or the nvidia-* packages of one site-packages folder.
"""

import collections
import glob
import os
import shutil
import sys

from embedding_variable.gpu import elf
from embedding_variable.gpu import errors

# For each CUDA version, the number in each library's name. CUDA 10.0's names are
# lib<name>.so.10.0.
VERSIONS = collections.OrderedDict([
    (13, collections.OrderedDict([("cublas", "13"), ("cufft", "12"), ("curand", "10"),
                                  ("cusolver", "12"), ("cusparse", "12")])),
    (12, collections.OrderedDict([("cublas", "12"), ("cufft", "11"), ("curand", "10"),
                                  ("cusolver", "11"), ("cusparse", "12")])),
])

_PACKAGES = {
    13: "nvidia-cublas nvidia-cufft nvidia-curand nvidia-cusolver nvidia-cusparse",
    12: "nvidia-cublas-cu12 nvidia-cufft-cu12 nvidia-curand-cu12 nvidia-cusolver-cu12 "
        "nvidia-cusparse-cu12",
}

# Folders of libraries in a toolkit.
_TOOLKIT_FOLDERS = ("lib64", "lib", "targets/x86_64-linux/lib",
                    "lib/x86_64-linux-gnu")

# Prefixes under which Linux distributions install their CUDA packages.
_SYSTEM_PREFIXES = ("/usr/local/cuda", "/opt/cuda", "/usr")

# name: for messages; folders: existing folders with libraries.
Place = collections.namedtuple("Place", ["name", "folders"])

# version: 12 or 13; place: its name; paths: {"cublas": path, ...} in a fixed order;
# folders: those of the place.
Cuda = collections.namedtuple("Cuda", ["version", "place", "paths", "folders"])


def _toolkit(name, top):
  folders = [os.path.join(top, f) for f in _TOOLKIT_FOLDERS]
  return Place(name, [f for f in folders if os.path.isdir(f)])


def places(cuda_dir=None, environ=None, path=None):
  """Returns the places to search, in order.

  Args:
    cuda_dir: the folder of a toolkit, the only place to search; None: search all of the
      following.
    environ: os.environ unless given: CUDA_HOME, CUDA_PATH, PATH.
    path: list of folders that may contain nvidia-* packages; sys.path unless given.

  Returns:
    list of Place. Some may have no folder.
  """
  if cuda_dir:
    return [_toolkit("--cuda %s" % cuda_dir, cuda_dir)]
  environ = os.environ if environ is None else environ
  found = []
  for variable in ("CUDA_HOME", "CUDA_PATH"):
    if environ.get(variable):
      found.append(_toolkit("%s=%s" % (variable, environ[variable]), environ[variable]))
  nvcc = shutil.which("nvcc", path=environ.get("PATH", ""))
  if nvcc:
    top = os.path.dirname(os.path.dirname(os.path.realpath(nvcc)))
    found.append(_toolkit("nvcc's %s" % top, top))
  for folder in (sys.path if path is None else path):
    libraries = sorted(glob.glob(os.path.join(folder or ".", "nvidia", "*", "lib")))
    if libraries:
      found.append(Place("the nvidia-* packages in %s" % folder, libraries))
  found += [_toolkit(prefix, prefix) for prefix in _SYSTEM_PREFIXES]
  return found


def _library(place, name, version):
  for folder in place.folders:
    path = os.path.join(folder, "lib%s.so.%s" % (name, version))
    if os.path.exists(path):
      return path
  return None


def find(looked_at, newest):
  """Returns the libraries of the first place that has all of them.

  Args:
    looked_at: list of Place, the result of places().
    newest: newest CUDA version that the driver supports, such as 13.

  Returns:
    Cuda; of several versions in one place the newest.

  Raises:
    GpuError: no place has all five; the message lists what each lacks and what to
      install.
  """
  lacks = []
  for place in looked_at:
    missing = None
    for version, numbers in VERSIONS.items():
      if version > newest:
        continue
      paths = collections.OrderedDict(
          (name, _library(place, name, number)) for name, number in numbers.items())
      absent = ["lib%s.so.%s" % (n, numbers[n]) for n, p in paths.items() if not p]
      if not absent:
        return Cuda(version, place.name, paths, place.folders)
      if missing is None or len(absent) < len(missing):
        missing = absent
    lacks.append("  %s: no %s" % (place.name, ", ".join(missing or ["such folder"])))
  wanted = max([v for v in VERSIONS if v <= newest] or [min(VERSIONS)])
  raise errors.GpuError(
      "CUDA %s's libraries were not found together:\n%s\nInstall the CUDA toolkit %d, or: "
      "pip install %s" % (" or ".join(str(v) for v in sorted(VERSIONS)),
                          "\n".join(lacks), wanted, _PACKAGES[wanted]))


def with_dependencies(cuda):
  """Returns {name: path} of the libraries' dependencies on each other.

  A library is opened through a link with another name, and the loader searches its
  dependencies next to the link. So the dependencies get links too.

  Args:
    cuda: a Cuda.

  Returns:
    OrderedDict from the names in the dependents ("libcublasLt.so.13") to real paths;
      without the system's own libraries.

  Raises:
    GpuError: a library is damaged.
  """
  found = collections.OrderedDict()
  left = list(cuda.paths.values())
  while left:
    path = os.path.realpath(left.pop(0))
    try:
      library = elf.Elf(path)
    except (OSError, ValueError) as e:
      raise errors.GpuError("a library of CUDA cannot be read: %s" % e)
    folders = library.search_path + [os.path.dirname(path)] + list(cuda.folders)
    for name in library.needed:
      if name in found or not name.startswith(("libcu", "libnv")):
        continue
      for folder in folders:
        other = os.path.join(folder, name)
        # The driver's own library does not belong to CUDA.
        if os.path.exists(other) and not name.startswith("libcuda.so"):
          found[name] = os.path.realpath(other)
          left.append(other)
          break
  return found
