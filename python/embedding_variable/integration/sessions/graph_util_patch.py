# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Patch: `tf.graph_util.convert_variables_to_constants` rejects embedding variables.

Why: it leaves unknown ops unchanged. The frozen graph would refer to a table that
nothing in it fills, and fail when it is run, perhaps in another program.
"""

from tensorflow.python.framework import graph_util_impl

from embedding_variable.integration import patching
from embedding_variable.variables import variable as ev


def install():
  """Replaces the function."""
  name = "convert_variables_to_constants"
  owner = patching.module_with(name, graph_util_impl.__name__,
                               "tensorflow.python.framework.convert_to_constants")
  patching.wrap(owner, name, _convert_variables_to_constants)


def _convert_variables_to_constants(stock):

  def convert_variables_to_constants(sess, input_graph_def, output_node_names,
                                     variable_names_whitelist=None,
                                     variable_names_blacklist=None, *args, **kwargs):
    if any(node.op == ev.HANDLE_OP for node in input_graph_def.node):
      wanted = graph_util_impl.extract_sub_graph(input_graph_def, output_node_names)
      tables = [
          node.name for node in wanted.node if node.op == ev.HANDLE_OP and
          (variable_names_whitelist is None or node.name in variable_names_whitelist) and
          node.name not in (variable_names_blacklist or ())
      ]
      if tables:
        raise ValueError(
            "convert_variables_to_constants: embedding variables cannot be constants: "
            "%s. Export a SavedModel, which holds their rows; or leave them variables "
            "(variable_names_blacklist) and restore them from a checkpoint" %
            ", ".join("'%s'" % name for name in sorted(tables)))
    return stock(sess, input_graph_def, output_node_names, variable_names_whitelist,
                 variable_names_blacklist, *args, **kwargs)

  return convert_variables_to_constants
