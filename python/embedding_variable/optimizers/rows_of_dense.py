# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Updates of some rows of a dense variable, for optimizers without a stock kernel."""

from embedding_variable.tf_names import ops
from embedding_variable.tf_names import array_ops
from embedding_variable.tf_names import control_flow_ops
from embedding_variable.tf_names import state_ops


def update_rows(variables, indices, function):
  """Returns the op that replaces rows by a function of them.

  Works on resource variables and reference variables.

  Args:
    variables: list of variables of one shape.
    indices: `[U]`, unique.
    function: maps the list of rows `[U, ...]` to their new values.
  """
  rows = [array_ops.gather(v, indices) for v in variables]
  new_rows = function(rows)
  # A read may share the variable's memory, so everything is computed before any write.
  with ops.control_dependencies(new_rows):
    return control_flow_ops.group(*[
        state_ops.scatter_update(v, indices, r)
        for v, r in zip(variables, new_rows)
    ])


def update_all(variables, function):
  """Returns the op that replaces whole variables by a function of them.

  Args:
    variables: list of variables.
    function: maps the list of their values to the new ones.
  """
  values = [array_ops.identity(v) for v in variables]
  new_values = function(values)
  # Computes everything before any write, as above.
  with ops.control_dependencies(new_values):
    return control_flow_ops.group(
        *[state_ops.assign(v, n) for v, n in zip(variables, new_values)])
