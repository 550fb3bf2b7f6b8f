# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Moves the rows of staged batches to the fastest memory before a step looks them up.

A table in `DRAM_SSDHASH`, `HBM_DRAM` or `HBM_DRAM_SSDHASH` has most of its rows in a file
or in CPU memory.
The ids of a lookup often depend on staged tensors alone, for example through a hash of
strings. The ops between the stage and the ids are then copied to the other end of the
queue, and a thread of the stage prefetches the rows before it enqueues the batch.
"""

from embedding_variable.deeprec import graph_copy
from embedding_variable.ops import presence_ops
from embedding_variable.tf_names import ops
from embedding_variable.variables import storages

# The storages with several kinds of memory, by their names in the op `EvHandle`.
_TIERED = frozenset(s.name for s in storages.TABLE if s.bounded_memories)

# Types of stateful ops that both ends of the queue may share, tables of constants, and
# of their lookups, which read nothing else that changes.
_SHARED = ("HashTable", "HashTableV2")
_CONSTANT_LOOKUPS = ("LookupTableFind", "LookupTableFindV2")


def add(graph, taken, given):
  """Adds the ops that prefetch the rows of a batch.

  Args:
    graph: Graph whose lookups exist.
    taken: list of Tensors from the queue.
    given: list of Tensors, of the same length, that a thread puts into the queue.

  Returns:
    List of Operations; empty if no lookup of such a table depends on `taken` alone.
  """
  stage = {tensor.name for tensor in taken}
  found = {}
  for handle, ids in _lookups(graph):
    between = _between(ids, stage)
    if between is not None:
      found.setdefault((handle, ids), between)
  if not found:
    return []
  wanted = [ids for _, ids in found]
  inputs = {t.name: g for t, g in zip(taken, given)}
  with graph.as_default():
    copies = graph_copy.copy_with_inputs(
        wanted, set().union(*found.values()), inputs, "prefetch_ids")
    prefetches = []
    for (handle, _), ids in zip(found, copies):
      with ops.name_scope(None), ops.device(handle.device):
        prefetches.append(presence_ops.prefetch(handle, ids, name="prefetch_rows"))
  return prefetches


def _lookups(graph):
  """Yields (handle, ids) of the lookups of tables with two kinds of memory."""
  for op in graph.get_operations():
    if op.type == "EvLookupSparse":
      count = op.get_attr("num_tables")
      pairs = zip(op.inputs[:count], op.inputs[count:2 * count])
    elif op.type == "EvGather":
      pairs = [op.inputs[:2]]
    else:
      continue
    for handle, ids in pairs:
      if handle.op.type == "EvHandle" and handle.op.get_attr(
          "storage").decode("utf-8") in _TIERED:
        yield handle, ids


def _between(ids, stage):
  """Returns the set of the ops between the stage and `ids`.

  None: `ids` does not depend on the stage, or on something else too that both ends of
  the queue cannot compute alike.
  """
  between, waiting, depends = set(), [ids], False
  while waiting:
    tensor = waiting.pop()
    if tensor.name in stage:
      depends = True
      continue
    op = tensor.op
    if op in between or op.type in _SHARED:
      continue
    if not _is_pure(op):
      return None
    between.add(op)
    waiting += list(op.inputs)
  return between if depends else None


def _is_pure(op):
  """Returns whether a copy of an op computes the same, at any time."""
  # pylint: disable=protected-access
  if op.type.startswith("Placeholder") or op._get_control_flow_context() is not None:
    return False
  if op.type in _CONSTANT_LOOKUPS:
    return op.inputs[0].op.type in _SHARED
  return not op.op_def.is_stateful and not any(t.dtype._is_ref_dtype for t in op.inputs)
