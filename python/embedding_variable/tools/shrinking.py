# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""`shrink`: a new checkpoint without rows that were not updated for a long time."""

import collections
import os
import shutil

import numpy as np

from embedding_variable.checkpoint_format import checkpoint_tables
from embedding_variable.checkpoint_format import errors
from embedding_variable.checkpoint_format import tensor_names
from embedding_variable.tools import bundle_writer
from embedding_variable.tools import progress

# name: the variable; before, after: numbers of rows; filtered: number of removed keys
# that were not admitted; versions: False if it has no versions, so no row can be
# evicted by age.
Result = collections.namedtuple(
    "Result", ["name", "before", "after", "filtered", "versions"])


def shrink(checkpoint, out, steps=None, drop_filtered=False, step=None, names=None):
  """Writes a new full checkpoint with fewer rows; everything else is copied.

  Deltas of the checkpoint that were read are merged into the new one, which has none.

  A row is removed, with its slots, if `step - version > steps`, the rule of
  `GlobalStepEvict`. A row that was never updated (version -1) stays.

  Args:
    checkpoint: the `Checkpoint` to read.
    out: prefix to write; must not exist.
    steps: int >= 0, or None to keep all rows.
    drop_filtered: also remove the keys that a filter did not admit.
    step: the step from which ages are counted; None: the checkpoint's global step.
    names: list of variables; None: all.

  Returns:
    List of `Result`, one for each variable of `names`.

  Raises:
    CheckpointError: nothing to do, no global step, no versions, or files that cannot be
      written. No files are left then.
  """
  if steps is None and not drop_filtered:
    raise errors.CheckpointError("shrink needs --evict-older-than or --drop-filtered")
  if steps is not None and steps < 0:
    raise errors.CheckpointError("--evict-older-than: expected at least 0, got %d" % steps)
  out = os.path.abspath(out)
  if os.path.exists(out + ".index"):
    raise errors.CheckpointError("%s exists; a checkpoint is never overwritten" % out)
  tables = [checkpoint.table(n) for n in names or checkpoint.tables]
  if not tables:
    raise errors.CheckpointError("%s has no embedding variable" % checkpoint.prefix)
  if steps is not None and step is None:
    step = checkpoint.global_step()
    if step is None:
      raise errors.CheckpointError(
          "%s has no global_step; set --global-step to count ages from a step" %
          checkpoint.prefix)
  oldest = None if steps is None else step - steps
  judged = [t for t in tables if oldest is not None and
            t.column(tensor_names.VERSIONS) is not None]
  if oldest is not None and (len(judged) < len(tables) if names else not judged):
    raise errors.CheckpointError(
        "no versions were recorded for %s, so no row's age is known (TF_RECORD_VERSION=1 "
        "or GlobalStepEvict when the variable is made records them)" % ", ".join(
            "'%s'" % t.name for t in tables if t not in judged))
  total = sum(t.nbytes for t in checkpoint.tables.values())
  total += sum(checkpoint.nbytes(t) for t in checkpoint.others)
  with progress.Progress("shrink", total) as bar, \
      bundle_writer.BundleWriter(out) as writer:

    def put(tensor, array):
      writer.add(tensor, array)
      bar.add(getattr(array, "nbytes", 0), tensor)

    for tensor in checkpoint.others:
      put(tensor, checkpoint.read(tensor))
    results = []
    for table in checkpoint.tables.values():
      wanted = table in tables
      result = _copy(table, put, oldest if table in judged else None,
                     drop_filtered and wanted)
      if wanted:
        results.append(result._replace(versions=oldest is None or table in judged))
  if os.path.exists(checkpoint.prefix + ".meta"):
    shutil.copyfile(checkpoint.prefix + ".meta", out + ".meta")
  return results


def _copy(table, put, oldest, drop_filtered):
  """Copies a table without the removed rows; returns a `Result`."""
  after, filtered = 0, 0
  for piece in table.pieces:
    keys = piece.read(piece.prefix, tensor_names.KEYS)
    gone = keys[:0]
    if oldest is not None and len(keys):
      versions = piece.read(piece.prefix, tensor_names.VERSIONS)
      gone = keys[(versions >= 0) & (versions < oldest)]
    after += len(keys) - len(gone)
    filtered += piece.count(tensor_names.KEYS_FILTERED) if drop_filtered else 0
    for prefix in piece.prefixes():
      # A slot's copy of the keys may be in another order.
      keep = ~checkpoint_tables.positions_of(piece.read(prefix, tensor_names.KEYS), gone)[1]
      for column, _ in tensor_names.COLUMNS:
        tensor = tensor_names.tensor(prefix, column)
        if tensor not in table.tensors:
          continue
        array = piece.read(prefix, column)
        if array is None:
          array = _not_recorded(table, tensor, column)
        elif column == tensor_names.OFFSETS:
          array = _kept_before(keep)[array].astype(array.dtype)
        elif column == tensor_names.OFFSETS_FILTERED:
          array = np.zeros_like(array) if drop_filtered else array
        elif column in tensor_names.FILTERED:
          array = array[:0] if drop_filtered else array
        elif not keep.all():
          array = array[keep]
        put(tensor, array)
    for tensor in tensor_names.TABLE_TENSORS:
      value = piece.table_tensor(tensor)
      if value is not None:
        put(piece.tensor(tensor.name), value)
  return Result(table.name, table.rows, after, filtered, True)


def _not_recorded(table, tensor, column):
  """Returns the empty tensor that represents numbers that were not recorded."""
  numbers = (tensor_names.VERSIONS, tensor_names.FREQS, tensor_names.VERSIONS_FILTERED,
             tensor_names.FREQS_FILTERED)
  if column not in numbers:
    raise errors.CheckpointError(
        "variable '%s': tensor '%s' of the full checkpoint is not in all of its incremental "
        "checkpoints" % (table.name, tensor))
  return np.zeros([0], np.int64)


def _kept_before(keep):
  """Returns int64 `[N + 1]`: how many of the first i rows are kept."""
  return np.concatenate([[0], np.cumsum(keep, dtype=np.int64)])
