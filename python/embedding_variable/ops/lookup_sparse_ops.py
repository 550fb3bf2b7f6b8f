# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The fused lookup of several tables, its gradient, and the plan they share."""

import contextlib
import functools

from embedding_variable import _lib
from embedding_variable.eager import taped
from embedding_variable.ops import handle_ops
from embedding_variable.ops import table_gradients
from embedding_variable.tf_names import dtypes
from embedding_variable.tf_names import math_ops
from embedding_variable.tf_names import ops

_gen = _lib.load()

_GRAD_OP = "EvLookupSparseGrad"

# Label of the kernels that take ids from GPU memory (lookup_sparse_kernels.cc).
IDS_ON_GPU = "ids_on_gpu"

# Key by which (plan, number of the table in it) is attached to the indices of an eager
# gradient.
_PLAN = "_embedding_variable_plan"

# Remedy in errors of the gradient of a lookup's weights, which has no gradient.
_INSTEAD_OF_WEIGHTS = (
    "Look the rows up with tf.nn.embedding_lookup, and multiply and sum them with "
    "TensorFlow's ops: gradients of any order go through those")

# Op types that compute a lookup's gradients.
_gated = {_GRAD_OP, "EvLookupSparseWeightGrad"}

# Op types whose first input is a plan, whose attribute "tables" has numbers of its
# tables, and whose outputs are these tables' keys followed by their gradients. The
# value is a function that updates tables from such an op's inputs, or None.
_plan_grad_ops = {_GRAD_OP: None}


def lookup_sparse(resources,
                  ids,
                  rows,
                  batch_sizes,
                  combiners,
                  dims,
                  weights=None,
                  ids_on_gpu=False,
                  no_nan=False,
                  output_dtype=dtypes.float32,
                  name=None):
  """Looks up and pools the ids of T tables in one op.

  Inserts nothing; an absent key reads its default row. Differentiable with respect to
  the resources (IndexedSlices of unique keys) and to the weights; the gradient of all
  tables is one op too.

  Args:
    resources: list of T resource scalars.
    ids: list of T int64 or int32 tensors `[N_t]`. If both types occur, the int32 ones
      are cast.
    rows: list of T int64 tensors: the indices `[N_t, 2]` of a SparseTensor, sorted by
      sample, or the row splits `[B_t + 1]` of a RaggedTensor.
    batch_sizes: list of T int64 scalars, B_t.
    combiners: list of T strings: names of combiners.
    dims: list of T ints, the tables' row lengths.
    weights: None, or a list of T float32 tensors `[N_t]`.
    ids_on_gpu: bool. If the op runs on `/gpu:0`, ids and rows are taken from GPU
      memory. Free if they are computed on the GPU; otherwise TensorFlow copies them to
      it first.
    no_nan: bool, the result for a sample whose weights (mean) or squared weights
      (sqrtn) sum to 0. True: zeros, with zero gradients. False: the sum of its rows
      divided by 0.
    output_dtype: float32, float16 or bfloat16, the type of the outputs. With weights,
      another op casts them: the gradient of the weights needs the float32 outputs.
    name: name of the op.

  Returns:
    (outputs, plan): a list of T tensors `[B_t, D_t]`, and a variant scalar for
      `apply_ops.apply`.

  Raises:
    ValueError: the lists differ in length, or a static shape is wrong.
  """
  lists = [("ids", ids), ("rows", rows), ("batch_sizes", batch_sizes),
           ("combiners", combiners), ("dims", dims)]
  if weights is not None:
    lists.append(("weights", weights))
  handle_ops.check_lengths("lookup_sparse of", resources, lists)
  ids = [ops.convert_to_tensor(x) for x in ids]
  if len({x.dtype for x in ids}) > 1:
    ids = [math_ops.cast(x, dtypes.int64) for x in ids]
  weights = [math_ops.cast(w, dtypes.float32) for w in weights or ()]
  # The update of an eager table takes ids from host memory.
  labels = {"EvLookupSparse": IDS_ON_GPU} if (
      ids_on_gpu and not taped.is_eager(resources[0])) else {}
  with ops.get_default_graph()._kernel_label_map(labels):  # pylint: disable=protected-access
    outputs, plan = taped.run(
        _gen.ev_lookup_sparse, resources, ids, rows, batch_sizes, weights,
        combiners=combiners, dims=dims, no_nan=no_nan,
        Tout=dtypes.float32 if weights else output_dtype, name=name)
  return [math_ops.cast(x, output_dtype) for x in outputs], plan


