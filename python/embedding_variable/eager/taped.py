# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Gradients of ops for a `tf.GradientTape`.

A tape calls an op's registered gradient with a stand-in for the op, and with zeros for
outputs that do not lead to the loss. A lookup has to know both: its gradient needs the
plan, of which a tape cannot make zeros, and a gradient of zeros would insert the keys of
a table that the loss does not use. So ops of eager tables are hidden from the tape, and
recorded with a gradient function of their own.

The gradient of a whole `tf.function`, taken by a tape outside of it, is built from the
registered gradients, as in a graph.
"""

from embedding_variable.tf_names import array_ops
from embedding_variable.tf_names import ops
from embedding_variable.tf_names import record

# Attribute of the indices of an eager gradient: (plan, number of the table in it).
_PLAN = "_embedding_variable_plan"

# Attribute of the indices of an eager gradient: the occurrences of each.
_COUNTS = "_embedding_variable_counts"


def is_eager(tensor):
  """Returns whether a tensor has a value, as the handle of an eager table has."""
  return isinstance(tensor, ops.EagerTensor)


def unrecorded():
  """Returns a context in which tapes record nothing."""
  return record.stop_recording()


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


def set_plan(indices, plan, table):
  """Notes the lookup from whose plan the indices of an eager gradient come."""
  setattr(indices, _PLAN, (plan, table))


def plan_of(indices):
  """Returns (plan, table) of an eager tensor as `set_plan` got them, or None."""
  return getattr(indices, _PLAN, None)


def set_counts(indices, counts):
  """Notes how often each index of an eager gradient occurred."""
  setattr(indices, _COUNTS, counts)


def counts_of(indices):
  """Returns the counts of an eager tensor as `set_counts` got them, or None."""
  return getattr(indices, _COUNTS, None)
