# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Exports and applies a table's changes, and publishes checkpoint files."""

import collections

from embedding_variable import _lib
from embedding_variable.tf_names import dtypes
from embedding_variable.tf_names import ops

_gen = _lib.load()

# The result of `export_changes`; slots is a list with one entry per slot name, tensors
# one with an entry per type.
Changes = collections.namedtuple("Changes", [
    "keys", "values", "versions", "frequencies", "partition_offset", "filtered_keys",
    "filtered_versions", "filtered_frequencies", "erased_keys", "replaces",
    "default_rows", "cut", "slots", "tensors"
])

Rows = collections.namedtuple("Rows",
                              ["keys", "values", "versions", "frequencies", "slots"])


def cut_changes(resource, name=None):
  """Returns int64 scalar: a cut, from which `export_changes` can export changes.

  The first run starts recording the table's changes, at four bytes per row.

  Args:
    resource: resource scalar from `handle`; must be initialised.
    name: name of the op.
  """
  return _gen.ev_cut_changes(resource, name=name)


def export_changes(resource, since, slot_names=(), name=None, tensor_types=()):
  """Exports a snapshot of a table's changes since a cut.

  The export can be repeated with the same cut. It drops the record of erased keys from
  before `since`, so an export since an earlier cut may be the whole table.

  Args:
    resource: resource scalar from `handle`; must be initialised.
    since: int64 scalar, a cut.
    slot_names: list of S strings. NotFound if the table lacks one.
    name: name of the op.
    tensor_types: list of dtypes, of the tensors of the table as a whole that follow the
      default rows (`checkpoint.tensor_names.TABLE_TENSORS`).

  Returns:
    A `Changes`:
      keys: int64 `[N]` in ascending order of (floormod(key, 1000), key).
      values: float32 `[N, D]`.
      versions, frequencies: int64 `[N]` (`[0]` if not recorded).
      partition_offset: int32 `[1001]`.
      filtered_keys: `[M]`, keys whose count by an exact filter changed, with
        filtered_versions and filtered_frequencies.
      erased_keys: int64 `[E]`, keys that lost their row.
      replaces: int64 scalar, 1 if this is the whole table.
      default_rows: float32 `[R, D]` if it replaces, else `[0, D]`.
      cut: the cut at which the export was made.
      slots: S tensors `[N, D]`.
      tensors: those tensors of the table as a whole.
  """
  changes = _gen.ev_export_changes(
      resource, since, slot_names=list(slot_names), num_slots=len(slot_names),
      tensor_types=list(tensor_types), name=name)
  return Changes(*(list(t) if isinstance(t, (list, tuple)) else t for t in changes))


def pack_rows(keys, rows, row_type, name=None):
  """Returns rows in fewer bytes, as a checkpoint stores them.

  Args:
    keys: int64 `[N]`, for the error.
    rows: float32 `[N, D]`.
    row_type: one of `packed_rows.ROW_TYPES`.
    name: name of the op.

  Returns:
    "float32": rows. "float16": `tf.float16` `[N, D]`. "uint8": `tf.uint8` `[N, D + 4]`.

  Raises (when it runs):
    InvalidArgumentError: a row has a number that the type cannot store; the message has
      its key.
  """
  types = {"float16": dtypes.float16, "uint8": dtypes.uint8}
  return rows if row_type == "float32" else _gen.ev_pack_rows(
      keys, rows, Tout=types[row_type], name=name)


def export_newer(resource, version, slot_names=(), name=None):
  """Exports the rows that were updated at a version or later.

  Args:
    resource: resource scalar from `handle`; must be initialised and record versions.
    version: int64 scalar.
    slot_names: list of S strings.
    name: name of the op.

  Returns:
    A `Rows`: keys, values, versions, frequencies and slots as in `export_changes`.
  """
  rows = _gen.ev_export_newer(
      resource, version, slot_names=list(slot_names), num_slots=len(slot_names),
      name=name)
  return Rows(rows.keys, rows.values, rows.versions, rows.frequencies,
              list(rows.slots))


def apply_delta(resource, prefix, tensor_name, slot_names=(), slot_inits=(), part=0,
                num_parts=1, placement=(), rank=0, name=None):
  """Returns the op that applies an incremental checkpoint to a table.

  Everything is read and its checksums verified before the table changes. A delta in
  parts, of a partitioned variable or written by the ranks of a job, is applied part by
  part.

  Args:
    resource: resource scalar from `handle`; must be initialised.
    prefix: string scalar, the incremental checkpoint's prefix.
    tensor_name: string, name of the whole variable in the checkpoint.
    slot_names: list of S strings; slots that it lacks start with their initial value.
    slot_inits: list of S floats.
    part: int: keep only keys with floormod(key, 1000) % num_parts == part.
    num_parts: int >= 1; 1 keeps all.
    placement: list of ints: keep only keys whose entry `floormod(key, length)` is
      `rank`; empty keeps all.
    rank: int, this process's number.
    name: name of the op.
  """
  return _gen.ev_apply_delta(
      resource, prefix, tensor_name=tensor_name, slot_names=list(slot_names),
      slot_inits=list(slot_inits), part=part, num_parts=num_parts,
      placement=list(placement), rank=rank, name=name)


def publish_checkpoint(staged, prefix, name=None):
  """Returns the op that renames a complete V2 checkpoint, durably.

  Args:
    staged: string scalar, the prefix it was written to, in the same directory.
    prefix: string scalar, its final prefix.
    name: name of the op.
  """
  return _gen.ev_publish_checkpoint(staged, prefix, name=name)


for _op_type in ("EvCutChanges", "EvPackRows", "EvExportChanges", "EvExportNewer",
                 "EvApplyDelta", "EvPublishCheckpoint"):
  ops.NotDifferentiable(_op_type)
