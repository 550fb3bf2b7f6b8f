# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Keras layers: for graph mode on TensorFlow 1.15, and for Keras 2 and Keras 3 on 2.x."""

import functools

import numpy as np

import embedding_variable
from embedding_variable.eager import keras_variable
from embedding_variable.eager import keras_weights
from embedding_variable.lookup import output_types
from embedding_variable.tf_names import keras_serializable
from embedding_variable.tf_names import tf
from embedding_variable.tf_names import tf_logging as logging
from embedding_variable.variables import options

from sparse_operation_kit import communication
from sparse_operation_kit.exchange import arguments
from sparse_operation_kit.exchange import eager_exchange
from sparse_operation_kit.exchange import lookup
from sparse_operation_kit.files import table_files


@keras_serializable("sparse_operation_kit")
class Embedding(tf.keras.layers.Layer):
  """Rows of one or many tables for integer ids; any int64 is an id.

  With a combiner the rows of a sample are pooled; all tables of the layer are looked
  up by one call of `sok.lookup_sparse`, so one layer with many tables is faster than
  many layers. The tables are trainable weights of the layer. In eager execution
  `get_weights` returns the rows of a table as an array that also has their keys, and
  `set_weights` takes it again. Files of Keras (`.keras`, `.weights.h5`) and checkpoints
  hold keys, rows and default rows; the slots of the optimizer are saved with it.

  Example:

    layer = sok.layers.Embedding(16, combiner="mean")
    layer(tf.ragged.constant([[7, -3], []], dtype=tf.int64))       # [2, 16]
    many = sok.layers.Embedding([16, 8], combiner="sum")
    users, items = many([user_ids, item_ids])                      # [B, 16], [B, 8]
  """

  # Type of the Input that Keras 3 puts before this layer in a Sequential.
  ids_dtype = "int64"

  def __init__(self, embedding_dim, combiner=None, initializer=None, ev_option=None,
               key_dtype="int64", target_gpu=-1, **kwargs):
    """Describes the tables, which `build` creates.

    Args:
      embedding_dim: int, length of a row; a list of ints for a table each.
      combiner: None for a row per id; or a combiner of `sok.lookup_sparse`, or a list
        of them, one per table.
      initializer: initializer of `[rows, dim]` of TensorFlow or Keras; None: as
        `tf.get_embedding_variable`.
      ev_option: `EmbeddingVariableOption` for all tables, its dict from `get_config`, or
        None.
      key_dtype: "int64" or "int32".
      target_gpu: as for `sok.lookup_sparse`, for all tables.
      **kwargs: arguments of `tf.keras.layers.Layer`. `dtype` is the type of the
        output, on 2.x; rows are float32, and another type of rows is reported.

    Raises:
      ValueError: the number of combiners is not that of tables, or None is one of
        several.
    """
    super(Embedding, self).__init__(**kwargs)
    report_dtype(self, kwargs.get("dtype"))
    self.embedding_dim = embedding_dim
    self.combiner = combiner
    self.initializer = tf.keras.initializers.get(initializer)
    self.target_gpu = target_gpu
    self.supports_jit = False
    self._key_dtype = key_dtype
    self._ev_option = (options.from_config(ev_option) if isinstance(ev_option, dict) else
                       ev_option)
    self._is_list = isinstance(embedding_dim, (list, tuple))
    self._dims = list(embedding_dim) if self._is_list else [embedding_dim]
    count = len(self._dims)
    several = isinstance(combiner, (list, tuple))
    self._combiners = list(combiner) if several else [combiner] * count
    if len(self._combiners) != count or (
        None in self._combiners and set(self._combiners) != {None}):
      raise ValueError("layer '%s': %d tables got the combiners %r" %
                       (self.name, count, combiner))

  def build(self, input_shape=None):
    """Creates the tables; the shape of the ids has no effect."""
    del input_shape
    if self.built:
      return
    names = [self.name if not self._is_list else "%s_%d" % (self.name, i)
             for i in range(len(self._dims))]
    with tf.init_scope():
      for i, (name, dim) in enumerate(zip(names, self._dims)):
        table = embedding_variable.get_embedding_variable(
            name, dim, initializer=self.initializer, key_dtype=self._key_dtype,
            ev_option=self._ev_option, trainable=self.trainable)
        table.target_gpu = self.target_gpu
        eager_exchange.spread_from_the_start(table)
        # An attribute each: tf.train.Checkpoint finds no lists of Keras 3.
        keras_variable.track(self, "table_%d" % i, table)
    self.built = True

  @property
  def embedding_variables(self):
    """The list of tables, once they are created: attributes table_0 and so on."""
    held = [getattr(self, "table_%d" % i) for i in range(len(self._dims))]
    return [getattr(t, "embedding_variable", t) for t in held]

  def call(self, inputs, weights=None):
    """Looks ids up.

    Args:
      inputs: int32 or int64 ids; a list of them for several tables. With a combiner
        a SparseTensor, RaggedTensor or tensor of shape [batch, ids]; without one a
        tensor or RaggedTensor of any shape.
      weights: float weights in the form of `inputs`, or None. Only with a combiner.

    Returns:
      [batch, dim] with a combiner, the shape of the ids + [dim] without; a list of
        them for several tables.

    Raises:
      TypeError: ids are floats.
      ValueError: the number of inputs is not that of tables, weights without a
        combiner, or with one ids or weights of rank 3 or more.
    """
    ids = list(inputs) if self._is_list else [inputs]
    weights = [None] * len(ids) if weights is None else (
        list(weights) if self._is_list else [weights])
    if len(ids) != len(self._dims) or len(weights) != len(ids):
      raise ValueError("layer '%s': %d tables got %d inputs and %d weights" %
                       (self.name, len(self._dims), len(ids), len(weights)))
    for x in ids:
      check_ids(self, x)
    tables = self.embedding_variables
    # Outputs of another type, such as float64, are cast afterwards.
    dtype = self._output_type()
    dtype = dtype if dtype in output_types.TYPES else tf.float32
    if self._combiners[0] is None:
      if any(w is not None for w in weights):
        raise ValueError("layer '%s': weights need a combiner" % self.name)
      outputs = _rows(tables, ids, dtype)
    else:
      outputs = lookup.lookup_sparse(
          tables, [self._ragged(x, "ids") for x in ids],
          None if all(w is None for w in weights) else [
              None if w is None else self._ragged(w, "weights") for w in weights],
          combiners=self._combiners, output_dtype=dtype)
    outputs = [tf.cast(x, self._output_type()) for x in outputs]
    return outputs if self._is_list else outputs[0]

  def _output_type(self):
    """Returns the type of the outputs: the one in which the layer computes."""
    # TensorFlow 1.15 has none, and 2.x without its own behavior takes that of the ids.
    dtype = tf.as_dtype(getattr(self, "compute_dtype", None) or "float32")
    return dtype if dtype.is_floating else tf.float32

  def _ragged(self, ids, what):
    """Returns ids or weights `[batch, n]` of any kind as `sok.lookup_sparse` takes them."""
    if not isinstance(ids, (tf.SparseTensor, tf.RaggedTensor)):
      ids = tf.convert_to_tensor(ids)
      if ids.shape.rank == 1:
        ids = ids[:, tf.newaxis]
    arguments.check_rank("layer '%s' with a combiner: its %s" % (self.name, what), ids,
                         "[batch, ids]")
    if isinstance(ids, (tf.SparseTensor, tf.RaggedTensor)):
      return ids
    batch, width = tf.unstack(tf.shape(ids, out_type=tf.int64), 2)
    return tf.RaggedTensor.from_row_splits(
        tf.reshape(ids, [-1]), tf.range(batch + 1) * width, validate=False)

  def compute_output_shape(self, input_shape):
    """Returns the shape of the output, or a list of them."""
    shapes = list(input_shape) if self._is_list else [input_shape]
    return_shapes = [
        tuple(shape) + (dim,) if combiner is None else (shape[0], dim)
        for shape, dim, combiner in zip(shapes, self._dims, self._combiners)]
    return return_shapes if self._is_list else return_shapes[0]

  def get_config(self):
    """Returns the arguments of the constructor; `ev_option` is a dict of plain values."""
    config = super(Embedding, self).get_config()
    # Lists of attributes are Keras's own, which not every file of it takes.
    config.update(embedding_dim=list(self._dims) if self._is_list else self._dims[0],
                  combiner=(list(self.combiner) if isinstance(self.combiner, (list, tuple))
                            else self.combiner),
                  initializer=tf.keras.initializers.serialize(self.initializer),
                  key_dtype=self._key_dtype, target_gpu=self.target_gpu,
                  ev_option=self._ev_option and options.to_config(self._ev_option))
    return config

  def save_own_variables(self, store):
    """Writes the contents of the tables, for files of Keras.

    Raises:
      NotImplementedError: a table is spread over ranks.
    """
    save_tables(self.embedding_variables, store)

  def load_own_variables(self, store):
    """Replaces the contents of the tables by those of a file.

    Each rank takes the rows that it owns.
    """
    load_tables(self.embedding_variables, store)


