# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""sok.dump and sok.load: tables in SOK's own files (dump_format.py)."""

import collections
import itertools
import os

import numpy as np

from embedding_variable import tf_names
from embedding_variable.checkpoint_format import durable
from embedding_variable.checkpoint_format import replaced_together
from embedding_variable.eager import keras_variable
from embedding_variable.optimizers import slot_view
from embedding_variable.tf_names import tf

from sparse_operation_kit import communication
from sparse_operation_kit import optimizers
from sparse_operation_kit.exchange import collectives
from sparse_operation_kit.files import dump_format
from sparse_operation_kit.files import table_files
from sparse_operation_kit.variables import kinds

# Bytes of rows that are sent to rank 0, or read from files, at a time.
_PIECE_BYTES = 64 << 20

# variable: the embedding variable. name: prefix of its files. key_dtype: type of
# the keys in the file.
# slots: list of (optimizer name, slot name, column). has_default_rows: whether the
# table
# has a file of default rows, which keys without a row read.
_Table = collections.namedtuple(
    "_Table", ["variable", "name", "key_dtype", "slots", "has_default_rows"])


def dump(path, dump_vars, optimizer=None, session=None):
  """Writes tables, and their optimizer slots, into a folder in SOK's layout.

  Every rank calls it with the same arguments. Only rank 0 writes, so only its disk
  matters.

  Rows and slots of a table are one consistent snapshot. Existing files are replaced
  once all new ones are complete: if the process ends at any point, `load` reads either
  all tables of this call or the previous ones. A file beside SOK's holds the default
  rows. Keys are in ascending order; the rows of a `sok.Variable` spread over ranks are
  in rank order.

  Example:

    sok.dump("/data/tables", [v, w], optimizer, session=session)

  Args:
    path: folder; it is created.
    dump_vars: SOK or embedding variables (one, a list or a tuple).
    optimizer: `tf.train` or Keras optimizer or `sok.OptimizerWrapper` (or a list of
      one) whose slots are written too. None: writes only rows.
    session: `tf.Session`; None: the default one.

  Raises:
    TypeError: not such a variable or optimizer.
    ValueError: no variable, two variables with one file name, files of another variable
      with that file name, no session, slots for only some of the variables, or arguments
      that differ between ranks.
    RuntimeError: another rank failed or did not come. Or the graph is finalized, and
      this is the first call for a table with its present slots, which adds ops.
    OSError: rank 0 cannot write (a RuntimeError on other ranks).
  """
  tables = _tables(dump_vars, optimizer, "sok.dump")
  session = table_files.session_for([t.variable for t in tables], session, "sok.dump")
  channel = collectives.channel("sok.dump")
  channel.check_equal("the folder, the variables and their slots", _describe(path, tables))
  channel.check(_attempt(lambda: communication.rank() or _begin_dump(path, tables)))
  writers = []
  try:
    for table in tables:
      channel.check(_dump_table(path, table, session, channel, writers))
    error = _attempt(lambda: writers and _commit(path, tables, writers))
  except Exception:
    for writer in writers:
      writer.discard()
    raise
  channel.check(error)


def load(path, load_vars, optimizer=None, session=None):
  """Replaces the rows of tables by those in files of SOK's layout.

  The files may come from another number of ranks or another placement: each rank takes
  the keys that it owns now, in any order. Every rank calls it with the same arguments
  and reads the files. Tables change only if all files of all tables are valid. Keys
  that are in no file read the default rows of the dumped table. Without an optimizer,
  slots start at their initial values.

  Example:

    sok.load("/data/tables", [v, w], optimizer, session=session)

  Args:
    path: folder.
    load_vars: SOK or embedding variables (one, a list or a tuple).
    optimizer: as in `dump`; each of its slots must have a file.
    session: `tf.Session`; None: the default one. Variables are initialized if
      necessary.

  Raises:
    TypeError: not such a variable or optimizer.
    ValueError: a file is missing or does not match, or is another variable's, keys are
      not exactly the rows of a `sok.Variable`, or an error of `dump`.
    RuntimeError: as for `dump`.
  """
  tables = _tables(load_vars, optimizer, "sok.load")
  session = table_files.session_for([t.variable for t in tables], session, "sok.load")
  channel = collectives.channel("sok.load")
  channel.check_equal("the folder, the variables and their slots", _describe(path, tables))
  files = []
  channel.check(_attempt(lambda: files.extend(_open(path, t) for t in tables)))
  channel.check(_attempt(lambda: [
      _load_table(table, keys, arrays, default_rows, session)
      for table, (keys, arrays, default_rows) in zip(tables, files)
  ]))
  _use_files(path, tables)


