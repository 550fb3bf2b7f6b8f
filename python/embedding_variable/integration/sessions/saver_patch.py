# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Patch: `tf.train.Saver` saves and restores embedding variables.

Why: stock code turns a resource variable into one tensor that is read whole. All code
that creates savers calls the two functions that create saveables through the module, so
they can be patched. Stock code saves and restores the tensors of all saveables in one
op. Tables are excluded from that, since they are read and written in pieces, and since
the tensors of a checkpoint are known only when it is opened. The same holds for numbers
with several possible names. `tf.train.Checkpoint` has such methods of its own. Tables
that are spread over the ranks of a job are saved by all ranks together, when each calls
`Saver.save`.
"""

import inspect
import os

from tensorflow.core.protobuf import saver_pb2
from tensorflow.python.framework import errors
from tensorflow.python.lib.io import file_io
from tensorflow.python.ops import variables
from tensorflow.python.training import saver
from tensorflow.python.training.saving import saveable_object_util

from embedding_variable.checkpoint import delta_graph
from embedding_variable.checkpoint import left_out_slots
from embedding_variable.checkpoint import leftovers
from embedding_variable.checkpoint import numbers_saveable
from embedding_variable.checkpoint import saveable
from embedding_variable.checkpoint import saving
from embedding_variable.checkpoint import together
from embedding_variable.checkpoint_format import tensor_names
from embedding_variable.integration import patching
from embedding_variable.optimizers import slot_view
from embedding_variable.tf_names import functional_saver
from embedding_variable.tf_names import ops
from embedding_variable.variables import variable as ev


def install():
  """Replaces the functions that create saveables of variables, and that save and
  restore.
  """
  patching.wrap(saveable_object_util, "op_list_to_dict", _op_list_to_dict)
  patching.wrap(saveable_object_util, "saveable_objects_for_op",
                _saveable_objects_for_op)
  for builder in (saver.BaseSaverBuilder, saver.BulkSaverBuilder):
    patching.wrap(builder, "bulk_restore", _bulk_restore)
  patching.wrap(saver.BaseSaverBuilder, "save_op", _save_op)
  patching.wrap(saver.Saver, "save", _save)
  patching.wrap(saver.Saver, "restore", _restore)
  single = getattr(functional_saver, "_SingleDeviceSaver", None)
  # In 2.x tf.train.Checkpoint does not save by saveables; there a variable raises.
  if single and "saveable_objects" in inspect.signature(single).parameters:
    patching.wrap(single, "save", _object_based_save)
    patching.wrap(single, "restore", _object_based_restore)


def _op_list_to_dict(stock):

  def op_list_to_dict(op_list, convert_variable_to_tensor=True, *args, **kwargs):
    if not isinstance(op_list, (list, tuple, set)):
      return stock(op_list, convert_variable_to_tensor, *args, **kwargs)
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
    names_to_saveables = stock(others, convert_variable_to_tensor, *args, **kwargs)
    for name, var in sorted(tables.items()):
      if name in names_to_saveables:
        raise ValueError("At least two variables have the same name: %s" % name)
      names_to_saveables[name] = var
    return names_to_saveables

  return op_list_to_dict


def _saveable_objects_for_op(stock):

  def saveable_objects_for_op(op, name, *args, **kwargs):
    parts = None
    if ev.is_embedding_variable(op):
      parts = [op]
    elif isinstance(op, (list, tuple, variables.PartitionedVariable)):
      parts = ev.parts_of(op)
    if parts is None:
      number = numbers_saveable.saveable_of(
          op, name, lambda: [spec for s in stock(op, name, *args, **kwargs)
                             for spec in s.specs])
      for found in stock(op, name, *args, **kwargs) if number is None else [number]:
        yield found
      return
    for i, part in enumerate(parts):
      part_name = name
      if len(parts) > 1:
        part_name = tensor_names.part(name, i)
      yield saveable.EmbeddingVariableSaveable(part, part_name)

  return saveable_objects_for_op


def _is_table(item):
  return isinstance(item, saveable.EmbeddingVariableSaveable)


def _reads_itself(item):
  """Returns whether a saveable takes a checkpoint's prefix instead of tensors."""
  return _is_table(item) or isinstance(item, numbers_saveable.NumberSaveable)


def _save_op(stock):

  def save_op(self, filename_tensor, saveables, *args, **kwargs):
    tables = [s for s in saveables if _is_table(s)]
    if not tables:
      if saving.spread_tables(saveables):
        return saving.save_of_ranks(
            filename_tensor, lambda prefix: stock(self, prefix, saveables, *args, **kwargs))
      return stock(self, filename_tensor, saveables, *args, **kwargs)
    if self._write_version != saver_pb2.SaverDef.V2:  # pylint: disable=protected-access
      raise ValueError(
          "embedding variable '%s' can be saved in checkpoints of version V2 only: "
          "leave Saver's write_version alone. In place of "
          "tf.contrib.framework.assign_from_checkpoint_fn, which makes a Saver of version "
          "V1 only to restore, call tf.train.Saver(var_list).restore" % tables[0].name)
    return saving.save(filename_tensor, saveables,
                       lambda prefix, rest: stock(self, prefix, rest, *args, **kwargs))

  return save_op


