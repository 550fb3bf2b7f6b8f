# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""DeepRec's group lookups: many tables in one call, fused for embedding variables.

All embedding variables go into one op forward and one backward; each has its own dim
and combiner. Ordinary variables among them are looked up one by one.
"""

import functools
import sys

from embedding_variable.lookup import combiners as combiners_lib
from embedding_variable.lookup import output_types
from embedding_variable.lookup import pooled
from embedding_variable.lookup import row_pooling
from embedding_variable.lookup import stock_semantics
from embedding_variable.tf_names import array_ops
from embedding_variable.tf_names import dtypes
from embedding_variable.tf_names import embedding_ops
from embedding_variable.tf_names import math_ops
from embedding_variable.tf_names import ops
from embedding_variable.tf_names import ragged_tensor
from embedding_variable.tf_names import sparse_tensor
from embedding_variable.tf_names import tensor_shape
from embedding_variable.variables import variable as ev

# The pooled lookup of embedding variables; `set_lookup` replaces it.
_lookup = [pooled.lookup_sparse]


def set_lookup(function):
  """Makes group lookups call `function(params, sp_ids, sp_weights, combiners)`.

  A package that spreads tables over ranks provides it. None: the lookup in one process. It
  gets the keyword `output_dtype` if outputs are not float32.

  Returns:
    The function that was in use, which may be passed to restore it.
  """
  previous = _lookup[0]
  _lookup[0] = function or pooled.lookup_sparse
  return previous


def is_over_ranks():
  """Returns whether `set_lookup` has set a function."""
  return _lookup[0] is not pooled.lookup_sparse


def lookup(params, sp_ids, sp_weights, combiners, output_dtype=dtypes.float32):
  """Looks up and pools the ids of a group's embedding variables by one function."""
  options = {} if output_dtype == dtypes.float32 else {"output_dtype": output_dtype}
  return _lookup[0](params, sp_ids, sp_weights, combiners, **options)


def group_embedding_lookup_sparse(params,
                                  sp_ids,
                                  combiners,
                                  sp_weights=None,
                                  partition_strategy="mod",
                                  is_sequence=False,
                                  params_num_per_group=sys.maxsize,
                                  name=None,
                                  output_dtype=None):
  """Looks up and pools the ids of T tables.

  A sample without ids gives zeros. The result has a row for every sample of the dense
  shape.

  Args:
    params: list of T embedding variables (or `PartitionedVariable`s of them), or
      ordinary variables.
    sp_ids: list of T SparseTensors `[B, ...]` or RaggedTensors of rank 2, of int32 or
      int64 ids.
    combiners: list of T names of combiners (combiners.py), or one name for all tables.
    sp_weights: None, or a list of T of the same structure as `sp_ids`, floating point;
      an entry may be None.
    partition_strategy: "mod" or "div", of ordinary partitioned variables.
    is_sequence: do not pool: the results are `[B, T, dim]`, padded with zeros.
      Combiners have no effect, but their names and number are checked. Weights are an
      error.
    params_num_per_group: int >= 1, most tables in one op.
    name: name of the op.
    output_dtype: float32, float16, bfloat16 or one of their names, the type of the
      results; None: float32 for embedding variables, the type of ordinary ones. As in
      `lookup_sparse`, rows and sums are float32.

  Returns:
    A list of T tensors `[B_t, dim_t]` of `output_dtype`.

  Raises:
    ValueError: lists of different lengths, an unknown combiner or strategy, weights
      together with `is_sequence`, `params_num_per_group` below 1.
    TypeError: ids are neither a SparseTensor nor a RaggedTensor of integers, or another
      `output_dtype`.
  """
  function = "group_embedding_lookup_sparse"
  params, sp_ids = _as_list(params), _as_list(sp_ids)
  weights = [None] * len(params) if sp_weights is None else _as_list(sp_weights)
  if isinstance(combiners, str):
    combiners = [combiners] * len(params)
  elif combiners is None:
    combiners = [combiners_lib.DEFAULT] * len(params)
  pooled.check_lengths(function, params, sp_ids, combiners, weights)
  for combiner, sp_weight in zip(combiners, weights):
    if combiner not in combiners_lib.NAMES:
      raise ValueError("%s: combiner: expected one of %s, got %r" %
                       (function, ", ".join(combiners_lib.NAMES), combiner))
    combiners_lib.check_weights(combiner, function, sp_weight)
  _check_strategy(function, partition_strategy)
  if params_num_per_group < 1:
    raise ValueError("%s: params_num_per_group: expected at least 1, got %r" %
                     (function, params_num_per_group))
  for ids in sp_ids:
    if not isinstance(ids, (sparse_tensor.SparseTensor, ragged_tensor.RaggedTensor)):
      raise TypeError("%s: sp_ids: expected SparseTensors or RaggedTensors, got %r" %
                      (function, ids))
  dtype = _output_type(output_dtype, params, function)
  with ops.name_scope(name, function):
    if is_sequence:
      if sp_weights is not None:
        raise ValueError("%s: sp_weights have no meaning when rows are not pooled "
                         "(is_sequence)" % function)
      rows = group_embedding_lookup(params, [i.values for i in sp_ids],
                                    partition_strategy, output_dtype=output_dtype)
      return [_to_sequence(*pair) for pair in zip(rows, sp_ids)]
    outputs = [None] * len(params)
    tables = [i for i, p in enumerate(params) if _is_table(p)]
    for start in range(0, len(tables), params_num_per_group):
      group = tables[start:start + params_num_per_group]
      found = lookup([_as_params(params[i]) for i in group],
                     [sp_ids[i] for i in group], [weights[i] for i in group],
                     [combiners[i] for i in group], dtype)
      for i, output in zip(group, found):
        outputs[i] = output
    for i, output in enumerate(outputs):
      if output is None:
        # Stock code returns no row for empty samples at the end, and takes no
        # RaggedTensor.
        outputs[i] = _cast(row_pooling.pool(
            functools.partial(embedding_ops.embedding_lookup, params[i],
                              partition_strategy=partition_strategy), sp_ids[i],
            weights[i], combiners[i]), output_dtype)
    return outputs


