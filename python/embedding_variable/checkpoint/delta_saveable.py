# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""How what changed in one embedding variable becomes tensors, and back.

For a variable `v` with a slot `Adagrad`, names of DeepRec's incremental checkpoints:

  v-sparse_incr_keys, -sparse_incr_values, -sparse_incr_versions, -sparse_incr_freqs,
  v-incr_partition_offset, and the same under v/Adagrad;

and ours: v-sparse_incr_erased_keys, keys that lost their row; v-sparse_incr_replaces, 1
when this is the whole table; v-sparse_incr_default_rows, what it was initialised with
then; v-sparse_incr_keys_filtered, -versions_filtered, -freqs_filtered, the keys whose
count by a `CounterFilter` changed.

Of a table that is spread over ranks each rank writes its own as a part,
v/part_2-sparse_incr_keys and so on by rank 2, and rank 0 also v-sparse_incr_placement:
key k was on rank placement[floormod(k, length)].
"""

from tensorflow.python.framework import constant_op
from tensorflow.python.framework import dtypes
from tensorflow.python.framework import ops
from tensorflow.python.ops import array_ops
from tensorflow.python.ops import math_ops
from tensorflow.python.training.saving import saveable_object

from embedding_variable.checkpoint import job
from embedding_variable.ops import delta_ops
from embedding_variable.ops import row_ops


class DeltaSaveable(saveable_object.SaveableObject):
  """SaveableObject of what changed in one embedding variable.

  Attributes:
    cut: int64 scalar, the moment of the export.
    spread: whether it is this rank's part of what all ranks save together.
  """

  def __init__(self, var, name, since, placement=None):
    """Builds the export.

    Args:
      var: the embedding variable; the slots that it has by now are saved.
      name: string that the tensors' names start with.
      since: int64 scalar, the cut that the changes begin at.
      placement: the ranks that hold the table if it is spread, as of `job.Job`.
    """
    self.spread = placement is not None
    with ops.colocate_with(None, ignore_existing=True), ops.device(var.device):
      specs = self._specs(var, part_name(name, placement), since)
      if self.spread:
        specs += placement_specs(name, placement)
    super(DeltaSaveable, self).__init__(var, specs, name)

  def _specs(self, var, name, since):
    slots = var.slot_columns
    # A slot that no update has used yet is created, so that it can be exported.
    ensured, _ = row_ops.read_rows(
        var.handle, constant_op.constant([], dtypes.int64), list(slots),
        list(slots.values()))
    with ops.control_dependencies([ensured]):
      changes = delta_ops.export_changes(var.handle, since, list(slots))
    self.cut = changes.cut
    keys = math_ops.cast(changes.keys, var.key_dtype)
    common = [
        ("sparse_incr_keys", keys),
        ("sparse_incr_versions", changes.versions),
        ("sparse_incr_freqs", changes.frequencies),
        ("incr_partition_offset", changes.partition_offset),
    ]
    tensors = [
        (name, "sparse_incr_erased_keys",
         math_ops.cast(changes.erased_keys, var.key_dtype)),
        (name, "sparse_incr_replaces", array_ops.reshape(changes.replaces, [1])),
        (name, "sparse_incr_default_rows", changes.default_rows),
        (name, "sparse_incr_keys_filtered",
         math_ops.cast(changes.filtered_keys, var.key_dtype)),
        (name, "sparse_incr_versions_filtered", changes.filtered_versions),
        (name, "sparse_incr_freqs_filtered", changes.filtered_frequencies),
    ]
    values = [(name, changes.values)]
    values += [("%s/%s" % (name, s), v) for s, v in zip(slots, changes.slots)]
    for prefix, rows in values:
      for suffix, tensor in common + [("sparse_incr_values", rows)]:
        tensors.append((prefix, suffix, tensor))
    return [
        saveable_object.SaveSpec(tensor, "", "%s-%s" % (prefix, suffix))
        for prefix, suffix, tensor in tensors
    ]

  def restore(self, restored_tensors, restored_shapes):
    raise NotImplementedError("a delta is restored by restore_delta")


def part_name(name, placement):
  """Returns what the names of this rank's tensors of a table start with."""
  return name if placement is None else "%s/part_%d" % (name, job.current().rank())


def placement_specs(name, placement):
  """Returns what rank 0 says of where a spread table's keys are, as a list."""
  if job.current().rank():
    return []
  return [saveable_object.SaveSpec(constant_op.constant(placement, dtypes.int64), "",
                                   name + "-sparse_incr_placement")]


def restore_delta(var, prefix, name):
  """Returns the op that applies a delta to a variable, or to this rank's part of it.

  Args:
    var: the embedding variable, or a part of one.
    prefix: string scalar, the delta's prefix.
    name: string, the variable's name in the checkpoint, with or without `/part_i`.
  """
  part, num_parts = 0, 1
  slice_info = var._get_save_slice_info()  # pylint: disable=protected-access
  if slice_info is not None:
    part, num_parts = slice_info.var_offset[0], slice_info.full_shape[0]
    suffix = "/part_%d" % part
    if name.endswith(suffix):
      name = name[:-len(suffix)]
  slots = var.slot_columns
  with ops.colocate_with(None, ignore_existing=True), ops.device(var.device):
    return delta_ops.apply_delta(
        var.handle, prefix, name, list(slots), list(slots.values()), part, num_parts,
        placement=job.current().placement(var) or (), rank=job.current().rank())
