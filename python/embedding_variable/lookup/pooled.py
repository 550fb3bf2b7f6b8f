# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Pooled lookups of many tables in one op, or a few (op_parts.py)."""

from embedding_variable.lookup import combiners as combiners_lib
from embedding_variable.lookup import op_parts
from embedding_variable.lookup import output_types
from embedding_variable.lookup import partition
from embedding_variable.ops import lookup_sparse_ops
from embedding_variable.ops import pack_ops
from embedding_variable.tf_names import array_ops
from embedding_variable.tf_names import constant_op
from embedding_variable.tf_names import control_flow_ops
from embedding_variable.tf_names import device as device_lib
from embedding_variable.tf_names import dtypes
from embedding_variable.tf_names import math_ops
from embedding_variable.tf_names import ops
from embedding_variable.tf_names import ragged_tensor
from embedding_variable.tf_names import resource_variable_ops
from embedding_variable.tf_names import segment_id_ops
from embedding_variable.tf_names import sparse_tensor
from embedding_variable.tf_names import tensor_shape
from embedding_variable.tf_names import variables
from embedding_variable.variables import variable as ev


# Most samples of one batch (kernels/engine/base/batch_limits.h).
MAX_SAMPLES = 2 ** 31 - 2


class Request(object):
  """The ids of one table in the form that the op takes."""

  def __init__(self, params, sp_ids, sp_weights, combiner):
    self.parts = _parts(params)
    self.name = self.parts[0].op.name
    self.dim = self.parts[0].dim
    if combiner not in combiners_lib.NAMES:
      raise ValueError("lookup_sparse of '%s': combiner: expected one of %s, got %r" %
                       (self.name, ", ".join(combiners_lib.NAMES), combiner))
    combiners_lib.check_weights(combiner, "lookup_sparse of '%s'" % self.name, sp_weights)
    self.combiner = combiner
    self.dense_shape = None  # if given as a SparseTensor
    self.ids, self.rows, self.batch_size, self.static_batch = self._convert(sp_ids)
    self.weights = None
    if sp_weights is not None:
      self.weights = self._convert_weights(sp_ids, sp_weights)

  def _error(self, kind, message, *args):
    return kind("lookup_sparse of '%s': %s" % (self.name, message % args))

  def _convert(self, sp_ids):
    """Returns (ids `[N]`, rows, batch size, static batch size or None)."""
    if isinstance(sp_ids, sparse_tensor.SparseTensorValue):
      sp_ids = sparse_tensor.SparseTensor.from_value(sp_ids)
    if isinstance(sp_ids, sparse_tensor.SparseTensor):
      rank = rank_of(sp_ids)
      if rank is not None and rank < 2:
        raise self._error(
            ValueError, "sp_ids: expected a SparseTensor of rank 2 or more "
            "([samples, ids]), got rank %d", rank)
      ids = self._check_ids(sp_ids.values)
      rows = sp_ids.indices
      if rank is not None and rank > 2:
        # All ids under one first index are one sample, as in TensorFlow.
        rows = rows[:, :2]
      static = static_batch(sp_ids, "lookup_sparse of '%s'" % self.name)
      self.dense_shape = sp_ids.dense_shape
      return ids, rows, sp_ids.dense_shape[0], static
    if isinstance(sp_ids, ragged_tensor.RaggedTensor):
      if sp_ids.ragged_rank != 1 or sp_ids.values.shape.ndims not in (None, 1):
        raise self._error(
            ValueError, "sp_ids: expected a RaggedTensor of rank 2 "
            "([samples, ids]), got ragged rank %d and values of rank %s",
            sp_ids.ragged_rank, sp_ids.values.shape.ndims)
      ids = self._check_ids(sp_ids.values)
      splits = math_ops.cast(sp_ids.row_splits, dtypes.int64)
      batch = array_ops.size(splits, out_type=dtypes.int64) - 1
      static = tensor_shape.dimension_value(splits.shape[0]) if splits.shape.ndims else None
      return ids, splits, batch, None if static is None else static - 1
    raise self._error(
        TypeError, "sp_ids: expected a SparseTensor or a RaggedTensor, got %r",
        sp_ids)

  def _check_ids(self, ids):
    return self.parts[0].convert_ids(ids)

  def _convert_weights(self, sp_ids, sp_weights):
    """Returns float32 `[N]`."""
    if isinstance(sp_weights, sparse_tensor.SparseTensorValue):
      sp_weights = sparse_tensor.SparseTensor.from_value(sp_weights)
    if isinstance(sp_ids, sparse_tensor.SparseTensorValue):
      sp_ids = sparse_tensor.SparseTensor.from_value(sp_ids)
    if type(sp_weights) is not type(sp_ids):
      raise self._error(
          TypeError, "sp_weights: expected the kind of sp_ids (%s), got %r",
          type(sp_ids).__name__, sp_weights)
    values = sp_weights.values
    if not values.dtype.is_floating:
      raise self._error(TypeError, "sp_weights: expected floating point, got %s",
                        values.dtype.name)
    if not values.shape.is_compatible_with(self.ids.shape):
      raise self._error(ValueError,
                        "sp_weights has %s values, but sp_ids has %s",
                        values.shape, self.ids.shape)
    return math_ops.cast(values, dtypes.float32)


