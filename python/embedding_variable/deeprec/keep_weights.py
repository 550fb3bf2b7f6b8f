# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Weights in float32 for layers that compute in bfloat16.

  with keep_weights.keep_weights(tf.variable_scope("tower")):
    net = tf.layers.dense(tf.cast(net, tf.bfloat16), 64)
  net = tf.cast(net, tf.float32)

A variable that a layer requests as bfloat16 is created as float32, and the layer gets it
cast. So checkpoints, gradients and optimizers see float32.
"""

from embedding_variable.tf_names import dtypes
from embedding_variable.tf_names import kernels
from embedding_variable.tf_names import math_ops
from embedding_variable.tf_names import ops


# Types of attributes by which TensorFlow chooses a kernel.
_TYPE = "type"


def keep_weights(scope, dtype=dtypes.float32):
  """Makes the variables of a scope `dtype` where bfloat16 is requested.

  A custom getter that the scope has is called too. Scopes inside inherit it.

  Args:
    scope: a `tf.variable_scope(...)` that was not entered yet.
    dtype: dtype of the variables.

  Returns:
    `scope`.
  """
  dtype = dtypes.as_dtype(dtype)
  given = scope._custom_getter  # pylint: disable=protected-access

  def custom_getter(getter, name, *args, **kwargs):
    is_low = dtypes.as_dtype(kwargs.get("dtype") or dtypes.float32) == dtypes.bfloat16
    if is_low:
      kwargs["dtype"] = dtype
    if given is None:
      variable = getter(name, *args, **kwargs)
    else:
      variable = given(getter, name, *args, **kwargs)
    if not is_low or dtype == dtypes.bfloat16:
      return variable
    # A variable's own name has ":0".
    op_name = variable.name.split(":")[0]
    with ops.name_scope(None):
      return math_ops.cast(ops.convert_to_tensor(variable), dtypes.bfloat16,
                           name=op_name + "/cast")

  scope._custom_getter = custom_getter  # pylint: disable=protected-access
  return scope


def check(graph):
  """Raises if an op of the graph has no kernel for bfloat16.

  Cost: a look at every op, and one at the kernels of each type of op.

  Raises:
    NotImplementedError: names the op and a remedy.
  """
  known = {}
  for op in graph.get_operations():
    if not any(t.dtype.base_dtype == dtypes.bfloat16
               for t in list(op.inputs) + list(op.outputs)):
      continue
    attributes = [a.name for a in op.op_def.attr if a.type == _TYPE and
                  op.node_def.attr[a.name].type == dtypes.bfloat16.as_datatype_enum]
    for attribute in attributes:
      key = (op.type, attribute)
      if key not in known:
        known[key] = _has_kernel(*key)
      if not known[key]:
        raise NotImplementedError(
            "op '%s': TensorFlow has no kernel of %s for bfloat16. Cast its input to "
            "tf.float32, or train without bfloat16" % (op.name, op.type))


def _has_kernel(op_type, attribute):
  """Returns whether any device has a kernel with `attribute` = bfloat16."""
  found = kernels.get_registered_kernels_for_op(op_type).kernel
  if not found:
    # A function, or an op that the runtime replaces.
    return True
  for kernel in found:
    constraints = [c for c in kernel.constraint if c.name == attribute]
    if all(dtypes.bfloat16.as_datatype_enum in c.allowed_values.list.type
           for c in constraints):
      return True
  return False
