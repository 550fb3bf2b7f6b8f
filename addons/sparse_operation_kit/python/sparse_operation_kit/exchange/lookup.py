# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""sok.lookup_sparse: pooled lookups of many embedding variables in one or a few ops."""

import functools

import embedding_variable
from embedding_variable.eager import keras_variable
from embedding_variable.lookup import output_types
from embedding_variable.tf_names import tf

from sparse_operation_kit import communication
from sparse_operation_kit.exchange import arguments
from sparse_operation_kit.exchange import low_frequency
from sparse_operation_kit.exchange import spread_lookup
from sparse_operation_kit.variables import kinds


def _check_param(param):
  parts = kinds.parts(param)
  if not parts:
    raise TypeError(
        "sok.lookup_sparse: params: expected embedding variables (see "
        "tf.get_embedding_variable), got %r. For a dense variable use "
        "tf.nn.embedding_lookup_sparse." % (param,))
  # Check the partitioned variable too: the script may have set target_gpu on it.
  for part in parts + [param]:
    spread_lookup.ranks_of(part, communication.num_ranks())


# Without this, autograph in a Keras layer would rewrite this function and all that it
# calls.
@tf.autograph.experimental.do_not_convert
def lookup_sparse(params, sp_ids=None, sp_weights=None, combiners=None,
                  use_low_frequency_filter=False, hotness=None, indices=None,
                  output_dtype=None):
  """Looks up and pools the rows of one or many embedding variables at once.

  In one process, the lookup of all variables on one device is one op, and its gradient
  another; for 8 or more variables each may be a few ops. A partitioned variable has one
  of both per part. Over several ranks, the ranks exchange keys, then rows, and for the
  gradient they exchange gradients, each once for all variables. So prefer one call with
  lists to many calls.

  Over several ranks (Horovod), `target_gpu` of each variable decides which rank owns a
  key. -1: key k is on rank floormod(k, number of ranks). A rank: all keys are on it. A
  list of ranks: key k is on list[floormod(k, length)]. Every rank must build the same
  lookups in the same order and run each the same number of times. Batch sizes may
  differ between ranks, and be 0. The gradient of a row is the sum over all ranks, which
  `sok.DistributedOptimizer` divides by their number unless it is created with
  op=hvd.Sum.

  A sample without ids gives zeros. So does a sample whose weights sum to 0 with "mean";
  the gradients of its rows and weights are zero. (Weights are added as float32 in the
  order of the ids, in one process and over ranks.)

  An id without a row reads its default row of the table, and gets a row when its first
  gradient is applied. Ids may repeat; any int64 or int32 is valid.

  Example:

    table = tf.get_embedding_variable("item", embedding_dim=16)
    ids = tf.SparseTensor([[0, 0], [0, 1], [2, 0]], [7, -3, 7], [3, 2])
    pooled = sok.lookup_sparse(table, ids, combiners="sum")    # [3, 16]

  Args:
    params: embedding variable, or a list of them, of any dims. The same one may
      occur several times.
    sp_ids: SparseTensor or RaggedTensor of rank 2 ([batch, ids]) and dtype int64
      or int32, or a list of them, one per variable.
    sp_weights: float weights in the form of sp_ids (one per id), or a list of them,
      in which an entry may be None; None: all weights are 1.
    combiners: "sum" (sum of w * row), "mean" (that sum divided by the sum of w) or
      "max" (the maximum of each element, which takes neither weights nor the
      low-frequency filter), or a list of them, one per variable; None: "mean" for all.
      Also spelled Sum, SUM, Mean, MEAN, average, Average, AVERAGE, Max, MAX.
    use_low_frequency_filter: bool. If True, an id without a row is admitted only with
      the probability `filter_ratio` of its `sok.DynamicVariable`. An id that is not
      admitted counts as a row of zeros and is not trained. Costs one more exchange per
      call.
    hotness: accepted for older scripts and ignored (one warning in the log).
    indices: former name of sp_ids.
    output_dtype: type of the outputs: `tf.float32`, `tf.float16`, `tf.bfloat16` or one
      of their names; None: float32. Rows and sums are float32. An output is rounded
      once, to nearest, when it is stored. Its gradient has its type, and is widened to
      float32 when it is read. The bits are those of `tf.cast` of the float32 output.
      With weights the cast is an op of its own.

  The positional orders of older scripts work too: (params, ids, hotness, combiners) and
  (params, ids, combiners).

  Returns:
    A list of tensors [batch, dim] of output_dtype, in the order of params, if sp_ids is
    a list or tuple; otherwise the one tensor.

  Raises:
    TypeError: a param is not an embedding variable, ids are neither a SparseTensor nor
      a RaggedTensor, an argument is given twice, output_dtype is none of these types,
      or use_low_frequency_filter with a param that is not a `sok.DynamicVariable` of
      var_type "hybrid".
    ValueError: the lengths of the arguments differ, a combiner is unknown, target_gpu
      has a rank that does not exist, or a partitioned variable is used over several
      ranks.
  """
  lookups = arguments.read(params, sp_ids, sp_weights, combiners, hotness, indices)
  lookups = lookups._replace(params=[keras_variable.held(p) for p in lookups.params])
  for param in lookups.params:
    _check_param(param)
  dtype = output_types.checked(
      output_dtype, [kinds.parts(p)[0].op.name for p in lookups.params],
      "sok.lookup_sparse")
  build = functools.partial(embedding_variable.lookup_sparse, no_nan=True)
  if communication.num_ranks() > 1:
    build = spread_lookup.lookup_sparse
  if use_low_frequency_filter:
    left = low_frequency.filter_ids(
        lookups.params, lookups.sp_ids, lookups.sp_weights, lookups.combiners)
    outputs = low_frequency.finish(
        build(lookups.params, left.sp_ids, left.sp_weights, left.combiners),
        left.divisors)
    outputs = [tf.cast(output, dtype) for output in outputs]
  else:
    outputs = build(lookups.params, lookups.sp_ids, lookups.sp_weights,
                    lookups.combiners, output_dtype=dtype)
  return outputs if lookups.is_list else outputs[0]
