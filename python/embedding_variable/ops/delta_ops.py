# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""What changed in a table, out and in; and how files become a checkpoint."""

import collections

from tensorflow.python.framework import ops

from embedding_variable import _lib

_gen = _lib.load()

# What `export_changes` gives; slots is a list with one entry per slot name.
Changes = collections.namedtuple("Changes", [
    "keys", "values", "versions", "frequencies", "partition_offset", "filtered_keys",
    "filtered_versions", "filtered_frequencies", "erased_keys", "replaces",
    "default_rows", "cut", "slots"
])

Rows = collections.namedtuple("Rows",
                              ["keys", "values", "versions", "frequencies", "slots"])


def cut_changes(resource, name=None):
  """Returns int64 scalar: a moment that `export_changes` can be asked about.

  The first run begins to record what changes in the table, at four bytes per row.

  Args:
    resource: resource scalar from `handle`; must be initialised.
    name: name of the op.
  """
  return _gen.ev_cut_changes(resource, name=name)


def export_changes(resource, since, slot_names=(), name=None):
  """Exports one frozen snapshot of what changed in a table since a cut.

  Nothing is lost by it: the same can be asked again. What was before `since` is not
  asked for any more.

  Args:
    resource: resource scalar from `handle`; must be initialised.
    since: int64 scalar, a cut.
    slot_names: list of S strings. A slot that the table lacks is NotFound.
    name: name of the op.

  Returns:
    A `Changes`: keys int64 `[N]` in ascending order of (floormod(key, 1000), key),
    values float32 `[N, D]`, versions and frequencies int64 `[N]` (`[0]` when not
    recorded), partition_offset int32 `[1001]`; filtered_keys `[M]`, keys whose count by
    an exact filter changed, with theirs; erased_keys int64 `[E]`, keys that lost their
    row; replaces int64 scalar, 1 when this is the whole table; default_rows float32
    `[R, D]` if it replaces, else `[0, D]`; cut, the moment of the export; S slots
    `[N, D]`.
  """
  changes = _gen.ev_export_changes(
      resource, since, slot_names=list(slot_names), num_slots=len(slot_names),
      name=name)
  return Changes(*(list(t) if isinstance(t, (list, tuple)) else t for t in changes))


def export_newer(resource, version, slot_names=(), name=None):
  """Exports the rows that were updated at a version or later.

  Args:
    resource: resource scalar from `handle`; must be initialised and record versions.
    version: int64 scalar.
    slot_names: list of S strings.
    name: name of the op.

  Returns:
    A `Rows`: keys, values, versions, frequencies and slots as of `export_changes`.
  """
  rows = _gen.ev_export_newer(
      resource, version, slot_names=list(slot_names), num_slots=len(slot_names),
      name=name)
  return Rows(rows.keys, rows.values, rows.versions, rows.frequencies,
              list(rows.slots))


def apply_delta(resource, prefix, tensor_name, slot_names=(), slot_inits=(), part=0,
                num_parts=1, placement=(), rank=0, name=None):
  """Returns the op that changes a table as an incremental checkpoint says.

  Everything is read and its checksums compared before the table changes. A delta that
  was written in parts, of a partitioned variable or by the ranks of a job, is applied
  part by part.

  Args:
    resource: resource scalar from `handle`; must be initialised.
    prefix: string scalar, the incremental checkpoint's prefix.
    tensor_name: string, name of the whole variable in the checkpoint.
    slot_names: list of S strings; those that it lacks start with their initial value.
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
  """Returns the op that gives a complete V2 checkpoint its name, durably.

  Args:
    staged: string scalar, the prefix it was written to, in the same directory.
    prefix: string scalar, the prefix it is to have.
    name: name of the op.
  """
  return _gen.ev_publish_checkpoint(staged, prefix, name=name)


for _op_type in ("EvCutChanges", "EvExportChanges", "EvExportNewer", "EvApplyDelta",
                 "EvPublishCheckpoint"):
  ops.NotDifferentiable(_op_type)
