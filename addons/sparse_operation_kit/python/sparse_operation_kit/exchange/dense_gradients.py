# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Gradients of dense variables on a GPU, summed over ranks by NCCL.

Horovod's CPU wheel copies gradients through host memory. If ranks exchange by NCCL, the
gradients of variables on a TensorFlow GPU stay in GPU memory: one op sums all of them
with one NCCL call.

The choice is made when the graph is built, from facts that are equal on all ranks: the
device of the variable in the script, and the installed TensorFlow. TensorFlow still
decides where the op runs; it can also sum gradients in host memory.
"""

from embedding_variable import _lib
from embedding_variable.eager import taped
from embedding_variable.tf_names import device as device_lib
from embedding_variable.tf_names import dtypes
from embedding_variable.tf_names import ops
from embedding_variable.tf_names import test

from sparse_operation_kit import communication
from sparse_operation_kit import settings
from sparse_operation_kit.exchange import watch

_gen = _lib.load()

_TYPES = (dtypes.float16, dtypes.float32, dtypes.float64)

# Bytes per call, unless one gradient is larger; the carrier keeps a block of this size.
# While one call runs, the gradients of the next are computed.
_BYTES_PER_CALL = 64 << 20

# Arguments that only Horovod's own sums support.
_HOROVODS = ("compression", "groups", "num_groups", "process_set",
             "gradient_predivide_factor", "device_dense")


def takes(arguments):
  """Returns whether these arguments allow sums by NCCL.

  Args:
    arguments: dict, the keyword arguments of `hvd.DistributedOptimizer`.
  """
  hvd = communication.horovod()
  return (settings.exchange_on_device() and
          arguments.get("op", hvd.Average) in (hvd.Average, hvd.Sum) and
          not any(a in arguments for a in _HOROVODS))


def install(optimizer, average):
  """Makes a Horovod optimizer sum the gradients on a GPU by NCCL.

  Args:
    optimizer: result of `hvd.DistributedOptimizer`.
    average: bool; False sums gradients without dividing by the number of ranks.
  """
  others = optimizer._allreduce_grads  # pylint: disable=protected-access

  def allreduce(grads, variables=None, **kwargs):
    if variables is None:
      return others(grads, **kwargs)
    grads, variables = list(grads), list(variables)
    ours = [k for k, (g, v) in enumerate(zip(grads, variables)) if _is_on_gpu(g, v)]
    rest = [k for k in range(len(grads)) if k not in set(ours)]
    reduced = [None] * len(grads)
    if rest:
      done = others([grads[k] for k in rest], [variables[k] for k in rest], **kwargs)
      for k, grad in zip(rest, done):
        reduced[k] = grad
    for call in _calls(ours, grads, variables):
      done = _allreduce([grads[k] for k in call], [variables[k] for k in call], average)
      for k, grad in zip(call, done):
        reduced[k] = grad
    return reduced

  optimizer._allreduce_grads = allreduce  # pylint: disable=protected-access


def _is_on_gpu(grad, variable):
  if not isinstance(grad, ops.Tensor) or grad.dtype.base_dtype not in _TYPES:
    return False
  device_type = device_lib.DeviceSpec.from_string(variable.device or "").device_type
  if device_type is None:
    # Without a device, TensorFlow uses a GPU if it can.
    return test.is_built_with_cuda()
  return device_type == "GPU"


def _calls(ours, grads, variables):
  """Returns lists of indices: gradients of one type and device, in order."""
  lists, size = {}, {}
  result = []
  for k in ours:
    kind = (grads[k].dtype.base_dtype, variables[k].device or "")
    shape = variables[k].shape
    numbers = shape.num_elements() if shape.is_fully_defined() else 0
    num_bytes = numbers * kind[0].size
    if kind not in lists or size[kind] + num_bytes > _BYTES_PER_CALL:
      lists[kind] = []
      result.append(lists[kind])
      size[kind] = 0
    lists[kind].append(k)
    size[kind] += num_bytes
  return result


def _allreduce(grads, variables, average):
  # In the root scope, since the name must be unique and equal on all ranks.
  with ops.name_scope(None), ops.name_scope(watch.GRADIENTS) as scope, \
      ops.colocate_with(None, ignore_existing=True), ops.device(None), \
      ops.device(variables[0].device or None):
    sums = _gen.sok_all_reduce(
        grads, names=[_name(v) for v in variables],
        divisor=communication.num_ranks() if average else 1,
        exchange_name=scope[:-1], name="sum")
  watch.start()
  return list(sums)


def _name(variable):
  # Reference variables have no handle, and eager variables have no op.
  if taped.is_eager(getattr(variable, "handle", None)):
    return variable.name
  return variable.op.name


@ops.RegisterGradient("SokAllReduce")
def _sok_all_reduce_grad(op, *unused_grads):
  """Raises an error, since the gradient through a sum over ranks is not implemented."""
  raise NotImplementedError(
      "the sum over ranks by NCCL of the gradients of %s has no gradient. Call sok.init "
      "with exchange='horovod' or 'memory'" %
      ", ".join("'%s'" % name.decode("utf-8") for name in op.get_attr("names")))
