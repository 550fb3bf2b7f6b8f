# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""How many processes train this model, as Horovod knows it."""

import os
import sys

HOROVOD = "horovod"

# What `set_comm_tool` was called with.
_tool = None

# The variables in which launchers say how many processes they started.
_LAUNCHER_SIZES = ("HOROVOD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE")


def check_tool(name, what):
  """Raises ValueError unless `name` is a tool that ranks can talk by."""
  if name != HOROVOD:
    raise ValueError("%s must be '%s', got %r" % (what, HOROVOD, name))


def set_comm_tool(name):
  """Says how ranks talk to each other; `sok.init` does it too.

  Args:
    name: "horovod", the only one there is.

  Raises:
    ValueError: `name` is something else.
    RuntimeError: it was called before.
  """
  global _tool
  check_tool(name, "sok.set_comm_tool: the tool")
  if _tool is not None:
    raise RuntimeError("sok.set_comm_tool: the tool is set already, to '%s'" % _tool)
  _tool = name


def horovod():
  """Horovod's TensorFlow module if the script imported it, else None.

  A script that trains over several processes has imported Horovod and called
  its init(). One that did neither pays nothing for Horovod here, and need not
  have it installed.
  """
  return sys.modules.get("horovod.tensorflow")


def horovod_initialized():
  """Whether the script called hvd.init()."""
  module = horovod()
  return module is not None and bool(module.is_initialized())


def num_ranks():
  """Number of processes; 1 when Horovod is not initialized."""
  return horovod().size() if horovod_initialized() else 1


def rank():
  """This process's number; 0 when Horovod is not initialized."""
  return horovod().rank() if horovod_initialized() else 0


def launched_ranks():
  """Number of processes that the launcher says it started; 1 if none says."""
  for name in _LAUNCHER_SIZES:
    value = os.environ.get(name, "")
    if value.isdigit() and int(value) > 1:
      return int(value)
  return 1
