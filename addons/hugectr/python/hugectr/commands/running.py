# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""`run`: runs a script that imports mpi4py, where that may not be installed."""

import importlib.util
import os
import runpy
import sys
import types


def _number(*names):
  """Returns the first environment variable of some that is a number, else None."""
  for name in names:
    if os.environ.get(name, "").isdigit():
      return int(os.environ[name])
  return None


class _World(object):
  """Stands for MPI.COMM_WORLD: rank and size, as a launcher gives them."""

  rank = property(lambda self: self.Get_rank())
  size = property(lambda self: self.Get_size())

  def Get_rank(self):  # pylint: disable=invalid-name
    return _number("HOROVOD_RANK", "OMPI_COMM_WORLD_RANK") or 0

  def Get_size(self):  # pylint: disable=invalid-name
    return _number("HOROVOD_SIZE", "OMPI_COMM_WORLD_SIZE") or 1

  def __getattr__(self, name):
    raise AttributeError("mpi4py is not installed: this COMM_WORLD has rank and size alone, "
                         "not '%s'" % name)


def provide_mpi4py():
  """Makes `from mpi4py import MPI` work if mpi4py is not installed: it has no effect."""
  if "mpi4py" in sys.modules or importlib.util.find_spec("mpi4py") is not None:
    return
  package, mpi = types.ModuleType("mpi4py"), types.ModuleType("mpi4py.MPI")
  mpi.COMM_WORLD = _World()
  package.MPI = mpi
  sys.modules.update({"mpi4py": package, "mpi4py.MPI": mpi})


def run(script, arguments):
  """Runs a script as the program `python script arguments` would.

  Args:
    script: path.
    arguments: list of strings.

  Raises:
    OSError: there is no such script.
  """
  if not os.path.isfile(script):
    raise OSError("there is no script %s" % script)
  provide_mpi4py()
  sys.argv = [script] + list(arguments)
  sys.path.insert(0, os.path.dirname(os.path.abspath(script)))
  runpy.run_path(script, run_name="__main__")
