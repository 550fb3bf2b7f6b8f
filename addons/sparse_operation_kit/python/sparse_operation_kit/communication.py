# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""How many processes train this model, as Horovod knows it."""

import os
import sys

# The variables in which launchers say how many processes they started.
_LAUNCHER_SIZES = ("HOROVOD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE")


def _horovod():
  """Horovod's TensorFlow module if the script imported it, else None.

  A script that trains over several processes has imported Horovod and called
  its init(). One that did neither pays nothing for Horovod here, and need not
  have it installed.
  """
  return sys.modules.get("horovod.tensorflow")


def horovod_initialized():
  """Whether the script called hvd.init()."""
  horovod = _horovod()
  return horovod is not None and bool(horovod.is_initialized())


def num_ranks():
  """Number of processes; 1 when Horovod is not initialized."""
  return _horovod().size() if horovod_initialized() else 1


def launched_ranks():
  """Number of processes that the launcher says it started; 1 if none says."""
  for name in _LAUNCHER_SIZES:
    value = os.environ.get(name, "")
    if value.isdigit() and int(value) > 1:
      return int(value)
  return 1


def require_one_rank(what):
  """Raises NotImplementedError when more than one process trains.

  Args:
    what: string, the call that is made, for the message.
  """
  ranks = num_ranks()
  if ranks > 1:
    raise NotImplementedError(
        "%s: lookups over several ranks are not built yet; this version works in "
        "one process, but Horovod runs %d. Start the script without horovodrun, or "
        "with -np 1." % (what, ranks))
