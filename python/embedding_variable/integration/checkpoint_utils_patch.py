# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Patch: `tf.train.init_from_checkpoint`, and warm starts of Estimators, which use it.

Why: stock code looks for one tensor that is named like the variable, and makes reading it
the initializer.
"""

import types

from tensorflow.python.framework import constant_op
from tensorflow.python.training import checkpoint_utils

from embedding_variable.checkpoint import saveable
from embedding_variable.integration import patching
from embedding_variable.variables import variable as ev

# pylint: disable=protected-access


def install():
  """Replaces two functions of `checkpoint_utils`."""
  patching.wrap(checkpoint_utils, "_init_from_checkpoint", _init_from_checkpoint)
  patching.wrap(checkpoint_utils, "_set_checkpoint_initializer",
                _set_checkpoint_initializer)


class _ReaderWithTables(object):
  """A checkpoint reader that also lists tables, under the variable's name."""

  def __init__(self, reader):
    self._reader = reader

  def get_variable_to_shape_map(self):
    shapes = dict(self._reader.get_variable_to_shape_map())
    # Stock code compares; the restore cuts or completes rows.
    any_dim = saveable.restores_custom_dim()
    for name, shape in list(shapes.items()):
      if not name.endswith("-values") or len(shape) != 2:
        continue
      variable = name[:-len("-values")]
      if variable + "-keys" not in shapes:
        continue
      shapes.setdefault(
          variable.split("/part_")[0], [None if any_dim else shape[1]])
    return shapes


def _init_from_checkpoint(stock):

  def init_from_checkpoint(ckpt_dir_or_file, assignment_map):
    # The stock code, reading through a reader that knows tables.
    names = dict(stock.__globals__)
    names["load_checkpoint"] = lambda path: _ReaderWithTables(
        checkpoint_utils.load_checkpoint(path))
    with_tables = types.FunctionType(stock.__code__, names, stock.__name__,
                                     stock.__defaults__, stock.__closure__)
    return with_tables(ckpt_dir_or_file, assignment_map)

  return init_from_checkpoint


def _set_checkpoint_initializer(stock):

  def set_checkpoint_initializer(variable, ckpt_file, tensor_name, slice_spec,
                                 *args, **kwargs):
    if not ev.is_embedding_variable(variable):
      return stock(variable, ckpt_file, tensor_name, slice_spec, *args, **kwargs)
    variable._initializer_op = saveable.restore(
        variable, variable.slot_columns, constant_op.constant(ckpt_file),
        tensor_name)

  return set_checkpoint_initializer
