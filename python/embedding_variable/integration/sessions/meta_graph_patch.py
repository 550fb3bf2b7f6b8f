# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Patch: restores embedding variables from an imported meta graph or SavedModel.

Why: collections store variables as `VariableDef`, from which stock code creates a dense
resource variable. The definition has no field for the kind of variable; the handle's op
in the graph identifies it.
"""

from tensorflow.core.framework import variable_pb2
from tensorflow.python.ops import resource_variable_ops

from embedding_variable.integration import patching
from embedding_variable.tf_names import ops
from embedding_variable.variables import variable as ev


def install():
  """Replaces `ResourceVariable.from_proto`; registers the package's collection."""
  patching.wrap(resource_variable_ops.ResourceVariable, "from_proto", _from_proto)
  ops.register_proto_function(
      ev.EMBEDDING_VARIABLES,
      proto_type=variable_pb2.VariableDef,
      to_proto=lambda v, export_scope=None: v.to_proto(export_scope),
      from_proto=ev.EmbeddingVariable.from_definition)


def _from_proto(stock):

  def from_proto(variable_def, import_scope=None, *args, **kwargs):
    name = ops.prepend_name_scope(variable_def.variable_name, import_scope)
    handle = ops.get_default_graph().as_graph_element(name)
    if handle.op.type == ev.HANDLE_OP:
      return ev.EmbeddingVariable.from_definition(variable_def, import_scope)
    return stock(variable_def, import_scope, *args, **kwargs)

  return from_proto
