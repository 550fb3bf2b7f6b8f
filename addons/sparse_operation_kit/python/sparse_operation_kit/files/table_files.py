# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Moves a table's rows between a session and NumPy, by ops made once per graph."""

import collections
import gc
import os
import time
import weakref

import numpy as np

from embedding_variable import graph_state
from embedding_variable.checkpoint_format import replaced_together
from embedding_variable.checkpoint_format import tensor_names
from embedding_variable.eager import taped
from embedding_variable.ops import checkpoint_ops
from embedding_variable.ops import handle_ops
from embedding_variable.ops import row_ops
from embedding_variable.optimizers import slot_view
from embedding_variable.tf_names import array_ops
from embedding_variable.tf_names import dtypes
from embedding_variable.tf_names import ops
from embedding_variable.tf_names import tf

from sparse_operation_kit import communication
from sparse_operation_kit.exchange import spread_lookup

_ACCESS = "_sok_table_access"

# keys int64 [N] ascending, values float32 [N, D], slots: list of float32 [N, D],
# versions int64 [N], or [0] if not recorded. default_rows float32 [R, D].
Contents = collections.namedtuple(
    "Contents", ["keys", "values", "slots", "versions", "default_rows"])


# Path of a table's sums -> the eager tables of this process that use the files.
_users = {}


def saver_name(variable):
  """Returns the prefix of `sok.Saver`'s file names for a table."""
  return getattr(variable, "upstream_name", None) or name_in_files(variable)


def name_in_files(variable):
  """Returns the name of a table as part of a file name."""
  return variable.op.name.replace("/", "_")


def full_name(variable):
  """Returns the name of a table, which its sums record."""
  return tensor_names.split_part(variable.op.name)[0]


def check_files(sums, variable, writes):
  """Raises ValueError if files are those of another table.

  Args:
    sums: string, path of the table's sums (replaced_together.py).
    variable: the embedding variable that is to read or replace the files.
    writes: bool. Eager tables may have one name, and any of them may read the files; only
      one that wrote or read them may replace them.
  """
  replaced_together.check_variable(sums, full_name(variable))
  if not (writes and taped.is_eager(variable.handle) and os.path.exists(sums)):
    return
  users = _users.get(os.path.realpath(sums), ())
  if len(users) and variable not in users:
    gc.collect()  # tables of a dropped Keras model are in cycles
  if len(users) and variable not in users:
    raise ValueError(
        "the files of %s are those of another variable '%s' of this process; give the "
        "variables different names, or use another folder for each" %
        (sums, variable.op.name))


def use_files(sums, variable):
  """Records that a table has read or replaced its files."""
  if taped.is_eager(variable.handle):
    _users.setdefault(os.path.realpath(sums), weakref.WeakSet()).add(variable)


class Access(object):
  """Reads and writes one table and some of its slots.

  Attributes:
    variable: the embedding variable.
    columns: list of strings, the slots' columns.
  """

  def __init__(self, variable, columns):
    self.variable = variable
    self.columns = list(columns)
    inits = [variable.slot_columns[c] for c in self.columns]
    every = variable.slot_columns
    with variable.graph.as_default(), ops.name_scope(None), \
        ops.name_scope("sok_table_access"), ops.control_dependencies(None), \
        ops.colocate_with(None, ignore_existing=True), ops.device(variable.device):
      self._initialized = handle_ops.is_initialized(variable.handle)
      ensured = row_ops.ensure_slots(variable.handle, list(every), list(every.values()))
      with ops.control_dependencies([ensured]):
        self._export = checkpoint_ops.export_table(variable.handle, self.columns)
      self._default_rows = checkpoint_ops.default_rows(variable.handle)
      self._new_default_rows = array_ops.placeholder(
          dtypes.float32, [None, variable.dim])
      self._initialize = handle_ops.initialize(variable.handle, self._new_default_rows)
      self._keys = array_ops.placeholder(dtypes.int64, [None])
      self._versions = array_ops.placeholder(dtypes.int64, [None])
      self._rows = [
          array_ops.placeholder(dtypes.float32, [None, width]) for width in
          [variable.dim] + [slot_view.width(c, variable.dim) for c in self.columns]
      ]
      self._imports = [
          checkpoint_ops.import_table(
              variable.handle, self._keys, self._rows[0], self._versions,
              array_ops.zeros([0], dtypes.int64), self._rows[1:], self.columns, inits,
              clear=clear) for clear in (False, True)
      ]

  def read(self, session):
    """Returns the Contents of the table as one consistent snapshot, sorted by key."""
    table = session.run([self._export.keys, self._export.values,
                         self._export.versions, self._default_rows] +
                        self._export.slots)
    order = np.argsort(table[0], kind="stable")
    sort = lambda rows: rows[order] if len(rows) == len(order) else rows
    return Contents(table[0][order], table[1][order], [sort(s) for s in table[4:]],
                    sort(table[2]), table[3])

  def ensure_initialized(self, session, default_rows=None):
    """Initializes the table, unless it already is and has these default rows.

    Args:
      session: `tf.Session`.
      default_rows: float32 `[R, D]`; a table with other default rows is emptied and
        gets these. None: keeps the table's own, or those of its initializer.
    """
    initialized = session.run(self._initialized)
    if default_rows is None:
      if not initialized:
        session.run(self.variable.initializer)
    elif not initialized or not np.array_equal(
        session.run(self._default_rows), default_rows):
      session.run(self._initialize, {self._new_default_rows: default_rows})

  def write(self, session, keys, values, slots, clear):
    """Inserts or overwrites rows; empties the table first if `clear`."""
    feed = {self._keys: keys, self._versions: _versions(self.variable, keys)}
    feed.update(zip(self._rows, [values] + slots))
    session.run(self._imports[1 if clear else 0], feed)


