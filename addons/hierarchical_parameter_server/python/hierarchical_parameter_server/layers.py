# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""hps.LookupLayer and hps.SparseLookupLayer: rows of a served table in a graph."""

import tensorflow as tf

from hierarchical_parameter_server import _lib
from hierarchical_parameter_server import initialization

_MAX_SAMPLES = 2 ** 31 - 2
_COMBINERS = ("sum", "mean", "sqrtn")
_ID_TYPES = (tf.int32, tf.int64)

# Label of HpsLookup's kernel that takes ids in GPU memory.
_IDS_ON_GPU = b"ids_on_gpu"


def _check_ids(ids, what):
  if ids.dtype not in _ID_TYPES:
    raise TypeError("%s: expected int32 or int64 ids, got %s" % (what, ids.dtype.name))


def _gpu_of(tensor):
  """Returns the GPU that a tensor is explicitly placed on ("/device:GPU:0"), or None.

  TensorFlow places other tensors only when the graph runs.
  """
  device = tf.DeviceSpec.from_string(tensor.device or "")
  if device.device_type != "GPU":
    return None
  return device.to_string()


def _positive(value, what):
  if isinstance(value, bool) or not isinstance(value, int):
    raise TypeError("%s: expected an int, got %r" % (what, value))
  if value < 1:
    raise ValueError("%s: expected at least 1, got %d" % (what, value))
  return value


def _serializable(cls):
  """Registers a layer, so that Keras loads models with it; TensorFlow 1.15 cannot."""
  register = getattr(tf.keras.utils, "register_keras_serializable", lambda package: _same)
  return register("hierarchical_parameter_server")(cls)


def _same(cls):
  return cls


class _TableLayer(tf.keras.layers.Layer):
  """Base of both layers: identifies the table."""

  # Name of call()'s first argument.
  _IDS = None

  def __init__(self, model_name, table_id, emb_vec_size, emb_vec_dtype=tf.float32,
               ps_config_file="", global_batch_size=1, **kwargs):
    kwargs.setdefault("trainable", False)
    if hasattr(tf.keras, "Variable"):
      # Keras 3 converts the input of a Sequential to the type of its first layer, unless
      # an Input layer has another.
      kwargs.setdefault("dtype", "int64")
      kwargs.setdefault("autocast", False)  # of weights to that type
    super(_TableLayer, self).__init__(**kwargs)
    # Otherwise Keras 3 compiles the model by XLA on a GPU, which has no kernel for it.
    self.supports_jit = False
    if not isinstance(model_name, str) or not model_name:
      raise TypeError("model_name: expected a model's name, got %r" % (model_name,))
    if isinstance(table_id, bool) or not isinstance(table_id, int):
      raise TypeError("table_id: expected an int, got %r" % (table_id,))
    if table_id < 0:
      raise ValueError("table_id: expected at least 0, got %d" % table_id)
    if tf.as_dtype(emb_vec_dtype) != tf.float32:
      raise ValueError("emb_vec_dtype: expected tf.float32, got %s" %
                       tf.as_dtype(emb_vec_dtype).name)
    self.model_name = model_name
    self.table_id = table_id
    self.emb_vec_size = _positive(emb_vec_size, "emb_vec_size")
    self.emb_vec_dtype = tf.float32
    self.ps_config_file = ps_config_file
    self.global_batch_size = _positive(global_batch_size, "global_batch_size")

  def __call__(self, *args, **kwargs):
    """Like tf.keras.layers.Layer; the ids may also be passed by the name they have in
    call().
    """
    for name in ("inputs", self._IDS):
      if not args and name in kwargs:
        args = (kwargs.pop(name),)
    call = super(_TableLayer, self).__call__
    # AutoGraph has nothing to convert in the call() of these two classes, and takes 1.7 s
    # for that in each process. A subclass may have a call() with something to convert.
    if type(self) in (LookupLayer, SparseLookupLayer):
      call = tf.autograph.experimental.do_not_convert(call)
    return call(*args, **kwargs)

  def _rows(self, ids, max_norm):
    """Returns ids.shape + [emb_vec_size] of a tensor of ids."""
    # GPUs have no strings.
    with tf.device("/cpu:0"):
      status = initialization.init_op(self.ps_config_file, self.global_batch_size)
    rows = _lib.load().hps_lookup(
        ids=ids, init_status=status, model_name=self.model_name,
        table_id=self.table_id, emb_vec_size=self.emb_vec_size)
    # In eager execution TensorFlow copies ids to host memory, where the default kernel
    # reads them.
    if (not tf.executing_eagerly() and _gpu_of(rows) is not None and
        _gpu_of(rows) == _gpu_of(ids)):
      rows.op._set_attr(  # pylint: disable=protected-access
          "_kernel", tf.compat.v1.AttrValue(s=_IDS_ON_GPU))
    if max_norm is None:
      return rows
    axis = -1 if rows.shape.ndims is None else rows.shape.ndims - 1
    return tf.clip_by_norm(rows, max_norm, axes=[axis])

  def get_config(self):
    """Returns the constructor's arguments, for from_config."""
    if isinstance(self.ps_config_file, tf.Tensor):
      raise ValueError("ps_config_file is a tensor, which a layer's configuration cannot hold")
    config = super(_TableLayer, self).get_config()
    config.update(
        model_name=self.model_name, table_id=self.table_id,
        emb_vec_size=self.emb_vec_size, emb_vec_dtype="float32",
        ps_config_file=self.ps_config_file, global_batch_size=self.global_batch_size)
    return config