def _parts(params):
  """Returns the list of tables in `params`."""
  parts = None
  if isinstance(params, variables.PartitionedVariable) or ev.is_embedding_variable(
      params):
    parts = ev.parts_of(params)
  if parts is None:
    raise TypeError(
        "lookup_sparse: params: expected embedding variables "
        "(tf.get_embedding_variable), got %r" % (params,))
  return parts


def lookup_sparse(params, sp_ids, sp_weights=None, combiners=None, name=None,
                  no_nan=False, output_dtype=None):
  """Looks up and pools the ids of T tables.

  Uses one op forward and one backward per device; for 8 or more tables a device may have
  a few of both, eight at most (op_parts.py). A partitioned table has one of both per part.

  Output row b of table t is the sum, mean (Σwe/Σw), sqrtn (Σwe/√Σw²) or other
  combination of the rows of sample b's ids; zeros if it has none. Nothing is inserted;
  an absent key reads its default row.

  Args:
    params: list of T embedding variables (or `PartitionedVariable`s of them). The same
      one may occur more than once.
    sp_ids: list of T SparseTensors `[B, ...]` sorted by sample, or RaggedTensors of
      rank 2; ids int32 or int64, any value.
    sp_weights: None, or a list of T of the same structure, floating point; an entry may
      be None for weights of 1.
    combiners: list of T names of combiners (combiners.py); None: all "mean".
    name: name of the op.
    no_nan: bool, the result for a sample with ids whose weights (mean) or squared
      weights (sqrtn) sum to 0. True: zeros, with zero gradients for its rows and
      weights. False: NaN or infinity, as in `tf.nn.embedding_lookup_sparse`.
    output_dtype: float32, float16, bfloat16 or one of their names; None: float32. Rows
      and sums are float32; an output is rounded once, and its gradient, which has its
      type, is widened when it is read.

  Returns:
    A list of T tensors `[B_t, dim_t]` of `output_dtype`, B_t being the dense shape's
      first number (SparseTensor) or the number of rows (RaggedTensor).

  Raises:
    ValueError: lists of different lengths, an unknown combiner, weights for a combiner
      that takes none, a SparseTensor of rank 1.
    TypeError: not an embedding variable, ids that are not integers, or another
      `output_dtype`.
  """
  params, sp_ids = list(params), list(sp_ids)
  combiners = ([combiners_lib.DEFAULT] * len(params) if combiners is None else
               list(combiners))
  weights = [None] * len(params) if sp_weights is None else list(sp_weights)
  check_lengths("lookup_sparse", params, sp_ids, combiners, weights)
  if not params:
    return []
  with ops.name_scope(name, "lookup_sparse"):
    requests = [
        Request(*args) for args in zip(params, sp_ids, weights, combiners)
    ]
    dtype = output_types.checked(output_dtype, [r.name for r in requests],
                                 "lookup_sparse")
    outputs = [None] * len(requests)
    by_device = {}
    for i, request in enumerate(requests):
      if len(request.parts) > 1:
        outputs[i] = math_ops.cast(_lookup_parts(request, no_nan), dtype)
      else:
        # Tables on one device go into one op, or a few.
        key = request.parts[0].device, ids_are_on_gpu(request)
        by_device.setdefault(key, []).append(i)
    for device, ids_on_gpu in sorted(by_device):
      indices = by_device[device, ids_on_gpu]
      pooled = []
      for part in op_parts.cut([requests[i] for i in indices]):
        pooled.extend(_lookup(part, device, ids_on_gpu, no_nan, dtype))
      for i, output in zip(indices, pooled):
        outputs[i] = output
  return outputs


