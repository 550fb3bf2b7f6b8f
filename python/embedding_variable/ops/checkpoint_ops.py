# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Exports, imports, saves and restores whole tables."""

import collections

from embedding_variable import _lib
from embedding_variable.tf_names import ops

_gen = _lib.load()

# The result of `export_table`; slots is a list with one entry per slot name, tensors one
# with an entry per type.
Export = collections.namedtuple(
    "Export",
    ["keys", "values", "versions", "frequencies", "partition_offset", "slots",
     "filtered", "tensors"])

# The keys that an exact filter counts and has not admitted.
Filtered = collections.namedtuple(
    "Filtered", ["keys", "versions", "frequencies", "partition_offset"])


def export_table(resource, slot_names=(), name=None, tensor_types=()):
  """Exports a snapshot of a table.

  Args:
    resource: resource scalar from `handle`.
    slot_names: list of S strings. NotFound if the table lacks one.
    name: name of the op.
    tensor_types: list of dtypes, of the first tensors of the table as a whole.

  Returns:
    An `Export`. Its keys are int64 `[N]` in ascending order of (floormod(key, 1000),
      key), values float32 `[N, D]`, versions and frequencies int64 `[N]` (`[0]` if the
      table does not record them), slots S float32 `[N, D]`. partition_offset is int32
      `[1001]`: where each remainder starts. tensors: those of the table as a whole, in
      the order of `checkpoint.tensor_names.TABLE_TENSORS`. `Filtered` has the keys `[M]` that are
      counted but have no row, in the same layout.
  """
  export = _gen.ev_export(
      resource, slot_names=list(slot_names), num_slots=len(slot_names),
      tensor_types=list(tensor_types), name=name)
  return Export(export.keys, export.values, export.versions, export.frequencies,
                export.partition_offset, list(export.slots),
                Filtered(export.filtered_keys, export.filtered_versions,
                         export.filtered_frequencies,
                         export.filtered_partition_offset),
                list(export.tensors))


def import_table(resource,
                 keys,
                 values,
                 versions,
                 frequencies,
                 slots=(),
                 slot_names=(),
                 slot_inits=(),
                 part=0,
                 num_parts=1,
                 clear=False,
                 name=None):
  """Returns the op that inserts or overwrites rows from an export.

  Args:
    resource: resource scalar from `handle`; must be initialised.
    keys: int64 `[N]`.
    values: float32 `[N, D]`.
    versions: int64 `[N]`, or `[0]`: never updated.
    frequencies: int64 `[N]`, or `[0]`: none.
    slots: list of S float32 `[N, D]`.
    slot_names: list of S strings. Slots of the table that are not listed get their
      initial value.
    slot_inits: list of S floats.
    part: int: keep only keys with floormod(key, 1000) % num_parts == part.
    num_parts: int >= 1; 1 keeps all.
    clear: empty the table first.
    name: name of the op.
  """
  return _gen.ev_import(
      resource, keys, values, versions, frequencies, list(slots),
      slot_names=list(slot_names), slot_inits=list(slot_inits), part=part,
      num_parts=num_parts, clear=clear, name=name)


def import_filtered(resource, keys, versions, frequencies, part=0, num_parts=1,
                    name=None):
  """Returns the op that imports the counts of another table's filter.

  Keys that have a row are unchanged. Keys that this table's filter now admits get their
  default row. No-op without a filter.

  Args:
    resource: resource scalar from `handle`; must be initialised.
    keys: int64 `[M]`.
    versions: int64 `[M]`, or `[0]`: none.
    frequencies: int64 `[M]`, or `[0]`: seen once each.
    part: int: keep only keys with floormod(key, 1000) % num_parts == part.
    num_parts: int >= 1; 1 keeps all.
    name: name of the op.
  """
  return _gen.ev_import_filtered(
      resource, keys, versions, frequencies, part=part, num_parts=num_parts,
      name=name)


