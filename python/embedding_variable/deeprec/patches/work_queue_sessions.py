# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Patch: a monitored session that used up its input finishes its works.

Why: the last save of a session is made by the `end` of a hook. The works whose records
the session has trained must be finished before it. Only graphs with a WorkQueue change.
"""

from tensorflow.python.framework import ops
from tensorflow.python.training import monitored_session
from tensorflow.python.training import session_run_hook

from embedding_variable.deeprec import graph_lists
from embedding_variable.integration import patching


def install():
  """Wraps the constructor of all monitored sessions."""
  patching.wrap(monitored_session._MonitoredSession, "__init__", _init,  # pylint: disable=protected-access
                layer="_work_queues")


def _init(stock):

  def init(self, session_creator, hooks, *args, **kwargs):
    hooks = list(hooks or [])
    if graph_lists.of(ops.get_default_graph(), graph_lists.WORK_QUEUES):
      hooks.insert(0, _FinishHook())
    return stock(self, session_creator, hooks, *args, **kwargs)

  return init


class _FinishHook(session_run_hook.SessionRunHook):
  """Finishes works if the session's last run ended by OutOfRange."""

  def __init__(self):
    self._is_running = False
    self._finish = []

  def begin(self):
    graph = ops.get_default_graph()
    if not graph.finalized:
      graph._embedding_variable_finish_works = [  # pylint: disable=protected-access
          q.finish_consumed() for q in graph_lists.of(graph, graph_lists.WORK_QUEUES)]
    self._finish = getattr(graph, "_embedding_variable_finish_works", [])

  def after_create_session(self, session, coord):
    self._is_running = False

  def before_run(self, run_context):
    self._is_running = True

  def after_run(self, run_context, run_values):
    self._is_running = False

  def end(self, session):
    # `end` is called after a run that raised only if it raised OutOfRange.
    if self._is_running:
      session.run(self._finish)