def rank_of(ids):
  """Returns the rank of a tensor, SparseTensor or RaggedTensor; None if it is unknown."""
  if not isinstance(ids, sparse_tensor.SparseTensor):
    return ids.shape.ndims
  rank = None
  if ids.indices.shape.ndims:
    rank = tensor_shape.dimension_value(ids.indices.shape[1])
  if rank is None and ids.dense_shape.shape.ndims:
    rank = tensor_shape.dimension_value(ids.dense_shape.shape[0])
  return rank


def static_batch(sp_ids, what):
  """Returns the number of samples of a SparseTensor, or None if the graph does not have
  it.

  Raises:
    ValueError: more samples than a batch can have (TensorFlow would crash the process
      when it creates such a shape); the error starts with `what`.
  """
  size = tensor_shape.dimension_value(sp_ids.shape[0]) if sp_ids.shape.ndims else None
  if size is not None and size > MAX_SAMPLES:
    raise ValueError("%s: the dense_shape of the ids says %d samples, at most %d are "
                     "possible" % (what, size, MAX_SAMPLES))
  return size


def checked_batch(sp_ids, what):
  """Returns `dense_shape[0]` as int64, checked before a stock op takes it.

  Stock ops crash the process when they create a shape from a number that is too large.
  The fused op has its own check.

  Args:
    sp_ids: SparseTensor.
    what: string that starts the error.

  Raises:
    ValueError: as for `static_batch`. If the size is known only when the op runs:
      InvalidArgumentError.
  """
  size = static_batch(sp_ids, what)
  with ops.device("/device:CPU:0"):
    if size is not None:
      return constant_op.constant(size, dtypes.int64)
    return checked_size(math_ops.cast(sp_ids.dense_shape, dtypes.int64)[0], what)


def checked_size(size, what):
  """Returns `size`, an int64 number of samples; running it fails if it is out of range."""
  with ops.device("/device:CPU:0"):
    is_possible = math_ops.logical_and(size >= 0, size <= MAX_SAMPLES)
    check = control_flow_ops.Assert(is_possible, [
        "%s: the dense_shape of the ids: expected a first number from 0 to %d, got" %
        (what, MAX_SAMPLES), size
    ])
    with ops.control_dependencies([check]):
      # Grappler may run the consumer of the size before the check.
      return array_ops.where(is_possible, size, array_ops.zeros_like(size))


def check_lengths(function, params, sp_ids, combiners, sp_weights):
  """Raises ValueError unless the lists have one length; `function` starts the error."""
  for what, values in (("sp_ids", sp_ids), ("combiners", combiners),
                       ("sp_weights", sp_weights)):
    if len(values) != len(params):
      raise ValueError("%s: %d params came with %d %s" %
                       (function, len(params), len(values), what))


def each_id_a_sample(ids):
  """Returns ids `[N]` as N samples of one id each: the sum over a sample is the id's
  row.
  """
  splits = math_ops.range(array_ops.size(ids, out_type=dtypes.int64) + 1)
  return ragged_tensor.RaggedTensor.from_row_splits(ids, splits, validate=False)


def _gpu_of(device):
  """Returns the number of the GPU in a device string, or None."""
  spec = device_lib.DeviceSpec.from_string(device or "")
  if spec.device_type != "GPU":
    return None
  return spec.device_index or 0


def ids_are_on_gpu(request):
  """Returns whether ids and samples are made on the GPU that the table is placed on.

  Only explicit placements count: TensorFlow places the rest later. With weights, rows
  are pooled in CPU memory, so the result is False.
  """
  gpu = _gpu_of(request.parts[0].device)
  return (gpu is not None and request.weights is None and
          _gpu_of(request.ids.device) == gpu and _gpu_of(request.rows.device) == gpu)


def _batch_size(request, cpu, constants):
  """Returns B as int64 in CPU memory, where an op on a GPU reads it.

  Ops in the caller's scopes might be placed on the GPU. Then even a constant would have
  to be copied to the host in every step, before the lookup.

  Args:
    request: a `Request`.
    cpu: string, the device.
    constants: dict that caches the tensor of each known size.
  """
  size = request.static_batch
  with ops.device(cpu):
    if size is not None:
      if size not in constants:
        constants[size] = constant_op.constant(size, dtypes.int64)
      return constants[size]
    if request.dense_shape is not None:
      return math_ops.cast(request.dense_shape, dtypes.int64)[0]
    if request.rows.shape.ndims != 1:  # part of a table
      return math_ops.cast(request.batch_size, dtypes.int64)
  # Copies only the size of splits in GPU memory to the host.
  with ops.device(request.rows.device or cpu):
    splits = array_ops.size(request.rows, out_type=dtypes.int64)
  with ops.device(cpu):
    return splits - 1


