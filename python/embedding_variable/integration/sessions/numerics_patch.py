# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Patch: `tf.add_check_numerics_ops` in graphs with embedding variables.

Why: it runs every op of the graph with float outputs. That includes ops that only
identify a variable or run occasionally: a read of the whole variable, exports, and the
optimizer's rows in a conditional, which it rejects.
"""

from tensorflow.python.eager import context
from tensorflow.python.framework import dtypes
from tensorflow.python.ops import numerics

from embedding_variable.integration import patching
from embedding_variable.tf_names import array_ops
from embedding_variable.tf_names import control_flow_ops
from embedding_variable.tf_names import ops
from embedding_variable.variables import variable as ev

_FLOATS = (dtypes.float16, dtypes.float32, dtypes.float64)

# Our ops that run in every step; the others are ignored.
_STEP_OPS = ("EvGather", "EvLookupSparse", "EvLookupSparseGrad",
             "EvLookupSparseWeightGrad", "EvPoolGivenRows")


def install():
  """Replaces the function."""
  patching.wrap(numerics, "add_check_numerics_ops", _add_check_numerics_ops)


def _is_of_no_step(op):
  """Returns whether a variable or its updates need the op, but no step runs it as it is."""
  if op.type == "ReadVariableOp":
    handle = op.inputs[0].op
    # The temporary rows of an update by an optimizer's own code have no value outside
    # of it.
    return handle.type == ev.HANDLE_OP or "generic_update/" in handle.name
  return op.type.startswith("Ev") and op.type not in _STEP_OPS


def _add_check_numerics_ops(stock):

  def add_check_numerics_ops(*args, **kwargs):
    if context.executing_eagerly() or not ev.all_in_graph():
      return stock(*args, **kwargs)
    checks = []
    for op in ops.get_default_graph().get_operations():
      floats = [x for x in op.outputs if x.dtype in _FLOATS]
      if not floats or _is_of_no_step(op):
        continue
      if op._get_control_flow_context() is not None:  # pylint: disable=protected-access
        raise ValueError(
            "tf.add_check_numerics_ops() does not work in a graph with tf.cond or "
            "tf.while_loop: '%s' is in one" % op.name)
      for output in floats:
        with ops.control_dependencies(checks[-1:]):
          checks.append(array_ops.check_numerics(
              output, message="%s:%d" % (op.name, output.value_index)))
    return control_flow_ops.group(*checks[-1:])

  return add_check_numerics_ops
