# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes full versions and deltas of a training session into a folder.

A version is a SavedModel of the prediction graph whose checkpoint the training session
writes, so the rows are copied once and no second copy of a table is in memory. A delta
is an incremental checkpoint that continues it (checkpoint/incremental.py). The publisher
has a Saver of its own, without optimizer slots.
"""

import contextlib
import os

from embedding_variable.checkpoint import delta_graph
from embedding_variable.checkpoint import incremental
from embedding_variable.checkpoint import job
from embedding_variable.checkpoint import saveable
from embedding_variable.checkpoint import saving
from embedding_variable.checkpoint import together
from embedding_variable.checkpoint_format import publications
from embedding_variable.publish import folder_publisher
from embedding_variable.publish import serving_graph
from embedding_variable.publish import version_folders
from embedding_variable.tf_names import file_io
from embedding_variable.tf_names import ops
from embedding_variable.tf_names import tf
from embedding_variable.tf_names import training_util
from embedding_variable.variables import variable as ev


class Publisher(folder_publisher.FolderPublisher):
  """Publishes the variables of one training graph to one folder.

  Not thread-safe. No training step may run during a call, so that what is published is
  the state of one step. A folder must have one publisher at a time.
  """

  def __init__(self, folder, serving_fn, keep=2, tags=("serve",), row_type="float32"):
    """Writes nothing.

    Args:
      folder: string, of this machine, NFS, or a file system of `tf.io.gfile`.
      serving_fn: function without arguments that builds the prediction graph in the
        default graph, with variables of the same names as in training. It returns
        {signature name: SignatureDef}, or dicts (inputs, outputs) of tensors for the
        signature "serving_default".
      keep: int >= 1, full versions in the folder; older ones are removed.
      tags: strings, of the SavedModel's meta graph.
      row_type: "float32"; or "float16" or "uint8", which write the tables' rows in fewer
        bytes (`packed_rows`). The server's tables are float32. A publication with a row
        that is not finite, or beyond 65,504, then fails and names its key.

    Raises:
      ValueError: `keep` is less than 1, or another `row_type`.
    """
    super(Publisher, self).__init__(folder, keep, row_type)
    self._serving_fn, self._tags = serving_fn, tags
    self._graph = self._serving = self._saver = None

  def build(self):
    """Adds the ops to the default graph. No-op when repeated.

    Call it when the model is complete, before the graph is final; otherwise the first
    publication calls it.

    Raises:
      ValueError: the prediction graph has a variable that the default graph lacks, or
        has no embedding variable.
    """
    graph = ops.get_default_graph()
    if self._graph is graph:
      return
    serving = serving_graph.ServingGraph(self._serving_fn, self._tags)
    found = serving_graph.by_name(graph)
    missing = sorted(serving.names - set(found))
    if missing:
      raise ValueError(
          "the prediction graph has variable '%s', which the training graph lacks; give "
          "it the name that it has in training" % missing[0])
    saved = [found[name] for name in sorted(serving.names)]
    if not any(map(ev.is_embedding_variable, saved)):
      raise ValueError("the prediction graph has no embedding variable, so it has no deltas")
    saved = [saveable.EmbeddingVariableSaveable(v, v.op.name, with_slots=False,
                                                row_type=self._row_type)
             if ev.is_embedding_variable(v) else v for v in saved]
    saver = tf.train.Saver(saved, name="embedding_variable_publish")
    delta_graph.ensure_save(saver)
    # Scripts may take the graph's only saver for theirs.
    incremental.forget(saver)
    self._graph, self._serving, self._saver = graph, serving, saver
    self.restart()

  def full(self, session, step=None):
    """Publishes a full version, and names it in `current.json`.

    Evicts rows first, as a full checkpoint does. Writes every row of the tables once, and
    reads the graph and the index again for their checksums. If tables are spread over
    ranks, every rank must call it.

    Args:
      session: the training session.
      step: int; None: the global step, if the graph has one.

    Returns:
      int, the number of the version. None on a rank that has no part in it.

    Raises:
      tf.errors.OpError, OSError: it could not be written; `current.json` names the
        previous state.
    """
    with self._publishing(session, step) as (session, step):
      return None if self._is_idle(session) else self._full_version(session, step)

  def _full_version(self, session, step):
    saver_def = self._saver.saver_def
    # Changes from here on are in the first delta; those that the version has too do no harm.
    cuts = incremental.cuts_before_full(self._saver, session)

    def write(part):
      stored = publications.stored_prefix(*os.path.split(part))

      def save():
        file_io.recursive_create_dir(os.path.dirname(stored))
        session.run(saver_def.save_tensor_name, {saver_def.filename_tensor_name: stored})

      if saving.is_together(session.graph, saver_def):
        together.save(stored, stored, save, save)
      else:
        save()

    def begin_chain(version):
      incremental.begin_chain(self._saver, session,
                              publications.chain_prefix(self._folder, version), cuts,
                              publications.stored_prefix(self._folder, version))

    return self._publish_full(step, write, self._serving.write, begin_chain,
                              self._on_rank_0(session))

  def delta(self, session, step=None):
    """Publishes what changed since the last publication: rows, and keys that are gone.

    All variables that are not tables are written whole. Reads 4 bytes for every key of a
    table, and the rows that changed.

    Args:
      session: the session of the last full version.
      step: int; None: the global step, if the graph has one.

    Returns:
      string, the prefix of the delta. None on a rank that has no part in it.

    Raises:
      ValueError: no full version was published in this session.
      tf.errors.OpError, OSError: it could not be written; `current.json` names the
        previous state, and the next publication has the changes.
    """
    with self._publishing(session, step) as (session, step):
      return None if self._is_idle(session) else self._next_delta(session, step)

  def _next_delta(self, session, step):

    def write(version):
      directory = os.path.dirname(publications.chain_prefix(self._folder, version))
      return incremental.save_incremental(self._saver, session, directory, step)

    return self._publish_delta(step, write, self._on_rank_0(session))

  def plan(self):
    """Describes what a full version would hold; writes nothing (a dry run).

    Returns:
      dict: "folder"; "version", the number of the next one; "tables" and "variables",
        sorted lists of names.
    """
    self.build()
    found = serving_graph.by_name(self._graph)
    tables = {n for n in self._serving.names if ev.is_embedding_variable(found[n])}
    return {"folder": self._folder, "version": version_folders.next_number(self._folder),
            "tables": sorted(tables), "variables": sorted(self._serving.names - tables)}

  @contextlib.contextmanager
  def _publishing(self, session, step):
    """Context of a publication: (session that runs no hooks, step as an int or None)."""
    session = incremental.raw_session(session) or session
    # On TensorFlow 2.x the caller may be in eager execution.
    with session.graph.as_default():
      self.build()
      if step is None:
        variable = training_util.get_global_step()
        if variable is not None:
          step = training_util.global_step(session, variable)
      yield session, None if step is None else int(step)

  def _is_idle(self, session):
    return bool(job.current().rank()) and not saving.is_together(
        session.graph, self._saver.saver_def)

  def _on_rank_0(self, session):
    """Returns the function that `FolderPublisher` calls for the work of rank 0."""
    if saving.is_together(session.graph, self._saver.saver_def):
      return together.on_rank_0
    return lambda function: function()
