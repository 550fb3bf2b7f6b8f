# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""sok.DistributedOptimizer: dense gradients over ranks, tables on theirs."""

import tensorflow as tf

from embedding_variable.ops import handle_ops

from sparse_operation_kit import communication
from sparse_operation_kit import dense_gradients
from sparse_operation_kit import exchange


def DistributedOptimizer(optimizer, **kwargs):  # pylint: disable=invalid-name
  """Wraps an optimizer so that ranks train one model.

  Gradients of dense variables are averaged over ranks. The gradient of an embedding
  variable that `sok.lookup_sparse` spreads over ranks is the sum over ranks already,
  and stays where its rows are; it is divided by the number of ranks. So both sides have
  the scale of one process on the merged batch under a mean loss. With `op=hvd.Sum`
  neither is divided, which is the scale under a sum.

  Clip what `compute_gradients` returns: `tf.clip_by_global_norm` and `tf.clip_by_norm`
  count the rows of a table on all ranks.

  It is `hvd.DistributedOptimizer`, which does the same when it is called directly; this
  one also works in a single process, with or without Horovod, and refuses what Horovod
  does not do right with tables.

  With `sok.init(exchange="nccl")` the gradients of dense variables that are on a GPU of
  TensorFlow's are summed between the GPUs, by NCCL, in few calls; others by Horovod. So
  are all of them where one of Horovod's arguments compression, groups, num_groups,
  process_set, gradient_predivide_factor or device_dense is given.

  Example:

    optimizer = sok.DistributedOptimizer(tf.train.AdagradOptimizer(0.1))
    train_op = optimizer.minimize(loss)

  Args:
    optimizer: a `tf.train.Optimizer` or a `tf.keras.optimizers.Optimizer`.
    **kwargs: of `hvd.DistributedOptimizer`.

  Returns:
    The wrapped optimizer; `optimizer` itself when there is one rank.

  Raises:
    TypeError: `optimizer` is no optimizer.
    ValueError: `op=hvd.Adasum`, or `backward_passes_per_step` above 1: neither has a
      meaning for the rows of a table.
  """
  if not isinstance(optimizer, (tf.compat.v1.train.Optimizer,
                                tf.keras.optimizers.Optimizer)):
    raise TypeError(
        "sok.DistributedOptimizer: expected a tf.train or tf.keras optimizer, got %r" %
        (optimizer,))
  if kwargs.get("backward_passes_per_step", 1) != 1:
    raise ValueError(
        "sok.DistributedOptimizer: backward_passes_per_step must be 1, got %r: the "
        "gradients of a table's rows cannot be collected over several batches" %
        (kwargs["backward_passes_per_step"],))
  if communication.num_ranks() == 1:
    return optimizer
  hvd = communication.horovod()
  if kwargs.get("op") == hvd.Adasum:
    raise ValueError("sok.DistributedOptimizer: op must be hvd.Average or hvd.Sum; "
                     "Adasum has no meaning for the rows of a table")
  wrapped = hvd.DistributedOptimizer(optimizer, **kwargs)
  _name_in_errors(wrapped)
  if dense_gradients.takes(kwargs):
    average = kwargs.get("op") != hvd.Sum
    dense_gradients.install(wrapped, average)
    if average and kwargs.get("scale_local_gradients", True):
      _divide_where_they_are(wrapped)
  return wrapped


def _name_in_errors(wrapped):
  """Has errors of sums over ranks by Horovod say what was summed, as those by NCCL do."""
  stock = wrapped._allreduce_grads  # pylint: disable=protected-access

  def allreduce(grads, variables=None, **kwargs):
    if variables is None or tf.executing_eagerly():
      return stock(grads, variables, **kwargs)
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
  """Has gradients of tables divided by the op that sums them, and not by Horovod.

  What has been divided by Horovod comes through CPU memory. A Keras optimizer has no
  compute_gradients; it is left as it is.
  """
  if not isinstance(wrapped, tf.compat.v1.train.Optimizer):
    return
  stock = wrapped.compute_gradients
  wrapped.scale_local_gradients = False

  def compute_gradients(*args, **kwargs):
    pairs = stock(*args, **kwargs)
    local = wrapped._local_vars  # pylint: disable=protected-access
    ours = [k for k, (g, v) in enumerate(pairs) if g is not None and v in local]
    divided = exchange.divided([pairs[k][0] for k in ours], communication.num_ranks())
    for k, gradient in zip(ours, divided):
      pairs[k] = (gradient, pairs[k][1])
    return pairs

  wrapped.compute_gradients = compute_gradients
