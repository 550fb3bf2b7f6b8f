# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Number of processes that train this model, and the rank of this process."""

import os
import sys

HOROVOD = "horovod"

# The argument of `set_comm_tool`.
_tool = None

# Environment variables with the number of processes that a launcher started.
_LAUNCHER_SIZES = ("HOROVOD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE")


def check_tool(name, what):
  """Raises ValueError unless `name` is a supported communication tool."""
  if name != HOROVOD:
    raise ValueError("%s: expected '%s', got %r" % (what, HOROVOD, name))


def set_comm_tool(name):
  """Checks the name of the tool by which ranks communicate; it has no other effect.

  `sok.init` checks its `comm_tool` in the same way. The two may be called in any order.

  Args:
    name: "horovod", the only tool.

  Raises:
    ValueError: `name` is another tool.
    RuntimeError: an earlier call of this function succeeded.
  """
  global _tool
  check_tool(name, "sok.set_comm_tool: the tool")
  if _tool is not None:
    raise RuntimeError("sok.set_comm_tool: the tool is set already, to '%s'" % _tool)
  _tool = name


def horovod():
  """Horovod's TensorFlow module if the script imported it, else None.

  A script that trains over several processes has imported Horovod and called its
  init(). For other scripts this import costs nothing, and Horovod need not be
  installed.
  """
  return sys.modules.get("horovod.tensorflow")


def horovod_initialized():
  """Whether the script called hvd.init()."""
  module = horovod()
  return module is not None and bool(module.is_initialized())


def num_ranks():
  """Returns the number of processes; 1 if Horovod is not initialized."""
  return horovod().size() if horovod_initialized() else 1


def rank():
  """Returns this process's rank; 0 if Horovod is not initialized."""
  return horovod().rank() if horovod_initialized() else 0


def launched_ranks():
  """Returns the number of processes that the launcher started; 1 without a launcher."""
  for name in _LAUNCHER_SIZES:
    value = os.environ.get(name, "")
    if value.isdigit() and int(value) > 1:
      return int(value)
  return 1
