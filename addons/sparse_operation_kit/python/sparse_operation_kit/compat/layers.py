# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The layers of SOK before 2.0, implemented on today's tables.

  sok.Init(global_batch_size=8192)
  layer = sok.DistributedEmbedding(combiner="sum", max_vocabulary_size_per_gpu=10000,
                                   embedding_vec_size=16, slot_num=26, max_nnz=5)
  emb = layer(ids)                                         # [batch, 26, 16]
"""

import contextlib
import functools

from embedding_variable.eager import keras_variable
from embedding_variable.lookup import combiners
from embedding_variable.tf_names import keras_serializable
from embedding_variable.tf_names import tf
from embedding_variable.tf_names import variables as tf_variables
from embedding_variable.variables import number_checks

from sparse_operation_kit import communication
from sparse_operation_kit import initialization
from sparse_operation_kit.exchange import arguments
from sparse_operation_kit.exchange import dense_lookup
from sparse_operation_kit.exchange import lookup
from sparse_operation_kit.layers import embedding
from sparse_operation_kit.variables import dynamic_variable
from sparse_operation_kit.variables import kinds
from sparse_operation_kit.variables import static_variable


# Name of the first table of SOK before 2.0, and with a number of the others.
_UPSTREAM_NAME = "EmbeddingVariable"


def Init(global_batch_size=None, seed=None, **kwargs):  # pylint: disable=invalid-name
  """Prepares SparseOperationKit, as `sok.init` does.

  Args:
    global_batch_size: accepted; batches of any size work.
    seed: int, or None: seed of the graph's random initial rows.
    **kwargs: arguments of `sok.init`.

  Returns:
    A no-op, for scripts that run it first; None in eager execution.

  Raises:
    ValueError: global_batch_size is not a positive integer, or an error of `sok.init`.
  """
  if global_batch_size is not None:
    _check_size("sok.Init", "global_batch_size", global_batch_size)
  initialization.init(**kwargs)
  if seed is not None:
    tf.compat.v1.set_random_seed(seed)
  return tf.no_op(name="sok_Init")


def split_embedding_variable_from_others(vars_):
  """Splits variables into those of SOK's layers and all others.

  Args:
    vars_: iterable of variables.

  Returns:
    Two lists, each in the order of `vars_`.
  """
  return kinds.filter_variables(vars_)


@contextlib.contextmanager
def OptimizerScope(trainable_variables):  # pylint: disable=invalid-name
  """Marks variables as embedding variables for SOK 1.x; has no effect.

  SOK 1.x used this scope to keep TensorFlow from changing their gradients. Now every
  optimizer updates tables, with or without this scope, which the first use logs.

  Example:

    with sok.OptimizerScope(embedding_variables):
      train_op = optimizer.apply_gradients(zip(gradients, embedding_variables))

  Args:
    trainable_variables: variable, or list of variables.

  Raises:
    TypeError: an element is not a variable.
  """
  if not isinstance(trainable_variables, (list, tuple)):
    trainable_variables = [trainable_variables]
  # Eager variables are not instances of the tf.Variable of this module's tf.
  classes = (tf_variables.Variable,) + keras_variable.classes()
  for variable in trainable_variables:
    if not isinstance(variable, classes) and not kinds.parts(variable):
      raise TypeError("sok.OptimizerScope: expected variables, got %r" % (variable,))
  _log_scope()
  yield


@functools.lru_cache(maxsize=None)
def _log_scope():
  tf.compat.v1.logging.warning(
      "sok.OptimizerScope has no effect, since every optimizer updates tables. Leave it out.")


def _check_size(what, name, value):
  if not number_checks.is_int(value, 1):
    raise ValueError("%s: %s: expected a positive integer, got %r" % (what, name, value))


class _Embedding(tf.keras.layers.Layer):
  """A layer that owns one table."""

  # Type of the Input that Keras 3 puts before this layer in a Sequential.
  ids_dtype = "int64"

  def __init__(self, max_vocabulary_size_per_gpu, embedding_vec_size, slot_num,
               use_hashtable, key_dtype, embedding_initializer, kwargs):
    super(_Embedding, self).__init__(**kwargs)
    embedding.report_dtype(self, kwargs.get("dtype"))
    self.supports_jit = False
    what = type(self).__name__
    for name, value in (("max_vocabulary_size_per_gpu", max_vocabulary_size_per_gpu),
                        ("embedding_vec_size", embedding_vec_size),
                        ("slot_num", slot_num)):
      _check_size("sok." + what, name, value)
    key_dtype = tf.as_dtype(tf.int64 if key_dtype is None else key_dtype)
    if key_dtype not in (tf.int64, tf.int32, tf.uint32):
      raise ValueError("sok.%s: key_dtype: expected int64, int32 or uint32, got %s" %
                       (what, key_dtype.name))
    self._initializer = tf.keras.initializers.get(embedding_initializer)
    # Not a dict, which Keras would make a part of checkpoints.
    self._arguments = functools.partial(
        dict, max_vocabulary_size_per_gpu=max_vocabulary_size_per_gpu,
        embedding_vec_size=embedding_vec_size, slot_num=slot_num,
        use_hashtable=use_hashtable, key_dtype=key_dtype.name)
    self._slot_num = slot_num
    self._vec_size = embedding_vec_size
    # int64 holds every uint32.
    table = self._make(max_vocabulary_size_per_gpu, use_hashtable,
                       tf.int64 if key_dtype == tf.uint32 else key_dtype,
                       self._initializer)
    # sok.Saver writes such keys as uint32.
    table.has_uint32_keys = key_dtype == tf.uint32
    if kwargs.get("name") is None:
      number = tf.keras.backend.get_uid(_UPSTREAM_NAME) - 1
      table.upstream_name = _UPSTREAM_NAME + ("_%d" % number if number else "")
    keras_variable.track(self, "_variable", table)

  def _make(self, rows_per_gpu, use_hashtable, key_dtype, initializer):
    if initializer is None:
      initializer = tf.random_uniform_initializer(-.05, .05)
    name = self.name + "/embedding"
    if use_hashtable:
      return dynamic_variable.DynamicVariable(
          self._vec_size, initializer, var_type="auto", key_type=key_dtype, name=name,
          trainable=self.trainable)
    return static_variable.Variable(
        shape=[rows_per_gpu * communication.num_ranks(), self._vec_size],
        initializer=initializer, name=name, trainable=self.trainable)

  def _with_signed_ids(self, inputs):
    """Returns ids (tensor, SparseTensor or RaggedTensor) with uint32 cast to int64.

    Raises:
      TypeError: ids are floats.
    """
    embedding.check_ids(self, inputs)
    ids = inputs if isinstance(inputs, tf.Tensor) else inputs.values
    if ids.dtype != tf.uint32:
      return inputs
    # TensorFlow has this cast on the CPU only.
    with tf.device("/cpu:0"):
      ids = tf.cast(ids, tf.int64)
    if isinstance(inputs, tf.Tensor):
      return ids
    if isinstance(inputs, tf.RaggedTensor):
      return inputs.with_values(ids)
    return tf.SparseTensor(inputs.indices, ids, inputs.dense_shape)

  @property
  def embedding_variable(self):
    """The table: a `sok.DynamicVariable`, or a `sok.Variable` without hash table."""
    return keras_variable.held(self._variable)

  def get_config(self):
    """Returns the arguments of the constructor."""
    return self._arguments(
        super(_Embedding, self).get_config(),
        embedding_initializer=tf.keras.initializers.serialize(self._initializer))

  def save_own_variables(self, store):
    """Writes the contents of the table, for files of Keras.

    Raises:
      NotImplementedError: the table is spread over ranks.
    """
    embedding.save_tables([self.embedding_variable], store)

  def load_own_variables(self, store):
    """Replaces the contents of the table by those of a file."""
    embedding.load_tables([self.embedding_variable], store)


@keras_serializable("sparse_operation_kit")
class DistributedEmbedding(_Embedding):
  """Pooled lookup of several slots in one table.

  Example:

    layer = sok.DistributedEmbedding("mean", 10000, 16, slot_num=3, max_nnz=2)
    emb = layer(sparse_ids)               # ids [batch * 3, 2] -> [batch, 3, 16]

  Args:
    combiner: "sum" or "mean".
    max_vocabulary_size_per_gpu: int; without hash table, keys are in [0,
      max_vocabulary_size_per_gpu * ranks). A hash table grows as needed.
    embedding_vec_size: int, length of a row.
    slot_num: int.
    max_nnz: int; accepted, but samples may have any number of ids.
    max_feature_num: accepted, like max_nnz.
    use_hashtable: bool.
    key_dtype: `tf.int64`, `tf.int32` or `tf.uint32`; None: int64.
    embedding_initializer: initializer or its name; None: uniform in [-0.05, 0.05).
    **kwargs: arguments of `tf.keras.layers.Layer`. With trainable=False the table is not
      trained until `layer.trainable` is True. The output is float32; another `dtype` is
      reported once.

  Raises:
    ValueError: an invalid size, combiner or key type.
  """

  def __init__(self, combiner, max_vocabulary_size_per_gpu, embedding_vec_size, slot_num,
               max_nnz, max_feature_num=1, use_hashtable=True, key_dtype=None,
               embedding_initializer=None, **kwargs):
    if combiner not in combiners.SOK_NAMES:
      raise ValueError("sok.DistributedEmbedding: combiner: expected %s, got %r" %
                       (combiners.in_words(combiners.SOK_NAMES), combiner))
    _check_size("sok.DistributedEmbedding", "max_nnz", max_nnz)
    _check_size("sok.DistributedEmbedding", "max_feature_num", max_feature_num)
    super(DistributedEmbedding, self).__init__(
        max_vocabulary_size_per_gpu, embedding_vec_size, slot_num, use_hashtable,
        key_dtype, embedding_initializer, kwargs)
    self._combiner = combiner
    self._arguments = functools.partial(
        self._arguments, combiner=combiner, max_nnz=max_nnz,
        max_feature_num=max_feature_num)

  def call(self, inputs, training=None):
    """Looks up and pools the ids of a batch.

    Args:
      inputs: SparseTensor (or RaggedTensor) `[batch * slot_num, ids]`.
      training: accepted; a lookup inserts nothing.

    Returns:
      float32 `[batch, slot_num, embedding_vec_size]`.

    Raises:
      ValueError: the ids have another rank than 2.
    """
    del training
    arguments.check_rank("sok.DistributedEmbedding: layer '%s': its ids" % self.name, inputs,
                         "[batch * %d slots, ids]" % self._slot_num)
    pooled = lookup.lookup_sparse(self.embedding_variable, self._with_signed_ids(inputs),
                                  combiners=self._combiner)
    return tf.reshape(pooled, [-1, self._slot_num, self._vec_size])


@keras_serializable("sparse_operation_kit")
class All2AllDenseEmbedding(_Embedding):
  """Looks up one row for each id.

  Example:

    layer = sok.All2AllDenseEmbedding(10000, 16, slot_num=3, nnz_per_slot=2)
    emb = layer(ids)                      # ids [batch, 3, 2] -> [batch, 3, 2, 16]

  Args:
    max_vocabulary_size_per_gpu: as for `DistributedEmbedding`.
    embedding_vec_size: int, length of a row.
    slot_num: int.
    nnz_per_slot: int.
    dynamic_input: bool; if True, ids are `[n]` with any n, and the result is `[n,
      dim]`.
    use_hashtable: bool.
    key_dtype: `tf.int64`, `tf.int32` or `tf.uint32`; None: int64.
    embedding_initializer: initializer or its name; None: uniform in [-0.05, 0.05).
    **kwargs: arguments of `tf.keras.layers.Layer`. With trainable=False the table is not
      trained until `layer.trainable` is True. The output is float32; another `dtype` is
      reported once.

  Raises:
    ValueError: an invalid size or key type.
  """

  def __init__(self, max_vocabulary_size_per_gpu, embedding_vec_size, slot_num,
               nnz_per_slot, dynamic_input=False, use_hashtable=True, key_dtype=None,
               embedding_initializer=None, **kwargs):
    _check_size("sok.All2AllDenseEmbedding", "nnz_per_slot", nnz_per_slot)
    super(All2AllDenseEmbedding, self).__init__(
        max_vocabulary_size_per_gpu, embedding_vec_size, slot_num, use_hashtable,
        key_dtype, embedding_initializer, kwargs)
    self._nnz_per_slot = nnz_per_slot
    self._dynamic_input = dynamic_input
    self._arguments = functools.partial(
        self._arguments, nnz_per_slot=nnz_per_slot, dynamic_input=dynamic_input)

  def call(self, inputs, training=None):
    """Looks up the rows of a batch.

    Args:
      inputs: integers `[batch, slot_num, nnz_per_slot]`, or any shape with as many
        numbers per sample; with dynamic_input `[n]`.
      training: accepted; a lookup inserts nothing.

    Returns:
      float32 `[batch, slot_num, nnz_per_slot, dim]`, or `[n, dim]`.

    Raises:
      ValueError: the shape of the ids does not fit the slots.
    """
    del training
    ids = self._with_signed_ids(tf.convert_to_tensor(inputs))
    per_sample = ids.shape[1:].num_elements() if ids.shape.ndims else None
    if not self._dynamic_input and ids.shape.ndims != 1 and per_sample and (
        self._slot_num * self._nnz_per_slot % per_sample):
      raise ValueError(
          "sok.All2AllDenseEmbedding: layer '%s': its ids: expected the shape [batch, %d, "
          "%d], got %s" % (self.name, self._slot_num, self._nnz_per_slot, ids.shape))
    rows = dense_lookup.all2all_dense_embedding(
        self.embedding_variable, tf.reshape(ids, [-1]))
    if self._dynamic_input:
      return rows
    return tf.reshape(rows, [-1, self._slot_num, self._nnz_per_slot, self._vec_size])
