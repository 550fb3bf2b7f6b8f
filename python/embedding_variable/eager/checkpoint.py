# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Saving and restoring of eager tables by `tf.train.Checkpoint`.

TensorFlow calls the two functions below with the tables of a checkpoint and the name
that each has in it, such as "model/users". The tensors have the names and contents that
a graph-mode checkpoint has (checkpoint_format/tensor_names.py), so graph mode and the
tools read them too. Rows are written and read in pieces.
"""

from embedding_variable.checkpoint import delta_saveable
from embedding_variable.checkpoint import job
from embedding_variable.checkpoint import saveable
from embedding_variable.checkpoint_format import tensor_names
from embedding_variable.eager import eager_variable
from embedding_variable.eager import published
from embedding_variable.eager import saved_together
from embedding_variable.eager import taped
from embedding_variable.ops import checkpoint_ops
from embedding_variable.ops import handle_ops
from embedding_variable.tf_names import array_ops
from embedding_variable.tf_names import compat
from embedding_variable.tf_names import errors
from embedding_variable.tf_names import gen_resource_variable_ops
from embedding_variable.tf_names import ops
from embedding_variable.tf_names import pywrap_tensorflow

_PACKAGE = "embedding_variable"
_NAME = "tables"

# The container of the table of `_check`.
_CHECKED = "eager.embedding.variable.checked.%d"


def register(registration):
  """Registers the functions for all eager tables.

  Args:
    registration: TensorFlow's module of registered savers.
  """
  registration.register_checkpoint_saver(
      _PACKAGE, _NAME, predicate=is_table, save_fn=save, restore_fn=restore_all)
  # A SavedModel creates its tables by this class, then restores them.
  registration.register_serializable(_PACKAGE, predicate=is_table)(
      eager_variable.EagerEmbeddingVariable)


def is_table(trackable):
  """Returns whether an object is an eager table or Keras's holder of one."""
  return eager_variable.table_of(trackable) is not None


def save(trackables, file_prefix):
  """Writes tables as a checkpoint of their own, which TensorFlow merges into the whole.

  Rows that training changes meanwhile are in it as they were at one moment. All ranks
  call it if a table is spread over them (saved_together.py).

  Args:
    trackables: dict {name in the checkpoint: table, or Keras's holder of it}.
    file_prefix: string scalar.

  Returns:
    The prefix of the written files, or a list of them.
  """
  tables = {name: eager_variable.table_of(trackable)
            for name, trackable in trackables.items()}
  if saved_together.spread(tables):
    return saved_together.save(tables, file_prefix, _columns)
  written = published.write_tables(tables, file_prefix)
  if written is not None:
    return written
  saved = [checkpoint_ops.SavedTable(table.handle, name, table.key_dtype, _columns(table))
           for name, table in sorted(tables.items())]
  written = checkpoint_ops.save_tables(file_prefix, saved)
  with ops.control_dependencies([] if written is None else [written]):
    return array_ops.identity(file_prefix)


def restore_all(trackables, merged_prefix):
  """Replaces the contents of tables by those of a checkpoint, or applies a delta.

  If the checkpoint lacks one of the tables, or has another shape or size, no table
  changes.

  Args:
    trackables: dict {name in the checkpoint: table, or Keras's holder of it}.
    merged_prefix: string scalar.
  """
  tables = [(name, eager_variable.table_of(trackable))
            for name, trackable in sorted(trackables.items())]
  if not taped.is_eager(ops.convert_to_tensor(merged_prefix)):
    names = published.names_of(dict(tables))
    for name, table in tables:
      if published.current() is None or names[name] == name:
        _restore_in_graph(table, merged_prefix, name)
    return
  tables = [(_stored_name(merged_prefix, name), table) for name, table in tables]
  if published.is_applying():
    for name, table in tables:
      delta_saveable.restore_delta(table, merged_prefix, name)
    return
  slots = [_check(table, merged_prefix, name) for name, table in tables]
  for (name, table), columns in zip(tables, slots):
    _replace(table, merged_prefix, name, columns)


