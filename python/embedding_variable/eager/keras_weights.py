# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Eager tables in the files of Keras.

Keras saves a model by `save_own_variables` of each layer and of the optimizer. A layer
writes all that its tables hold except the slots. The optimizer writes the slots, and the
keys again: Keras loads layers and optimizer in either order.
"""

from embedding_variable.checkpoint_format import tensor_names
from embedding_variable.ops import checkpoint_ops
from embedding_variable.ops import gather_ops
from embedding_variable.ops import handle_ops
from embedding_variable.ops import row_ops
from embedding_variable.optimizers import keras_step_rules
from embedding_variable.tf_names import tf_logging as logging
from embedding_variable.variables import table_contents

# Starts the names of slots in an optimizer's store.
_SLOTS = "table_"


def save(table, store, start):
  """Writes the contents of a table without slots.

  Args:
    table: eager embedding variable.
    store: dict of arrays, as Keras gives it to `save_own_variables`.
    start: string, starts the names in `store`.
  """
  for name, array in table_contents.read(table).items():
    store[start + name] = array


def load(table, store, start, owned=None):
  """Replaces the contents of a table; keys that it had keep their slots.

  A file of an earlier version has no default rows: the table keeps its own, and all
  slots start anew.

  Args:
    table: eager embedding variable.
    store: dict of arrays, as Keras gives it to `load_own_variables`.
    start: string, starts the names in `store`.
    owned: None, or a function from keys to a mask of those that are this rank's.

  Raises:
    ValueError: rows have another length.
  """
  contents = {name[len(start):]: store[name][...] for name in store.keys()
              if name.startswith(start)}
  for names in (table_contents.OF_KEYS, tensor_names.FILTERED):
    if owned is not None and names[0] in contents:
      mine = owned(contents[names[0]])
      contents.update((name, contents[name][mine]) for name in names if name in contents)
  if table_contents.DEFAULT_ROWS in contents:
    table_contents.replace(table, contents)
  else:
    table.import_rows(contents[tensor_names.KEYS], contents[tensor_names.VALUES])


def save_slots(optimizer, store):
  """Writes an optimizer's slots of tables.

  Args:
    optimizer: optimizer of Keras whose update is `update_step`.
    store: as for `save`.

  Raises:
    NotImplementedError: a table is spread over ranks.
  """
  for i, (table, slots) in enumerate(_slots(optimizer)):
    if handle_ops.is_spread_over_ranks(table.handle):
      table.refuse_export()
    columns = [slot.column for slot in slots.values()]
    row_ops.ensure_slots(table.handle, columns, [s.initial for s in slots.values()])
    found = checkpoint_ops.export_table(table.handle, columns)
    store[_name(i, tensor_names.KEYS)] = found.keys.numpy()
    for name, values in zip(slots, found.slots):
      store[_name(i, name)] = values.numpy()


def load_slots(optimizer, store):
  """Replaces an optimizer's slots of tables by those that `save_slots` wrote.

  Slots of other tables than in the file are not loaded, with a warning, as Keras does
  with variables.

  Returns:
    `store` without the slots.
  """
  mine = {name: store[name][...] for name in store.keys() if name.startswith(_SLOTS)}
  known = _slots(optimizer) if mine else []
  expected = {_name(i, name) for i, (_, slots) in enumerate(known)
              for name in [tensor_names.KEYS] + list(slots)}
  if expected != set(mine):
    logging.warning(
        "optimizer '%s': slots of tables are not loaded. Expected %s, got %s. Build the "
        "optimizer with the model's trainable variables before", optimizer.name,
        sorted(expected), sorted(mine))
  else:
    for i, (table, slots) in enumerate(known):
      _load_slots(table, mine[_name(i, tensor_names.KEYS)],
                  {slot.column: mine[_name(i, name)] for name, slot in slots.items()})
  return {name: store[name] for name in store.keys() if name not in mine}


def _load_slots(table, keys, values):
  """Sets slots of rows; absent keys get a row.

  Args:
    table: eager embedding variable.
    keys: int64 `[N]`.
    values: dict, column -> float32 `[N, dim]`.
  """
  columns = table_contents.columns(table)
  rows, slots = row_ops.read_rows(table.handle, keys, list(columns),
                                  list(columns.values()))
  freqs, versions = gather_ops.get_meta(table.handle, keys)
  options = table.table_options
  checkpoint_ops.import_table(
      table.handle, keys, rows, versions if options.record_version else versions[:0],
      freqs if options.record_frequency else freqs[:0],
      [values.get(column, slot) for column, slot in zip(columns, slots)], list(columns),
      list(columns.values()))


def _name(number, name):
  return "%s%d_%s" % (_SLOTS, number, name)


def _slots(optimizer):
  """Returns a list of (table, {name: SlotView}) of the tables that have slots."""
  rule = keras_step_rules.find(optimizer)
  tables = keras_step_rules.tables(optimizer)
  made = [rule.slots(optimizer, table) for table in tables]
  return [(table, keras_step_rules.existing_slots(optimizer, table))
          for table, slots in zip(tables, made) if slots]