def add_plan_grad_op(op_type, beside=(), update=None):
  """Registers another op type whose keys are those of a plan, for `plan_of`.

  Args:
    op_type: string. The op's first input is a plan that `apply_ops.apply` takes, its
      attribute "tables" lists K numbers of tables in it, its first K outputs are those
      tables' distinct keys in the plan's order, and the next K the gradients.
    beside: op types that compute other gradients of the same lookup.
    update: None, or a function (op, rule, resources, hyper, step, slot_names,
      slot_inits, plan_tables) -> op that replaces the op and `apply_ops.apply`, or None
      if it cannot.
  """
  _plan_grad_ops[op_type] = update
  _gated.update((op_type,) + tuple(beside))


def plan_of(slices):
  """Returns the plan and table from which the slices' keys directly come.

  Only the indices decide: values may have been clipped or scaled on the way.

  Args:
    slices: an IndexedSlices.

  Returns:
    (plan, table): the plan tensor of the lookup and the number of the table in it, or
      None if the keys do not come from a fused lookup's gradient.
  """
  indices = slices.indices
  if taped.is_eager(indices):
    return taped.attached(indices, _PLAN)
  while indices.op.type == "Identity":
    indices = indices.op.inputs[0]
  op = indices.op
  if op.type not in _plan_grad_ops:
    return None
  tables = op.get_attr("tables")
  # Keys come first, then gradients. A gradient is never an index, but check anyway.
  if indices.value_index >= len(tables):
    return None
  return op.inputs[0], int(tables[indices.value_index])


def source_of(slices):
  """Returns (op, k) if the slices are the unchanged gradient of table k of that op.

  (None, None) unless both indices and values are its outputs, and always for eager
  tensors.
  """
  if taped.is_eager(slices.indices) or taped.is_eager(slices.values):
    return None, None
  indices, values = _ungated(slices.indices), _ungated(slices.values)
  op = indices.op
  if op.type not in _plan_grad_ops or values.op is not op:
    return None, None
  count = len(op.get_attr("tables"))
  k = indices.value_index
  if k >= count or values.value_index != count + k:
    return None, None
  return op, k


def without_factor(slices):
  """Returns (slices, factor) whose product are the slices.

  A loss scaler multiplies gradients by such a factor. A fused update does it itself.

  Args:
    slices: an IndexedSlices.

  Returns:
    (slices, None) unless the values are the product of a tensor and a float32 scalar.
  """
  values = slices.values
  if not taped.is_eager(values) and values.op.type == "Mul":
    for factor, others in zip(values.op.inputs, reversed(values.op.inputs)):
      if factor.shape.ndims == 0:
        return ops.IndexedSlices(others, slices.indices, slices.dense_shape), factor
  return slices, None


def pooled_grad_of(slices):
  """Returns the gradient of the lookup's output from which the slices were computed.

  Args:
    slices: an IndexedSlices.

  Returns:
    A tensor `[B, D]`; None unless both indices and values are unchanged outputs of one
      lookup's gradient.
  """
  op, k = source_of(slices)
  return op.inputs[1 + k] if op is not None and op.type == _GRAD_OP else None


