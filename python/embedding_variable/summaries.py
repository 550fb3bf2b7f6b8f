# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Size, growth and counters of embedding variables for TensorBoard."""

import collections as collections_lib

from embedding_variable.checkpoint_format import names as names_lib
from embedding_variable.checkpoint_format import tensor_names
from embedding_variable.eager import taped
from embedding_variable.tf_names import array_ops
from embedding_variable.tf_names import control_flow_ops
from embedding_variable.tf_names import dtypes
from embedding_variable.tf_names import math_ops
from embedding_variable.tf_names import ops
from embedding_variable.tf_names import resource_variable_ops
from embedding_variable.tf_names import state_ops
from embedding_variable.tf_names import summary
from embedding_variable.variables import storages
from embedding_variable.variables import variable as ev


def _sum(parts, stats):
  """Returns the sum of a vector of counts over the parts of a table, as a list."""
  total = math_ops.add_n([getattr(part, stats)() for part in parts])
  return array_ops.unstack(total, int(total.shape[0]))


def _since_last(counts):
  """Returns the increase of int64 counters since they were last evaluated.

  Args:
    counts: list of int64 scalars that only grow.
  """
  now = array_ops.stack(counts)
  # In no collection, so it is neither in checkpoints nor needs an initializer run.
  before = resource_variable_ops.ResourceVariable(
      initial_value=lambda: array_ops.zeros([len(counts)], dtypes.int64), trainable=False,
      collections=[], name="last", dtype=dtypes.int64)
  last = control_flow_ops.cond(
      before.is_initialized(), before.read_value,
      lambda: array_ops.zeros([len(counts)], dtypes.int64))
  new = now - last
  with ops.control_dependencies([new]):
    kept = state_ops.assign(before, now)
  with ops.control_dependencies([kept]):
    return array_ops.unstack(array_ops.identity(new), len(counts))


def _values(parts):
  """Returns an ordered dict, chart name -> scalar, for the parts of a table."""
  var = parts[0]
  rows, index_bytes, row_bytes, inserted = _sum(parts, "stats")
  values = collections_lib.OrderedDict([("rows", rows), ("bytes", index_bytes + row_bytes)])
  growing = collections_lib.OrderedDict([("new_rows", inserted)])
  options = var.table_options
  has_filter = options.filter != "none"
  evicts = (options.steps_to_live or options.l2_weight_threshold > 0 or
            options.max_rows or options.max_bytes)
  if has_filter or evicts:
    filtered, filter_bytes, evicted = _sum(parts, "policy_stats")
  if has_filter:
    values["admitted"] = inserted
    values["filter_bytes"] = filter_bytes
    # A Bloom filter cannot list the keys it has counted.
    if options.filter == "counter":
      values["filtered"] = filtered
  if evicts:
    growing["evicted"] = evicted
  if options.value_dtype != dtypes.float32:
    growing["overflows"] = math_ops.add_n([part.overflows() for part in parts])
  storage = storages.of_name(options.storage)
  if storage.counts_hits:
    stats = _sum(parts, "tier_stats")
    growing["hits"] = stats[3]
    growing["misses"] = stats[4]
    # The rows of the fastest memory, then those of the memory below each pair.
    values.update(zip(storage.charts, stats[:1] + stats[1::6]))
    if storage.charts and storage.may_use_gpu:
      growing.update(zip(("rows_moved_up", "rows_moved_down", "link_bytes"),
                         _sum(parts, "move_stats")))
  values.update(zip(growing, _since_last(list(growing.values()))))
  return values


def _checked(variables):
  """Returns the list of embedding variables in a list, with the parts of partitioned ones.

  Raises:
    ValueError: the list has another object, or a table of eager execution.
  """
  tables = []
  for var in variables:
    parts = ev.parts_of(var)
    if parts is None:
      raise ValueError("summaries: variables: expected embedding variables, got %r" % (var,))
    for part in parts:
      if taped.is_eager(part.handle):
        raise ValueError("summaries: embedding variable '%s' was created in eager "
                         "execution; only tables of a graph have summaries" % part.op.name)
    tables += parts
  return tables


def _tables(variables):
  """Returns an ordered dict: name of a table -> list of its parts."""
  tables = collections_lib.OrderedDict()
  for var in variables:
    name, _ = tensor_names.split_part(var.op.name)
    tables.setdefault(name, []).append(var)
  return tables


def _groups(tables):
  """Returns a dict, table name -> its group in TensorBoard, a name without "/"."""
  short, _ = names_lib.shorten(list(tables))
  groups = [name.replace("/", ".") for name in short]
  if len(set(groups)) < len(groups):
    groups = [name.replace("/", ".") for name in tables]
  return dict(zip(tables, groups))


def summaries(variables=None, collections=None):
  """Adds scalars about embedding variables to the default graph.

  A table's charts are a group in TensorBoard: `GROUP/rows`, `GROUP/bytes` and so on.
  The group is the variable's name without the path components that all embedding
  variables of the graph share: `C1` for `input_layer/C1_embedding/embedding_weights`.
  The parts of a partitioned variable are one table.

  | chart | of which tables | value |
  | --- | --- | --- |
  | `rows`, `bytes` | all | number of rows; bytes of index and rows |
  | `new_rows` | all | rows inserted since the last evaluation |
  | `admitted` | with a filter | rows that the filter has admitted in this session |
  | `filtered` | with a `CounterFilter` | keys that are counted and not admitted |
  | `filter_bytes` | with a filter | bytes of the filter |
  | `evicted` | with eviction or a capacity | rows evicted since the last evaluation |
  | `overflows` | with narrow values | rows in which, since the last evaluation, a number |
  | | | became infinite by rounding to `value_dtype` |
  | `hits`, `misses` | on a GPU or an SSD | rows used since the last evaluation that were, |
  | | | or were not, in the fastest memory (`handle_ops.tier_stats`) |
  | `rows_in_memory`, `rows_on_ssd` | `DRAM_SSDHASH` | rows in each memory |
  | `rows_in_gpu_memory`, `rows_in_cpu_memory` | `HBM_DRAM` | rows in each memory |
  | the same two, `rows_on_ssd` | `HBM_DRAM_SSDHASH` | rows in each memory |
  | `rows_moved_up`, `rows_moved_down` | with rows in both | rows moved to GPU memory, |
  | | GPU and CPU memory | or out of it, since the last evaluation |
  | `link_bytes` | the same | bytes that the GPU read and wrote in CPU memory since the |
  | | | last evaluation (`handle_ops.move_stats`) |

  With one evaluation each step, "since the last evaluation" is per step.

  Args:
    variables: list of embedding variables (or `PartitionedVariable`s of them), or None
      for all of the graph.
    collections: list of collections, or None for SUMMARIES, where
      `tf.summary.merge_all`, `MonitoredTrainingSession` and Estimators find them.

  Returns:
    A list of string tensors, the summaries.

  Raises:
    ValueError: a variable is no embedding variable, or was created in eager execution.
  """
  everything = ev.all_in_graph()
  groups = _groups(_tables(everything))
  result = []
  chosen = everything if variables is None else _checked(variables)
  for name, parts in _tables(chosen).items():
    with ops.name_scope("embedding_variable/%s/" % name):
      values = _values(parts)
    for what, value in values.items():
      # A name scope would append a number to the tag.
      result.append(summary.scalar("%s/%s" % (groups[name], what), value,
                                   collections=collections))
  return result
