# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""What checkpoints must know of the other processes that train the same tables.

A package that spreads tables over processes registers a `Job`; without one this process
is alone, and so it is whenever the job has one rank.
"""


class Job(object):
  """Interface: the processes of a job, and which of them holds which rows."""

  def size(self):
    """Returns the number of ranks."""
    return 1

  def rank(self):
    """Returns this process's number."""
    return 0

  def placement(self, variable):
    """Returns the list of ranks that hold a table, or None.

    Key k is on entry `floormod(k, length)`. None: the table is no business of the
    others, each rank has one of its own.
    """
    del variable

  def channel(self, name):
    """Returns an object by which all ranks of the job agree, between steps.

    Its methods are called by all ranks in the same order; each raises within a bounded
    time when a rank does not come:
      gather_text(text): returns the list of every rank's string.
      check(error): raises on all ranks when `error` is an exception on one of them.
      check_equal(what, text): ValueError on all ranks unless all gave the same string.

    Args:
      name: string.
    """
    raise NotImplementedError


_ALONE = Job()
_job = _ALONE


def register(job):
  """Makes `job` the one that this process belongs to."""
  global _job
  _job = job


def current():
  """Returns the `Job` of this process."""
  return _job if _job.size() > 1 else _ALONE
