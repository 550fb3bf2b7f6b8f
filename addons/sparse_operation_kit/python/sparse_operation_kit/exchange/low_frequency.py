# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The filter of rare keys: lookup_sparse(..., use_low_frequency_filter=True).

A key without a row is admitted to a lookup with its table's `filter_ratio` as
probability; otherwise it counts as a row of zeros and is not trained. The key's owner
makes one draw per key and call, so all ranks get the same result. The draws need an
exchange before the lookup, like that of rows but with one number per distinct key. The
lookup then leaves out the ids that were not admitted.
"""

import collections

from embedding_variable import _lib
from embedding_variable.lookup import combiners as combiners_lib
from embedding_variable.lookup import pooled
from embedding_variable.tf_names import array_ops
from embedding_variable.tf_names import device as device_lib
from embedding_variable.tf_names import dtypes
from embedding_variable.tf_names import math_ops
from embedding_variable.tf_names import ops
from embedding_variable.tf_names import random_ops
from embedding_variable.tf_names import sparse_tensor

from sparse_operation_kit import communication
from sparse_operation_kit import settings
from sparse_operation_kit.exchange import eager_exchange
from sparse_operation_kit.exchange import spread_lookup
from sparse_operation_kit.exchange import watch
from sparse_operation_kit.variables import dynamic_config

_gen = _lib.load()

_DEVICE = "/device:CPU:0"

# The ids that remain: lists by table. divisors: float32 `[B]` by which sums are
# divided, or None.
Filtered = collections.namedtuple(
    "Filtered", ["sp_ids", "sp_weights", "combiners", "divisors"])


def filter_ids(params, sp_ids, sp_weights, combiners):
  """Leaves out the ids that are not admitted.

  Args:
    params, sp_ids, sp_weights, combiners: as for `embedding_variable.lookup_sparse`;
      every param must be a `sok.DynamicVariable` of var_type "hybrid".

  Returns:
    A Filtered. Its combiners are those to use before `finish` divides.

  Raises:
    TypeError: a param is of another kind.
    ValueError: a combiner selects, or a param is on a parameter server.
  """
  for param in params:
    if getattr(param, "backend_type", None) != dynamic_config.HYBRID:
      raise TypeError(
          "sok.lookup_sparse: use_low_frequency_filter needs sok.DynamicVariables of "
          "var_type 'hybrid', got %r" % (param,))
    job = device_lib.DeviceSpec.from_string(param.device or "").job
    if job not in (None, "localhost"):
      raise ValueError(
          "sok.lookup_sparse: use_low_frequency_filter does not work on parameter "
          "servers, but '%s' is on %s" % (param.op.name, param.device))
  for param, combiner in zip(params, combiners):
    if combiners_lib.get(combiner).selects:
      raise ValueError(
          "sok.lookup_sparse: use_low_frequency_filter does not work with combiner %r, "
          "of '%s': a key that is refused counts as a row of zeros" %
          (combiner, param.op.name))
  weights = [None] * len(params) if sp_weights is None else sp_weights
  with ops.name_scope("low_frequency_filter"):
    requests = [pooled.Request(*args)
                for args in zip(params, sp_ids, weights, combiners)]
  with eager_exchange.root_scope("sok_admission") as call, ops.device(None), \
      ops.device(_DEVICE):
    masks = _masks(params, requests, call)
    left = [_left(request, mask) for request, mask in zip(requests, masks)]
  return Filtered([ids for ids, _, _ in left], [w for _, w, _ in left],
                  [combiners_lib.get(r.combiner).of_parts for r in requests],
                  [d for _, _, d in left])


def finish(outputs, divisors):
  """Divides the pooled outputs of the ids that `filter_ids` left, where necessary."""
  return [combiners_lib.divide_no_nan(*pair) for pair in zip(outputs, divisors)]


def _masks(params, requests, call):
  """Returns a list of bool `[N]`: which ids are admitted."""
  num_ranks = communication.num_ranks()
  names = [p.op.name for p in params]
  placements = [spread_lookup.ranks_of(p, num_ranks) for p in params]
  ratios = [p.filter_ratio for p in params]
  fingerprint = spread_lookup.fingerprint_of(
      settings.exchange_dtype(), "admission", num_ranks, names, placements, ratios)
  ids = [math_ops.cast(r.ids, dtypes.int64) for r in requests]
  # Each id is its own sample, so the results are in the order of the ids.
  counts = [array_ops.size(x, out_type=dtypes.int64) for x in ids]
  dims = [1] * len(params)
  message, splits, route = _gen.sok_route(
      ids, [math_ops.range(n + 1) for n in counts], counts, [],
      names=names,
      combiners=[combiners_lib.SUM] * len(params),
      dims=dims,
      placements=[r for ranks in placements for r in ranks],
      placement_sizes=[len(ranks) for ranks in placements],
      num_ranks=num_ranks,
      fingerprint=fingerprint,
      call=call,
      name="route")
  if num_ranks > 1:
    message, splits = spread_lookup.alltoall(message, splits, "keys")
  handles = [p.handle for p in params]
  seed = random_ops.random_uniform([], maxval=dtypes.int64.max, dtype=dtypes.int64)
  flags, flag_splits = _gen.sok_admit(
      handles, message, splits, seed, ratios=ratios, fingerprint=fingerprint,
      name="admit")
  if num_ranks > 1:
    flags, _ = spread_lookup.alltoall(flags, flag_splits, "flags")
    watch.start()
  shown = _gen.sok_pool(
      handles, [], route, flags, route, message, splits,
      dims=dims, wire="float32", num_ranks=num_ranks, fingerprint=fingerprint, call=call,
      name="pool")
  return [array_ops.reshape(s, [-1]) > .5 for s in shown]


def _left(request, mask):
  """Returns (ids, weights, divisor) of one table for its admitted ids."""
  if request.dense_shape is not None:
    request.batch_size = pooled.checked_size(
        math_ops.cast(request.batch_size, dtypes.int64), "lookup_sparse of '%s'" %
        request.name)
  samples = pooled.sample_of_ids(request.rows)
  divisor = combiners_lib.divisor(
      request.combiner, samples, request.weights, request.batch_size)
  kept = array_ops.boolean_mask(samples, mask)
  indices = array_ops.stack([kept, array_ops.zeros_like(kept)], axis=1)
  shape = array_ops.stack([math_ops.cast(request.batch_size, dtypes.int64), 1])
  if request.static_batch is not None:
    shape = ops.convert_to_tensor([request.static_batch, 1], dtypes.int64)
  ids = sparse_tensor.SparseTensor(
      indices, array_ops.boolean_mask(request.ids, mask), shape)
  weights = None
  if request.weights is not None:
    weights = sparse_tensor.SparseTensor(
        indices, array_ops.boolean_mask(request.weights, mask), shape)
  return ids, weights, divisor