def _attempt(function):
  """Returns the exception that a function raised, or None."""
  try:
    function()
  except Exception as e:  # pylint: disable=broad-except
    return e
  return None


def _optimizer(optimizer, what):
  """Returns the optimizer of an argument that may be a list of one, or None."""
  if isinstance(optimizer, (list, tuple)):
    if len(optimizer) != 1:
      raise ValueError("%s: optimizer: expected one, or a list of one, got %d" %
                       (what, len(optimizer)))
    optimizer = optimizer[0]
  known = (tf.compat.v1.train.Optimizer, optimizers.OptimizerWrapper)
  if optimizer is not None and not isinstance(
      optimizer, known + tf_names.keras_optimizer_classes()):
    raise TypeError("%s: optimizer: expected a tf.train or Keras optimizer or a "
                    "sok.OptimizerWrapper, got %r" % (what, optimizer))
  return optimizer


def _tables(vars_, optimizer, what):
  """Returns the _Tables for the arguments of dump and load."""
  optimizer = _optimizer(optimizer, what)
  vars_ = list(vars_) if isinstance(vars_, (list, tuple)) else [vars_]
  if not vars_:
    raise ValueError("%s: no variables" % what)
  tables = []
  for var in vars_:
    var = keras_variable.held(var)
    parts = kinds.parts(var)
    if len(parts) != 1:
      raise TypeError("%s: expected SOK variables, or embedding variables without parts, "
                      "got %r" % (what, var))
    key_dtype = parts[0].key_dtype.as_numpy_dtype
    if hasattr(var, "global_shape") and var.target_gpu != -1:
      key_dtype = np.uint64
    tables.append(_Table(parts[0], dump_format.table_name(var.name), np.dtype(key_dtype),
                         _slots(parts[0], optimizer, what),
                         not hasattr(var, "global_shape")))
  names = [t.name for t in tables]
  twice = sorted({n for n in names if names.count(n) > 1})
  if twice:
    raise ValueError("%s: several variables have the file name %s" %
                     (what, ", ".join(twice)))
  with_slots = [t.name for t in tables if t.slots]
  without = [t.name for t in tables if not t.slots]
  if with_slots and without:
    raise ValueError("%s: the optimizer has slots of %s, but not of %s; write them in "
                     "separate calls" %
                     (what, ", ".join(with_slots), ", ".join(without)))
  return tables


def _slots(var, optimizer, what):
  """Returns a list of (optimizer name, slot name, column); creates slots if necessary."""
  if optimizer is None:
    return []
  if what == "sok.load" and not optimizers.existing_slots(optimizer, var):
    optimizers.create_slots(optimizer, var)
  wrapped = isinstance(optimizer, optimizers.OptimizerWrapper)
  name = type(optimizer.optimizer if wrapped else optimizer).__name__
  slots = []
  for slot, view in optimizers.existing_slots(optimizer, var):
    if not hasattr(view, "column"):
      raise ValueError("%s: slot '%s' of '%s' is not one number for each number of a row; "
                       "it cannot be written in SOK's layout" %
                       (what, slot, var.op.name))
    slots.append((name, slot, view.column))
  return slots


def _describe(path, tables):
  return repr([os.path.normpath(path)] + [
      (t.name, t.variable.dim, t.key_dtype.name, t.variable.target_gpu, t.slots)
      for t in tables
  ])


