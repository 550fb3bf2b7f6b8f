# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Patch: `tf.train.init_from_checkpoint`, and warm starts of Estimators, which use it.

Why: stock code searches for one tensor with the variable's name and makes reading it
the initializer. A warm start processes each part of a partitioned table separately. And
the checkpoint that these functions and `tf.train.load_checkpoint` read may have an
interrupted replacement.
"""

import os
import types

from tensorflow.python.framework import constant_op
from tensorflow.python.lib.io import file_io
from tensorflow.python.platform import tf_logging as logging
from tensorflow.python.training import checkpoint_management
from tensorflow.python.training import checkpoint_utils
from tensorflow.python.training import warm_starting_util
from tensorflow.python.util import compat

from embedding_variable.checkpoint import saveable
from embedding_variable.checkpoint_format import delta_chain
from embedding_variable.checkpoint_format import interrupted
from embedding_variable.checkpoint_format import tensor_names
from embedding_variable.integration import patching
from embedding_variable.variables import variable as ev

# pylint: disable=protected-access


def install():
  """Replaces functions of `checkpoint_utils` and `warm_starting_util`."""
  patching.wrap(checkpoint_utils, "_get_checkpoint_filename", _get_checkpoint_filename)
  patching.wrap(checkpoint_utils, "_init_from_checkpoint", _init_from_checkpoint)
  patching.wrap(checkpoint_utils, "_set_checkpoint_initializer",
                _set_checkpoint_initializer)
  patching.wrap(warm_starting_util, "warm_start", _warm_start)


def _get_checkpoint_filename(stock):

  def get_checkpoint_filename(ckpt_dir_or_file, *args, **kwargs):
    found = stock(ckpt_dir_or_file, *args, **kwargs)
    return found and interrupted.readable(compat.as_str(found))

  return get_checkpoint_filename


def _base_of(name):
  """Returns the name of the table of which a name is a part, or None."""
  table, number = tensor_names.split_part(name)
  return None if number is None else table


class _Shapes(dict):
  """Shapes by name; tables are also found under the name of any part."""

  def __init__(self, shapes):
    super(_Shapes, self).__init__(shapes)
    self.tables = set()

  def __contains__(self, name):
    return super(_Shapes, self).__contains__(name) or _base_of(name) in self.tables

  def __missing__(self, name):
    if _base_of(name) not in self.tables:
      raise KeyError(name)
    return self[_base_of(name)]


class _ReaderWithTables(object):
  """A checkpoint reader that also lists tables, under the variable's name."""

  def __init__(self, reader):
    self._reader = reader

  def get_variable_to_shape_map(self):
    shapes = _Shapes(self._reader.get_variable_to_shape_map())
    # Stock code compares shapes; with custom dims the restore cuts or completes rows.
    any_dim = saveable.restores_custom_dim()
    for name, shape in list(shapes.items()):
      variable = tensor_names.without_column(name, tensor_names.VALUES)
      if variable is None or len(shape) != 2:
        continue
      if tensor_names.tensor(variable, tensor_names.KEYS) not in shapes:
        continue
      for table in filter(None, (variable, _base_of(variable))):
        shapes.tables.add(table)
        shapes.setdefault(table, [None if any_dim else shape[1]])
    return shapes


def _warm_start(stock):

  def warm_start(ckpt_to_initialize_from, vars_to_warm_start=".*",
                 var_name_to_vocab_info=None, var_name_to_prev_var_name=None, *args,
                 **kwargs):
    # Stock code uses the name without the part for other partitioned variables.
    previous = dict(var_name_to_prev_var_name or {})
    of_tables = set()
    for part in filter(ev.is_embedding_variable, ev.all_in_graph()):
      info = part._get_save_slice_info()
      if info is not None and info.full_name in previous:
        # One name per part, since stock code maps names to variables.
        previous.setdefault(part.op.name, tensor_names.part(previous[info.full_name],
                                                            info.var_offset[0]))
        of_tables.add(info.full_name)
    for name in of_tables:
      del previous[name]
    return stock(ckpt_to_initialize_from, vars_to_warm_start, var_name_to_vocab_info,
                 previous or None, *args, **kwargs)

  return warm_start


def _init_from_checkpoint(stock):

  def init_from_checkpoint(ckpt_dir_or_file, assignment_map, *args, **kwargs):
    ckpt_dir_or_file = os.fspath(ckpt_dir_or_file)
    # Stock code, with a reader that also lists tables.
    names = dict(stock.__globals__)
    names["load_checkpoint"] = lambda path: _ReaderWithTables(
        checkpoint_utils.load_checkpoint(path))
    with_tables = types.FunctionType(stock.__code__, names, stock.__name__,
                                     stock.__defaults__, stock.__closure__)
    _warn_of_deltas(ckpt_dir_or_file)
    return with_tables(ckpt_dir_or_file, assignment_map, *args, **kwargs)

  return init_from_checkpoint


def _warn_of_deltas(ckpt_dir_or_file):
  """Warns if a restore of the checkpoint would apply incremental checkpoints too."""
  path = compat.as_str(ckpt_dir_or_file)
  if file_io.is_directory(path):
    path = checkpoint_management.latest_checkpoint(path)
  if not path or not file_io.file_exists(interrupted.index_of(path)) or (
      not delta_chain.is_newest(path)):
    return
  deltas = delta_chain.count(path)
  if deltas:
    logging.warning(
        "init_from_checkpoint reads %s without its %d incremental checkpoints; "
        "tf.train.Saver().restore applies them", path, deltas)


def _set_checkpoint_initializer(stock):

  def set_checkpoint_initializer(variable, ckpt_file, tensor_name, slice_spec,
                                 *args, **kwargs):
    if not ev.is_embedding_variable(variable):
      return stock(variable, ckpt_file, tensor_name, slice_spec, *args, **kwargs)
    variable._initializer_op = saveable.restore(
        variable, variable.slot_columns, constant_op.constant(ckpt_file),
        tensor_name)

  return set_checkpoint_initializer