def update_of(all_slices):
  """Returns a function that updates tables without the op that computes these
  gradients.

  Args:
    all_slices: list of IndexedSlices.

  Returns:
    A function with the arguments of `update` in `add_plan_grad_op` after the op; None
      unless all are unchanged gradients of one op that has such an update.
  """
  sources = [source_of(slices)[0] for slices in all_slices]
  op = sources[0]
  if op is None or any(source is not op for source in sources):
    return None
  update = _plan_grad_ops[op.type]
  return None if update is None else functools.partial(update, op)


def _ungated(tensor):
  """Skips the Identity ops by which `tf.gradients` waits for other gradients of an op.

  An Identity that waits for anything else is kept, since it is there on purpose.
  """
  while tensor.op.type == "Identity" and all(
      gate.type == "NoOp" and gate.control_inputs and
      all(op.type in _gated for op in gate.control_inputs)
      for gate in tensor.op.control_inputs):
    tensor = tensor.op.inputs[0]
  return tensor


def plan_counts(plan, table, name=None):
  """Returns int64 `[U]`: how often each distinct key of a plan's table occurred.

  Args:
    plan: the plan tensor of a lookup.
    table: int, number of the table in it.
    name: name of the op.
  """
  with contextlib.ExitStack() if taped.is_eager(plan) else _beside(plan.op):
    return _gen.ev_plan_counts(plan, table=table, name=name)


def gradient_of(op, resource, keys, values, plan, table):
  """Returns a table's gradient as IndexedSlices, for the registered gradient of a lookup.

  In another graph, as for a tape around a `tf.function`, the update finds no plan. If
  the table records frequencies, such a gradient has an index for each occurrence.

  Args:
    op: the lookup.
    resource: resource scalar, the table's handle.
    keys: int64 `[U]`, distinct.
    values: float32 `[U, D]`.
    plan: plan that has the counts of the keys.
    table: int, number of the table in it.
  """
  if taped.is_eager(keys):
    taped.attach(keys, _PLAN, (plan, table))
  elif taped.is_elsewhere(op) and handle_ops.records_frequency(resource):
    keys, values = table_gradients.repeated(keys, values, plan_counts(plan, table))
  return table_gradients.record(ops.IndexedSlices(values, keys), resource)


@contextlib.contextmanager
def _beside(op):
  """Context in which new ops run where an op of this graph runs, despite device scopes.

  A plan cannot leave its process. So its consumers must run where the lookup does, for
  example on a parameter server, while device scopes may put gradients on the worker.
  """
  if op.graph is ops.get_default_graph():
    with ops.colocate_with(op, ignore_existing=True):
      yield
  else:
    # The gradient of a function is another function; TensorFlow places its ops.
    yield


def is_unconnected(op, index, grad):
  """Returns whether output `index` does not lead to the loss.

  Stock TensorFlow replaces a missing gradient by ZerosLike(output) if another output of
  the op has one. Passing that on would insert the keys of a table that the loss does
  not use.
  """
  if grad is None or taped.is_eager(grad):
    return grad is None
  return (isinstance(grad, ops.Tensor) and grad.op.type == "ZerosLike" and
          grad.op.inputs[0] is op.outputs[index])


@ops.RegisterGradient("EvLookupSparse")
def _ev_lookup_sparse_grad(op, *grads):
  """Creates one EvLookupSparseGrad for the tables that lead to the loss.

  The plan is an output of the lookup, so ops that use the plan run after it.
  """
  num_tables = op.get_attr("num_tables")
  dims = op.get_attr("dims")
  plan = op.outputs[num_tables]
  tables = [
      t for t in range(num_tables) if not is_unconnected(op, t, grads[t])
  ]
  result = [None] * len(op.inputs)
  if not tables:
    return result
  for t in tables:
    handle_ops.check_not_spread(op.inputs[t], "the pooled lookup of one process")
  dense = [ops.convert_to_tensor(grads[t]) for t in tables]
  weights = []
  if op.get_attr("num_weights"):
    weights = [op.inputs[4 * num_tables + t] for t in tables]
  with _beside(op):
    keys, values = taped.run(_gen.ev_lookup_sparse_grad, plan, dense, weights,
                             tables=tables, dims=[dims[t] for t in tables])
    for k, t in enumerate(tables):
      result[t] = gradient_of(op, op.inputs[t], keys[k], values[k], plan, t)
      if weights:
        result[4 * num_tables + t] = taped.run(
            _gen.ev_lookup_sparse_weight_grad, plan, dense[k], op.outputs[t], [], table=t)
  return result