@_serializable
class LookupLayer(_TableLayer):
  """tf.nn.embedding_lookup in a table of the parameter server.

  Rows are served, not trained: the layer has no variables and no gradient.

  Args:
    model_name: string, a model of the configuration.
    table_id: int, position in the model's `sparse_files`.
    emb_vec_size: int, the table's width.
    emb_vec_dtype: tf.float32.
    ps_config_file: path of the configuration, used to start the server with the first
      lookup; "" if hps.Init or the environment variable HPS_PS_CONFIG_FILE gives it.
    global_batch_size: int, as for hps.Init.
    **kwargs: those of tf.keras.layers.Layer. The output is float32. In Keras 3, dtype is
      the type of the ids that a Sequential without an Input passes on: int64.

  Raises:
    TypeError, ValueError: an argument is wrong; the message names it.
  """

  _IDS = "ids"

  def call(self, ids, max_norm=None):
    """Returns the rows of ids.

    Args:
      ids: int32 or int64 tensor of any shape, or RaggedTensor. int64 if the
        configuration has `supportlonglong: true`, otherwise int32.
      max_norm: float or None; a row with a larger L2 norm is scaled down to it.

    Returns:
      float32, ids.shape + [emb_vec_size]; ragged if ids are. An id that the table lacks
        gets the table's default value, clipped like other rows.

    Raises:
      TypeError: ids are sparse or of another type.

    Running raises InvalidArgumentError (more ids than max_batch_size *
    maxnum_catfeature_query_per_table_per_sample, ids of the wrong type, another width,
    no such table), NotFoundError (no such model), and the errors of hps.Init.
    """
    if isinstance(ids, tf.SparseTensor):
      raise TypeError("hps.LookupLayer: expected dense or ragged ids, got a SparseTensor; use "
                      "hps.SparseLookupLayer")
    if isinstance(ids, tf.RaggedTensor):
      _check_ids(ids, "hps.LookupLayer")
      return ids.with_flat_values(self._rows(ids.flat_values, max_norm))
    ids = tf.convert_to_tensor(ids)
    _check_ids(ids, "hps.LookupLayer")
    return self._rows(ids, max_norm)


