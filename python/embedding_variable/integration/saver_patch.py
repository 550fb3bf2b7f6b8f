# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Patch: `tf.train.Saver` saves and restores embedding variables.

Why: stock code turns a resource variable into one tensor that is read whole. The two
functions are called through the module by everything that makes savers. Restoring reads
the tensors of all saveables in one op; a table is left out there, because which of its
tensors a checkpoint has is known only when it is opened. And a user whose checkpoint will
not hold all of a table is told so.
"""

from tensorflow.python.ops import variables
from tensorflow.python.platform import tf_logging as logging
from tensorflow.python.training import saver
from tensorflow.python.training.saving import saveable_object_util

from embedding_variable.checkpoint import saveable
from embedding_variable.integration import patching
from embedding_variable.ops import handle_ops
from embedding_variable.optimizers import slot_view
from embedding_variable.variables import variable as ev


def install():
  """Replaces what makes saveables of variables, and the bulk restore."""
  patching.wrap(saveable_object_util, "op_list_to_dict", _op_list_to_dict)
  patching.wrap(saveable_object_util, "saveable_objects_for_op",
                _saveable_objects_for_op)
  for builder in (saver.BaseSaverBuilder, saver.BulkSaverBuilder):
    patching.wrap(builder, "bulk_restore", _bulk_restore)
  patching.wrap(saver.Saver, "save", _save)


def _op_list_to_dict(stock):

  def op_list_to_dict(op_list, convert_variable_to_tensor=True):
    if not isinstance(op_list, (list, tuple, set)):
      return stock(op_list, convert_variable_to_tensor)
    tables, others, slots = {}, [], []
    for var in op_list:
      if isinstance(var, slot_view.SlotView):
        slots.append(var)
        continue
      # A partitioned variable is saved part by part.
      parts = ev.parts_of(var) if isinstance(
          var, variables.PartitionedVariable) else None
      if ev.is_embedding_variable(var):
        parts = [var]
      if parts is None:
        others.append(var)
        continue
      for part in parts:
        if tables.setdefault(part.op.name, part) is not part:
          raise ValueError("At least two variables have the same name: %s" %
                           part.op.name)
    for slot in slots:
      if tables.get(slot.primary.op.name) is not slot.primary:
        raise ValueError(
            "%s is saved and restored with the embedding variable '%s', which is not "
            "among the variables given" % (slot.name, slot.primary.op.name))
    names_to_saveables = stock(others, convert_variable_to_tensor)
    for name, var in sorted(tables.items()):
      if name in names_to_saveables:
        raise ValueError("At least two variables have the same name: %s" % name)
      names_to_saveables[name] = var
    return names_to_saveables

  return op_list_to_dict


def _saveable_objects_for_op(stock):

  def saveable_objects_for_op(op, name):
    parts = None
    if ev.is_embedding_variable(op):
      parts = [op]
    elif isinstance(op, (list, tuple, variables.PartitionedVariable)):
      parts = ev.parts_of(op)
    if parts is None:
      for found in stock(op, name):
        yield found
      return
    for i, part in enumerate(parts):
      part_name = name
      if len(parts) > 1:
        part_name = "%s/part_%d" % (name, i)
      yield saveable.EmbeddingVariableSaveable(part, part_name)

  return saveable_objects_for_op


def _bulk_restore(stock):

  def bulk_restore(self, filename_tensor, saveables, preferred_shard,
                   restore_sequentially):
    is_table = lambda s: isinstance(s, saveable.EmbeddingVariableSaveable)
    others = [s for s in saveables if not is_table(s)]
    if len(others) == len(saveables):
      return stock(self, filename_tensor, saveables, preferred_shard,
                   restore_sequentially)
    restored = []
    if others:
      restored = list(stock(self, filename_tensor, others, preferred_shard,
                            restore_sequentially))
    result = []
    for item in saveables:
      count = len(item.specs)
      if is_table(item):
        result.extend([filename_tensor] * count)
      else:
        result.extend(restored[:count])
        del restored[:count]
    return result

  return bulk_restore


def _save(stock):

  def save(self, sess, *args, **kwargs):
    graph = getattr(sess, "graph", None)
    if graph is not None and not getattr(self, "_told_of_parts", False):
      with graph.as_default():
        spread = [v.op.name for v in ev.all_in_graph()
                  if ev.is_embedding_variable(v) and
                  handle_ops.is_spread_over_ranks(v.handle)]
      if spread:
        self._told_of_parts = True
        logging.warning(
            "Saver: %s spread over ranks, and this checkpoint holds only the rows of "
            "this rank. Either every rank saves to a path of its own and restores from "
            "it, at the same number of ranks, or sparse_operation_kit.dump writes whole "
            "tables", "embedding variable '%s' is" % spread[0] if len(spread) == 1
            else "embedding variables %s are" % ", ".join(map(repr, spread)))
    return stock(self, sess, *args, **kwargs)

  return save
