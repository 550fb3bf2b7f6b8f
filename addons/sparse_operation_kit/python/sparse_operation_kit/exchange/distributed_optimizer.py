# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""sok.DistributedOptimizer: averages dense gradients over ranks and divides those of tables."""

import inspect

from embedding_variable import tf_names
from embedding_variable.eager import taped
from embedding_variable.eager.patches import keras_ranks_patch
from embedding_variable.ops import handle_ops
from embedding_variable.tf_names import tf

from sparse_operation_kit import communication
from sparse_operation_kit.exchange import dense_gradients
from sparse_operation_kit.exchange import spread_lookup

# Arguments of `hvd.DistributedOptimizer`, where Horovod is not imported.
_ARGUMENTS = frozenset((
    "average_aggregated_gradients", "backward_passes_per_step", "compression",
    "device_dense", "device_sparse", "gradient_predivide_factor", "groups", "name",
    "num_groups", "op", "process_set", "scale_local_gradients", "sparse_as_dense",
    "use_locking"))


def DistributedOptimizer(optimizer, **kwargs):  # pylint: disable=invalid-name
  """Wraps an optimizer so that ranks train one model.

  Gradients of dense variables are averaged over ranks. The gradient of an embedding
  variable that `sok.lookup_sparse` spreads over ranks is already the sum over ranks,
  and stays on the rank that owns the rows; it is divided by the number of ranks. Both
  then have the scale of one process that trains on the merged batch with a mean loss.
  With `op=hvd.Sum` neither is divided, which matches a sum loss.

  Clip the result of `compute_gradients`: `tf.clip_by_global_norm` and `tf.clip_by_norm`
  count a table's rows on all ranks.

  The result is `hvd.DistributedOptimizer`, which does the same if called directly. This
  function also works in a single process, with or without Horovod, and rejects
  arguments that are wrong for tables.

  With `sok.init(exchange="nccl")`, NCCL sums the gradients of dense variables on a
  TensorFlow GPU in few calls; Horovod sums the others. Horovod sums all of them if one
  of its arguments compression, groups, num_groups, process_set,
  gradient_predivide_factor or device_dense is given.

  Example:

    optimizer = sok.DistributedOptimizer(tf.train.AdagradOptimizer(0.1))
    train_op = optimizer.minimize(loss)

  Args:
    optimizer: a `tf.train.Optimizer` or a `tf.keras.optimizers.Optimizer`.
    **kwargs: arguments of `hvd.DistributedOptimizer`.

  Returns:
    The wrapped optimizer. With one rank, `optimizer` itself; then the names of arguments
    and `backward_passes_per_step` are checked, and the values of others are not.

  Raises:
    TypeError: `optimizer` is not an optimizer, or an argument is unknown.
    ValueError: `op=hvd.Adasum` or `backward_passes_per_step` above 1, which are not
      defined for the rows of a table.
    NotImplementedError: an optimizer of Keras 3 over several ranks, for which Horovod
      averages nothing.
  """
  keras_classes = tf_names.keras_optimizer_classes()
  if not isinstance(optimizer, (tf.compat.v1.train.Optimizer,) + keras_classes):
    raise TypeError(
        "sok.DistributedOptimizer: expected a tf.train or tf.keras optimizer, got %r" %
        (optimizer,))
  hvd = communication.horovod()
  known = _ARGUMENTS if hvd is None else frozenset(
      inspect.signature(hvd.DistributedOptimizer).parameters) - {"optimizer"}
  unknown = sorted(set(kwargs) - known)
  if unknown:
    raise TypeError("sok.DistributedOptimizer: unknown arguments %s; it takes %s" %
                    (", ".join(unknown), ", ".join(sorted(known))))
  if kwargs.get("backward_passes_per_step", 1) != 1:
    raise ValueError(
        "sok.DistributedOptimizer: backward_passes_per_step: expected 1, got %r: the "
        "gradients of a table's rows cannot be collected over several batches" %
        (kwargs["backward_passes_per_step"],))
  if communication.num_ranks() == 1:
    return optimizer
  if kwargs.get("op") == hvd.Adasum:
    raise ValueError("sok.DistributedOptimizer: op: expected hvd.Average or hvd.Sum; "
                     "Adasum has no meaning for the rows of a table")
  keras_ranks_patch.check_wrapped(optimizer, "sok.DistributedOptimizer")
  wrapped = hvd.DistributedOptimizer(optimizer, **kwargs)
  _name_in_errors(wrapped)
  if dense_gradients.takes(kwargs):
    average = kwargs.get("op") != hvd.Sum
    dense_gradients.install(wrapped, average)
    if average and kwargs.get("scale_local_gradients", True):
      _divide_where_they_are(wrapped)
  return wrapped


def _name_in_errors(wrapped):
  """Makes errors of Horovod's sums name the gradients, as those of NCCL do."""
  stock = wrapped._allreduce_grads  # pylint: disable=protected-access

  def allreduce(grads, variables=None, **kwargs):
    if variables is None or any(taped.is_eager(v.handle) for v in variables
                                if hasattr(v, "handle")):
      return stock(grads, variables, **kwargs)  # there is no session
    known = set(tf.compat.v1.get_default_graph().get_operations())
    sums = stock(grads, variables, **kwargs)
    names = ["'%s'" % v.op.name for v in variables]
    what = ", ".join(names[:3]) + (
        " and %d more" % (len(names) - 3) if len(names) > 3 else "")
    for op in tf.compat.v1.get_default_graph().get_operations():
      if op.type.startswith("Horovod") and op not in known:
        handle_ops.name_in_errors(
            op, "%s: summing the gradients of %s over ranks failed" % (op.name, what))
    return sums

  wrapped._allreduce_grads = allreduce  # pylint: disable=protected-access


def _divide_where_they_are(wrapped):
  """Divides gradients of tables in the op that sums them, not in Horovod.

  A division by Horovod would copy them through host memory. Keras optimizers have no
  compute_gradients and are left unchanged.
  """
  if not isinstance(wrapped, tf.compat.v1.train.Optimizer):
    return
  stock = wrapped.compute_gradients
  wrapped.scale_local_gradients = False

  def compute_gradients(*args, **kwargs):
    pairs = stock(*args, **kwargs)
    # On TensorFlow 2.x Horovod keeps references to variables.
    local = {id(v.deref() if hasattr(v, "deref") else v)
             for v in wrapped._local_vars}  # pylint: disable=protected-access
    ours = [k for k, (g, v) in enumerate(pairs) if g is not None and id(v) in local]
    divided = spread_lookup.divided([pairs[k][0] for k in ours], communication.num_ranks())
    for k, gradient in zip(ours, divided):
      pairs[k] = (gradient, pairs[k][1])
    return pairs

  wrapped.compute_gradients = compute_gradients
