# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The combiners: how a lookup combines the rows of a sample's ids into one row.

`_TABLE` at the end has an entry for each. The fused op pools most lookups and takes the
combiner's name. The functions of an entry serve lookups that stock ops pool: rows that
are clipped, composed from several tables, or in the parts of a partitioned table. A new
combiner needs an entry in this table and its arithmetic in the op.

Letters in shapes: N ids, B samples, dim floats in a row.
"""

import collections

from embedding_variable.tf_names import dtypes
from embedding_variable.tf_names import ops
from embedding_variable.tf_names import array_ops
from embedding_variable.tf_names import math_ops

SUM = "sum"

# Combiner of a lookup whose caller names none.
DEFAULT = "mean"

# One combiner.
#   name: string, as lookups and the ops take it.
#   of_parts: string, the combiner with which each part of a partitioned table pools its
#     own ids.
#   merge: function (list of float32 [B, dim], one per part; list of int64 [N_p], the
#     samples of each part's ids; B) -> float32 [B, dim]: merges the parts' results into
#     one pooled row per sample, not yet divided.
#   pool: function (rows, float32 [N, dim], each times its weight; samples, int64 [N];
#     B) -> float32 [B, dim], zeros for a sample without ids, not yet divided.
#   divisor: function (samples, int64 [N]; weights, float32 [N], or None for ones; B;
#     no_nan, bool: the gradient of a divisor that is 0 is 0) -> float32 [B]: the
#     divisor of each pooled row; or None: rows are not divided.
#   selects: bool, whether each element of the pooled row is copied from one of the rows
#     instead of being a sum (kSelects in kernels/engine/combine/combiner.h). Such a
#     combiner takes no weights, and SOK offers it without its filter of rare keys,
#     since a row of zeros would count.
#   needs_positive_weights: bool, whether "safe" lookups drop the ids whose weight is
#     not positive, as in TensorFlow.
#   sok_spellings: tuple of strings, its names in sok.lookup_sparse; empty: SOK does not
#     have it. Unless it selects, a combiner in SOK must not change when a row of zeros
#     is added to a sample, because low_frequency.py drops ids that would read such
#     rows.
Combiner = collections.namedtuple("Combiner", [
    "name", "of_parts", "merge", "pool", "divisor", "selects", "needs_positive_weights",
    "sok_spellings"
])


def _add_parts(outputs, unused_samples, unused_batch_size):
  return math_ops.add_n(outputs)


def _sum_of_weights(samples, weights, batch_size, no_nan):
  del no_nan  # unused: the gradient of a sum is finite
  return math_ops.unsorted_segment_sum(_or_ones(weights, samples), samples, batch_size)


def _norm_of_weights(samples, weights, batch_size, no_nan):
  squares = math_ops.square(_or_ones(weights, samples))
  total = math_ops.unsorted_segment_sum(squares, samples, batch_size)
  if weights is None or not no_nan:
    return math_ops.sqrt(total)
  # The gradient of a root at 0 is infinite, and 0 times infinity is NaN.
  is_zero = math_ops.equal(total, 0)
  ones = array_ops.ones_like(total)
  return array_ops.where(is_zero, total, math_ops.sqrt(
      array_ops.where(is_zero, ones, total)))


def _or_ones(weights, samples):
  if weights is None:
    return array_ops.ones_like(samples, dtypes.float32)
  return weights


def _max_of_rows(rows, samples, batch_size):
  largest = math_ops.unsorted_segment_max(rows, samples, batch_size)
  return _where_ids(samples, batch_size, largest, array_ops.zeros_like(largest))


def _max_of_parts(outputs, samples_of_parts, batch_size):
  # A part without ids of a sample must not win. If parts tie, each gets the same share
  # of the gradient, regardless of ties within a part.
  nothing = array_ops.fill(array_ops.shape(outputs[0]), outputs[0].dtype.min)
  largest = math_ops.reduce_max(array_ops.stack([
      _where_ids(samples, batch_size, output, nothing)
      for output, samples in zip(outputs, samples_of_parts)
  ]), axis=0)
  return _where_ids(array_ops.concat(samples_of_parts, 0), batch_size, largest,
                    array_ops.zeros_like(largest))


def _where_ids(samples, batch_size, pooled, otherwise):
  """Returns rows of `pooled` for samples with ids, rows of `otherwise` for the rest."""
  counts = math_ops.unsorted_segment_sum(array_ops.ones_like(samples), samples, batch_size)
  return array_ops.where(counts > 0, pooled, otherwise)


_TABLE = collections.OrderedDict((c.name, c) for c in (
    Combiner(
        name=SUM,
        of_parts=SUM,
        merge=_add_parts,
        pool=math_ops.unsorted_segment_sum,
        divisor=None,
        selects=False,
        needs_positive_weights=False,
        sok_spellings=("sum", "Sum", "SUM")),
    Combiner(
        name="mean",
        of_parts=SUM,
        merge=_add_parts,
        pool=math_ops.unsorted_segment_sum,
        divisor=_sum_of_weights,
        selects=False,
        needs_positive_weights=True,
        sok_spellings=("mean", "Mean", "MEAN", "average", "Average", "AVERAGE")),
    Combiner(
        name="sqrtn",
        of_parts=SUM,
        merge=_add_parts,
        pool=math_ops.unsorted_segment_sum,
        divisor=_norm_of_weights,
        selects=False,
        needs_positive_weights=True,
        sok_spellings=()),
    Combiner(
        name="max",
        of_parts="max",
        merge=_max_of_parts,
        pool=_max_of_rows,
        divisor=None,
        selects=True,
        needs_positive_weights=False,
        sok_spellings=("max", "Max", "MAX")),
))

NAMES = tuple(_TABLE)

# Names of the combiners that SOK has, and a map from each accepted spelling.
SOK_NAMES = tuple(c.name for c in _TABLE.values() if c.sok_spellings)
SOK_SPELLINGS = {s: c.name for c in _TABLE.values() for s in c.sok_spellings}


def get(name):
  """Returns the `Combiner` with a name that was checked."""
  return _TABLE[name]


def check(name, lookup, sp_weights=None):
  """Raises ValueError unless a combiner with this name exists and accepts the weights.

  Args:
    name: the name given by the caller of a lookup.
    lookup: string that starts the error: the lookup and its variable.
    sp_weights: weights of any kind, or None for none.
  """
  if name not in NAMES:
    raise ValueError("%s: combiner: expected one of %s, got %r" %
                     (lookup, in_words(sorted(NAMES)), name))
  check_weights(name, lookup, sp_weights)


def check_weights(name, lookup, sp_weights):
  """Raises ValueError if there are weights and the combiner takes none."""
  if sp_weights is not None and _TABLE[name].selects:
    raise ValueError("%s: combiner %r takes no weights" % (lookup, name))


def in_words(names):
  """Returns names as an error lists them: `'a', 'b' or 'c'`."""
  names = ["'%s'" % name for name in names]
  return " or ".join([", ".join(names[:-1]), names[-1]])


def needs_positive_weights(name):
  """Returns whether a "safe" lookup drops ids whose weight is not positive.

  Args:
    name: the caller's argument, not checked yet; None: the default.
  """
  return name not in NAMES or _TABLE[name].needs_positive_weights


def divisor(name, samples, weights, batch_size, no_nan=True):
  """Returns the divisors of pooled rows, float32 `[B]`, or None.

  Weights are added on the CPU, in the order of the ids, as in the fused op, so a sum
  that is exactly 0 is 0 on every path.

  Args:
    name: string, a combiner.
    samples: int64 `[N]`, the sample of each id.
    weights: float32 `[N]`, or None for ones.
    batch_size: int64 scalar, B.
    no_nan: bool: gradients of a divisor that is 0 are zeros.
  """
  of_samples = _TABLE[name].divisor
  if of_samples is None:
    return None
  if weights is None:
    return of_samples(samples, weights, batch_size, no_nan)
  with ops.device("/device:CPU:0"):
    return of_samples(samples, weights, batch_size, no_nan)


def divide_no_nan(pooled, divisors):
  """Returns pooled rows `[B, dim]` divided by `[B]`, zeros for a divisor of 0; None:
  unchanged.
  """
  if divisors is None:
    return pooled
  return math_ops.div_no_nan(pooled, array_ops.expand_dims(divisors, 1))


def finish(pooled, name, samples, weights, batch_size, no_nan):
  """Returns pooled rows divided by the combiner's divisor.

  Args:
    pooled: float32 `[B, dim]`, zeros for a sample without ids.
    name: string, a combiner.
    samples: int64 `[N]`, the sample of each id.
    weights: float32 `[N]`, or None for ones.
    batch_size: int64 scalar, B.
    no_nan: bool, result for a sample with ids whose divisor is 0. True: zeros, with
      zero gradients. False: NaN or infinity, as in TensorFlow's division.
  """
  divisors = divisor(name, samples, weights, batch_size, no_nan)
  if divisors is None:
    return pooled
  if no_nan or weights is None:
    return divide_no_nan(pooled, divisors)
  divisors = _where_ids(samples, batch_size, divisors, array_ops.ones_like(divisors))
  return pooled / array_ops.expand_dims(divisors, 1)