def restore(table, prefix, name):
  """Replaces the contents of a table, slots included, by those of a checkpoint.

  Slots that no optimizer of this process has used yet are restored too, for the
  optimizer that will use them. A table that was saved in parts is found, by any number of
  ranks; each takes the rows that it owns.

  An error of the checkpoint that is found before its rows are read leaves the table
  unchanged. After a later one, such as a wrong checksum, the table is empty, as the
  message reports.

  Args:
    table: eager embedding variable.
    prefix: string scalar, or a string: the checkpoint's prefix.
    name: string, the table's name in the checkpoint.

  Raises:
    TypeError: `table` is no eager embedding variable.
    tf.errors.NotFoundError: the checkpoint has no table of that name.
    tf.errors.InvalidArgumentError: its rows have another length.
    tf.errors.DataLossError: the checkpoint is damaged.
  """
  if eager_variable.table_of(table) is None:
    raise TypeError(
        "embedding_variable.restore: table: expected an embedding variable of eager "
        "execution, got %r. tf.train.Saver restores a graph's" % (table,))
  restore_all({name: table}, ops.convert_to_tensor(prefix))


def _stored_name(prefix, name):
  """Returns the name that the rows of a table have in a checkpoint."""
  same_as = tensor_names.tensor(name, tensor_names.SAME_AS)
  reader = pywrap_tensorflow.NewCheckpointReader(compat.as_str(prefix.numpy()))
  return compat.as_str(reader.get_tensor(same_as)) if reader.has_tensor(same_as) else name


def _restore_in_graph(table, prefix, name):
  """Restores in the graph of a SavedModel, whose table is not initialized."""
  # The checkpoint has the default rows.
  first = handle_ops.initialize(table.handle, array_ops.zeros([1, table.dim]))
  with ops.control_dependencies([first]):
    _restore_op(table, table.handle, prefix, name, _columns(table))


def _check(table, prefix, name):
  """Raises an error if a checkpoint does not have a table as its index describes it.

  Restores no row, into another table: that opens all tensors and compares their sizes.

  Returns:
    {slot: initial value} of all slots that the table has after the restore.
  """
  slots = {slot: 0.0 for slot in _slots_in(compat.as_str(prefix.numpy()), name)}
  slots.update(table.slot_columns)
  other = handle_ops.handle(table.op.name, table.dim, container=_CHECKED % id(table),
                            key_dtype=table.key_dtype)
  try:
    handle_ops.initialize(other, array_ops.zeros([1, table.dim]))
    _restore_op(table, other, prefix, name, slots, placement=[0], rank=1)
  finally:
    gen_resource_variable_ops.destroy_resource_op(other)
  return slots


def _replace(table, prefix, name, slots):
  """Restores a table that `_check` has checked."""
  default_rows = checkpoint_ops.default_rows(table.handle)
  table.restored_columns.clear()
  try:
    _restore_op(table, table.handle, prefix, name, slots)
  except errors.OpError as e:
    handle_ops.initialize(table.handle, default_rows)
    raise type(e)(e.node_def, e.op, "%s. The table is empty now: restore another "
                  "checkpoint. Other variables may be restored" % e.message)
  table.restored_columns.update(
      (slot, initial) for slot, initial in slots.items() if slot not in table.slot_columns)


def _restore_op(table, handle, prefix, name, slots, placement=None, rank=None):
  """Restores this rank's rows of a table into the table of a handle."""
  if placement is None:
    placement = job.current().placement(table) or ()
    rank = job.current().rank()
  return checkpoint_ops.restore_table(
      handle, prefix, name, list(slots), list(slots.values()), placement=placement,
      rank=rank, custom_dim=saveable.restores_custom_dim())


def _columns(table):
  """Returns {slot: initial value} of all slots of the table that are saved."""
  if published.current() is not None:
    return {}  # Predictions need no slots.
  columns = dict(table.restored_columns)
  columns.update(table.slot_columns)
  return columns


def _slots_in(prefix, name):
  """Returns the names of the slots that a table has in a checkpoint."""
  tensors = pywrap_tensorflow.NewCheckpointReader(prefix).get_variable_to_shape_map()
  starts = (name + "/", tensor_names.part(name, 0) + "/")
  found = set()
  for tensor in tensors:
    owner = tensor_names.without_column(tensor, tensor_names.VALUES)
    for start in starts:
      if owner is not None and owner.startswith(start):
        slot = owner[len(start):]
        if "/" not in slot and tensor_names.split_part("/" + slot)[1] is None:
          found.add(slot)
  return sorted(found)
