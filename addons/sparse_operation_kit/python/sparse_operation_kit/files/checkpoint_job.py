# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Gives checkpoints of embedding variables Horovod's ranks."""

from embedding_variable.checkpoint import job

from sparse_operation_kit import communication
from sparse_operation_kit.exchange import collectives
from sparse_operation_kit.exchange import spread_lookup
from sparse_operation_kit.files import table_files


class HorovodJob(job.Job):
  """The job of Horovod's current ranks."""

  def size(self):
    return communication.num_ranks()

  def rank(self):
    return communication.rank()

  def placement(self, variable):
    if not table_files.is_spread(variable):
      return None
    return spread_lookup.ranks_asked(variable) or spread_lookup.ranks_of(
        variable, communication.num_ranks())

  def channel(self, name):
    return collectives.channel("checkpoint/" + name)


def register():
  """Registers HorovodJob as the job of this process."""
  job.register(HorovodJob())
