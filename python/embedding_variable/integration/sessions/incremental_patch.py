# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Patch: durable and incremental checkpoints in stock savers, hooks and sessions.

Why: a stock saver writes a checkpoint's files under their final names without waiting
for the disk, and has no deltas. DeepRec's scripts request them by arguments of
`tf.train.Saver`, `Scaffold`, `CheckpointSaverHook` and `MonitoredTrainingSession`,
which stock functions reject. Savers without embedding variables are unchanged.
"""

import os
import threading

from tensorflow.python.eager import context
from tensorflow.python.saved_model import builder_impl
from tensorflow.python.training import basic_session_run_hooks
from tensorflow.python.training import monitored_session
from tensorflow.python.training import saver as saver_lib
from tensorflow.python.util import compat

from embedding_variable.checkpoint import delta_graph
from embedding_variable.checkpoint import delta_saveable
from embedding_variable.checkpoint import incremental
from embedding_variable.checkpoint import job
from embedding_variable.checkpoint import leftovers
from embedding_variable.checkpoint import publishing
from embedding_variable.checkpoint import saveable as saveable_lib
from embedding_variable.checkpoint import saving
from embedding_variable.checkpoint_format import interrupted
from embedding_variable.integration import patching
from embedding_variable.tf_names import checkpoint_management
from embedding_variable.tf_names import ops
from embedding_variable.variables import variable as ev

# pylint: disable=protected-access

_OURS = (saveable_lib.EmbeddingVariableSaveable, delta_saveable.DeltaSaveable)

# Arguments of MonitoredTrainingSession for the hook that it creates.
_asked = threading.local()


def install():
  """Replaces the functions."""
  builder = saver_lib.BaseSaverBuilder
  patching.wrap(builder, "_build_internal", _build_internal)
  patching.wrap(builder, "_AddRestoreOps", _add_restore_ops)
  patching.wrap(builder, "_AddSaveOps", _add_save_ops)
  patching.wrap(builder, "_AddShardedSaveOpsForV2", _add_sharded_save_ops)
  patching.wrap(saver_lib.Saver, "__init__", _init_with_incremental)
  patching.wrap(saver_lib.Saver, "save", _save, layer="_incremental")
  patching.wrap(saver_lib.Saver, "restore", _restore, layer="_incremental")
  patching.wrap(checkpoint_management, "remove_checkpoint", _remove_checkpoint)
  patching.wrap(monitored_session.Scaffold, "__init__", _init_with_incremental)
  hook = basic_session_run_hooks.CheckpointSaverHook
  # For hooks that were created before, or by a subclass that does not call `__init__`.
  hook._ev_timer = None
  patching.wrap(hook, "__init__", _init_hook)
  patching.wrap(hook, "begin", _begin_hook)
  patching.wrap(hook, "after_create_session", _after_create_session)
  patching.wrap(hook, "after_run", _after_run)
  for name in ("add_meta_graph", "add_meta_graph_and_variables"):
    patching.wrap(builder_impl.SavedModelBuilder, name, patching.with_save_incr_model)
  patching.wrap(monitored_session, "MonitoredTrainingSession",
                _monitored_training_session)


# Building savers.


def _build_internal(stock):

  def build_internal(self, *args, **kwargs):
    if context.executing_eagerly():
      return stock(self, *args, **kwargs)
    self._ev_collected = []
    try:
      saver_def = stock(self, *args, **kwargs)
      saveables = self._ev_collected
    finally:
      self._ev_collected = None
    saveable_lib.check_part_names(saveables)
    # DeepRec's scripts pass it to `IncrementalSaver.build`.
    self.filename_tensor = ops.get_default_graph().get_tensor_by_name(
        saver_def.filename_tensor_name)
    if saving.spread_tables(saveables):
      saving.mark_as_together(ops.get_default_graph(), saver_def)
    if any(isinstance(s, saveable_lib.EmbeddingVariableSaveable) for s in saveables):
      delta_graph.build_restore(self, saver_def, saveables,
                                reshape=kwargs.get("reshape", False))
      self._ev_saveables = saveables
      if delta_graph.is_requested(ops.get_default_graph()):
        delta_graph.build_save(self, saver_def, saveables)
    return saver_def

  return build_internal


def _add_restore_ops(stock):

  def add_restore_ops(self, filename_tensor, saveables, *args, **kwargs):
    if getattr(self, "_ev_collected", None) is not None:
      self._ev_collected.extend(saveables)
    return stock(self, filename_tensor, saveables, *args, **kwargs)

  return add_restore_ops


def _is_durable(saveables):
  return (any(isinstance(s, _OURS) for s in saveables) and
          not context.executing_eagerly())


def _add_save_ops(stock):

  def add_save_ops(self, filename_tensor, saveables, *args, **kwargs):
    # A shard becomes part of a checkpoint that is published as a whole.
    if getattr(self, "_ev_sharding", False) or not _is_durable(saveables):
      return stock(self, filename_tensor, saveables, *args, **kwargs)
    add = publishing.add_save_ops
    if saving.spread_tables(saveables) and job.current().rank():
      # Rank 0 publishes the checkpoint that includes this rank's part.
      add = publishing.add_part_ops
    return add(filename_tensor,
               lambda staged: stock(self, staged, saveables, *args, **kwargs))

  return add_save_ops


def _add_sharded_save_ops(stock):

  def add_sharded_save_ops(self, checkpoint_prefix, per_device, *args, **kwargs):
    if not any(_is_durable(saveables) for _, saveables in per_device):
      return stock(self, checkpoint_prefix, per_device, *args, **kwargs)
    everything = [s for _, saveables in per_device for s in saveables]
    if saving.spread_tables(everything):
      # The folder in which stock code collects shards has another name on each rank.
      return self._AddSaveOps(checkpoint_prefix, everything)
    self._ev_sharding = True
    try:
      return publishing.add_save_ops(
          checkpoint_prefix,
          lambda staged: stock(self, staged, per_device, *args, **kwargs))
    finally:
      self._ev_sharding = False

  return add_sharded_save_ops


def _init_with_incremental(stock):

  def init(self, *args, incremental_save_restore=None,
           incremental_include_normal_var=None, **kwargs):
    # Every delta contains all other variables, as a full checkpoint does.
    del incremental_include_normal_var
    setattr(self, incremental.WANTED, incremental_save_restore)
    if incremental_save_restore and not context.executing_eagerly():
      delta_graph.request(ops.get_default_graph())
    stock(self, *args, **kwargs)
    if isinstance(self, saver_lib.Saver) and not context.executing_eagerly():
      incremental.remember(self)

  return init


# Saving and restoring.


def _has_tables(saver, sess):
  return (getattr(sess, "graph", None) is not None and
          saver.saver_def is not None and
          delta_graph.has(sess.graph, saver.saver_def, "restore_tables"))


def _save(stock):

  def save(self, sess, save_path, global_step=None, latest_filename=None, *args,
           **kwargs):
    if context.executing_eagerly() or not _has_tables(self, sess):
      return stock(self, sess, save_path, global_step, latest_filename, *args,
                   **kwargs)
    cuts = incremental.cuts_before_full(self, sess)
    path = stock(self, sess, save_path, global_step, latest_filename, *args, **kwargs)
    if path is None:
      return path
    publishing.sync_state(os.path.dirname(path), latest_filename)
    if cuts is not None:
      incremental.begin_chain(self, sess, path, cuts)
    return path

  return save


def _restore(stock):

  def restore(self, sess, save_path, *args, **kwargs):
    links = []
    if save_path is not None and not context.executing_eagerly() and _has_tables(
        self, sess):
      path = compat.as_text(save_path)
      readable = interrupted.finished(path)
      if readable != path:
        save_path = readable
      links = incremental.deltas_of(self, sess.graph, path,
                                    getattr(self, incremental.WANTED, None))
    stock(self, sess, save_path, *args, **kwargs)
    incremental.restore_deltas(self, sess, links)

  return restore


def _remove_checkpoint(stock):

  def remove_checkpoint(checkpoint_prefix, *args, **kwargs):
    try:
      # Before the rest: no later call removes deltas whose full checkpoint is gone.
      leftovers.remove_deltas(compat.as_str(checkpoint_prefix))
    finally:
      stock(checkpoint_prefix, *args, **kwargs)
      interrupted.remove_interrupted(compat.as_str(checkpoint_prefix))

  return remove_checkpoint


# Timing of saves in hooks.


def _timer(secs, steps):
  if secs is None and steps is None:
    return None
  return basic_session_run_hooks.SecondOrStepTimer(every_secs=secs, every_steps=steps)


def _init_hook(stock):

  def init(self, checkpoint_dir, *args, incremental_save_secs=None,
           incremental_save_steps=None, **kwargs):
    asked = getattr(_asked, "periods", None)
    if asked is not None and incremental_save_secs is None and (
        incremental_save_steps is None):
      incremental_save_secs, incremental_save_steps = asked
    stock(self, checkpoint_dir, *args, **kwargs)
    self._ev_timer = _timer(incremental_save_secs, incremental_save_steps)

  return init


def _begin_hook(stock):

  def begin(self, *args, **kwargs):
    stock(self, *args, **kwargs)
    if self._ev_timer is None:
      return
    delta_graph.request(ops.get_default_graph())
    saver = self._saver
    if saver is None and self._scaffold is not None:
      saver = self._scaffold.saver
    if saver is None and ops.get_collection(ops.GraphKeys.SAVERS):
      saver = self._get_saver()
    if saver is not None and saver.saver_def is not None:
      delta_graph.ensure_save(saver)
    _check_has_tables(saver)

  return begin


def _check_has_tables(saver):
  """Raises before the first step if the first delta would fail.

  Args:
    saver: the hook's saver, or None: then its saver will have all variables.

  Raises:
    ValueError: there is no table of which a delta could be saved.
  """
  graph = ops.get_default_graph()
  if saver is not None and saver.saver_def is not None:
    found = delta_graph.has(graph, saver.saver_def, "save")
  else:
    found = any(map(ev.is_embedding_variable, ev.all_in_graph()))
  if not found:
    raise ValueError(
        "CheckpointSaverHook: incremental checkpoints hold what changed in embedding "
        "variables, and the %s has none: give it neither incremental_save_secs nor "
        "incremental_save_steps (save_incremental_checkpoint_secs or _steps of a "
        "MonitoredTrainingSession)" % ("graph" if saver is None else "saver"))


def _after_create_session(stock):

  def after_create_session(self, session, coord, *args, **kwargs):
    stock(self, session, coord, *args, **kwargs)
    if self._ev_timer is not None:
      self._ev_timer.update_last_triggered_step(self._timer.last_triggered_step())

  return after_create_session


def _after_run(stock):

  def after_run(self, run_context, run_values, *args, **kwargs):
    timer = self._ev_timer
    if timer is None:
      return stock(self, run_context, run_values, *args, **kwargs)
    last_full = self._timer.last_triggered_step()
    stock(self, run_context, run_values, *args, **kwargs)
    if self._timer.last_triggered_step() != last_full:
      timer.update_last_triggered_step(self._timer.last_triggered_step())
      return
    if not timer.should_trigger_for_step(run_values.results + self._steps_per_run):
      return
    step = run_context.session.run(self._global_step_tensor)
    if timer.should_trigger_for_step(step):
      timer.update_last_triggered_step(step)
      incremental.save_incremental(self._get_saver(), run_context.session,
                                   os.path.dirname(self._save_path), step)

  return after_run


def _monitored_training_session(stock):

  def monitored_training_session(*args, save_incremental_checkpoint_secs=None,
                                 save_incremental_checkpoint_steps=None, **kwargs):
    if save_incremental_checkpoint_secs is None and (
        save_incremental_checkpoint_steps is None):
      return stock(*args, **kwargs)
    if len(args) < 3 and kwargs.get("checkpoint_dir") is None:
      raise ValueError("MonitoredTrainingSession: incremental checkpoints need a "
                       "checkpoint_dir")
    _timer(save_incremental_checkpoint_secs, save_incremental_checkpoint_steps)
    if not kwargs.get("save_checkpoint_secs", True) and not kwargs.get(
        "save_checkpoint_steps"):
      raise ValueError("MonitoredTrainingSession: incremental checkpoints continue "
                       "full ones, and save_checkpoint_secs turns those off")
    _asked.periods = (save_incremental_checkpoint_secs,
                      save_incremental_checkpoint_steps)
    try:
      return stock(*args, **kwargs)
    finally:
      _asked.periods = None

  return monitored_training_session
