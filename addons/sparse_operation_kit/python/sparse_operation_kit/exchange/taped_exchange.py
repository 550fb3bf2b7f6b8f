# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Gradients, for a `tf.GradientTape`, of lookups that exchange rows with other ranks.

The ops of a lookup are hidden from the tape, which records the whole lookup with the
gradient function of this module (eager/taped.py of embedding_variable). The gradient sums
by key on each rank and then over ranks; its own gradient pools the given rows like a
lookup. So gradients of any order are composed of these two, and each exchanges once.

An exchange of gradients has the tables whose outputs lead to the loss, so these must be
the same on all ranks.
"""

from embedding_variable import _lib
from embedding_variable.eager import taped
from embedding_variable.ops import handle_ops
from embedding_variable.ops import spread_gradients
from embedding_variable.tf_names import dtypes
from embedding_variable.tf_names import ops

_gen = _lib.load()

# The type of the op that sums over ranks, registered with `spread_gradients`.
SUMS = "SokServeGrad"


class Lookup(object):
  """A lookup of T tables: the tensors that its gradient uses.

  Args:
    call: string, the name of the lookup.
    handles: list of T resource scalars.
    dims: list of T ints.
    route, received, served, keys, key_splits: tensors between the lookup's ops.
    gradient_needs_rows: bool, whether a combiner selects.
    attributes: dict of the attributes num_ranks, wire, with_occurrences and fingerprint
      of the lookup's ops.
    alltoall: function (tensor, splits, name) -> (received, received splits).
    beside: function without arguments that returns the context of the lookup's ops.
  """

  def __init__(self, call, handles, dims, route, received, served, keys, key_splits,
               gradient_needs_rows, attributes, alltoall, beside):
    self._call = call
    self._handles = handles
    self._dims = dims
    self._route = route
    self._received = received
    self._served = (served, keys, key_splits)
    self._selected = [received] if gradient_needs_rows else []
    self._attributes = attributes
    self._alltoall = alltoall
    self._beside = beside

  def record(self, outputs, weights):
    """Records the lookup; returns the outputs for the caller.

    Args:
      outputs: list of T float32 tensors `[B_t, D_t]`.
      weights: list of T float32 tensors `[N_t]`, or empty.
    """
    count = len(self._handles)

    def gradient(grads):
      tables, dense = _sorted(grads)
      keys, sums = self._sums_by_key(dense, [weights[t] for t in tables] if weights else [],
                                     tables)
      result = [None] * (count + len(weights))
      for k, t in enumerate(tables):
        result[t] = ops.IndexedSlices(sums[k], keys[k])
        spread_gradients.mark(result[t], SUMS, self._call + "/serve_grad")
        if taped.is_eager(keys[k]):
          taped.set_plan(keys[k], self._served[0], t)
        if weights:
          result[count + t] = self._weight_gradient(self._received, dense[k], outputs[t], t)
      return result

    return taped.differentiable("SokPool", outputs, list(self._handles) + list(weights),
                                gradient)

  def _sums_by_key(self, dense, weights, tables):
    """Sums gradients by key on this rank, and on the owner of each key over ranks.

    Args:
      dense: list of K float32 tensors `[B_k, D_k]`.
      weights: list of K float32 tensors `[N_k]`, or empty.
      tables: list of K ints, the tables' numbers.

    Returns:
      (keys, sums): lists of K int64 tensors `[U_k]` and K float32 tensors `[U_k, D_k]`
        of the keys that this rank owns.
    """
    route, attributes = self._route, dict(self._attributes)
    num_ranks = attributes.pop("num_ranks")
    with self._beside(), taped.unrecorded():
      message, splits = _gen.sok_pool_grad(
          route, dense, self._selected, weights, tables=tables, num_ranks=num_ranks,
          Twire=self._received.dtype, wire=attributes["wire"], call=self._call,
          name="pool_grad")
      received, _ = self._alltoall(message, splits, "gradients")
      keys, sums = _gen.sok_serve_grad(
          *self._served, received, route, num_grads=len(tables),
          num_tables=len(self._handles), tables=tables,
          dims=[self._dims[t] for t in tables], name="serve_grad", **attributes)

    def gradient(grads):
      numbers, rows = _sorted(grads)
      some = [tables[k] for k in numbers]
      pooled, back = self._pooled(rows, [weights[k] for k in numbers] if weights else [],
                                  some)
      result = [None] * (len(dense) + len(weights))
      for i, k in enumerate(numbers):
        result[k] = pooled[i]
        if weights:
          result[len(dense) + k] = self._weight_gradient(
              back, dense[k], pooled[i], tables[k], some)
      return result

    return list(keys), taped.differentiable(SUMS, list(sums), dense + weights, gradient)

  def _pooled(self, rows, weights, tables):
    """Sends given rows of this rank's keys to the ranks that looked them up, and pools.

    Args:
      rows: list of K float32 tensors `[U_k, D_k]`, in the order of `_sums_by_key`.
      weights, tables: as for `_sums_by_key`.

    Returns:
      (pooled, back): list of K float32 tensors `[B_k, D_k]`, and the received rows.
    """
    route, attributes = self._route, dict(self._attributes)
    if self._received.dtype == dtypes.variant:
      raise NotImplementedError(
          "sok.lookup_sparse of '%s': gradients of gradients cannot be exchanged by NCCL. "
          "Call sok.init with exchange='horovod' or 'memory'" %
          handle_ops.handle_op_of(self._handles[tables[0]]).name)
    attributes.pop("num_ranks")
    with self._beside(), taped.unrecorded():
      values, splits = _gen.sok_serve_given_rows(
          *self._served, route, rows, num_tables=len(self._handles), tables=tables,
          Twire=self._received.dtype, call=self._call, name="serve_given_rows",
          **attributes)
      back, _ = self._alltoall(values, splits, "back")
      pooled = list(_gen.sok_pool_given_rows(
          route, back, self._selected, weights, num_rows=len(rows), tables=tables,
          dims=[self._dims[t] for t in tables], wire=attributes["wire"],
          name="pool_given_rows"))

    def gradient(grads):
      numbers, dense = _sorted(grads)
      _, sums = self._sums_by_key(dense, [weights[k] for k in numbers] if weights else [],
                                  [tables[k] for k in numbers])
      result = [None] * (len(rows) + len(weights))
      for i, k in enumerate(numbers):
        result[k] = sums[i]
        if weights:
          result[len(rows) + k] = self._weight_gradient(
              back, dense[i], pooled[k], tables[k], tables)
      return result

    return taped.differentiable("SokPoolGivenRows", pooled, rows + weights, gradient), back

  def _weight_gradient(self, rows, dense, output, table, tables=()):
    """Returns the gradient of one table's weights, `[N]`, which has no gradient itself.

    Args:
      rows: the rows that this rank received.
      dense: float32 `[B, D]`, the gradient of the table's output.
      output: float32 `[B, D]`.
      table: int.
      tables: list of ints, the tables of the rows; empty for those of the lookup.
    """
    with self._beside(), taped.unrecorded():
      found = _gen.sok_pool_weight_grad(
          self._route, rows, dense, output, table=table, tables=list(tables),
          wire=self._attributes["wire"], name="weight_grad")

    def gradient(unused_grads):
      raise NotImplementedError(
          "sok.lookup_sparse of '%s': the gradient of the weights has no gradient" %
          handle_ops.handle_op_of(self._handles[table]).name)

    return taped.differentiable("SokPoolWeightGrad", [found], [dense, output], gradient)[0]


def _sorted(grads):
  """Returns (numbers, tensors) of a dict {number: gradient}."""
  numbers = sorted(grads)
  return numbers, [ops.convert_to_tensor(grads[k]) for k in numbers]
