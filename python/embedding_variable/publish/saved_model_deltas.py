# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Adds the ops that apply deltas to a SavedModel that `tf.saved_model.save` wrote.

The names are those of checkpoint/delta_graph.py, under a scope of their own:
`restore_tables` applies the changes of each table. `restore_others` calls a copy of the
SavedModel's own restore function that leaves the tables out, so it restores whatever the
SavedModel restores. Everything else in the file stays as it was.
"""

import os

from embedding_variable import tf_names
from embedding_variable.checkpoint import delta_graph
from embedding_variable.ops import delta_ops
from embedding_variable.ops import handle_ops
from embedding_variable.tf_names import array_ops
from embedding_variable.tf_names import control_flow_ops
from embedding_variable.tf_names import dtypes
from embedding_variable.tf_names import file_io
from embedding_variable.tf_names import ops
from embedding_variable.tf_names import saved_model_pb2
from embedding_variable.tf_names import tf

_FILE = "saved_model.pb"
_FINGERPRINT = "fingerprint.pb"
_SCOPE = "embedding_variable_publish"


def add(folder, tables):
  """Rewrites `saved_model.pb`.

  Args:
    folder: string, that of the SavedModel.
    tables: {name in its checkpoint: eager embedding variable}.

  Raises:
    ValueError: it has no ops that restore it, or not all of the tables.
  """
  path = os.path.join(folder, _FILE)
  saved_model = saved_model_pb2.SavedModel()
  with file_io.FileIO(path, "rb") as f:
    saved_model.ParseFromString(f.read())
  for meta_graph in saved_model.meta_graphs:
    _add(meta_graph, tables)
  with file_io.FileIO(path, "wb") as f:
    f.write(saved_model.SerializeToString(deterministic=True))
  fingerprint = os.path.join(folder, _FINGERPRINT)
  if file_io.file_exists(fingerprint):
    # It has checksums of the file as it was.
    file_io.delete_file(fingerprint)
    module = tf_names.find("tensorflow.python.saved_model.fingerprinting_utils")
    if module is not None:
      module.write_fingerprint(folder)


def move(folder, to):
  """Moves the files of a SavedModel, `saved_model.pb` last, which makes it one."""
  paths = [os.path.join(inner, name)
           for inner, _, names in tf.io.gfile.walk(folder) for name in names]
  for path in sorted(paths, key=lambda p: os.path.basename(p) == _FILE):
    target = os.path.join(to, os.path.relpath(path, folder))
    file_io.recursive_create_dir(os.path.dirname(target))
    file_io.rename(path, target, overwrite=True)
  file_io.delete_recursively(folder)


def _add(meta_graph, tables):
  graph_def, saver_def = meta_graph.graph_def, meta_graph.saver_def
  nodes = {node.name: node for node in graph_def.node}
  restore = nodes.get(saver_def.restore_op_name)
  if restore is None or "f" not in restore.attr:
    raise ValueError("the SavedModel has no ops that restore it, so deltas cannot: save it "
                     "without the option experimental_skip_saver")
  graph_def.library.function.append(
      _without_tables(graph_def.library.function, restore.attr["f"].func.name))
  with tf.Graph().as_default() as graph, ops.name_scope(_SCOPE + "/"):
    # The loaders call the op of this name, and its scope is that of the deltas.
    control_flow_ops.no_op(name="restore_all")
    with ops.name_scope("deltas"):
      prefix = array_ops.placeholder(dtypes.string, [], name="prefix")
      control_flow_ops.group(
          *[delta_ops.apply_delta(_handle(nodes.values(), name, table), prefix, name)
            for name, table in sorted(tables.items())], name="restore_tables")
  added = [node for node in graph.as_graph_def().node if node.name.startswith(_SCOPE + "/")]
  added[0].input.append("^" + restore.name)
  graph_def.node.extend(added)
  saver_def.restore_op_name = added[0].name
  others = graph_def.node.add()
  others.CopyFrom(restore)
  others.name = delta_graph.scope_of(saver_def) + "restore_others"
  others.input[list(restore.input).index(saver_def.filename_tensor_name.split(":")[0])] = (
      prefix.op.name)
  others.attr["f"].func.name = graph_def.library.function[-1].signature.name
  for name in ("EvApplyDelta", "NoOp", "Placeholder"):
    listed = meta_graph.meta_info_def.stripped_op_list.op
    if name not in [op.name for op in listed]:
      listed.add().CopyFrom(tf_names.op_def(name))


def _handle(nodes, name, table):
  """Returns a placeholder that has the name of a table's handle in the SavedModel."""
  shared_name = table._unique_id.encode()  # pylint: disable=protected-access
  found = [node.name for node in nodes if node.op == handle_ops.HANDLE_OP and
           node.attr["shared_name"].s == shared_name]
  if not found:
    raise ValueError("the SavedModel has no handle of embedding variable '%s'; report this" %
                     name)
  with ops.name_scope(None):
    return array_ops.placeholder(dtypes.resource, [], name=found[0])


def _without_tables(functions, name):
  """Returns a copy of the restore function of a SavedModel that restores no table."""
  of_tables = {f.signature.name for f in functions
               if any(node.op == "EvRestore" for node in f.node_def)}
  original = next(f for f in functions if f.signature.name == name)
  result = type(original)()
  result.CopyFrom(original)
  result.signature.name = name + "_others"
  removed = {node.name for node in original.node_def
             if "f" in node.attr and node.attr["f"].func.name in of_tables}
  del result.node_def[:]
  for node in original.node_def:
    if node.name not in removed:
      kept = [x for x in node.input if x.lstrip("^").split(":")[0] not in removed]
      copy = result.node_def.add()
      copy.CopyFrom(node)
      del copy.input[:]
      copy.input.extend(kept)
  for output, node in original.control_ret.items():
    if node in removed:
      del result.control_ret[output]
  result.signature.control_output[:] = sorted(result.control_ret)
  return result
