# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""How eager tables are saved and restored for `embedding_variable.publish`.

TensorFlow's code saves the model: a SavedModel for a full version, and again its
checkpoint for a delta. It calls checkpoint.py for the tables, where this module decides
what is written. A table has the same name in both files, and so has every other variable.
"""

import contextlib
import threading

from embedding_variable.checkpoint import delta_saveable
from embedding_variable.checkpoint_format import tensor_names
from embedding_variable.eager import taped
from embedding_variable.ops import checkpoint_ops
from embedding_variable.ops import delta_ops
from embedding_variable.tf_names import gen_io_ops
from embedding_variable.tf_names import ops
from embedding_variable.tf_names import saveable_object
from embedding_variable.tf_names import string_ops

# Suffix of the partial checkpoint with what is not a whole table.
_REST = "_rest"

# Attributes `version`: the Version that this thread is saving; `applies`: whether it reads
# deltas.
_local = threading.local()


class Version(object):
  """A full version that this process writes, and its tables, for later deltas.

  Attributes:
    tables: {name of its rows in the checkpoint: table}, filled when the full version is
      saved.
    cuts: {name: int64 scalar}, where the first delta starts.
    saver: the object of TensorFlow that saves the model's checkpoint, or None.
  """

  def __init__(self, with_rows=True, row_type="float32"):
    """Stores how rows are written.

    Args:
      with_rows: bool; False: the full version is a trial that lacks the tables.
      row_type: one of `packed_rows.ROW_TYPES`.
    """
    self.tables, self.cuts, self.saver = {}, {}, None
    self._with_rows, self._row_type = with_rows, row_type
    self._delta = None  # (since, info, ends) of the delta that is being saved

  @contextlib.contextmanager
  def saving(self):
    """Context in which a model is saved as this version."""
    _local.version = self
    try:
      yield
    finally:
      _local.version = None

  def save_delta(self, prefix, info, since):
    """Writes the changes since some cuts, and all other variables, as a V2 checkpoint.

    Args:
      prefix: string.
      info: string, the result of `delta_chain.info`.
      since: {name: int64 scalar}, where the delta starts.

    Returns:
      {name: int64 scalar}, where the delta ends.
    """
    self._delta = since, info, {}
    try:
      with self.saving():
        self.saver.save(prefix)
      return self._delta[2]
    finally:
      self._delta = None

  def write_tables(self, tables, prefix):
    """Writes tables.

    Args:
      tables: {name in the checkpoint: table}.
      prefix: string scalar, of a partial checkpoint of these tables.

    Returns:
      A list of prefixes of what it wrote.
    """
    names = names_of(tables)
    first = {name: tables[name] for name in sorted(set(names.values()))}
    specs = [saveable_object.SaveSpec(
        ops.convert_to_tensor(of), "", tensor_names.tensor(name, tensor_names.SAME_AS))
             for name, of in sorted(names.items()) if name != of]
    written = []
    if self._delta is not None:
      specs += self._changes(first)
    else:
      self.tables.update(first)
      if self._with_rows:
        # Changes from here on are in the first delta.
        self.cuts.update((name, delta_ops.cut_changes(table.handle))
                         for name, table in first.items())
        checkpoint_ops.save_tables(prefix, [
            checkpoint_ops.SavedTable(table.handle, name, table.key_dtype, {},
                                      self._row_type)
            for name, table in first.items()])
        written.append(prefix)
    if specs:
      written.append(string_ops.string_join([prefix, _REST]))
      gen_io_ops.save_v2(written[-1], [s.name for s in specs], [s.slice_spec for s in specs],
                         [s.tensor for s in specs])
    return written

  def _changes(self, tables):
    """Returns the SaveSpecs of the delta that is being saved."""
    since, info, ends = self._delta
    changes = [delta_saveable.DeltaSaveable(table, name, since[name], slots={},
                                            row_type=self._row_type)
               for name, table in tables.items()]
    ends.update((change.name, change.cut) for change in changes)
    return [spec for change in changes for spec in change.specs] + [
        delta_saveable.info_spec(info)]


def names_of(tables):
  """Returns {name: name under which the rows of its table are written}.

  Keras 3 exports a table and the variable that holds it. The rows are written once, under
  the first of the names.

  Args:
    tables: {name in the checkpoint: table}.
  """
  first = {}
  return {name: first.setdefault(id(table), name) for name, table in sorted(tables.items())}


def current():
  """Returns the Version that this thread is saving, or None."""
  return getattr(_local, "version", None)


def write_tables(tables, prefix):
  """Writes tables for this thread's Version; see `Version.write_tables`.

  Returns:
    None if there is no Version, or in a graph; then TensorFlow builds the functions of a
    SavedModel.
  """
  version = current()
  if version is None or not taped.is_eager(prefix):
    return None
  return version.write_tables(tables, prefix)


def saves(saver):
  """Records the object of TensorFlow that saves the checkpoint of a full version."""
  version = current()
  if version is not None:
    version.saver = saver


@contextlib.contextmanager
def applying():
  """Context in which this thread restores deltas: they change tables, not replace them."""
  _local.applies = True
  try:
    yield
  finally:
    _local.applies = False


def is_applying():
  """Returns whether this thread restores a delta."""
  return getattr(_local, "applies", False)
