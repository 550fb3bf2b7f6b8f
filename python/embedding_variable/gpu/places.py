# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The files of a set-up, and the environment variables with which a program finds them."""

import collections
import os

# Libraries with CUDA 10.0's names; code compiled by the driver; facts of the set-up.
_LIBRARIES, _CACHE, _STATE, _LOCK = "lib", "cache", "state.json", "lock"

# The driver's default is 1 GiB; once a limit is reached, it compiles again and again.
CACHE_LIMIT_BYTES = 4 << 30

_DIRECTORY_VARIABLE = "TF_EV_GPU_DIR"

# Whether TensorFlow waits for the GPU at the end of a session's run, which is its
# default. Then the CPU idles until the update is done, and the GPU until the next
# step's ids arrive. Fetched values are waited for in any case.
_SYNC_VARIABLE = "TF_SYNC_ON_FINISH"


def default_directory(environ=None):
  """Returns the default folder."""
  environ = os.environ if environ is None else environ
  if environ.get(_DIRECTORY_VARIABLE):
    return environ[_DIRECTORY_VARIABLE]
  cache = environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
  return os.path.join(cache, "sparse_operation_kit", "gpu")


class Places(object):
  """The paths in one set-up's folder.

  Attributes:
    top, libraries, cache, state, lock: absolute paths, which need not exist.
  """

  def __init__(self, directory):
    self.top = os.path.abspath(directory)
    self.libraries = os.path.join(self.top, _LIBRARIES)
    self.cache = os.path.join(self.top, _CACHE)
    self.state = os.path.join(self.top, _STATE)
    self.lock = os.path.join(self.top, _LOCK)


def variables(places, environ=None):
  """Returns the environment variables that a program needs.

  Args:
    places: Places.
    environ: os.environ unless given; its LD_LIBRARY_PATH is extended, and its
      TF_SYNC_ON_FINISH is kept if it is set.

  Returns:
    OrderedDict from names to values.
  """
  environ = os.environ if environ is None else environ
  paths = [p for p in environ.get("LD_LIBRARY_PATH", "").split(":")
           if p and p != places.libraries]
  found = collections.OrderedDict([
      ("LD_LIBRARY_PATH", ":".join([places.libraries] + paths)),
      ("CUDA_CACHE_PATH", places.cache),
      ("CUDA_CACHE_MAXSIZE", str(CACHE_LIMIT_BYTES)),
      ("CUDA_CACHE_DISABLE", "0"),
  ])
  if not environ.get(_SYNC_VARIABLE):
    found[_SYNC_VARIABLE] = "false"
  return found


def cache_bytes(places):
  """Returns the size of the compiled code in bytes."""
  total = 0
  for folder, _, names in os.walk(places.cache):
    for name in names:
      try:
        total += os.path.getsize(os.path.join(folder, name))
      except OSError:
        pass  # the driver has just replaced it
  return total