def check_ids(layer, ids):
  """Raises TypeError if a layer got ids of a float type, which has not all integers."""
  dtype = getattr(ids, "dtype", None)
  if dtype is not None and tf.as_dtype(dtype).is_floating:
    raise TypeError("layer '%s': expected ids of int64 or int32, got %s. Keras's default "
                    "is float32; give its Input dtype='int64'" %
                    (layer.name, tf.as_dtype(dtype).name))


def report_dtype(layer, dtype):
  """Logs a warning if a layer is created with another type of rows than float32.

  Args:
    layer: layer of Keras.
    dtype: its argument `dtype`: a type, the name or object of a policy, or None.
  """
  policy = getattr(layer, "_dtype_policy", None)
  rows = None if dtype is None else getattr(policy, "variable_dtype", None)
  if rows not in (None, "float32"):
    logging.warning("layer '%s': dtype=%r is the type of its output only; rows of tables "
                    "are float32", layer.name, dtype)


def save_tables(tables, store):
  """Writes the contents of a layer's tables, for files of Keras.

  Args:
    tables: list of eager embedding variables.
    store: dict of arrays, as Keras gives it to `save_own_variables`.

  Raises:
    NotImplementedError: a table is spread over ranks.
  """
  for i, table in enumerate(tables):
    if table_files.is_spread(table):
      raise NotImplementedError(
          "embedding variable '%s' is spread over %d ranks, and a file of Keras would "
          "have the rows of this rank only. Use tf.train.Checkpoint or sok.dump on all "
          "ranks" % (table.op.name, communication.num_ranks()))
    keras_weights.save(table, store, "%d_" % i)


