# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Patch: gradients of lookups inside v1 `tf.cond`, `tf.while_loop` and `tf.map_fn`.

Why: for the branch that was not taken, stock code makes a dense zero of the resource's
shape, which a table does not have, and for unused outputs of a fused lookup zeros that
would insert their keys. For a loop it starts the accumulated gradient with
one row of zeros for index 0, harmless for a dense variable, but here the key 0 that
the script did not look up.
"""

from tensorflow.python.framework import dtypes
from tensorflow.python.framework import ops
from tensorflow.python.ops import array_ops
from tensorflow.python.ops import control_flow_ops
from tensorflow.python.ops import control_flow_state

from embedding_variable.integration import patching
from embedding_variable.variables import variable as ev

# Ops that hand a resource on.
_PASSING = ("Switch", "RefSwitch", "Identity", "Enter", "RefEnter", "Exit", "Merge",
            "NextIteration")


def install():
  """Replaces `ZerosLikeOutsideLoop` and the loop's accumulator of sparse gradients."""
  patching.wrap(control_flow_state, "ZerosLikeOutsideLoop",
                _zeros_like_outside_loop)
  patching.wrap(control_flow_state._ControlFlowState, "ZerosLike",
                _zeros_like_in_loop)
  patching.wrap(control_flow_ops.WhileContext,
                "AddBackpropIndexedSlicesAccumulator", _accumulator)


# Its gradient function takes None for an output that does not lead to the loss.
_TAKES_NONE = "EvLookupSparse"


def handle_op_of(tensor):
  """Returns the EvHandle op that a resource tensor leads back to, or None."""
  while tensor.dtype == dtypes.resource:
    if tensor.op.type == ev.HANDLE_OP:
      return tensor.op
    if tensor.op.type not in _PASSING:
      return None
    tensor = tensor.op.inputs[0]
  return None


def _zeros_like_outside_loop(stock):

  def zeros_like_outside_loop(op, index):
    if op.type == _TAKES_NONE:
      return None
    handle_op = handle_op_of(op.outputs[index])
    if handle_op is None:
      return stock(op, index)
    dim = handle_op.get_attr("shape").dim[-1].size

    def nothing(pivot):
      # Nothing to add to: slices of no key, made where the branch is taken.
      with ops.control_dependencies(pivot):
        return ops.IndexedSlices(
            array_ops.zeros([0, dim]), array_ops.zeros([0], dtypes.int64))

    context = op._get_control_flow_context()  # pylint: disable=protected-access
    if op.type != "Switch" or context is None:
      return nothing([])
    other = control_flow_ops.switch(op.inputs[0], context.pred)[1 - context.branch]
    return nothing([array_ops.identity(other)])

  return zeros_like_outside_loop


def _zeros_like_in_loop(stock):
  """Zeros for unused outputs of an op in a loop; there are none of a plan."""

  def zeros_like(self, op, index):
    return None if op.type == _TAKES_NONE else stock(self, op, index)

  return zeros_like


def _accumulator(stock):

  def add_backprop_indexed_slices_accumulator(self, op, grad):
    result = stock(self, op, grad)
    if handle_op_of(op.inputs[0]) is None:
      return result
    # The loop's context has been left by now; the first row is the start value.
    self.Exit()
    result = ops.IndexedSlices(result.values[1:], result.indices[1:],
                               result.dense_shape)
    self.Enter()
    return result

  return add_backprop_indexed_slices_accumulator
