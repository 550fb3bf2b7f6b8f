# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Saves tables that are spread over the ranks of a job: all ranks together.

Every rank calls `Saver.save`, or `save_incremental`, with the same path, at the same
step. The ranks first compare the path. All ranks except 0 write their rows. When they
are done, rank 0 writes its own rows and all other variables and merges everything. Then
all ranks continue. A failure on one rank raises an error on all of them. This runs in
Python between steps: the graph has no collective op for it.
"""

import os

from embedding_variable.checkpoint import job
from embedding_variable.checkpoint import leftovers
from embedding_variable.checkpoint import saving
from embedding_variable.tf_names import basic_session_run_hooks
from embedding_variable.tf_names import compat
from embedding_variable.tf_names import ops
from embedding_variable.tf_names import training_util
from embedding_variable.tf_names import writer
from embedding_variable.tf_names import writer_cache
from embedding_variable.variables import variable as ev

_CHANNEL = "save"


def checkpoint_path(saver, session, save_path, global_step):
  """Returns the path of the checkpoint that `saver.save` writes."""
  if global_step is None:
    return save_path
  if not isinstance(global_step, compat.integral_types):
    global_step = training_util.global_step(session, global_step)
  if saver._pad_step_number:  # pylint: disable=protected-access
    return "%s-%08d" % (save_path, global_step)
  return "%s-%d" % (save_path, global_step)


def save(series, path, save_part, save_all):
  """Saves with all ranks: first all except rank 0, then rank 0.

  Args:
    series: string, prefix of the files' names; leftovers of failed saves under it are
      removed (leftovers.py).
    path: string that must be the same on all ranks: the checkpoint's path.
    save_part: function without arguments that writes this rank's part; called on all
      ranks except 0.
    save_all: the same for rank 0, which then also merges.

  Returns:
    The result of this rank's function.

  Raises:
    ValueError: the ranks save to different paths, on all ranks.
    Exception: the error of this rank, or the text of another rank's.
  """
  rank = job.current().rank()
  with leftovers.removed_part(series, rank) if rank else leftovers.removed(series):
    return _save(path, save_part, save_all)


def _save(path, save_part, save_all):
  channel = job.current().channel(_CHANNEL)
  channel.check_equal("the path of a checkpoint", path)
  error = result = None
  for is_mine, step in ((bool(job.current().rank()), save_part),
                        (not job.current().rank(), save_all)):
    if is_mine:
      try:
        result = step()
      except Exception as e:  # pylint: disable=broad-except
        error = e
    channel.check(error)
  return result


def on_rank_0(function):
  """Runs a function on rank 0 and returns its string on all ranks.

  Args:
    function: called without arguments, on rank 0 only.

  Raises:
    Exception: the error of rank 0, on all ranks.
  """
  channel = job.current().channel(_CHANNEL)
  error, text = None, ""
  if not job.current().rank():
    try:
      text = function()
    except Exception as e:  # pylint: disable=broad-except
      error = e
  channel.check(error)
  return channel.gather_text(text)[0]


def check_hooks(hooks):
  """Ensures that the hooks of a session save on all ranks or on none.

  Must be called by every rank that creates a monitored session for spread tables.

  Args:
    hooks: list of `SessionRunHook`s.

  Raises:
    ValueError: the ranks have different saving hooks or folders; on all ranks.
  """
  channel = job.current().channel("checkpoint_hooks")
  savers = [h for h in hooks
            if isinstance(h, basic_session_run_hooks.CheckpointSaverHook) and
            _saves_together(h)]
  said = channel.gather_text("; ".join(map(_describe, savers)))
  if any(text != said[0] for text in said):
    raise ValueError(
        "a table that is spread over ranks is saved by all ranks together, so every rank "
        "must have the same CheckpointSaverHook: give checkpoint_dir (model_dir of an "
        "Estimator) the same value on all ranks, or None on all of them. Got %s" %
        ", ".join("rank %d: %s" % (rank, text or "no CheckpointSaverHook")
                  for rank, text in enumerate(said)))
  for i, hook in enumerate(savers):
    # pylint: disable=protected-access
    _separate_events(hook._checkpoint_dir)
    hook._timer = _shared(hook._timer, "timer_%d" % i)
    hook._ev_timer = _shared(hook._ev_timer, "incremental_timer_%d" % i)


def on_any_rank(graph, hook, value):
  """Returns whether `value` is true on a rank whose saving hook must do the same.

  Must be called by every rank, for each of its hooks in the same order.

  Args:
    graph: Graph of the session.
    hook: CheckpointSaverHook.
    value: bool.
  """
  current = job.current()
  with graph.as_default():
    if current.size() == 1 or not _saves_together(hook) or not any(
        ev.is_embedding_variable(v) and current.placement(v) is not None
        for v in ev.all_in_graph()):
      return value
  return any(current.channel("checkpoint_hooks").gather_text("yes" if value else ""))


def _saves_together(hook):
  """Returns whether the hook's saver has spread tables; a saver not yet created has all."""
  # pylint: disable=protected-access
  saver = hook._saver
  if saver is None and hook._scaffold is not None:
    saver = hook._scaffold._saver
  return saver is None or saving.is_together(ops.get_default_graph(), saver.saver_def)


def _describe(hook):
  # pylint: disable=protected-access
  text = "%s, every %s" % (os.path.abspath(hook._checkpoint_dir), _period(hook._timer))
  if hook._ev_timer is not None:
    text += ", incremental every " + _period(hook._ev_timer)
  return "CheckpointSaverHook(%s)" % text


def _period(timer):
  # pylint: disable=protected-access
  if timer._every_secs is None:
    return "%s steps" % timer._every_steps
  return "%s s" % timer._every_secs


def _shared(timer, name):
  """Returns a timer that triggers at the same steps on all ranks; None for None."""
  if timer is None or timer._every_secs is None:  # pylint: disable=protected-access
    return timer
  return _SharedTimer(timer, name)


def _separate_events(folder):
  """Gives ranks other than 0 a folder of their own for TensorBoard's files.

  Processes on one machine that start in the same second would write the same file.
  """
  rank = job.current().rank()
  cache = writer_cache.FileWriterCache
  # pylint: disable=protected-access
  if rank and folder not in cache._cache:
    cache._cache[folder] = writer.FileWriter(os.path.join(folder, "rank_%d" % rank))


class _SharedTimer(object):
  """A timer by seconds that triggers on all ranks when it triggers on rank 0."""

  def __init__(self, timer, name):
    self._timer = timer
    self._channel = job.current().channel("checkpoint_" + name)

  def should_trigger_for_step(self, step):
    due = self._timer.should_trigger_for_step(step)
    return self._channel.gather_text("due" if due else "")[0] == "due"

  def __getattr__(self, name):
    return getattr(self._timer, name)
