# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""`tensorflow.python.training.incremental_saver`: deltas with DeepRec's API.

  incremental = incremental_saver._get_incremental_saver(True, saver)
  path = saver.save(sess, "model/ckpt", 100)
  delta = incremental.incremental_save(sess, "deltas/incr", 120)
  ...
  incremental.incremental_restore(sess, path, delta)

The delta is a link of the full checkpoint's chain, under its own name (delta_chain.py),
and is copied to the path that the caller gives. So a stock `Saver.restore` finds it
too.
"""

import os

from embedding_variable.checkpoint import delta_graph
from embedding_variable.checkpoint import incremental
from embedding_variable.checkpoint import saving
from embedding_variable.checkpoint import together
from embedding_variable.checkpoint_format import delta_chain
from embedding_variable.tf_names import checkpoint_management
from embedding_variable.tf_names import compat
from embedding_variable.tf_names import errors
from embedding_variable.tf_names import file_io


class IncrementalSaver(object):
  """Saves and restores deltas with the ops of a `tf.train.Saver`."""

  def __init__(self, saver=None, sharded=False, saver_def=None, defer_build=False,
               allow_empty=False, incremental_include_normal_var=None):
    """Finds the saver, and builds the ops unless that is deferred.

    Args:
      saver: `tf.train.Saver`, of a graph with embedding variables; its `build` is
        always deferred. None: the one of `saver_def`.
      sharded: accepted for compatibility; deltas are sharded if the saver is.
      saver_def: `saver_def` of a `tf.train.Saver` of the default graph. None: that of
        the graph's only saver.
      defer_build: bool; True: the caller calls `build` before the graph is final.
      allow_empty: accepted for compatibility.
      incremental_include_normal_var: accepted for compatibility: every delta contains
        all other variables.

    Raises:
      ValueError: no such saver, or several; not if `defer_build` is true.
    """
    del sharded, allow_empty, incremental_include_normal_var
    self._own_saver = saver
    self._saver_def = saver_def
    if saver is None and not defer_build:
      self.build()

  @property
  def _saver(self):
    if self._own_saver is None:
      self._own_saver = incremental.saver_of(self._saver_def)
    return self._own_saver

  def build(self, filename_tensor=None):
    """Adds the ops that save deltas, unless the saver has them.

    Args:
      filename_tensor: accepted for compatibility: deltas have a prefix of their own.

    Raises:
      ValueError: no such saver, or several.
    """
    del filename_tensor
    delta_graph.ensure_save(self._saver)

  def incremental_save(self, sess, save_path, global_step=None, latest_filename=None,
                       meta_graph_suffix="meta", write_meta_graph=True, write_state=True,
                       strip_default_attrs=False):
    """Saves the changes since the last full or incremental checkpoint.

    Args:
      sess: the session.
      save_path: string, prefix of the copy; `-<global_step>` is appended. It may be in
        any folder. If that is the folder of one of the saver's full checkpoints, or the
        `.incremental_checkpoint` in it, the delta continues the last checkpoint of that
        folder; otherwise it continues the saver's last full checkpoint.
      global_step: int, tensor or None.
      latest_filename: accepted for compatibility, as are the others: deltas use the
        graph and the state file of their full checkpoint.

    Returns:
      string, the prefix of the copy.

    Raises:
      the errors of `embedding_variable.save_incremental`.
    """
    del latest_filename, meta_graph_suffix, write_meta_graph, write_state
    del strip_default_attrs
    save_path = compat.as_str(save_path)
    if global_step is not None:
      if not isinstance(global_step, compat.integral_types):
        global_step = int(sess.run(global_step))
      save_path = "%s-%d" % (save_path, global_step)
    directory = os.path.dirname(save_path)
    if os.path.basename(directory) == delta_chain.DIRECTORY:
      directory = os.path.dirname(directory)
    directory = incremental.directory_of_chain(self._saver, directory)
    delta = incremental.save_incremental(self._saver, sess, directory, global_step)
    if saving.is_together(sess.graph, self._saver.saver_def):
      together.on_rank_0(lambda: _copy(delta, save_path))
    else:
      _copy(delta, save_path)
    return save_path

  def incremental_restore(self, sess, save_path, incr_save_path):
    """Restores a full checkpoint and its deltas up to a given one.

    Args:
      sess: the session.
      save_path: string, prefix of the full checkpoint.
      incr_save_path: string, the result of `incremental_save`, or the prefix of a link
        of the chain.

    Raises:
      tf.errors.DataLossError: the delta does not belong to the checkpoint, or a
        previous delta is missing or damaged.
      tf.errors.NotFoundError: there is no such delta.
    """
    saver, save_path = self._saver, compat.as_str(save_path)
    wanted = delta_chain.identity(compat.as_str(incr_save_path))
    links = incremental.deltas_of(saver, sess.graph, save_path, enabled=True)
    places = [i for i, link in enumerate(links) if link.identity == wanted]
    if not places:
      raise errors.DataLossError(
          None, None, "the incremental checkpoint %s is not one of the %d that continue the "
          "full checkpoint %s" % (incr_save_path, len(links), save_path))
    incremental.restore_exactly(saver, sess, save_path)
    incremental.restore_deltas(saver, sess, links[:places[0] + 1])

  def recover_incr_checkpoints(self, sess, checkpoint_dir):
    """Applies the deltas of a folder's newest full checkpoint, which must be restored
    already.

    `tf.train.Saver.restore` has usually applied them; applying them again changes
    nothing.

    Args:
      sess: the session.
      checkpoint_dir: string, the folder of the full checkpoint.

    Raises:
      tf.errors.DataLossError: a delta is missing or damaged.
    """
    full = checkpoint_management.latest_checkpoint(checkpoint_dir)
    if full is not None:
      incremental.restore_deltas(
          self._saver, sess,
          incremental.deltas_of(self._saver, sess.graph, full, enabled=True))


def _copy(prefix, to):
  """Copies a checkpoint, the index last, since it makes the files one; returns `to`."""
  if os.path.dirname(to):
    file_io.recursive_create_dir(os.path.dirname(to))
  for pattern in (".data-?????-of-?????", ".index"):
    for path in file_io.get_matching_files(prefix + pattern):
      file_io.copy(path, to + path[len(prefix):], overwrite=True)
  return to


def _get_incremental_saver(incremental_save_restore, saver):
  """Returns a built `IncrementalSaver`, or None if disabled.

  Args:
    incremental_save_restore: bool.
    saver: `tf.train.Saver`.
  """
  if not incremental_save_restore or saver is None:
    return None
  incremental_saver = IncrementalSaver(saver)
  incremental_saver.build()
  return incremental_saver