def load_tables(tables, store):
  """Replaces the contents of a layer's tables by those that `save_tables` wrote.

  Raises:
    ValueError: rows have another length, or the keys are not exactly the rows of a
      `sok.Variable`.
  """
  for i, table in enumerate(tables):
    if hasattr(table, "global_shape"):
      num_rows = table.global_shape.as_list()[0]
      if not np.array_equal(np.sort(store["%d_keys" % i][...]), np.arange(num_rows)):
        raise ValueError("sok.Variable '%s': the file does not have exactly the rows 0 to "
                         "%d" % (table.op.name, num_rows - 1))
    owned = None
    if table_files.is_spread(table):
      owned = functools.partial(table_files.owned_mask, table)
    keras_weights.load(table, store, "%d_" % i, owned)


def _rows(tables, ids, dtype):
  """Returns a row per id as `dtype`, by one lookup of all tables."""
  flat = [tf.reshape(x.flat_values if isinstance(x, tf.RaggedTensor) else x, [-1])
          for x in ids]
  samples = [
      tf.RaggedTensor.from_row_splits(
          x, tf.range(tf.size(x, out_type=tf.int64) + 1), validate=False) for x in flat]
  rows = lookup.lookup_sparse(tables, samples, combiners=["sum"] * len(tables),
                              output_dtype=dtype)
  outputs = []
  for x, found, table in zip(ids, rows, tables):
    if isinstance(x, tf.RaggedTensor):
      outputs.append(x.with_flat_values(found))
    else:
      shape = x.shape.concatenate([table.dim])
      found = tf.reshape(found, tf.concat([tf.shape(x), [table.dim]], 0))
      found.set_shape(shape)
      outputs.append(found)
  return outputs