def _object_based_save(stock):

  def save(self, file_prefix, *args, **kwargs):
    saveables = self._saveable_objects  # pylint: disable=protected-access
    if not any(map(_is_table, saveables)):
      return stock(self, file_prefix, *args, **kwargs)
    for item in saving.spread_tables(saveables):
      raise ValueError(
          "embedding variable '%s' is spread over ranks, which all save it together by "
          "tf.train.Saver; tf.train.Checkpoint cannot save it" % item.name)
    return saving.save(
        file_prefix, saveables,
        lambda prefix, rest: stock(type(self)(rest), prefix, *args, **kwargs))

  return save


def _object_based_restore(stock):

  def restore(self, file_prefix, *args, **kwargs):
    saveables = self._saveable_objects  # pylint: disable=protected-access
    others = [s for s in saveables if not _is_table(s)]
    if len(others) == len(saveables):
      return stock(self, file_prefix, *args, **kwargs)
    restores = stock(type(self)(others), file_prefix, *args, **kwargs) if others else {}
    file_prefix = ops.convert_to_tensor(file_prefix)
    for item in saveables:
      if _is_table(item):
        restores[item.name] = item.restore([file_prefix] * len(item.specs), None)
    return restores

  return restore


def _bulk_restore(stock):

  def bulk_restore(self, filename_tensor, saveables, preferred_shard,
                   restore_sequentially, *args, **kwargs):
    # Only stock code reads checkpoints of version 1.
    if self._write_version != saver_pb2.SaverDef.V2:  # pylint: disable=protected-access
      return stock(self, filename_tensor, saveables, preferred_shard,
                   restore_sequentially, *args, **kwargs)
    others = [s for s in saveables if not _reads_itself(s)]
    if len(others) == len(saveables):
      return stock(self, filename_tensor, saveables, preferred_shard,
                   restore_sequentially, *args, **kwargs)
    restored = []
    if others:
      restored = list(stock(self, filename_tensor, others, preferred_shard,
                            restore_sequentially, *args, **kwargs))
    result = []
    for item in saveables:
      count = len(item.specs)
      if _reads_itself(item):
        result.extend([filename_tensor] * count)
      else:
        result.extend(restored[:count])
        del restored[:count]
    return result

  return bulk_restore


def _save(stock):

  def save(self, sess, save_path, global_step=None, *args, **kwargs):
    tables = _tables_of(sess)
    if not tables:
      return stock(self, sess, save_path, global_step, *args, **kwargs)
    saveable.check_spread_is_known(tables)
    delta_graph.check_built_by_this_rank(sess.graph, self.saver_def, tables)
    if self.saver_def is not None:
      left_out_slots.warn_of_save(sess.graph, self.saver_def, tables)
    _make_folder_of(save_path)
    if not saving.is_together(sess.graph, self.saver_def):
      with leftovers.removed(save_path):
        return stock(self, sess, save_path, global_step, *args, **kwargs)
    path = together.checkpoint_path(self, sess, save_path, global_step)

    def save_part():
      sess.run(self.saver_def.save_tensor_name,
               {self.saver_def.filename_tensor_name: path})
      return path

    def save_all():
      return stock(self, sess, save_path, global_step, *args, **kwargs)

    followed = delta_graph.has(sess.graph, self.saver_def, "save")
    return together.save(save_path, path + (" and incremental ones" if followed else ""),
                         save_part, save_all)

  return save


def _restore(stock):

  def restore(self, sess, save_path, *args, **kwargs):
    tables = _tables_of(sess)
    if tables:
      saveable.check_spread_is_known(tables)
      delta_graph.check_built_by_this_rank(sess.graph, self.saver_def, tables)
      if save_path and self.saver_def is not None:
        left_out_slots.warn_of_restore(sess.graph, self.saver_def, tables, save_path)
    return stock(self, sess, save_path, *args, **kwargs)

  return restore


def _make_folder_of(save_path):
  """Creates the folder of a checkpoint, which otherwise several ops would create at
  once.
  """
  try:
    file_io.recursive_create_dir(os.path.dirname(save_path) or ".")
  except errors.OpError:
    # The save reports which file cannot be written.
    pass


def _tables_of(session):
  """Returns the embedding variables of a session's graph."""
  graph = getattr(session, "graph", None)
  if graph is None:
    return []
  with graph.as_default():
    return [v for v in ev.all_in_graph() if ev.is_embedding_variable(v)]
