# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""How one embedding variable becomes tensors of a stock V2 checkpoint, and back.

The names are DeepRec's. For a variable `v` with a slot `Adagrad`:

  v-keys, v-values, v-versions, v-freqs, v-partition_offset, and the same of filtered
  keys (v-keys_filtered, v-versions_filtered, v-freqs_filtered,
  v-partition_filter_offset); then v/Adagrad-keys, v/Adagrad-values and so on.

All come from one export op: one frozen moment of keys, values and slots, after the
evictions that the variable's options ask for. The filtered keys are those that an exact
filter counts and has not admitted, unless TF_EV_SAVE_FILTERED_FEATURES=0. Ours alone is
v-default_rows, what new keys start with.
"""

import os

from tensorflow.python.framework import constant_op
from tensorflow.python.framework import dtypes
from tensorflow.python.framework import ops
from tensorflow.python.ops import array_ops
from tensorflow.python.ops import math_ops
from tensorflow.python.training import training_util
from tensorflow.python.training.saving import saveable_object

from embedding_variable.ops import checkpoint_ops
from embedding_variable.ops import row_ops

_NUM_BUCKETS = 1000


class EmbeddingVariableSaveable(saveable_object.SaveableObject):
  """SaveableObject of one embedding variable (of one part of a partitioned one)."""

  def __init__(self, var, name):
    """Builds the export.

    Args:
      var: the embedding variable; the slots that it has by now are saved.
      name: string that the tensors' names start with.
    """
    self._var = var
    self._slots = var.slot_columns
    with ops.name_scope("EvSave"), ops.colocate_with(None, ignore_existing=True), \
        ops.device(var.device):
      specs = self._specs(name)
    super(EmbeddingVariableSaveable, self).__init__(var, specs, name)

  def _specs(self, name):
    """Returns the SaveSpecs; their tensors are outputs of one export."""
    var, names = self._var, list(self._slots)
    no_keys = constant_op.constant([], dtypes.int64)
    # A slot that no update has used yet is created, so that it can be exported.
    ensured, _ = row_ops.read_rows(var.handle, no_keys, names,
                                   list(self._slots.values()))
    with ops.control_dependencies([ensured] + evictions(var)):
      table = checkpoint_ops.export_table(var.handle, names)
    filtered = table.filtered
    if not _saves_filtered():
      filtered = checkpoint_ops.Filtered(
          no_keys, no_keys, no_keys,
          array_ops.zeros([_NUM_BUCKETS + 1], dtypes.int32))
    keys = math_ops.cast(table.keys, var.key_dtype)
    common = [
        ("keys", keys),
        ("versions", table.versions),
        ("freqs", table.frequencies),
        ("partition_offset", table.partition_offset),
        ("keys_filtered", math_ops.cast(filtered.keys, var.key_dtype)),
        ("versions_filtered", filtered.versions),
        ("freqs_filtered", filtered.frequencies),
        ("partition_filter_offset", filtered.partition_offset),
    ]
    # Not among DeepRec's tensors: with it, keys to come start after a restore as
    # they would have without the interruption.
    specs = [
        saveable_object.SaveSpec(
            checkpoint_ops.default_rows(var.handle), "", name + "-default_rows")
    ]
    values = [(name, table.values)]
    values += [("%s/%s" % (name, s), v) for s, v in zip(names, table.slots)]
    for prefix, rows in values:
      for suffix, tensor in common + [("values", rows)]:
        specs.append(
            saveable_object.SaveSpec(tensor, "", "%s-%s" % (prefix, suffix)))
    return specs

  def restore(self, restored_tensors, restored_shapes):
    """Returns the op that replaces the table's rows by the checkpoint's.

    The stock tensors are not used, only where they come from: which of them exist is
    the checkpoint's business (a slot may be missing, the number of parts may differ),
    and a table is read piece by piece.
    """
    del restored_shapes
    return restore(self._var, self._slots, _prefix_of(restored_tensors[0]),
                   self.name)


def evictions(var):
  """Returns the ops that must run before a table is saved: its options' evictions.

  Nothing is evicted by step in a graph without a global step.

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


def _saves_filtered():
  """False when TF_EV_SAVE_FILTERED_FEATURES says no."""
  flag = os.environ.get("TF_EV_SAVE_FILTERED_FEATURES", "1")
  return flag.strip().lower() not in ("0", "false", "no", "off")


def restore(var, slots, prefix, tensor_name):
  """Returns the op that initialises a table and fills it from a checkpoint.

  Args:
    var: the embedding variable, or a part of one.
    slots: dict of slot column -> initial value; those that the checkpoint lacks start
      with it.
    prefix: string scalar, the checkpoint's prefix.
    tensor_name: string, the variable's name in the checkpoint, with or without its
      `/part_i`.
  """
  info = var._get_save_slice_info()  # pylint: disable=protected-access
  part, num_parts = 0, 1
  if info is not None:
    part, num_parts = info.var_offset[0], info.full_shape[0]
    suffix = "/part_%d" % part
    if tensor_name.endswith(suffix):
      tensor_name = tensor_name[:-len(suffix)]
  # A restored session has not run the initializer, which gives the default rows.
  with ops.device(var.device), ops.control_dependencies([var.initializer]):
    return checkpoint_ops.restore_table(
        var.handle, prefix, tensor_name, list(slots), list(slots.values()), part,
        num_parts)


def _prefix_of(tensor):
  """Returns the string scalar that a restored tensor's checkpoint is named by.

  Args:
    tensor: what stock code restored (`tf.train.Checkpoint`), or the prefix itself
      (`tf.train.Saver`, patched not to read a table whole).
  """
  if tensor.dtype == dtypes.string:
    return tensor
  while tensor.op.type != "RestoreV2":
    tensor = tensor.op.inputs[0]
  return tensor.op.inputs[0]
