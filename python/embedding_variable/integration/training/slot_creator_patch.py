# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Patch: slots that a `tf.train` optimizer creates for an embedding variable.

Why: stock code would create a dense variable of the variable's shape. The base class
calls these three functions through the module, so replacing them reaches every
optimizer. And stock code treats each slot of a partitioned variable as a slice of the
variable's shape, even a slot that is a single number, which then cannot be saved.
"""

import contextlib

from tensorflow.python.framework import tensor_shape
from tensorflow.python.training import slot_creator

from embedding_variable.integration import patching
from embedding_variable.optimizers import slot_view
from embedding_variable.variables import variable as ev


def install():
  """Replaces `slot_creator.create_*`."""
  patching.wrap(slot_creator, "create_slot", _create_slot)
  patching.wrap(slot_creator, "create_slot_with_initializer",
                _create_slot_with_initializer)
  patching.wrap(slot_creator, "create_zeros_slot", _create_zeros_slot)


def _is_column(primary, shape):
  """Returns whether a slot of this shape is a column of the table's rows."""
  if slot_view.wants_ordinary():
    return False
  if slot_view.wants_per_row():
    return True
  shape = tensor_shape.as_shape(shape)
  if shape.ndims == 1:
    return shape.is_compatible_with([primary.dim])
  # The shape of a table of fixed size includes all its rows.
  return (shape.ndims == 2 and primary.shape.ndims == 2 and
          shape.is_compatible_with(primary.shape))


@contextlib.contextmanager
def _unsliced(primary):
  """Context in which the variable is not marked as a part: a slot of another shape is
  not sliced.
  """
  slice_info = primary._save_slice_info  # pylint: disable=protected-access
  primary._save_slice_info = None  # pylint: disable=protected-access
  try:
    yield
  finally:
    primary._save_slice_info = slice_info  # pylint: disable=protected-access


def _create_slot(stock):
  """Creates a slot that starts with a value."""

  def create_slot(primary, val, name, colocate_with_primary=True,
                  *args, **kwargs):
    if not ev.is_embedding_variable(primary):
      if slot_view.wants_ordinary():
        with _unsliced(primary):
          return stock(primary, val, name, colocate_with_primary, *args, **kwargs)
      return stock(primary, val, name, colocate_with_primary, *args, **kwargs)
    if not _is_column(primary, val.get_shape()):
      with _unsliced(primary):
        return stock(primary, val, name, colocate_with_primary, *args, **kwargs)
    return slot_view.create(primary, name,
                            slot_view.constant_of(primary, val, name))

  return create_slot


def _create_slot_with_initializer(stock):
  """Creates a slot that starts with an initializer."""

  def create_slot_with_initializer(primary, initializer, shape, dtype, name,
                                   colocate_with_primary=True,
                                   *args, **kwargs):
    if not ev.is_embedding_variable(primary) and not slot_view.wants_per_row():
      return stock(primary, initializer, shape, dtype, name, colocate_with_primary,
                   *args, **kwargs)
    if not ev.is_embedding_variable(primary) or not _is_column(primary, shape):
      with _unsliced(primary):
        return stock(primary, initializer, shape, dtype, name,
                     colocate_with_primary, *args, **kwargs)
    return slot_view.create(primary, name,
                            slot_view.constant_of(primary, initializer, name))

  return create_slot_with_initializer


def _create_zeros_slot(stock):
  """Creates a slot that starts with zeros."""

  def create_zeros_slot(primary, name, dtype=None, colocate_with_primary=True,
                        *args, **kwargs):
    if not ev.is_embedding_variable(primary):
      return stock(primary, name, dtype, colocate_with_primary, *args, **kwargs)
    return slot_view.create(primary, name, 0.0)

  return create_zeros_slot
