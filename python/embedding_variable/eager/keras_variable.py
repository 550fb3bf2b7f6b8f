# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The object by which a Keras layer tracks an eager table.

Keras 2 tracks any `tf.Variable`, a table among them. Keras 3 tracks only variables of its
own class, which hold a `tf.Variable`; tapes take their handle.
"""

import functools

from embedding_variable.tf_names import tf


def track(layer, attribute, table):
  """Makes a table a weight of a layer, which trains it while the layer is trainable.

  Args:
    layer: layer of Keras.
    attribute: string, the attribute of the layer that holds the table, or Keras 3's
      variable that holds it.
    table: embedding variable.
  """
  # Keras looks once whether a weight can be trained. Later only the layer's `trainable`
  # counts, which a script may change.
  table._trainable = True  # pylint: disable=protected-access
  bases = classes()
  variable = _class(bases[0])(table) if bases else table
  setattr(layer, attribute, variable)
  if bases:
    variable.trainable = layer.trainable


def classes():
  """Returns a tuple of the class of Keras 3's variables; empty for Keras 2."""
  base = getattr(tf.keras, "Variable", None)
  return () if base is None else (base,)


def held(variable):
  """Returns the table that a variable of Keras 3 holds, or `variable` itself.

  Args:
    variable: anything.
  """
  return variable.embedding_variable if isinstance(variable, _Holder) else variable


class _Holder(object):
  """Base of the classes that `_class` returns."""


@functools.lru_cache(maxsize=None)
def _class(base):
  """Returns the subclass of Keras 3's variable that holds a table."""

  class KerasTable(base, _Holder):
    """A trainable variable of Keras 3 whose value is a table.

    Attributes:
      embedding_variable: the table.
    """

    def __init__(self, table):
      self.embedding_variable = table
      super(KerasTable, self).__init__(
          "zeros", shape=(table.dim,), dtype="float32", trainable=table.trainable,
          autocast=False, name=table.op.name.replace("/", "_"))

    def _initialize_with_initializer(self, initializer):
      del initializer  # the table is initialised
      self._value = self.embedding_variable

    def assign(self, value):
      """Replaces all rows, see `EagerEmbeddingVariable.assign`."""
      self.embedding_variable.assign(value)

    # In a SavedModel there is a table in place of this object.

    def _export_to_saved_model_graph(self, *args, **kwargs):
      # pylint: disable=protected-access
      return self.embedding_variable._export_to_saved_model_graph(*args, **kwargs)

    def _serialize_to_proto(self, **kwargs):
      return self.embedding_variable._serialize_to_proto(**kwargs)  # pylint: disable=protected-access

  return KerasTable
