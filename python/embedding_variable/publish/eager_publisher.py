# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes full versions and deltas of a model in eager execution into a folder.

A version is a SavedModel that `tf.saved_model.save` or Keras writes, with ops that apply
deltas (saved_model_deltas.py). A delta holds the changes of each table since the last
publication (eager/published.py).
"""

import os
import shutil
import tempfile

from embedding_variable import tf_names
from embedding_variable.checkpoint import incremental
from embedding_variable.checkpoint import job
from embedding_variable.checkpoint import leftovers
from embedding_variable.checkpoint_format import delta_chain
from embedding_variable.checkpoint_format import durable
from embedding_variable.checkpoint_format import publications
from embedding_variable.eager import published
from embedding_variable.ops import delta_ops
from embedding_variable.publish import eager_export
from embedding_variable.publish import folder_publisher
from embedding_variable.publish import saved_model_deltas
from embedding_variable.publish import version_folders
from embedding_variable.tf_names import file_io
from embedding_variable.tf_names import tf

# Ends the name of a delta that is being written.
_STAGED = ".partial"

# Ends the names of variables in a checkpoint of objects.
_VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"


class EagerPublisher(folder_publisher.FolderPublisher):
  """Publishes a model of eager execution, `tf.function` or Keras to one folder.

  Not thread-safe. No training step may run during a call, so that what is published is
  the state of one step. A folder must have one publisher at a time. TensorFlow 2.x.
  """

  def __init__(self, folder, model, signatures=None, keep=2, export=None,
               row_type="float32"):
    """Writes nothing.

    Args:
      folder: string, of this machine, NFS, or a file system of `tf.io.gfile`.
      model: what a server needs: a `tf.Module`, a model of Keras, or another object that
        `tf.saved_model.save` takes, with embedding variables.
      signatures: as for `tf.saved_model.save`. None: a model of Keras is written by its
        `export`, with the signature "serve", which is also "serving_default"; other
        objects have those of `tf.saved_model.save`.
      keep: int >= 1, full versions in the folder; older ones are removed.
      export: function of a folder that writes the SavedModel in place of this, such as
        `archive.write_out` of a `tf.keras.export.ExportArchive`.
      row_type: as for `Publisher`.

    Raises:
      NotImplementedError: TensorFlow 1.15, which has no tables in eager execution.
      RuntimeError: in a graph.
      ValueError: `keep` is less than 1, another `row_type`, or `export` and `signatures`
        are both given.
    """
    if not tf_names.has_eager_tables():
      raise NotImplementedError("EagerPublisher: expected TensorFlow 2.11 or later, which has "
                                "tables in eager execution, got TensorFlow 1; use Publisher, "
                                "which publishes a session")
    super(EagerPublisher, self).__init__(folder, keep, row_type)
    if not tf.executing_eagerly():
      raise RuntimeError("EagerPublisher: expected eager execution, got a graph; use "
                         "Publisher, which publishes a session")
    if export is not None and signatures is not None:
      raise ValueError("EagerPublisher: expected signatures or export, got both; give the "
                       "signatures to the function that export calls")
    self._export = eager_export.Export(model, signatures, export)
    # A published.Version and an incremental.Chain, of the last full version.
    self._written = self._chain = None

  def full(self, step=None):
    """Publishes a full version, and names it in `current.json`.

    Traces the signatures, as every export does. Writes every row of the tables once, and
    reads the graph and the index again for their checksums. Evicts nothing.

    Args:
      step: int or a scalar such as `optimizer.iterations`; None: the step is unknown.

    Returns:
      int, the number of the version. None on ranks other than 0.

    Raises:
      NotImplementedError: a table is spread over ranks.
      ValueError: the model has no table, or the export lacks one or cannot be restored.
      tf.errors.OpError, OSError: it could not be written; `current.json` names the
        previous state.
    """
    if not self._is_writer():
      return None
    is_local = durable.is_local(self._folder)

    def place(part):
      # Elsewhere a folder cannot be renamed, and a server would read an unfinished one.
      return part if is_local else part + durable.PART

    written = published.Version(row_type=self._row_type)

    def finish(part):
      saved_model_deltas.add(place(part), written.tables)
      if not is_local:
        saved_model_deltas.move(place(part), part)

    def begin_chain(version):
      full = delta_chain.Link(
          publications.chain_prefix(self._folder, version),
          delta_chain.identity(publications.stored_prefix(self._folder, version)))
      self._written, self._chain = written, incremental.Chain(full, written.cuts)

    return self._publish_full(_step(step), lambda part: self._export.save(place(part), written),
                              finish, begin_chain)

  def delta(self, step=None):
    """Publishes what changed since the last publication: rows, and keys that are gone.

    All variables that are not tables are written whole. Reads 4 bytes for every key of a
    table, and the rows that changed. Traces nothing. Variables that were created after the
    full version come with the next one.

    Args:
      step: int or a scalar such as `optimizer.iterations`; None: the step is unknown.

    Returns:
      string, the prefix of the delta. None on ranks other than 0.

    Raises:
      NotImplementedError: a table is spread over ranks.
      ValueError: this publisher has published no full version.
      tf.errors.OpError, OSError: it could not be written; `current.json` names the
        previous state, and the next publication has the changes.
    """
    if not self._is_writer():
      return None
    step = _step(step)
    return self._publish_delta(step, lambda version: self._save_delta(step))

  def plan(self):
    """Describes what a full version would hold; writes nothing there (a dry run).

    Writes an export without rows to a temporary folder, and removes it.

    Returns:
      dict: "folder"; "version", the number of the next one; "tables" and "variables",
        sorted lists of names in its checkpoint.

    Raises:
      as `full`.
    """
    self._is_writer()
    written = published.Version(with_rows=False)
    folder = tempfile.mkdtemp(prefix="embedding_variable_publish_")
    try:
      self._export.save(os.path.join(folder, "1"), written)
      stored = tf.train.list_variables(publications.stored_prefix(folder, 1))
    finally:
      shutil.rmtree(folder, ignore_errors=True)
    return {"folder": self._folder, "version": version_folders.next_number(self._folder),
            "tables": sorted(written.tables),
            "variables": sorted(name[:-len(_VALUE)] for name, _ in stored
                                if name.endswith(_VALUE))}

  def _is_writer(self):
    """Returns whether this rank writes; raises if none can."""
    for table in self._export.tables():
      if job.current().placement(table) is not None:
        raise NotImplementedError(
            "EagerPublisher: embedding variable '%s' is spread over %d ranks, and no rank can "
            "write the rows of the others to a SavedModel. Publish from a session by "
            "Publisher, or restore a tf.train.Checkpoint of all ranks in a job of one process "
            "and publish there" % (table.op.name, job.current().size()))
    return job.current().rank() == 0

  def _save_delta(self, step):
    prefix, info = self._chain.next(step)
    staged = prefix + _STAGED
    file_io.recursive_create_dir(os.path.dirname(prefix))
    try:
      cuts = self._written.save_delta(staged, info, self._chain.cuts)
      delta_ops.publish_checkpoint(staged, prefix)
    except BaseException:
      for path in file_io.get_matching_files(staged + "*"):
        leftovers.delete(path)
      raise
    self._chain.advance(prefix, delta_chain.identity(prefix), cuts)
    return prefix


def _step(step):
  """Returns a step as an int, or None."""
  return None if step is None else int(step.numpy() if hasattr(step, "numpy") else step)