def default_rows(resource, name=None):
  """Returns float32 `[R, D]`: the default rows that the table was initialised with.

  Args:
    resource: resource scalar from `handle`; must be initialised.
    name: name of the op.
  """
  return _gen.ev_default_rows(resource, name=name)


def restore_table(resource,
                  prefix,
                  tensor_name,
                  slot_names=(),
                  slot_inits=(),
                  part=0,
                  num_parts=1,
                  placement=(),
                  rank=0,
                  custom_dim=False,
                  reset_version=False,
                  name=None):
  """Returns the op that replaces the rows by those of a stock V2 checkpoint.

  Reads in pieces, so it needs little memory beyond the table. A slot that the
  checkpoint lacks starts with its initial value. If the op fails, the table is empty
  and not initialised.

  Args:
    resource: resource scalar from `handle`; must be initialised.
    prefix: string scalar, the checkpoint's prefix.
    tensor_name: string, name of the whole variable in the checkpoint. If it was saved
      in parts, the tensors of `<tensor_name>/part_0` and so on are found.
    slot_names: list of S strings.
    slot_inits: list of S floats.
    part: int: keep only keys with floormod(key, 1000) % num_parts == part.
    num_parts: int >= 1; 1 keeps all.
    placement: list of ints: keep only keys whose entry `floormod(key, length)` is
      `rank`; empty keeps all.
    rank: int, this process's number.
    custom_dim: accept rows of another length. They are cut, or completed by the tail of
      the key's default row, slots by their initial value.
    reset_version: set versions to 0.
    name: name of the op.
  """
  return _gen.ev_restore(
      resource, prefix, tensor_name=tensor_name, slot_names=list(slot_names),
      slot_inits=list(slot_inits), part=part, num_parts=num_parts,
      placement=list(placement), rank=rank, custom_dim=custom_dim,
      reset_version=reset_version, name=name)


def restore_number(prefix, tensor_names, name=None):
  """Reads one float from a stock V2 checkpoint.

  Args:
    prefix: string scalar, the checkpoint's prefix.
    tensor_names: list of strings; the first one that exists is read. NotFound: none
      exists.
    name: name of the op.

  Returns:
    float32 scalar.
  """
  return _gen.ev_restore_number(prefix, tensor_names=tensor_names, name=name)


# One table of `save_tables`.
#   resource: resource scalar from `handle`.
#   name: string, prefix of its tensors' names.
#   key_dtype: `tf.int64` or `tf.int32`, the type of stored keys.
#   slots: dict of slot name -> initial value; missing slots are created.
#   row_type: type of the stored values, one of `packed_rows.ROW_TYPES`.
SavedTable = collections.namedtuple(
    "SavedTable", ["resource", "name", "key_dtype", "slots", "row_type"],
    defaults=["float32"])


def save_tables(prefix, tables, with_filtered=True, name=None):
  """Returns the op that writes a stock V2 checkpoint with only tables.

  Writes in pieces, so it needs little memory beyond the tables. Each table is written
  as a snapshot while lookups and updates go on; erase and eviction wait. If the op
  fails, no checkpoint with that prefix exists.

  Args:
    prefix: string scalar, the checkpoint's prefix.
    tables: list of `SavedTable`, all initialised and on one device.
    with_filtered: whether to store the keys that a filter counts.
    name: name of the op.
  """
  slots = [slot for table in tables for slot in table.slots.items()]
  return _gen.ev_save(
      prefix, [table.resource for table in tables],
      tensor_names=[table.name for table in tables],
      key_dtypes=[table.key_dtype for table in tables],
      slot_counts=[len(table.slots) for table in tables],
      slot_names=[slot for slot, _ in slots],
      slot_inits=[initial for _, initial in slots], with_filtered=with_filtered,
      row_types=[table.row_type for table in tables], name=name)


for _op_type in ("EvDefaultRows", "EvExport", "EvImport", "EvImportFiltered",
                 "EvRestore", "EvRestoreNumber", "EvSave"):
  ops.NotDifferentiable(_op_type)