def _begin_dump(path, tables):
  """Creates the folder, or completes an interrupted dump into it."""
  durable.make_folder(path)
  for table in tables:
    replaced_together.finish(dump_format.sums_path(path, table.name))
    _check_files(path, table, "sok.dump", writes=True)


def _check_files(path, table, what, writes=False):
  try:
    table_files.check_files(dump_format.sums_path(path, table.name), table.variable, writes)
  except ValueError as e:
    raise ValueError("%s: variable '%s': %s" % (what, table.variable.op.name, e))


def _num_files(table):
  """Returns the number of files of a table: keys, rows, slots, and default rows."""
  return 2 + len(table.slots) + bool(table.has_default_rows)


def _commit(path, tables, writers):
  """Replaces the files of all tables. `writers` are in the order of the tables."""
  writers = iter(writers)
  replaced_together.commit([
      (dump_format.sums_path(path, table.name), table_files.full_name(table.variable),
       list(itertools.islice(writers, _num_files(table)))) for table in tables
  ])
  _use_files(path, tables)


def _use_files(path, tables):
  for table in tables:
    table_files.use_files(dump_format.sums_path(path, table.name), table.variable)


def _dump_table(path, table, session, channel, writers):
  """Writes one table on rank 0; returns the exception that stopped it, or None.

  After a failure the rank still takes part in the exchanges.
  """
  variable = table.variable
  state, contents = [], []

  def begin():
    access = table_files.access(variable, [column for _, _, column in table.slots])
    contents.append(access.read(session))
    if communication.rank() == 0:
      state.append(_open_writers(path, table, writers))

  error = _attempt(begin)
  channel.check(error)
  found = contents[0]
  mine = table_files.owned_mask(variable, found.keys)
  arrays = [found.keys[mine].astype(table.key_dtype), found.values[mine]]
  arrays += [s[mine] for s in found.slots]
  step = max(1, _PIECE_BYTES // (4 * variable.dim))
  begin_row, most = 0, max(int(n[0]) for n in channel.gather(np.array([len(arrays[0])])))
  while begin_row < most:
    for i, array in enumerate(arrays):
      pieces = channel.gather(array[begin_row:begin_row + step])
      if state and error is None:
        error = _attempt(lambda to=state[0][i], p=pieces: [to.append(x) for x in p])
    begin_row += step
  if state and error is None:
    error = _attempt(lambda: _end_files(table, state[0], found.default_rows))
  return error


def _end_files(table, writers, default_rows):
  if table.has_default_rows:
    writers[-1].append(default_rows)
  for writer in writers:
    writer.close()


def _open_writers(path, table, writers):
  """Returns the Writers of a table's files: keys, rows, slots, and default rows."""
  made = []

  def open_one(*args):
    writers.append(dump_format.Writer(*args))
    made.append(writers[-1])

  open_one(dump_format.key_path(path, table.name), dump_format.KEYS, table.key_dtype)
  open_one(dump_format.rows_path(path, table.name), dump_format.ROWS, np.float32)
  for optimizer, slot, _ in table.slots:
    name = dump_format.optimizer_name(optimizer)
    open_one(dump_format.slot_path(path, table.name, name, slot), dump_format.SLOT,
             np.float32, slot)
  if table.has_default_rows:
    open_one(dump_format.default_rows_path(path, table.name), dump_format.ROWS,
             np.float32)
  return made


def _open(path, table):
  """Returns (keys int64 `[N]`, list of float32 `[N, D]`, default rows) as memory maps.

  Default rows are float32 `[R, D]`, or None.

  Raises:
    ValueError: a file is missing or does not match.
  """
  _check_files(path, table, "sok.load")
  choices = [[dump_format.key_path(path, table.name)],
             [dump_format.rows_path(path, table.name)]]
  for optimizer, slot, _ in table.slots:
    choices.append([dump_format.slot_path(path, table.name, name, slot)
                    for name in dump_format.optimizer_names_to_load(optimizer)])
  if table.has_default_rows:
    choices.append([dump_format.default_rows_path(path, table.name)])
  try:
    paths = replaced_together.current(dump_format.sums_path(path, table.name), choices)
  except ValueError as e:
    raise ValueError("sok.load: variable '%s': %s" % (table.variable.op.name, e))
  keys_path = paths[0]
  keys = dump_format.open_array(keys_path, dump_format.KEYS)
  if keys.dtype.kind not in "iu":
    raise ValueError("sok.load: %s holds %s, expected integers" %
                     (keys_path, keys.dtype.name))
  keys = np.asarray(keys).astype(np.int64)
  _check_keys(table.variable, keys, keys_path)
  arrays = []
  dim = table.variable.dim
  expected = [(dump_format.ROWS, dim)] + [
      (dump_format.SLOT, slot_view.width(column, dim)) for _, _, column in table.slots]
  for rows_path, (kind, width) in zip(paths[1:], expected):
    rows = _open_floats(rows_path, kind)
    if rows.size != len(keys) * width:
      raise ValueError(
          "sok.load: %s holds %d numbers, expected %d: %d keys of variable '%s' with rows "
          "of %d" % (rows_path, rows.size, len(keys) * width, len(keys),
                     table.variable.op.name, width))
    arrays.append(rows.reshape(-1, width))
  default_rows = _open_default_rows(paths[-1], table) if table.has_default_rows else None
  return keys, arrays, default_rows


def _open_floats(path, kind):
  """Returns a file's float32 `[M]` as a memory map."""
  rows = dump_format.open_array(path, kind)
  if rows.dtype != np.float32:
    raise ValueError("sok.load: %s holds %s, expected float32" % (path, rows.dtype.name))
  return rows


def _open_default_rows(rows_path, table):
  """Returns float32 `[R, D]`; None if there is no such file, as in upstream's folders."""
  if not os.path.exists(rows_path):
    return None
  rows = _open_floats(rows_path, dump_format.ROWS)
  if not rows.size or rows.size % table.variable.dim:
    raise ValueError("sok.load: %s holds %d numbers, expected rows of %d for variable '%s'"
                     % (rows_path, rows.size, table.variable.dim, table.variable.op.name))
  return np.asarray(rows).reshape(-1, table.variable.dim)


def _check_keys(variable, keys, path):
  """Raises ValueError unless the variable can hold these keys."""
  info = np.iinfo(variable.key_dtype.as_numpy_dtype)
  if len(keys) and (keys.min() < info.min or keys.max() > info.max):
    raise ValueError("sok.load: %s holds keys from %d to %d, but those of variable '%s' "
                     "are %s" % (path, keys.min(), keys.max(), variable.op.name,
                                 variable.key_dtype.name))
  if len(np.unique(keys)) != len(keys):
    raise ValueError("sok.load: %s holds a key twice" % path)
  if not hasattr(variable, "global_shape"):
    return
  num_rows = variable.global_shape.as_list()[0]
  if len(keys) != num_rows or keys.min() != 0 or keys.max() != num_rows - 1:
    raise ValueError("sok.load: %s holds %d keys, expected exactly the rows 0 to %d of "
                     "variable '%s'" % (path, len(keys), num_rows - 1, variable.op.name))


def _load_table(table, keys, arrays, default_rows, session):
  """Replaces the rows of this rank's share of a table."""
  variable = table.variable
  access = table_files.access(variable, [column for _, _, column in table.slots])
  access.ensure_initialized(session, default_rows)
  mine = np.arange(len(keys))
  if table_files.is_spread(variable):
    mine = mine[table_files.owned_mask(variable, keys)]
  step = max(1, _PIECE_BYTES // (4 * variable.dim))
  # At least once, to empty the table.
  for begin in range(0, max(1, len(mine)), step):
    places = mine[begin:begin + step]
    access.write(session, keys[places], np.asarray(arrays[0][places]),
                 [np.asarray(a[places]) for a in arrays[1:]], clear=begin == 0)
