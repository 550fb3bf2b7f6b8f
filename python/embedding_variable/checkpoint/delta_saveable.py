# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Saves and restores the changes of one embedding variable.

tensor_names.py defines the tensors' names. For a table that is spread over ranks, each
rank writes the changes of its own rows as a part of the table, and rank 0 also the
placement of keys.
"""

from embedding_variable.checkpoint import job
from embedding_variable.checkpoint import saveable
from embedding_variable.checkpoint_format import delta_chain
from embedding_variable.checkpoint_format import tensor_names
from embedding_variable.ops import delta_ops
from embedding_variable.ops import row_ops
from embedding_variable.tf_names import array_ops
from embedding_variable.tf_names import constant_op
from embedding_variable.tf_names import dtypes
from embedding_variable.tf_names import math_ops
from embedding_variable.tf_names import ops
from embedding_variable.tf_names import saveable_object


class DeltaSaveable(saveable_object.SaveableObject):
  """SaveableObject of the changes of one embedding variable.

  Attributes:
    cut: int64 scalar, the cut at which the export was made.
    spread: whether this is one rank's part of a table that all ranks save together.
  """

  def __init__(self, var, name, since, placement=None, slots=None, row_type="float32"):
    """Builds the export.

    Args:
      var: the embedding variable.
      name: string, prefix of the tensors' names.
      since: int64 scalar, the cut at which the changes start.
      placement: the ranks that hold the table if it is spread, as in `job.Job`.
      slots: dict of slot column -> initial value, of the slots to save; None: all that
        the variable has.
      row_type: one of `packed_rows.ROW_TYPES`, the type of the stored values.
    """
    slots = var.slot_columns if slots is None else slots
    self.spread = placement is not None
    with ops.colocate_with(None, ignore_existing=True), ops.device(var.device):
      specs = self._specs(var, part_name(name, placement), since, slots, row_type)
      if self.spread:
        specs += placement_specs(name, placement)
    super(DeltaSaveable, self).__init__(var, specs, name)

  def _specs(self, var, name, since, slots, row_type):
    table_tensors = tensor_names.table_tensors(var.table_options.value_dtype)
    ensured = row_ops.ensure_slots(var.handle, list(slots), list(slots.values()))
    with ops.control_dependencies([ensured]):
      changes = delta_ops.export_changes(
          var.handle, since, list(slots),
          tensor_types=[t.dtype for t in table_tensors[1:]])
    self.cut = changes.cut
    keys = math_ops.cast(changes.keys, var.key_dtype)
    common = [
        (tensor_names.DELTA_KEYS, keys),
        (tensor_names.DELTA_VERSIONS, changes.versions),
        (tensor_names.DELTA_FREQS, changes.frequencies),
        (tensor_names.DELTA_OFFSETS, changes.partition_offset),
    ]
    tensors = [
        (name, tensor_names.DELTA_ERASED_KEYS,
         math_ops.cast(changes.erased_keys, var.key_dtype)),
        (name, tensor_names.DELTA_REPLACES, array_ops.reshape(changes.replaces, [1])),
    ]
    tensors += [
        (name, t.delta, tensor) for t, tensor in zip(
            table_tensors, [changes.default_rows] + changes.tensors)
    ]
    tensors += [
        (name, tensor_names.DELTA_KEYS_FILTERED,
         math_ops.cast(changes.filtered_keys, var.key_dtype)),
        (name, tensor_names.DELTA_VERSIONS_FILTERED, changes.filtered_versions),
        (name, tensor_names.DELTA_FREQS_FILTERED, changes.filtered_frequencies),
    ]
    values = [(name, delta_ops.pack_rows(changes.keys, changes.values, row_type))]
    values += [(tensor_names.slot(name, s), v) for s, v in zip(slots, changes.slots)]
    for prefix, rows in values:
      for column, tensor in common + [(tensor_names.DELTA_VALUES, rows)]:
        tensors.append((prefix, column, tensor))
    return [
        saveable_object.SaveSpec(tensor, "", tensor_names.tensor(prefix, column))
        for prefix, column, tensor in tensors
    ]

  def restore(self, restored_tensors, restored_shapes):
    raise NotImplementedError("a delta is restored by restore_delta")


def part_name(name, placement):
  """Returns the name prefix of this rank's tensors of a table."""
  if placement is None:
    return name
  return tensor_names.part(name, job.current().rank())


def placement_specs(name, placement):
  """Returns the SaveSpecs for the placement of a spread table's keys; [] unless on rank
  0.
  """
  if job.current().rank():
    return []
  return [
      saveable_object.SaveSpec(
          constant_op.constant(placement, dtypes.int64), "",
          tensor_names.tensor(name, tensor_names.DELTA_PLACEMENT))
  ]


def info_spec(info):
  """Returns the SaveSpec of what a delta continues.

  Args:
    info: string scalar, the result of `delta_chain.info`.
  """
  return saveable_object.SaveSpec(array_ops.identity(info), "", delta_chain.INFO)


def restore_delta(var, prefix, name):
  """Returns the op that applies a delta to a variable, or to this rank's part of it.

  Args:
    var: the embedding variable, or a part of one.
    prefix: string scalar, the delta's prefix.
    name: string, the variable's name in the checkpoint, with or without `/part_i`.
  """
  name, part, num_parts = saveable.part_of(var, name)
  slots = var.slot_columns
  with ops.colocate_with(None, ignore_existing=True), ops.device(var.device):
    return delta_ops.apply_delta(
        var.handle, prefix, name, list(slots), list(slots.values()), part, num_parts,
        placement=job.current().placement(var) or (), rank=job.current().rank())
