# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Converts an embedding variable to tensors of a stock V2 checkpoint, and back.

tensor_names.py defines the tensors' names. A table is written by an op of its own
(saving.py): a snapshot of keys, values and slots, after the evictions of the variable's
options. Filtered keys, which an exact filter counts and has not admitted, are saved too
unless TF_EV_SAVE_FILTERED_FEATURES=0.
"""

import collections
import os

from embedding_variable import graph_state
from embedding_variable.checkpoint import job
from embedding_variable.checkpoint_format import tensor_names
from embedding_variable.ops import checkpoint_ops
from embedding_variable.ops import row_ops
from embedding_variable.tf_names import array_ops
from embedding_variable.tf_names import constant_op
from embedding_variable.tf_names import dtypes
from embedding_variable.tf_names import math_ops
from embedding_variable.tf_names import ops
from embedding_variable.tf_names import saveable_object
from embedding_variable.tf_names import training_util

_NUM_BUCKETS = 1000

# Attribute of a graph: handle names of tables that savers treated as not spread.
_SAVED_ALONE = "_embedding_variables_saved_alone"


class EmbeddingVariableSaveable(saveable_object.SaveableObject):
  """SaveableObject of one embedding variable (of one part of a partitioned one).

  Its specs are for savers other than `tf.train.Saver`: their tensors are whole columns
  of the table, computed on demand.
  """

  def __init__(self, var, name, with_slots=True, row_type="float32"):
    """Stores what to save.

    Args:
      var: the embedding variable.
      name: string, prefix of the tensors' names.
      with_slots: whether its existing slots are saved.
      row_type: one of `packed_rows.ROW_TYPES`, the type in which `saved_table` and deltas
        store values; columns are float32.
    """
    self._var, self.row_type = var, row_type
    self._slots = collections.OrderedDict(var.slot_columns if with_slots else ())
    self._columns = None
    self._placement = job.current().placement(var)
    if not self.spread:
      graph_state.of(var.graph).setdefault(_SAVED_ALONE, set()).add(var.handle.name)
    super(EmbeddingVariableSaveable, self).__init__(var, self._specs(name), name)

  @property
  def variable(self):
    """The embedding variable."""
    return self._var

  @property
  def slots(self):
    """Dict of slot column -> initial value, of the slots that are saved."""
    return self._slots

  @property
  def spread(self):
    """Whether other ranks hold rows of the table; all ranks save it together."""
    return self._placement is not None

  @property
  def placement(self):
    """The list of ranks that hold a spread table (`job.Job.placement`), otherwise None."""
    return self._placement

  def saved_table(self):
    """Returns the `checkpoint_ops.SavedTable`, for a spread table of this rank's part."""
    name = self.name
    if self.spread:
      name = tensor_names.part(name, job.current().rank())
    return checkpoint_ops.SavedTable(self._var.handle, name, self._var.key_dtype,
                                     self._slots, self.row_type)

  @property
  def _table_tensors(self):
    return tensor_names.table_tensors(self._var.table_options.value_dtype)

  def _specs(self, name):
    """Returns the SaveSpecs."""
    # Rows come last; stock savers write in this order.
    columns = sorted(tensor_names.COLUMNS, key=lambda c: c.name == tensor_names.VALUES)
    # DeepRec does not save default rows. Here they are saved, so that after a restore
    # new keys start as they would have without the interruption.
    wanted = [(None, t.name, tensor_names.tensor(name, t.name), t.dtype)
              for t in self._table_tensors]
    for slot in [None] + list(self._slots):
      prefix = name if slot is None else tensor_names.slot(name, slot)
      for column, dtype in columns:
        wanted.append((slot, column, tensor_names.tensor(prefix, column),
                       dtype or self._var.key_dtype))

    def spec(slot, column, tensor_name, dtype):
      return saveable_object.SaveSpec(
          lambda: self._column(slot, column), "", tensor_name, dtype=dtype,
          device=self._var.device)

    return [spec(*args) for args in wanted]

  def _column(self, slot, column):
    """Returns the tensor of a column. All columns are from one export."""
    if self._columns is None:
      with ops.name_scope("EvSave"), ops.device(self._var.device), \
          ops.colocate_with(None, ignore_existing=True), ops.control_dependencies(None):
        self._columns = self._export()
    if column == tensor_names.VALUES:
      column = (column, slot)
    return self._columns[column]

  def _export(self):
    var, names = self._var, list(self._slots)
    ensured = row_ops.ensure_slots(var.handle, names, list(self._slots.values()))
    with ops.control_dependencies([ensured] + evictions(var)):
      table = checkpoint_ops.export_table(
          var.handle, names, tensor_types=[t.dtype for t in self._table_tensors])
    filtered = table.filtered
    if not saves_filtered():
      no_keys = constant_op.constant([], dtypes.int64)
      filtered = checkpoint_ops.Filtered(
          no_keys, no_keys, no_keys,
          array_ops.zeros([_NUM_BUCKETS + 1], dtypes.int32))
    columns = {
        tensor_names.KEYS: math_ops.cast(table.keys, var.key_dtype),
        tensor_names.VERSIONS: table.versions,
        tensor_names.FREQS: table.frequencies,
        tensor_names.OFFSETS: table.partition_offset,
        tensor_names.KEYS_FILTERED: math_ops.cast(filtered.keys, var.key_dtype),
        tensor_names.VERSIONS_FILTERED: filtered.versions,
        tensor_names.FREQS_FILTERED: filtered.frequencies,
        tensor_names.OFFSETS_FILTERED: filtered.partition_offset,
        (tensor_names.VALUES, None): table.values,
    }
    columns.update(
        ((tensor_names.VALUES, n), rows) for n, rows in zip(names, table.slots))
    columns.update(
        (t.name, value) for t, value in zip(self._table_tensors, table.tensors))
    return columns

  def restore(self, restored_tensors, restored_shapes):
    """Returns the op that replaces the table's rows by those of the checkpoint.

    Only the source of the stock tensors is used. Which tensors exist depends on the
    checkpoint (a slot may be missing, the number of parts may differ), and a table is
    read in pieces.
    """
    del restored_shapes
    return restore(self._var, self._slots, _prefix_of(restored_tensors[0]),
                   self.name)


