# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Warns about optimizer slots that a save omits or a restore resets.

A Saver has the slots that a table had when the Saver was created. One created before
the optimizer saves none. For ordinary variables, stock TensorFlow reports what a later
restore does not find; a table's slots would silently start with their initial values.

The slots of a Saver are read from the attributes of its ops, so this works for imported
graphs too.
"""

from embedding_variable import graph_state
from embedding_variable.checkpoint_format import tensor_names
from embedding_variable.ops import handle_ops
from embedding_variable.tf_names import errors
from embedding_variable.tf_names import pywrap_tensorflow
from embedding_variable.tf_names import tf_logging as logging

# Attribute of a graph: the warnings it has logged.
_WARNED = "_embedding_variables_left_out_warned"


def warn_of_save(graph, saver_def, variables):
  """Warns about slots of tables that a Saver does not save.

  Args:
    graph: the `tf.Graph` of the session.
    saver_def: `SaverDef`.
    variables: embedding variables of the graph.
  """
  saved = {}
  for op in _ancestors(graph, saver_def.save_tensor_name, "EvSave"):
    names = list(op.get_attr("slot_names"))
    handles = [x for x in op.inputs if handle_ops.handle_op_of(x) is not None]
    for handle, count in zip(handles, op.get_attr("slot_counts")):
      saved[handle.name], names = _strings(names[:count]), names[count:]
  for var in variables:
    left_out = _missing(var, saved.get(var.handle.name))
    if left_out:
      _warn(graph, "embedding variable '%s': the Saver was made before the optimizer and "
            "does not save its slots %s. A restore starts them anew. Make the Saver when "
            "the training op exists" % (var.op.name, ", ".join(left_out)))


def warn_of_restore(graph, saver_def, variables, prefix):
  """Warns about slots of tables that a restore resets to their initial values.

  Args:
    graph: the `tf.Graph` of the session.
    saver_def: `SaverDef`.
    variables: embedding variables of the graph.
    prefix: string, the checkpoint's prefix.
  """
  if not any(var.slot_columns for var in variables):
    return
  restored = {}
  for op in _ancestors(graph, saver_def.restore_op_name, "EvRestore"):
    restored[op.inputs[0].name] = (_strings([op.get_attr("tensor_name")])[0],
                                   _strings(op.get_attr("slot_names")))
  stored = _tensors_of(prefix)
  if stored is None:
    return
  for var in variables:
    table, slots = restored.get(var.handle.name, (None, None))
    left_out = _missing(var, slots)
    if left_out:
      _warn(graph, "embedding variable '%s': the Saver was made before the optimizer and "
            "does not restore its slots %s; they start anew. Make the Saver when the "
            "training op exists" % (var.op.name, ", ".join(left_out)))
    if table is None or not _has(stored, table, None):
      continue
    absent = [s for s in slots if s in var.slot_columns and not _has(stored, table, s)]
    if absent:
      _warn(graph, "embedding variable '%s': checkpoint %s has no slots %s; they start "
            "with their initial values. It was saved with another optimizer, or by a "
            "Saver that was made before the optimizer" %
            (var.op.name, prefix, ", ".join(absent)))


def _missing(var, slots):
  """Returns the slots that a table has and a saver lacks; [] if it lacks the table."""
  return [] if slots is None else [s for s in var.slot_columns if s not in slots]


def _has(stored, table, slot):
  """Returns whether a checkpoint has the keys of a table or slot, whole or in parts."""
  for name in (table, tensor_names.part(table, 0)):
    prefix = name if slot is None else tensor_names.slot(name, slot)
    if tensor_names.tensor(prefix, tensor_names.KEYS) in stored:
      return True
  return False


def _tensors_of(prefix):
  """Returns the names of a checkpoint's tensors; None if it cannot be read as V2."""
  try:
    return pywrap_tensorflow.NewCheckpointReader(prefix).get_variable_to_shape_map()
  except (errors.OpError, RuntimeError):
    return None  # the restore itself reports it


def _ancestors(graph, name, op_type):
  """Returns the ops of a type that run before the op with this output name."""
  found, seen = [], set()
  left = [graph.get_operation_by_name(name.partition(":")[0])] if name else []
  while left:
    op = left.pop()
    if op in seen:
      continue
    seen.add(op)
    if op.type == op_type:
      found.append(op)
    left.extend(x.op for x in op.inputs)
    left.extend(op.control_inputs)
  return found


def _strings(values):
  return [v.decode("utf-8") if isinstance(v, bytes) else v for v in values]


def _warn(graph, message):
  """Logs a warning once per graph, since training saves repeatedly."""
  warned = graph_state.of(graph).setdefault(_WARNED, set())
  if message not in warned:
    warned.add(message)
    logging.warning("%s", message)
