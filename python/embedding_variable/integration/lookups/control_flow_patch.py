# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Patch: gradients of lookups inside v1 `tf.cond`, `tf.while_loop` and `tf.map_fn`.

Why: for the branch not taken, stock code creates a dense zero of the resource's shape,
which a table does not have. For unused outputs of a fused lookup it creates zeros,
which would insert their keys. For a loop it starts the accumulated gradient with one
row of zeros for index 0. A dense variable is unaffected by this row; in a table it is
key 0, which the script did not look up.

In control flow v2 the gradient of a conditional or a loop is a function, which returns
those dense zeros too. They are not replaced; instead, building the gradient raises an
error.
"""

from tensorflow.python.framework import dtypes
from tensorflow.python.ops import cond_v2
from tensorflow.python.ops import control_flow_state
from tensorflow.python.ops import while_v2

from embedding_variable.integration import patching
from embedding_variable.ops import handle_ops
from embedding_variable.ops import table_gradients
from embedding_variable.tf_names import array_ops
from embedding_variable.tf_names import control_flow_ops
from embedding_variable.tf_names import ops


def install():
  """Patches the creation of zeros, the loop's accumulator and the gradients of v2's
  functions.
  """
  # The second names are those of 2.x.
  name = patching.first_name(control_flow_state, "ZerosLikeOutsideLoop", "ZerosLike")
  patching.wrap(control_flow_state, name, _zeros_like_outside_loop)
  state = control_flow_state._ControlFlowState
  name = patching.first_name(state, "ZerosLike", "ZerosLikeV1WhileLoop")
  patching.wrap(state, name, _zeros_like_in_loop)
  patching.wrap(control_flow_ops.WhileContext,
                "AddBackpropIndexedSlicesAccumulator", _accumulator)
  patching.wrap(cond_v2, "_make_output_composite_tensors_match", _branches_match)
  if hasattr(cond_v2, "_create_zeros_for_none_grads"):  # 2.x
    patching.wrap(cond_v2, "_create_zeros_for_none_grads", _zeros_in_branches)
  patching.wrap(while_v2, "_create_grad_func", _gradient_of_loop)


# The op type whose gradient function accepts None for outputs that do not lead to the
# loss.
_TAKES_NONE = "EvLookupSparse"


def _zeros_like_outside_loop(stock):

  def zeros_like_outside_loop(op, index, *args, **kwargs):
    if op.type == _TAKES_NONE:
      return None
    handle_op = handle_ops.handle_op_of(op.outputs[index])
    if handle_op is None:
      return stock(op, index, *args, **kwargs)
    dim = handle_op.get_attr("shape").dim[-1].size

    def nothing(pivot):
      # Slices without keys, created where the branch is taken.
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
  """Returns zeros for unused outputs of an op in a loop; None for a plan."""

  def zeros_like(self, op, index, *args, **kwargs):
    return None if op.type == _TAKES_NONE else stock(self, op, index, *args, **kwargs)

  return zeros_like


def _accumulator(stock):

  def add_backprop_indexed_slices_accumulator(self, op, grad, *args, **kwargs):
    result = stock(self, op, grad, *args, **kwargs)
    if handle_ops.handle_op_of(op.inputs[0]) is None:
      return result
    # The loop's context has been exited; the first row is the start value.
    self.Exit()
    result = ops.IndexedSlices(result.values[1:], result.indices[1:],
                               result.dense_shape)
    self.Enter()
    return result

  return add_backprop_indexed_slices_accumulator


def _branches_match(stock):
  """Wraps the function that gives the gradients of all branches the same type."""

  def make_output_composite_tensors_match(op_type, branch_graphs, *args, **kwargs):
    _check_branches(branch_graphs[0]._forward_graph, branch_graphs)  # pylint: disable=protected-access
    return stock(op_type, branch_graphs, *args, **kwargs)

  return make_output_composite_tensors_match


def _zeros_in_branches(stock):
  """Wraps the function that gives zeros to branches that do not use an input."""

  def create_zeros_for_none_grads(forward_graphs, grad_graphs, *args, **kwargs):
    _check_branches(forward_graphs[0], grad_graphs)
    return stock(forward_graphs, grad_graphs, *args, **kwargs)

  return create_zeros_for_none_grads


def _check_branches(forward, branch_graphs):
  """Raises if one branch's gradient of a table has keys and another's has none."""
  results = zip(*[g.structured_outputs for g in branch_graphs])
  for resource, gradients in zip(forward.inputs, results):
    gradients = list(gradients)
    handle_op = handle_ops.handle_op_of(resource)
    if handle_op is None or all(g is None for g in gradients):
      continue
    if not all(table_gradients.has_no_dense_value(g) for g in gradients):
      _refuse_v2(handle_op, "a lookup in a branch of tf.cond, tf.case or "
                 "tf.switch_case", ", unless every branch looks up the variable")


def _gradient_of_loop(stock):
  """Wraps the function that creates the gradient of a loop."""

  def create_grad_func(ys, xs, grads, cond_graph, body_graph, name, while_op,
                       *args, **kwargs):
    for resource in while_op.inputs:
      handle_op = handle_ops.handle_op_of(resource)
      if handle_op is not None:
        _refuse_v2(handle_op, "a lookup in a tf.while_loop or tf.map_fn")
    return stock(ys, xs, grads, cond_graph, body_graph, name, while_op, *args, **kwargs)

  return create_grad_func


def _refuse_v2(handle_op, where, when=""):
  raise NotImplementedError(
      "embedding variable '%s': control flow v2 has no gradient of %s%s. Look the rows "
      "up before it and use them inside, or call tf.compat.v1.disable_control_flow_v2() "
      "and build it outside of a tf.function (tf.switch_case is always v2: use tf.case)" %
      (handle_op.name, where, when))
