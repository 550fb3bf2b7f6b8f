# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Loads what was published, in eager execution."""

import os

from embedding_variable import tf_names
from embedding_variable.checkpoint_format import errors
from embedding_variable.checkpoint_format import publication_checks
from embedding_variable.checkpoint_format import publications
from embedding_variable.eager import published
from embedding_variable.tf_names import tf

# The tensor by which TensorFlow finds the objects of a checkpoint.
_OBJECTS = "_CHECKPOINTABLE_OBJECT_GRAPH"


def load(folder):
  """Loads the current version of a publication with its deltas, in eager execution.

  Reads all of them, and verifies their checksums, before it creates a table.

  Args:
    folder: string, the folder of an `EagerPublisher`.

  Returns:
    The result of `tf.saved_model.load` of the version, in the state that `current.json`
    names. Later publications do not change it. Its tables exist as long as it does.

  Raises:
    NotImplementedError: TensorFlow 1.15, which has no tables in eager execution.
    CheckpointError (a ValueError): the folder has no publication, or one that is damaged,
      missing or foreign; the message names the version, the delta and the file.
    ValueError: a session published it.
    tf.errors.OpError: a file changed or was removed meanwhile.
  """
  if not tf_names.has_eager_tables():
    raise NotImplementedError("load: expected TensorFlow 2.11 or later, which has tables in "
                              "eager execution, got TensorFlow 1; use tf.saved_model.load in "
                              "a session")
  state = publications.read(folder)
  if state is None:
    raise errors.CheckpointError("%s has no %s: expected the folder of an EagerPublisher that "
                                 "has published" % (folder, publications.CURRENT))
  publication_checks.check_full(folder, state)
  stored = publications.stored_prefix(folder, state["version"])
  if not tf.train.load_checkpoint(stored).has_tensor(_OBJECTS):
    raise ValueError("%s: version %d was published by a session, expected an EagerPublisher's; "
                     "load it by tf.compat.v1.saved_model.load, or serve it" %
                     (folder, state["version"]))
  deltas = [publication_checks.check_delta(folder, state, sequence + 1)
            for sequence in range(len(state["deltas"]))]
  tensorflow = tf_names.find("tensorflow")  # With the functions of 2.x.
  model = tensorflow.saved_model.load(os.path.join(folder, str(state["version"])))
  with published.applying():
    for prefix in deltas:
      tensorflow.train.Checkpoint(model).read(prefix).assert_existing_objects_matched()
  return model
