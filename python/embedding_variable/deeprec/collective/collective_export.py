# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Exports a checkpoint of all ranks as one SavedModel."""

import os

from embedding_variable.tf_names import checkpoint_management
from embedding_variable.tf_names import errors
from embedding_variable.tf_names import file_io
from embedding_variable.tf_names import tf


def export(folder, checkpoint_dir, signature_def_fn, assets_extra, as_text, clear_devices,
           strip_default_attrs):
  """See `CollectiveStrategy.export_saved_model`."""
  if signature_def_fn is None or not checkpoint_dir:
    raise ValueError(
        "export_saved_model: needs a signature_def_fn that builds the prediction graph, "
        "and a checkpoint_dir, got %r and %r" % (signature_def_fn, checkpoint_dir))
  checkpoint = checkpoint_management.latest_checkpoint(checkpoint_dir)
  if checkpoint is None:
    raise errors.NotFoundError(None, None, "export_saved_model: no checkpoint in %s" %
                               checkpoint_dir)
  graph = tf.Graph()
  with graph.as_default(), tf.Session(graph=graph) as session:
    signatures = _signatures(graph, signature_def_fn())
    saver = tf.train.Saver(sharded=True, allow_empty=True)
    saver.restore(session, checkpoint)
    builder = tf.saved_model.builder.SavedModelBuilder(folder)
    builder.add_meta_graph_and_variables(
        session, [tf.saved_model.tag_constants.SERVING], signatures, clear_devices=clear_devices,
        main_op=tf.tables_initializer(), saver=saver,
        strip_default_attrs=strip_default_attrs)
    builder.save(as_text)
  for name, source in sorted((assets_extra or {}).items()):
    target = os.path.join(folder, "assets.extra", name)
    file_io.recursive_create_dir(os.path.dirname(target))
    file_io.copy(source, target)
  return folder


def _signatures(graph, made):
  """Returns a dict of SignatureDefs whose tensors are in the graph."""
  if hasattr(made, "method_name"):  # A SignatureDef.
    made = {tf.saved_model.signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY: made}
  if not isinstance(made, dict) or not made:
    raise ValueError("export_saved_model: signature_def_fn must return a SignatureDef or a "
                     "dict of them, got %r" % (made,))
  for key, signature in made.items():
    for info in list(signature.inputs.values()) + list(signature.outputs.values()):
      name = info.name or info.coo_sparse.values_tensor_name
      try:
        graph.get_tensor_by_name(name)
      except (KeyError, ValueError):
        raise ValueError("export_saved_model: tensor '%s' of signature '%s' is not in the "
                         "graph that is exported; signature_def_fn must build the "
                         "prediction graph" % (name, key))
  return made
