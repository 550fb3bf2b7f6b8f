# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Interface to the other processes of a job, for checkpoints of shared tables.

A package that spreads tables over processes registers a `Job`. Without one, or if the
job has one rank, this process counts as alone.
"""


class Job(object):
  """Interface: the processes of a job and the placement of rows on them."""

  def size(self):
    """Returns the number of ranks."""
    return 1

  def rank(self):
    """Returns this process's number."""
    return 0

  def placement(self, variable):
    """Returns the list of ranks that hold a table, or None.

    Key k is on the rank in entry `floormod(k, length)`. None: the table is not spread,
    each rank has its own.
    """
    del variable

  def channel(self, name):
    """Returns an object for communication between all ranks, outside of steps.

    All ranks must call its methods in the same order. Each raises within a bounded time
    if a rank does not come:
      gather_text(text): returns the list of every rank's string.
      check(error): raises on all ranks if `error` is an exception on one of them.
      check_equal(what, text): ValueError on all ranks unless all passed the same
        string.

    Args:
      name: string.
    """
    raise NotImplementedError


_ALONE = Job()
_job = _ALONE


def register(job):
  """Sets the job to which this process belongs."""
  global _job
  _job = job


def current():
  """Returns the `Job` of this process."""
  return _job if _job.size() > 1 else _ALONE
