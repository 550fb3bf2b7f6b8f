# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes the SavedModel of a model in eager execution, for EagerPublisher."""

import contextlib
import inspect

from embedding_variable import tf_names
from embedding_variable.eager import eager_variable
from embedding_variable.tf_names import tf

# The model's name for the values of Keras's variables, while it is saved.
_VALUES = "_embedding_variable_publish_values"


class Export(object):
  """A model, and how it is saved."""

  def __init__(self, model, signatures, export):
    """Args: as for `EagerPublisher`."""
    self._model, self._signatures, self._export = model, signatures, export

  def tables(self):
    """Returns a list of the tables that the model has now.

    Raises:
      ValueError: there is none.
    """
    found = map(eager_variable.table_of, self._descendants())
    tables = [table for table in found if table is not None]
    if not tables:
      raise ValueError("EagerPublisher: the model has no embedding variable, so it has no "
                       "deltas; expected at least one. Build a model of Keras before, by a "
                       "call or by fit")
    return tables

  def save(self, folder, version):
    """Writes the SavedModel.

    Args:
      folder: string.
      version: published.Version, gets what was saved.

    Raises:
      ValueError: the SavedModel lacks a table of the model.
    """
    with version.saving():
      self._write(folder)
    for table in self.tables():
      if not any(table is saved for saved in version.tables.values()):
        raise ValueError("EagerPublisher: the SavedModel lacks embedding variable '%s' of the "
                         "model; export all of the model, or give EagerPublisher the part "
                         "that is exported" % table.op.name)

  def _write(self, folder):
    if self._export is not None:
      self._export(folder)
    elif (self._signatures is None and hasattr(self._model, "export") and
          isinstance(self._model, tf_names.keras_classes("Model"))):
      quiet = "verbose" in inspect.signature(self._model.export).parameters
      self._model.export(folder, **({"verbose": False} if quiet else {}))
    else:
      with self._with_values():
        tf.saved_model.save(self._model, folder, self._signatures)

  @contextlib.contextmanager
  def _with_values(self):
    """Context in which the variables of Keras 3 can be restored in a session.

    Functions read the `tf.Variable` that such a variable holds. TensorFlow saves only the
    holder, and a session then restores another variable than the functions read.
    """
    # pylint: disable=protected-access
    holders = tf_names.keras_3_variables()
    values = [x._value for x in self._descendants() if isinstance(x, holders)]
    if not values:
      yield
      return
    module = tf.Module()
    module.values = values
    self._model._track_trackable(module, _VALUES)
    try:
      yield
    finally:
      self._model._delete_tracking(_VALUES)

  def _descendants(self):
    """Returns a list of all objects that a checkpoint of the model has."""
    view = tf_names.find("tensorflow.python.checkpoint.trackable_view")
    return view.TrackableView(self._model).descendants()