@_serializable
class SparseLookupLayer(_TableLayer):
  """tf.nn.embedding_lookup_sparse in a table of the parameter server.

  Arguments are those of LookupLayer.
  """

  _IDS = "sp_ids"

  def call(self, sp_ids, sp_weights=None, name=None, combiner=None, max_norm=None):
    """Returns the combined rows of each sample.

    Args:
      sp_ids: SparseTensor [B, ?] of int32 or int64 in row-major order, or RaggedTensor
        of rank 2.
      sp_weights: None, or float32 or float64 of the same kind, shape and indices.
      name: name of the ops.
      combiner: "sum", "mean" (weighted sum / sum of weights) or "sqrtn" (weighted sum /
        root of the sum of squared weights); None is "mean".
      max_norm: float or None; each row is scaled down to that L2 norm before it is
        combined.

    Returns:
      float32 [B, emb_vec_size], B = sp_ids.dense_shape[0]. A sample without ids is
        zeros, at any position; so is one whose divisor is zero.

    Raises:
      TypeError: sp_ids or sp_weights have another type.
      ValueError: the combiner is unknown, or the rank is not 2.

    Running raises the errors of LookupLayer, for the distinct ids of the batch.
    """
    combiner = "mean" if combiner is None else combiner
    if combiner not in _COMBINERS:
      raise ValueError("combiner: expected one of %s, got %r" %
                       (", ".join(_COMBINERS), combiner))
    if isinstance(sp_ids, tf.RaggedTensor):
      sp_ids = self._sparse(sp_ids, "sp_ids")
    if not isinstance(sp_ids, tf.SparseTensor):
      raise TypeError("sp_ids: expected a SparseTensor or RaggedTensor, got %s" %
                      type(sp_ids).__name__)
    _check_ids(sp_ids, "hps.SparseLookupLayer")
    if sp_ids.shape.ndims not in (2, None):
      raise ValueError("hps.SparseLookupLayer: sp_ids: expected the shape [batch, ids], got rank "
                       "%d: %s" % (sp_ids.shape.ndims, sp_ids.shape))
    if sp_ids.shape.ndims is None:
      with tf.device("/cpu:0"):  # fails when it runs, where TensorFlow has the kernel
        sp_ids = tf.SparseTensor(tf.ensure_shape(sp_ids.indices, [None, 2]), sp_ids.values,
                                 sp_ids.dense_shape)
    if isinstance(sp_weights, tf.RaggedTensor):
      sp_weights = self._sparse(sp_weights, "sp_weights")
    if sp_weights is not None:
      if not isinstance(sp_weights, tf.SparseTensor):
        raise TypeError("sp_weights: expected None, a SparseTensor or RaggedTensor, got %s" %
                        type(sp_weights).__name__)
      if not sp_weights.dtype.is_floating:
        raise TypeError("sp_weights: expected floats, got %s" % sp_weights.dtype.name)
    with tf.compat.v1.name_scope(name, "hps_lookup_sparse"):
      return self._combined(sp_ids, sp_weights, combiner, max_norm)

  @staticmethod
  def _sparse(ragged, what):
    if ragged.ragged_rank != 1 or ragged.flat_values.shape.ndims not in (1, None):
      raise ValueError("%s: expected a RaggedTensor of rank 2, got %s" % (what, ragged.shape))
    with tf.device("/cpu:0"):  # TensorFlow 1.15 has these ops only on the CPU
      return ragged.to_sparse()

  def _combined(self, sp_ids, sp_weights, combiner, max_norm):
    samples = tf.cast(sp_ids.indices[:, 0], tf.int32)
    # Host memory, where the lookup reads its ids.
    with tf.device("/cpu:0"):
      ids, which = _lib.load().hps_distinct(ids=sp_ids.values)
    rows = self._rows(ids, max_norm)
    if sp_weights is None and _gpu_of(rows) is not None:
      return self._whole_batch(
          self._combined_on_gpu(rows, which, samples, combiner), sp_ids)
    if sp_weights is None:
      pooling = {"sum": tf.sparse.segment_sum, "mean": tf.sparse.segment_mean,
                 "sqrtn": tf.sparse.segment_sqrt_n}[combiner]
      return self._whole_batch(pooling(rows, which, samples), sp_ids)
    with tf.device("/cpu:0"):  # strings are in host memory
      same = [
          tf.debugging.assert_equal(
              sp_ids.indices, sp_weights.indices,
              message="sp_weights: expected the indices of sp_ids"),
          tf.debugging.assert_equal(
              sp_ids.dense_shape, sp_weights.dense_shape,
              message="sp_weights: expected the shape of sp_ids"),
      ]
    with tf.control_dependencies(same):
      weights = tf.expand_dims(tf.cast(sp_weights.values, tf.float32), 1)
    # The same order of operations as in stock lookups, for equal bits.
    total = tf.math.segment_sum(tf.gather(rows, which) * weights, samples)
    if combiner == "sum":
      return self._whole_batch(total, sp_ids)
    # Adds in the order of the ids, which a GPU would not keep: a sum that is exactly 0
    # must be 0 on every device.
    with tf.device("/cpu:0"):
      if combiner == "mean":
        divisor = tf.math.segment_sum(weights, samples)
      else:
        divisor = tf.sqrt(tf.math.segment_sum(tf.pow(weights, 2), samples))
    total = tf.math.divide_no_nan(total, divisor)
    return self._whole_batch(total, sp_ids)

  @staticmethod
  def _combined_on_gpu(rows, which, samples, combiner):
    """Combines without the SparseSegment ops, which TensorFlow 1.15 has only on the
    CPU.
    """
    total = tf.math.segment_sum(tf.gather(rows, which), samples)
    if combiner == "sum":
      return total
    count = tf.math.segment_sum(tf.ones_like(samples, tf.float32), samples)
    if combiner == "sqrtn":
      count = tf.sqrt(count)
    return tf.math.divide_no_nan(total, tf.expand_dims(count, 1))

  def _whole_batch(self, pooled, sp_ids):
    """Appends the samples without ids at the end, which segment ops omit."""
    found = tf.shape(pooled)[0]
    with tf.device("/cpu:0"):  # sizes are in host memory
      batch = sp_ids.dense_shape[0]
      # A larger value would overflow the cast.
      fits = tf.debugging.assert_less_equal(
          batch, tf.constant(_MAX_SAMPLES, tf.int64),
          message="sp_ids: expected a dense_shape of at most %d samples" % _MAX_SAMPLES)
      with tf.control_dependencies([fits]):
        batch = tf.cast(batch, tf.int32)
      padding = tf.convert_to_tensor([[0, batch - found], [0, 0]])
    padded = tf.pad(pooled, padding)
    static = tf.compat.dimension_value(sp_ids.shape[0]) if sp_ids.shape.ndims else None
    padded.set_shape([static, self.emb_vec_size])
    return padded
