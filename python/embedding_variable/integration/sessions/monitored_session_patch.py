# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Patch: monitored sessions of a job whose tables are spread over ranks.

Why: with a CheckpointSaverHook on rank 0 only, as is usual with Horovod, rank 0 would
wait for the others in its first save, and they for rank 0 in their next lookup. So the
ranks compare their hooks when they create the session, and all raise the same error.
"""

from tensorflow.python.training import monitored_session

from embedding_variable.checkpoint import job
from embedding_variable.checkpoint import together
from embedding_variable.integration import patching
from embedding_variable.variables import variable as ev


def install():
  """Wraps the constructor of all monitored sessions."""
  patching.wrap(monitored_session._MonitoredSession, "__init__", _init)  # pylint: disable=protected-access


def _init(stock):

  def init(self, session_creator, hooks, *args, **kwargs):
    current = job.current()
    hooks = list(hooks or [])
    if current.size() > 1 and any(
        ev.is_embedding_variable(v) and current.placement(v) is not None
        for v in ev.all_in_graph()):
      together.check_hooks(hooks)
    return stock(self, session_creator, hooks, *args, **kwargs)

  return init
