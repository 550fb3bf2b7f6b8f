# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The op that saves tables together with all other variables.

Stock code passes all tensors of a checkpoint to one op, so a table would be in memory
twice. In this module each table is written by an op that reads it in pieces, into a
partial checkpoint (`<prefix>_part_tables0`); all other variables go into another one
(`<prefix>_part_rest`). The last op merges them: it renames the data files and writes
the index, so a checkpoint has an index only when it is complete.

A table that is spread over the ranks of a job is written by all of them. Each rank
writes its own rows as a part of the table (`v/part_2-keys` by rank 2) into partial
checkpoints (`<prefix>_part_rank00002_tables0`). Rank 0's op writes all other variables
and merges everything, so it must run after the ops of the other ranks; together.py
ensures that. Changes of such tables (delta_saveable.py) are saved in the same way.
"""

import collections

from embedding_variable.checkpoint import delta_saveable
from embedding_variable.checkpoint import job
from embedding_variable.checkpoint import saveable
from embedding_variable import graph_state
from embedding_variable.ops import checkpoint_ops
from embedding_variable.tf_names import control_flow_ops
from embedding_variable.tf_names import gen_io_ops
from embedding_variable.tf_names import ops
from embedding_variable.tf_names import string_ops

# Suffixes of the partial checkpoints' names; leftovers.py has them too.
_REST = "_part_rest"
_TABLES = "_part_tables%d"
_RANK_TABLES = "_part_rank%05d_tables%d"


# Attribute of a graph: names of the filename tensors of savers of spread tables.
_TOGETHER = "_embedding_variables_saved_together"


def mark_as_together(graph, saver_def):
  """Records that a saver of this graph saves tables spread over ranks."""
  graph_state.of(graph).setdefault(_TOGETHER, set()).add(saver_def.filename_tensor_name)


def is_together(graph, saver_def):
  """Returns whether all ranks must save together with this saver."""
  return saver_def is not None and saver_def.filename_tensor_name in graph_state.of(graph).get(
      _TOGETHER, ())


def spread_tables(saveables):
  """Returns the saveables, also those of changes, whose table is spread over ranks."""
  kinds = (saveable.EmbeddingVariableSaveable, delta_saveable.DeltaSaveable)
  return [s for s in saveables if isinstance(s, kinds) and s.spread]


def save(prefix, saveables, save_rest):
  """Returns the op that writes a checkpoint, or a part of one on ranks other than 0.

  Args:
    prefix: string scalar, the checkpoint's prefix.
    saveables: list of `SaveableObject`s, some of them
      `saveable.EmbeddingVariableSaveable`s.
    save_rest: function of a prefix and a list of saveables that are not tables, which
      returns the op that writes a checkpoint of them.
  """
  own, spread = collections.OrderedDict(), collections.OrderedDict()
  rest = []
  for item in saveables:
    if isinstance(item, saveable.EmbeddingVariableSaveable):
      groups = spread if item.spread else own
      groups.setdefault(item.variable.device, []).append(item)
    else:
      rest.append(item)
  rank, num_ranks = job.current().rank(), job.current().size()
  parts, saves = [], []

  def save_groups(groups, suffix):
    for i, (device, tables) in enumerate(groups.items()):
      evicted = [op for t in tables for op in saveable.evictions(t.variable)]
      # One device after the other, since several may belong to one process.
      with ops.device(device), ops.control_dependencies(evicted + saves):
        parts.append(_part(prefix, suffix(i)))
        saves.append(checkpoint_ops.save_tables(
            parts[-1], [t.saved_table() for t in tables],
            with_filtered=saveable.saves_filtered()))

  with ops.name_scope("save_tables"):
    save_groups(spread, lambda i: _RANK_TABLES % (rank, i))
    if spread and rank:
      return control_flow_ops.group(*saves)
    if spread:
      parts.extend(_part(prefix, _RANK_TABLES % (r, i))
                   for r in range(1, num_ranks) for i in range(len(spread)))
    save_groups(own, lambda i: _TABLES % i)
    if rest:
      parts.append(_part(prefix, _REST))
      saves.append(save_rest(parts[-1], rest))
    return _merge(parts, prefix, saves)


def save_of_ranks(prefix, write):
  """Returns the op that writes a checkpoint of all ranks, or a part on ranks other than
  0.

  For small checkpoints that stock code writes.

  Args:
    prefix: string scalar, the checkpoint's prefix.
    write: function of a prefix that returns the op that writes this rank's tensors.
  """
  rank, num_ranks = job.current().rank(), job.current().size()
  with ops.name_scope("save_of_ranks"):
    if rank:
      return write(_part(prefix, _RANK_TABLES % (rank, 0)))
    parts = [_part(prefix, _REST)]
    parts += [_part(prefix, _RANK_TABLES % (r, 0)) for r in range(1, num_ranks)]
    return _merge(parts, prefix, [write(parts[0])])


def _part(prefix, suffix):
  with ops.device("/cpu:0"):
    return string_ops.string_join([prefix, suffix])


def _merge(parts, prefix, saves):
  with ops.device("/cpu:0"), ops.control_dependencies(saves):
    return gen_io_ops.merge_v2_checkpoints(parts, prefix, delete_old_dirs=False)