def evictions(var):
  """Returns the ops of the evictions that must run before a table is saved.

  Without a global step in the graph, nothing is evicted by step.

  Args:
    var: the embedding variable.
  """
  policy = var.policy
  steps_to_live, step = policy.steps_to_live, training_util.get_global_step()
  if step is None:
    steps_to_live = 0
  if not steps_to_live and policy.l2_weight_threshold <= 0:
    return []
  return [var.evict(steps_to_live, policy.l2_weight_threshold)]


def saves_filtered():
  """Returns whether filtered keys are saved (TF_EV_SAVE_FILTERED_FEATURES)."""
  return _flag("TF_EV_SAVE_FILTERED_FEATURES", "1")


def _flag(name, default="0"):
  """Returns whether an environment variable is true; read when a graph is built."""
  return os.environ.get(name, default).strip().lower() not in ("0", "false", "no", "off",
                                                               "")


def check_spread_is_known(variables):
  """Raises if a table became spread over ranks after its saver was created.

  Args:
    variables: embedding variables of one graph.

  Raises:
    ValueError: names the variable.
  """
  for var in variables:
    if var.handle.name not in graph_state.of(var.graph).get(_SAVED_ALONE, ()):
      continue
    if job.current().placement(var) is not None:
      raise ValueError(
          "embedding variable '%s' is spread over ranks by a lookup that was built after "
          "the Saver: make the Saver when the model is complete" % var.op.name)


def check_part_names(saveables):
  """Raises if a table would be stored under the name of a part of another one.

  A checkpoint does not record how many parts a table has; the first missing number ends
  them.

  Args:
    saveables: list of `SaveableObject`.

  Raises:
    ValueError: names both variables.
  """
  tables = {s.name: s for s in saveables if isinstance(s, EmbeddingVariableSaveable)}
  for name, item in sorted(tables.items()):
    count = job.current().size() if item.spread else 0
    info = item.variable._get_save_slice_info()  # pylint: disable=protected-access
    if info is not None:
      count = info.full_shape[0]
      name, _ = tensor_names.split_part(name)
    follows = tensor_names.part(name, count)
    if count and follows in tables and (
        tables[follows].variable._get_save_slice_info() is None):  # pylint: disable=protected-access
      raise ValueError(
          "embedding variable '%s' has the name that part %d of '%s' would have in a "
          "checkpoint, and would be restored as one: rename one of them" %
          (follows, count, name))


def restore(var, slots, prefix, tensor_name):
  """Returns the op that initialises a table and fills it from a checkpoint.

  Args:
    var: the embedding variable, or a part of one.
    slots: dict of slot column -> initial value, used if the checkpoint lacks the slot.
    prefix: string scalar, the checkpoint's prefix.
    tensor_name: string, the variable's name in the checkpoint, with or without its
      `/part_i`.
  """
  tensor_name, part, num_parts = part_of(var, tensor_name)
  # A restored session has not run the initializer, which makes the default rows.
  with ops.device(var.device), ops.control_dependencies([var.initializer]):
    return checkpoint_ops.restore_table(
        var.handle, prefix, tensor_name, list(slots), list(slots.values()), part,
        num_parts, placement=job.current().placement(var) or (),
        rank=job.current().rank(), custom_dim=restores_custom_dim(),
        reset_version=_flag("TF_EV_RESET_VERSION"))


def part_of(var, name):
  """Returns which part of a table a variable is.

  Args:
    var: the embedding variable, or a part of one.
    name: string, its name in the checkpoint, with or without its `/part_i`.

  Returns:
    (name without `/part_i`, number of the part, number of parts); for a variable
      without a partitioner, part 0 of 1.
  """
  info = var._get_save_slice_info()  # pylint: disable=protected-access
  if info is None:
    return name, 0, 1
  part = info.var_offset[0]
  table, _ = tensor_names.split_part(name)
  if tensor_names.part(table, part) != name:
    table = name
  return table, part, info.full_shape[0]


def restores_custom_dim():
  """Returns whether TF_EV_RESTORE_CUSTOM_DIM is true."""
  return _flag("TF_EV_RESTORE_CUSTOM_DIM")


def _prefix_of(tensor):
  """Returns the string scalar with the prefix of a restored tensor's checkpoint.

  Args:
    tensor: the tensor restored by stock code (`tf.train.Checkpoint`), or the prefix
      itself (`tf.train.Saver`, patched not to read a table whole).
  """
  if tensor.dtype == dtypes.string:
    return tensor
  while tensor.op.type != "RestoreV2":
    tensor = tensor.op.inputs[0]
  return tensor.op.inputs[0]
