# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The prediction graph of a publication, as a SavedModel without variables."""

import os
import shutil
import tempfile

from embedding_variable.tf_names import file_io
from embedding_variable.tf_names import ops
from embedding_variable.tf_names import saver_pb2
from embedding_variable.tf_names import tf
from embedding_variable.tf_names import variables as variables_lib


class ServingGraph(object):
  """A SavedModel's graph and assets.

  Attributes:
    names: set of strings, the names of its variables.
  """

  def __init__(self, make_signatures, tags):
    """Builds the graph; runs nothing.

    Args:
      make_signatures: function that builds the graph in the default graph. It returns
        {signature name: SignatureDef}, or dicts (inputs, outputs) of tensors for the
        signature "serving_default".
      tags: list of strings, of the SavedModel's meta graph.

    Raises:
      ValueError: the function returns something else.
    """
    folder = tempfile.mkdtemp(prefix="embedding_variable_publish_")
    try:
      with tf.Graph().as_default():
        signatures = _signatures(make_signatures())
        # pylint: disable=protected-access
        saveables = variables_lib._all_saveable_objects()
        self.names = {_name(s) for s in saveables}
        saver = tf.train.Saver(saveables, sharded=True, write_version=saver_pb2.SaverDef.V2,
                               allow_empty=True)
        builder = tf.saved_model.Builder(folder)
        # The checkpoint is written from the training session.
        builder._has_saved_variables = True
        builder.add_meta_graph(
            list(tags), signatures,
            assets_collection=ops.get_collection(ops.GraphKeys.ASSET_FILEPATHS),
            main_op=tf.group(tf.local_variables_initializer(), tf.tables_initializer()),
            saver=saver)
        builder.save()
      self._files = {}
      for inner, _, names in os.walk(folder):
        for name in names:
          path = os.path.join(inner, name)
          with open(path, "rb") as f:
            self._files[os.path.relpath(path, folder)] = f.read()
    finally:
      shutil.rmtree(folder, ignore_errors=True)

  def write(self, folder):
    """Writes the graph and the assets into a folder, `saved_model.pb` last."""
    for name, content in sorted(self._files.items()):
      path = os.path.join(folder, name)
      file_io.recursive_create_dir(os.path.dirname(path))
      with file_io.FileIO(path, "wb") as f:
        f.write(content)


def _name(saveable):
  return saveable.op.name if hasattr(saveable.op, "name") else saveable.name


def by_name(graph):
  """Returns {name: variable or SaveableObject} of all that a saver of a graph saves."""
  with graph.as_default():
    saveables = variables_lib._all_saveable_objects()  # pylint: disable=protected-access
    return {_name(s): s for s in saveables}


def _signatures(found):
  if isinstance(found, dict):
    return found
  if not (isinstance(found, tuple) and len(found) == 2):
    raise ValueError("serving_fn must return {signature name: SignatureDef} or dicts "
                     "(inputs, outputs) of tensors, got %r" % (found,))
  inputs, outputs = [{name: tf.saved_model.build_tensor_info(tensor)
                      for name, tensor in tensors.items()} for tensors in found]
  return {"serving_default": tf.saved_model.build_signature_def(
      inputs, outputs, "tensorflow/serving/predict")}