class _EagerAccess(object):
  """The same as `Access` for an eager table, whose sessions are None."""

  def __init__(self, variable, columns):
    self.variable = variable
    self.columns = list(columns)

  def read(self, session):
    """Returns the Contents of the table as one consistent snapshot, sorted by key."""
    del session
    handle, every = self.variable.handle, self.variable.slot_columns
    row_ops.ensure_slots(handle, list(every), list(every.values()))
    table = checkpoint_ops.export_table(handle, self.columns)
    keys = table.keys.numpy()
    order = np.argsort(keys, kind="stable")
    sort = lambda rows: rows[order] if len(rows) == len(order) else rows
    return Contents(keys[order], table.values.numpy()[order],
                    [sort(slot.numpy()) for slot in table.slots],
                    sort(table.versions.numpy()),
                    checkpoint_ops.default_rows(handle).numpy())

  def ensure_initialized(self, session, default_rows=None):
    """Empties the table and sets its default rows, unless it has these."""
    del session
    handle = self.variable.handle
    if default_rows is not None and not np.array_equal(
        checkpoint_ops.default_rows(handle).numpy(), default_rows):
      handle_ops.initialize(handle, default_rows)

  def write(self, session, keys, values, slots, clear):
    """Inserts or overwrites rows; empties the table first if `clear`."""
    del session
    inits = [self.variable.slot_columns[c] for c in self.columns]
    checkpoint_ops.import_table(
        self.variable.handle, keys, values, _versions(self.variable, keys),
        np.zeros([0], np.int64), slots, self.columns, inits, clear=clear)


def _versions(variable, keys):
  """Returns the versions of rows that are written now: `[N]`, or `[0]` without times."""
  if variable.versions_are_times:
    return np.full(len(keys), now(), np.int64)
  return np.zeros([0], np.int64)


def session_for(tables, session, what):
  """Returns the session in which tables are: an argument, the default one, or None.

  Args:
    tables: list of embedding variables.
    session: `tf.Session` or None.
    what: string that starts the error.

  Raises:
    ValueError: there is no session, and a table is in a graph.
  """
  session = session or tf.compat.v1.get_default_session()
  if session is None and not all(taped.is_eager(table.handle) for table in tables):
    raise ValueError("%s: there is no default session; pass it as an argument" % what)
  return session


def now():
  """Returns whole seconds since 1970, the timestamp of rows."""
  return int(time.time())


def access(variable, columns=()):
  """Returns the Access of a table and these columns; the first call creates it.

  Raises:
    RuntimeError: the first call, if the graph is finalized.
  """
  if taped.is_eager(variable.handle):
    return _EagerAccess(variable, columns)
  cache = graph_state.of(variable.graph).setdefault(_ACCESS, {})
  key = (variable.handle.name, tuple(columns), len(variable.slot_columns))
  if key not in cache:
    if variable.graph.finalized:
      raise RuntimeError(
          "sok: the graph of '%s' is finalized, so the ops that read or write the "
          "table cannot be added. Call sok.dump, sok.load or sok.incremental_model_dump once "
          "before, or pass a session of a graph that is not finalized" %
          variable.op.name)
    cache[key] = Access(variable, columns)
  return cache[key]


def owned_mask(variable, keys):
  """Returns bool `[N]`: which keys this rank owns by the variable's placement."""
  ranks = spread_lookup.ranks_of(variable, communication.num_ranks())
  return np.array(ranks)[np.mod(keys, len(ranks))] == communication.rank()


def is_spread(variable):
  """Returns whether other ranks hold other rows of a table."""
  if communication.num_ranks() == 1:
    return False
  # SOK's own variables are spread even before their first lookup.
  return hasattr(variable, "num_gpus") or handle_ops.is_spread_over_ranks(
      variable.handle)
