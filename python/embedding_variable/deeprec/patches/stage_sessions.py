# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Patch: a monitored session of a graph with stages must start their threads.

Why: without `make_prefetch_hook` the first step would wait forever. Only graphs with a
stage change.
"""

from tensorflow.python.framework import ops
from tensorflow.python.training import monitored_session

from embedding_variable.deeprec import graph_lists
from embedding_variable.integration import patching


def install():
  """Wraps the constructor of all monitored sessions."""
  patching.wrap(monitored_session._MonitoredSession, "__init__", _init,  # pylint: disable=protected-access
                layer="_stages")


def _init(stock):

  def init(self, session_creator, hooks, *args, **kwargs):
    hooks = list(hooks or [])
    runners = graph_lists.of(ops.get_default_graph(), graph_lists.STAGES)
    if runners and not any(type(h).__name__ == "PrefetchHook" for h in hooks):
      raise ValueError(
          "the graph has the stage '%s', whose threads only a hook starts: add "
          "make_prefetch_hook() to the session's hooks" % runners[0].name)
    return stock(self, session_creator, hooks, *args, **kwargs)

  return init