def _output_type(output_dtype, params, function):
  """Returns the type of the results of a lookup of tables."""
  names = [getattr(p, "name", "params %d" % i) for i, p in enumerate(params)]
  return output_types.checked(output_dtype, names, function)


def group_embedding_lookup(params, ids, partition_strategy="mod", name=None,
                           output_dtype=None):
  """Looks up the rows of T tables.

  Args:
    params: as in `group_embedding_lookup_sparse`.
    ids: list of T int32 or int64 tensors of any shape.
    partition_strategy: "mod" or "div", of ordinary partitioned variables.
    name: name of the op.
    output_dtype: as in `group_embedding_lookup_sparse`.

  Returns:
    A list of T tensors `ids.shape + [dim]` of `output_dtype`.

  Raises:
    ValueError: lists of different lengths, an unknown strategy.
    TypeError: ids are not integers, or another `output_dtype`.
  """
  params, ids = _as_list(params), _as_list(ids)
  if len(params) != len(ids):
    raise ValueError("group_embedding_lookup: %d params came with %d ids" %
                     (len(params), len(ids)))
  _check_strategy("group_embedding_lookup", partition_strategy)
  dtype = _output_type(output_dtype, params, "group_embedding_lookup")
  with ops.name_scope(name, "group_embedding_lookup"):
    outputs = [None] * len(params)
    tables = [i for i, p in enumerate(params) if _is_table(p)]
    requests, wanted = [], []
    for i in tables:
      table = ev.parts_of(params[i])[0]
      wanted.append(table.convert_ids(ids[i]))
      requests.append(
          pooled.each_id_a_sample(array_ops.reshape(wanted[-1], [-1])))
    found = pooled.lookup_sparse([_as_params(params[i]) for i in tables], requests,
                                 combiners=[combiners_lib.SUM] * len(tables),
                                 output_dtype=dtype)
    for i, own_ids, rows in zip(tables, wanted, found):
      dim = tensor_shape.dimension_value(rows.shape[-1])
      outputs[i] = array_ops.reshape(
          rows, array_ops.concat([array_ops.shape(own_ids), [dim]], 0))
      outputs[i].set_shape(own_ids.shape.concatenate([dim]))
    for i, output in enumerate(outputs):
      if output is None:
        outputs[i] = _cast(embedding_ops.embedding_lookup(
            params[i], ids[i], partition_strategy), output_dtype)
    return outputs


def _cast(rows, output_dtype):
  """Returns rows of an ordinary variable in the type that a caller requests, if any."""
  return rows if output_dtype is None else math_ops.cast(rows, output_dtype)


def _as_list(values):
  """Returns a list; a single value becomes a list of one."""
  return list(values) if isinstance(values, (list, tuple)) else [values]


def _check_strategy(function, partition_strategy):
  if partition_strategy not in ("mod", "div"):
    raise ValueError("%s: partition_strategy: expected 'mod' or 'div', got %r" %
                     (function, partition_strategy))


def _is_table(params):
  return ev.parts_of(params) is not None


def _as_params(params):
  """Converts a table, whole or in parts, to the argument of `pooled.lookup_sparse`."""
  return stock_semantics.as_params(ev.parts_of(params))


def _to_sequence(rows, ids):
  """Returns `[B, T, dim]` of the rows `[N, dim]` of a SparseTensor or RaggedTensor."""
  if isinstance(ids, ragged_tensor.RaggedTensor):
    return ragged_tensor.RaggedTensor.from_row_splits(
        rows, ids.row_splits, validate=False).to_tensor()
  dim = tensor_shape.dimension_value(rows.shape[-1])
  batch_size = pooled.checked_batch(ids, "group_embedding_lookup_sparse")
  shape = array_ops.concat([[batch_size], ids.dense_shape[1:], [dim]], 0)
  result = array_ops.scatter_nd(ids.indices, rows, shape)
  if ids.shape.ndims is not None:
    result.set_shape(ids.shape.concatenate([dim]))
  return result
