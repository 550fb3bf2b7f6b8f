# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Size and growth of embedding variables for TensorBoard."""

from tensorflow.python.framework import dtypes
from tensorflow.python.framework import ops
from tensorflow.python.ops import array_ops
from tensorflow.python.ops import control_flow_ops
from tensorflow.python.ops import math_ops
from tensorflow.python.ops import resource_variable_ops
from tensorflow.python.ops import state_ops
from tensorflow.python.summary import summary

from embedding_variable.variables import variable as ev


def summaries(variables=None, collections=None):
  """Adds scalars about embedding variables to the default graph.

  For each variable `v`: `embedding_variable/v/rows`, `.../bytes` (index and rows), and
  `.../new_rows`, the rows that were inserted since the summaries were evaluated before
  (with one evaluation each step: new rows per step).

  Args:
    variables: list of embedding variables, or None for all of the graph.
    collections: list of collections, or None for SUMMARIES, where
      `tf.summary.merge_all`, `MonitoredTrainingSession` and Estimators find them.

  Returns:
    A list of string tensors, the summaries.
  """
  if variables is None:
    variables = ev.all_in_graph()
  result = []
  for var in variables:
    name = var.op.name
    with ops.name_scope("embedding_variable/%s/" % name):
      rows, index_bytes, row_bytes, inserted = array_ops.unstack(
          math_ops.cast(var.stats(), dtypes.int64), 4)
      # In no collection: no checkpoint wants it, and no initializer need be run.
      before = resource_variable_ops.ResourceVariable(
          initial_value=lambda: array_ops.zeros([], dtypes.int64), trainable=False,
          collections=[], name="inserted_before", dtype=dtypes.int64)
      last = control_flow_ops.cond(before.is_initialized(), before.read_value,
                                   lambda: array_ops.zeros([], dtypes.int64))
      new_rows = inserted - last
      with ops.control_dependencies([new_rows]):
        kept = state_ops.assign(before, inserted)
      with ops.control_dependencies([kept]):
        new_rows = array_ops.identity(new_rows)
    for what, value in (("rows", rows), ("bytes", index_bytes + row_bytes),
                        ("new_rows", new_rows)):
      # TensorBoard's tag is the summary's name, which a name scope would number.
      result.append(
          summary.scalar("embedding_variable/%s/%s" % (name, what), value,
                         collections=collections))
  return result
