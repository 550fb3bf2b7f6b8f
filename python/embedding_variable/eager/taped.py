# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Calls ops so that a `tf.GradientTape` calls their registered gradients, as a graph does.

TensorFlow's tape passes zeros for outputs that do not lead to the loss, and a stand-in for
the op that has neither a name nor a graph. The gradient of a lookup depends on both: it
needs the plan, of which a tape cannot make zeros, and a gradient of zeros would insert the
keys of a table that the loss does not use. So `run` hides the op from the tape, and records
it with its registered gradient, which gets an operation, or a `Call` in eager execution,
and None for outputs that do not lead to the loss.

The gradient of a whole `tf.function`, taken by a tape outside of it, is built as in a graph.
"""

from embedding_variable import graph_state
from embedding_variable.tf_names import array_ops
from embedding_variable.tf_names import context
from embedding_variable.tf_names import dtypes
from embedding_variable.tf_names import nest
from embedding_variable.tf_names import op_def_registry
from embedding_variable.tf_names import ops
from embedding_variable.tf_names import record

# Key by which `beside` of `run` is attached to an output.
_BESIDE = "_embedding_variable_beside"


def is_eager(tensor):
  """Returns whether a tensor has a value, as the handle of an eager table has."""
  return isinstance(tensor, ops.EagerTensor)


def unrecorded():
  """Returns a context in which tapes record nothing."""
  return record.stop_recording()


class Call(object):
  """An op that ran in eager execution, for gradient functions that take a `tf.Operation`.

  Attributes:
    type: string.
    name: string, the name that the op would have in a graph.
    device: string, the innermost device scope of the call.
    graph: None.
    inputs, outputs: lists of tensors.
  """

  graph = None

  def __init__(self, op_type, arguments, outputs, attributes):
    scope = context.context()
    self.type = op_type
    self.name = scope.scope_name + (attributes.get("name") or op_type)
    self.device = scope.device_name or ""
    self.inputs = nest.flatten(arguments)
    self.outputs = outputs
    self._attributes = dict(attributes)
    definition = op_def_registry.get(op_type)
    for argument, given in zip(definition.input_arg, arguments):
      if argument.number_attr:
        self._attributes[argument.number_attr] = len(given)
      tensors = nest.flatten(given)
      if argument.type_attr and tensors:
        self._attributes[argument.type_attr] = tensors[0].dtype

  def get_attr(self, name):
    if name not in self._attributes:
      raise ValueError("no attribute '%s'" % name)  # as tf.Operation does
    return self._attributes[name]


def run(function, *arguments, op_type=None, beside=None, **attributes):
  """Calls an op, and records its registered gradient if a tape records.

  Args:
    function: function of a generated module: creates or runs the op.
    *arguments: tensors and lists of tensors, the op's inputs.
    op_type: string, whose registered gradient is used; None: the type of the op.
    beside: anything that the gradient needs besides the inputs, for `beside`.
    **attributes: the op's name and attributes; of those with a default, the ones that the
      gradient reads.

  Returns:
    The result of `function`. Its floating-point tensors are differentiable; without any,
    its variants are, such as a message that stays in GPU memory.
  """
  with unrecorded():
    result = function(*arguments, **attributes)
  outputs = nest.flatten(result)
  eager = is_eager(outputs[0])
  if beside is not None:
    attach(outputs[0], _BESIDE, beside)
  if not record.could_possibly_record():
    return result
  if op_type is None:
    op_type = "".join(word.capitalize() for word in function.__name__.split("_"))
  op = (Call(op_type, arguments, outputs, attributes) if eager else outputs[0].op)
  numbers = ([k for k, output in enumerate(outputs) if output.dtype.is_floating] or
             [k for k, output in enumerate(outputs) if output.dtype == dtypes.variant])

  def gradient(grads):
    of_outputs = [None] * len(outputs)
    for k, grad in grads.items():
      of_outputs[numbers[k]] = grad
    found = _gradient_of(op_type)(op, *of_outputs)
    return list(found) if isinstance(found, (list, tuple)) else [found]

  shown = differentiable(op_type, [outputs[k] for k in numbers], nest.flatten(arguments),
                         gradient)
  by_number = dict(zip(numbers, shown))
  return nest.pack_sequence_as(
      result, [by_number.get(k, output) for k, output in enumerate(outputs)])


def _gradient_of(op_type):
  return ops._gradient_registry.lookup(op_type)  # pylint: disable=protected-access


def beside(op):
  """Returns what `run` got as `beside` for an op, or None.

  Args:
    op: operation or `Call`.
  """
  return attached(op.outputs[0], _BESIDE)


def differentiable(name, outputs, inputs, gradient):
  """Records ops that were called in `unrecorded`.

  Args:
    name: string, for the tape.
    outputs: list of tensors.
    inputs: list of tensors.
    gradient: function of a dict {number of an output: its gradient}, which contains the
      outputs that lead to the loss, at least one. It returns a list of gradients of the
      inputs, in which None stands for none.

  Returns:
    The outputs for the caller, which are other tensors of the same values.
  """
  if not record.could_possibly_record():
    return outputs
  with unrecorded():
    shown = [array_ops.identity(output) for output in outputs]
  connected = set()

  def backward(*grads):
    used = sorted(connected)
    connected.clear()
    return gradient({k: grads[k] for k in used})

  record.record_operation(name, outputs, inputs, backward)
  for k, output in enumerate(outputs):
    record.record_operation(name + "Output", [shown[k]], [output],
                            _marking(connected, k))
  return shown


def _marking(connected, number):
  """Returns the gradient of an identity, which notes that it was called."""

  def backward(grad):
    connected.add(number)
    return [grad]

  return backward


def attach(tensor, key, value):
  """Stores a value for a tensor of a graph or of eager execution.

  Args:
    tensor: tensor.
    key: string, of what is stored.
    value: anything.
  """
  if is_eager(tensor):
    setattr(tensor, key, value)
  else:
    graph_state.of(tensor.graph).setdefault(key, {})[tensor.name] = value


def attached(tensor, key):
  """Returns what `attach` stored for a tensor, or None."""
  if is_eager(tensor):
    return getattr(tensor, key, None)
  return graph_state.of(tensor.graph).get(key, {}).get(tensor.name)


def is_elsewhere(op):
  """Returns whether an op is in another graph than the ops that are created now.

  This holds for the gradient of a `tf.function`, taken by a tape around it.

  Args:
    op: operation or `Call`.
  """
  return op.graph not in (None, ops.get_default_graph())