def op_inputs(requests, ids, device, ids_on_gpu):
  """Returns lists of ids, rows and batch sizes as an op on a device takes them.

  Args:
    requests: list of `Request`.
    ids: list of their ids, possibly converted to another type.
    device: string.
    ids_on_gpu: bool, whether the op takes ids and rows from GPU memory.
  """
  rows = [r.rows for r in requests]
  cpu = pack_ops.cpu_of(device)
  if cpu == device:
    with ops.device(device):
      return ids, rows, [math_ops.cast(r.batch_size, dtypes.int64) for r in requests]
  constants = {}
  batch_sizes = [_batch_size(r, cpu, constants) for r in requests]
  if ids_on_gpu:
    return ids, rows, batch_sizes
  on_device = pack_ops.to_device(ids + rows + batch_sizes, device)
  n = len(requests)
  return on_device[:n], on_device[n:2 * n], on_device[2 * n:]


def _lookup(requests, device, ids_on_gpu=False, no_nan=False,
            output_dtype=dtypes.float32):
  """Creates one op for requests of whole tables on one device."""
  weights = None
  if any(r.weights is not None for r in requests):
    weights = [
        array_ops.ones_like(r.ids, dtypes.float32) if r.weights is None else
        r.weights for r in requests
    ]
  ids, rows, batch_sizes = op_inputs(requests, [r.ids for r in requests], device,
                                     ids_on_gpu)
  for request in requests:
    resource_variable_ops.variable_accessed(request.parts[0])
  with ops.colocate_with(None, ignore_existing=True), ops.device(device):
    outputs, _ = lookup_sparse_ops.lookup_sparse(
        [r.parts[0].handle for r in requests],
        ids,
        rows,
        batch_sizes,
        [r.combiner for r in requests],
        [r.dim for r in requests],
        weights=weights,
        ids_on_gpu=ids_on_gpu,
        no_nan=no_nan,
        output_dtype=output_dtype)
  for request, output in zip(requests, outputs):
    output.set_shape([request.static_batch, request.dim])
  return outputs


def _lookup_parts(request, no_nan):
  """Pools the ids of each part of a partitioned table and merges the results."""
  combiner = combiners_lib.get(request.combiner)
  ids, num_parts = request.ids, len(request.parts)
  samples = sample_of_ids(request.rows)
  weights = request.weights
  if request.dense_shape is not None:
    request.batch_size = checked_size(
        math_ops.cast(request.batch_size, dtypes.int64), "lookup_sparse of '%s'" %
        request.name)
  assignment = partition.part_of(ids, num_parts)
  outputs, samples_of_parts = [], []
  for p, part in enumerate(request.parts):
    mine = array_ops.reshape(array_ops.where(math_ops.equal(assignment, p)), [-1])
    part_ids = array_ops.gather(ids, mine)
    samples_of_parts.append(array_ops.gather(samples, mine))
    sub = _SubRequest(request, part, combiner.of_parts, part_ids, samples_of_parts[-1],
                      None if weights is None else array_ops.gather(weights, mine))
    outputs.extend(_lookup([sub], part.device))
  total = combiner.merge(outputs, samples_of_parts, request.batch_size)
  return combiners_lib.finish(total, request.combiner, samples, weights,
                              request.batch_size, no_nan)


class _SubRequest(object):
  """The ids of one part of a partitioned table."""

  def __init__(self, request, part, combiner, ids, samples, weights):
    self.parts = [part]
    self.dim = part.dim
    self.combiner = combiner
    self.dense_shape = None
    self.ids = ids
    self.rows = array_ops.stack([samples, array_ops.zeros_like(samples)], axis=1)
    self.weights = weights
    self.batch_size = request.batch_size
    self.static_batch = request.static_batch


def sample_of_ids(rows):
  """Returns int64 `[N]`: the sample of each id.

  Args:
    rows: indices `[N, 2]` of a SparseTensor, or row splits `[B + 1]`.
  """
  if rows.shape.ndims == 1:
    return segment_id_ops.row_splits_to_segment_ids(rows, out_type=dtypes.int64)
  return math_ops.cast(rows[:, 0], dtypes.int64)
