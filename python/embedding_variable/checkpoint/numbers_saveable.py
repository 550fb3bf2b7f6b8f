# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Restores numbers that optimizers keep per variable from checkpoints with other names.

Such a number is a variable of one float. Its name and shape in a checkpoint depend on
the writer: an earlier version, DeepRec, or a job with another number of parts. It is
saved like any variable, and restored from the first of its names that the checkpoint
has.
"""

import collections

from embedding_variable import graph_state
from embedding_variable.ops import checkpoint_ops
from embedding_variable.tf_names import array_ops
from embedding_variable.tf_names import dtypes
from embedding_variable.tf_names import ops
from embedding_variable.tf_names import resource_variable_ops
from embedding_variable.tf_names import saveable_object
from embedding_variable.tf_names import saveable_object_util
from embedding_variable.tf_names import state_ops

# Attribute of a graph, its numbers: name of the tensor that savers get -> _Number.
_NUMBERS = "_embedding_variables_numbers"

_Number = collections.namedtuple("_Number", ["variable", "other_names"])


def register(variable, other_names):
  """Registers a variable as such a number. No-op for types other than float32.

  Args:
    variable: variable of one element, not a part of one.
    other_names: list of strings, its possible names in other checkpoints.
  """
  if variable.dtype.base_dtype != dtypes.float32:
    return
  numbers = graph_state.of(variable.graph).setdefault(_NUMBERS, {})
  numbers[_saved_tensor(variable).name] = _Number(variable, list(other_names))


def _saved_tensor(variable):
  """Returns the tensor that stock code passes to savers for a variable."""
  if resource_variable_ops.is_resource_variable(variable):
    return variable._graph_element  # pylint: disable=protected-access
  return ops.internal_convert_to_tensor(variable, as_ref=True)


def saveable_of(tensor, name, specs):
  """Returns the `NumberSaveable` for an argument of a saver, or None.

  If a user's dict gives the variable a name of its own, the argument is not a tensor,
  and the variable is restored only under that name.

  Args:
    tensor: anything.
    name: string, the saver's name for it.
    specs: function without arguments that returns the SaveSpecs of stock code.
  """
  if not isinstance(tensor, ops.Tensor):
    return None
  number = graph_state.of(tensor.graph).get(_NUMBERS, {}).get(tensor.name)
  if number is None:
    return None
  return NumberSaveable(number.variable, name, number.other_names, tensor, specs())


class NumberSaveable(saveable_object.SaveableObject):
  """SaveableObject of one number."""

  def __init__(self, variable, name, other_names, tensor, specs):
    super(NumberSaveable, self).__init__(tensor, specs, name)
    self._variable = variable
    self._names = [name]
    for other in other_names:
      if other not in self._names:
        self._names.append(other)

  def restore(self, restored_tensors, restored_shapes):
    """Returns the op that sets the number.

    Args:
      restored_tensors: list of one tensor: the checkpoint's prefix, or the number.
      restored_shapes: unused; a number gets the variable's shape.
    """
    del restored_shapes
    variable, number = self._variable, restored_tensors[0]
    with ops.colocate_with(None, ignore_existing=True), \
        ops.device(saveable_object_util.set_cpu0(variable.device)):
      if number.dtype == dtypes.string:
        number = checkpoint_ops.restore_number(number, self._names)
      number = array_ops.reshape(number, variable.shape)
    return state_ops.assign(variable, number).op
