# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Saving of eager tables that are spread over ranks, by all ranks together.

Every rank calls `tf.train.Checkpoint.save` with the same path. Each writes its rows of a
table as a part of the table (`v/part_2-keys` by rank 2), as in graph mode. When all have
written, rank 0 writes everything else and TensorFlow merges the parts; the other ranks
wait for it. The ranks compare their paths first, and whether all succeeded after each
stage, so all of them fail or none does.
"""

import os
import threading

from embedding_variable.checkpoint import job
from embedding_variable.checkpoint_format import tensor_names
from embedding_variable.eager import taped
from embedding_variable.ops import checkpoint_ops
from embedding_variable.tf_names import compat
from embedding_variable.tf_names import file_io
from embedding_variable.tf_names import ops

# Suffix of the partial checkpoint of each rank.
_RANK = "_rank%05d"

# Attribute `waits`: whether the other ranks wait for the end of this save.
_local = threading.local()


class OtherRankWritesTheRest(Exception):
  """Ends the save of a rank other than 0, whose rows are written."""


def spread(tables):
  """Returns whether other ranks hold rows of one of the tables."""
  return any(_is_spread(table) for table in tables.values())


def _is_spread(table):
  return job.current().placement(table) is not None


def save(tables, file_prefix, columns):
  """Writes the rows that this rank holds.

  Args:
    tables: dict {name in the checkpoint: table}, one of which is spread.
    file_prefix: string scalar.
    columns: function of a table that returns {slot: initial value}.

  Returns:
    On rank 0, a list of the prefixes that all ranks have written.

  Raises:
    OtherRankWritesTheRest: on all other ranks.
    NotImplementedError: in a graph, as for a SavedModel.
    ValueError: ranks save to different paths, or other tables.
    RuntimeError: another rank failed or did not come.
  """
  if not taped.is_eager(file_prefix):
    next(t for _, t in sorted(tables.items()) if _is_spread(t)).refuse_export()
  ranks, rank = job.current().size(), job.current().rank()
  prefix = compat.as_str(file_prefix.numpy())
  saved = []
  for name, table in sorted(tables.items()):
    is_part = _is_spread(table)
    if is_part or rank == 0:
      saved.append(checkpoint_ops.SavedTable(
          table.handle, tensor_names.part(name, rank) if is_part else name,
          table.key_dtype, columns(table)))
  channel = _channel()
  channel.check_equal("the path of the checkpoint and the tables in it",
                      repr([os.path.abspath(prefix), sorted(tables)]))
  own = prefix + _RANK % rank
  error = None
  try:
    checkpoint_ops.save_tables(ops.convert_to_tensor(own), saved)
  except Exception as e:  # pylint: disable=broad-except
    error = e
  try:
    channel.check(error)
  except Exception:
    for path in file_io.get_matching_files(own + ".*"):
      file_io.delete_file(path)
    raise
  _local.waits = True
  if rank:
    raise OtherRankWritesTheRest()
  return [ops.convert_to_tensor(prefix + _RANK % r) for r in range(ranks)]


def whole(save_checkpoint):
  """Runs the save of a whole checkpoint, in which `save` may be called.

  Args:
    save_checkpoint: function without arguments.

  Returns:
    What it returned; None on ranks other than 0 if a table is spread.

  Raises:
    Exception: this rank's error.
    RuntimeError: another rank failed or did not come.
  """
  _local.waits = False
  result, error = None, None
  try:
    result = save_checkpoint()
  except OtherRankWritesTheRest:
    pass
  except Exception as e:  # pylint: disable=broad-except
    error = e
  if _local.waits:
    _local.waits = False
    _channel().check(error)
  elif error is not None:
    raise error
  return result


def _channel():
  return job.current().channel("save")