class _Given(object):
  """An op on K tensors of tables of a plan, and the gradients of the op's output.

  EvLookupSparseGrad sums gradients by key, as the lookup sums rows by sample. So its
  gradient is the lookup of given rows, EvPoolGivenRows, and the gradient of that is
  EvLookupSparseGrad again. Gradients of any order are composed of the two.

  Attributes:
    numbers: list of the k whose output leads to the loss.
    grads: the gradients of these outputs.
    given: list of K tensors, the op's inputs.
  """

  def __init__(self, op, count, grads, first):
    """Args: the op, K, its outputs' gradients, and the number of the first such output."""
    inputs = list(op.inputs)
    self._plan, self.given, self._weights = inputs[0], inputs[1:1 + count], inputs[1 + count:]
    self._tables, self._dims = op.get_attr("tables"), op.get_attr("dims")
    self.numbers = [k for k in range(count)
                    if not is_unconnected(op, first + k, grads[first + k])]
    self.grads = [ops.convert_to_tensor(grads[first + k]) for k in self.numbers]

  def call(self, function):
    """Calls an op of this plan with `grads`."""
    weights = [self._weights[k] for k in self.numbers] if self._weights else []
    return taped.run(function, self._plan, self.grads, weights,
                     tables=[self._tables[k] for k in self.numbers],
                     dims=[self._dims[k] for k in self.numbers])

  def result(self, found, dense, outputs, rows):
    """Returns the gradients of the op's inputs.

    Args:
      found: the gradients of `given`; like the other arguments of those in `numbers`.
      dense, outputs, rows: lists of inputs of EvLookupSparseWeightGrad.
    """
    of_given, of_weights = [None] * len(self.given), [None] * len(self._weights)
    for i, k in enumerate(self.numbers):
      of_given[k] = math_ops.cast(found[i], self.given[k].dtype)
      if self._weights:
        of_weights[k] = taped.run(_gen.ev_lookup_sparse_weight_grad, self._plan, dense[i],
                                  outputs[i], [rows[i]], table=self._tables[k])
    return [None] + of_given + of_weights


@ops.RegisterGradient(_GRAD_OP)
def _ev_lookup_sparse_grad_grad(op, *grads):
  """Pools the gradients of the sums, which are rows of the sums' keys."""
  count = len(op.get_attr("tables"))
  given = _Given(op, count, grads, first=count)
  if not given.numbers:
    return [None] * len(op.inputs)
  with _beside(op):
    pooled = given.call(_gen.ev_pool_given_rows)
    return given.result(pooled, [given.given[k] for k in given.numbers], pooled, given.grads)


@ops.RegisterGradient("EvPoolGivenRows")
def _ev_pool_given_rows_grad(op, *grads):
  """Sums the gradients by key, as the gradient of the lookup does."""
  given = _Given(op, len(op.get_attr("tables")), grads, first=0)
  if not given.numbers:
    return [None] * len(op.inputs)
  with _beside(op):
    _, sums = given.call(_gen.ev_lookup_sparse_grad)
    return given.result(sums, given.grads, [op.outputs[k] for k in given.numbers],
                        [given.given[k] for k in given.numbers])


@ops.RegisterGradient("EvLookupSparseWeightGrad")
def _ev_lookup_sparse_weight_grad_grad(op, grad):
  """Raises an error: the op does not have all inputs that this gradient depends on."""
  del grad
  raise NotImplementedError(
      "the gradient of the weights of a pooled lookup, '%s', has no gradient. %s" %
      (op.name, _INSTEAD_OF_WEIGHTS))


ops.NotDifferentiable("EvPlanCounts")
