# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""sok.lookup_sparse: pooled lookups of many embedding variables as one op."""

import embedding_variable

from sparse_operation_kit import arguments
from sparse_operation_kit import communication
from sparse_operation_kit import variables

# Where a table may live when there is one process: on all ranks, or on rank 0.
_ONE_PROCESS_TARGETS = (-1, 0)


def _check_param(param):
  parts = variables.parts(param)
  if not parts:
    raise TypeError(
        "sok.lookup_sparse: params must be embedding variables (see "
        "tf.get_embedding_variable), got %r. For a dense variable use "
        "tf.nn.embedding_lookup_sparse." % (param,))
  # A partitioned variable carries the attribute itself if the script set it there.
  for part in parts + [param]:
    target_gpu = getattr(part, "target_gpu", -1)
    if isinstance(target_gpu, bool) or target_gpu not in _ONE_PROCESS_TARGETS:
      raise ValueError(
          "sok.lookup_sparse: target_gpu of variable '%s' must be -1 (all ranks) "
          "or 0 in one process, got %r" % (part.name, target_gpu))


def lookup_sparse(params, sp_ids=None, sp_weights=None, combiners=None,
                  use_low_frequency_filter=False, hotness=None, indices=None):
  """Looks up and pools the rows of one or many embedding variables at once.

  However many variables there are, this is one op, and its gradient one more.
  Prefer one call with lists to many calls.

  A sample without ids gives zeros. An id that has no row yet reads the row it
  would start with, and gets a row of its own when its first gradient is applied.
  Ids may repeat; any int64 or int32 is legal.

  Example:

    table = tf.get_embedding_variable("item", embedding_dim=16)
    ids = tf.SparseTensor([[0, 0], [0, 1], [2, 0]], [7, -3, 7], [3, 2])
    pooled = sok.lookup_sparse(table, ids, combiners="sum")    # [3, 16]

  Args:
    params: embedding variable, or a list of them, of any dims. The same one may
      occur several times. `target_gpu` of each must be -1 or 0.
    sp_ids: SparseTensor or RaggedTensor of rank 2 ([batch, ids]) and dtype int64
      or int32, or a list of them, one per variable.
    sp_weights: float weights in the form of sp_ids (as many per sample), or a list
      of them, in which an entry may be None; None: all weights are 1.
    combiners: "sum" (sum of w * row) or "mean" (that, divided by the sum of w), or
      a list of them, one per variable; None: "mean" for all. Also spelled Sum,
      SUM, Mean, MEAN, average, Average, AVERAGE.
    use_low_frequency_filter: only False.
    hotness: accepted for older scripts and ignored (one warning in the log).
    indices: what sp_ids was called formerly.

  Older scripts' positional orders work as well: (params, ids, hotness, combiners)
  and (params, ids, combiners).

  Returns:
    A list of float32 tensors [batch, dim], in the order of params, if sp_ids is a
    list or tuple; otherwise the one tensor.

  Raises:
    TypeError: a param is no embedding variable, ids are neither a SparseTensor
      nor a RaggedTensor, or an argument is given twice.
    ValueError: numbers of arguments differ, an unknown combiner, or a target_gpu
      that one process does not have.
    NotImplementedError: Horovod runs several ranks, or use_low_frequency_filter.
  """
  communication.require_one_rank("sok.lookup_sparse")
  if use_low_frequency_filter:
    raise NotImplementedError(
        "sok.lookup_sparse: use_low_frequency_filter is not built yet")
  lookups = arguments.read(params, sp_ids, sp_weights, combiners, hotness, indices)
  for param in lookups.params:
    _check_param(param)
  outputs = embedding_variable.lookup_sparse(
      lookups.params, lookups.sp_ids, lookups.sp_weights, lookups.combiners)
  return outputs if lookups.is_list else outputs[0]
