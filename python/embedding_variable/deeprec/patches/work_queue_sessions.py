# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Patch: a monitored session that used up its input finishes its works.

Why: the last save of a session is made by the `end` of a hook. The works whose records
the session has trained must be finished before it. If the last step was saved already,
the hook is made to save it again, or a new session would train these works once more.
Only graphs with a WorkQueue change.
"""

from tensorflow.python.framework import ops
from tensorflow.python.training import basic_session_run_hooks
from tensorflow.python.training import monitored_session
from tensorflow.python.training import session_run_hook

from embedding_variable.checkpoint import together
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
      hooks.insert(0, _FinishHook(hooks))
    return stock(self, session_creator, hooks, *args, **kwargs)

  return init


class _FinishHook(session_run_hook.SessionRunHook):
  """Finishes works if the session's last run ended by OutOfRange."""

  def __init__(self, hooks):
    """Creates the hook for a session with these hooks."""
    self._is_running = False
    self._savers = [h for h in hooks
                    if isinstance(h, basic_session_run_hooks.CheckpointSaverHook)]
    self._held, self._finish = [], []

  def begin(self):
    graph = ops.get_default_graph()
    # pylint: disable=protected-access
    if not graph.finalized:
      queues = graph_lists.of(graph, graph_lists.WORK_QUEUES)
      graph._embedding_variable_finish_works = (
          [q.held() for q in queues], [q.finish_consumed() for q in queues])
    self._held, self._finish = getattr(graph, "_embedding_variable_finish_works",
                                       ([], []))

  def after_create_session(self, session, coord):
    self._is_running = False

  def before_run(self, run_context):
    self._is_running = True

  def after_run(self, run_context, run_values):
    self._is_running = False

  def end(self, session):
    has_finished = False
    # `end` is called after a run that raised only if it raised OutOfRange.
    if self._is_running:
      has_finished = any(session.run(self._held))
      session.run(self._finish)
    for hook in self._savers:
      if together.on_any_rank(session.graph, hook, has_finished):
        # The hook's `end` saves unless the last save was at the same step.
        hook._timer.reset()  # pylint: disable=protected-access
