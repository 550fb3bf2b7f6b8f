# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Patch: Horovod and embedding variables.

Why: Horovod must treat a variable differently depending on whether every rank has its
own copy of it, but it takes embedding variables for ordinary ones.

- A variable spread over ranks (`sparse_operation_kit.lookup_sparse`) belongs to its
  rank: its gradient is already the sum over all ranks. `DistributedOptimizer` and
  `DistributedGradientTape` must not gather it, and must divide it by the number of ranks
  if they average the others. It is not broadcast.
- Any other variable is a copy on every rank. Its gradients are gathered like any
  IndexedSlices. Its default rows and its contents are broadcast, since stock code would
  read it whole.

In addition, if two threads shut Horovod down at the same time, one of them never
returns, since both join its background thread. This package shuts it down when waiting
for other ranks took too long; then the program ends, or calls `hvd.shutdown()` itself.
So the second call waits for the first.

No-op without Horovod.
"""

import contextlib
import inspect
import threading

from tensorflow.python.platform import tf_logging as logging
from tensorflow.python.util import nest

from embedding_variable.eager import eager_variable
from embedding_variable.eager import taped
from embedding_variable.eager.patches import keras_ranks_patch
from embedding_variable.integration import patching
from embedding_variable.ops import checkpoint_ops
from embedding_variable.ops import handle_ops
from embedding_variable.ops import row_ops
from embedding_variable.tf_names import array_ops
from embedding_variable.tf_names import control_flow_ops
from embedding_variable.tf_names import ops
from embedding_variable.variables import variable as ev

_shutdown_lock = threading.Lock()


def install():
  """Replaces functions of `horovod.tensorflow`, if it is installed.

  Returns:
    True if Horovod is installed and patched.
  """
  try:
    import horovod.tensorflow as hvd  # pylint: disable=g-import-not-at-top
  except Exception as e:  # pylint: disable=broad-except
    # Not installed, or built without TensorFlow. Embedding variables do not need it.
    logging.debug("embedding_variable: Horovod is left alone (%s)", e)
    return False
  optimizer = getattr(hvd, "_DistributedOptimizer", None)
  if optimizer is not None and hasattr(optimizer, "register_local_var"):
    patching.wrap(optimizer, "__init__", _init)
    patching.wrap(optimizer, "compute_gradients", _compute_gradients)
  _install_keras()
  if hasattr(hvd, "DistributedGradientTape"):
    patching.wrap(hvd, "DistributedGradientTape", _distributed_gradient_tape)
  if hasattr(hvd, "broadcast_variables"):
    patching.wrap(hvd, "broadcast_variables", _broadcast_variables)
  if inspect.ismethod(getattr(hvd, "shutdown", None)):
    basics = type(hvd.shutdown.__self__)
    patching.wrap(hvd, "shutdown", _shutdown)
    # Called at exit; hvd.init() registers it.
    patching.wrap(basics, "shutdown", _shutdown)
  return True


def _install_keras():
  """Replaces the function that creates a distributed Keras optimizer, if there is one."""
  try:
    from horovod import _keras  # pylint: disable=g-import-not-at-top
  except Exception as e:  # pylint: disable=broad-except
    logging.debug("embedding_variable: Horovod's Keras is left alone (%s)", e)
    return
  if hasattr(_keras, "create_distributed_optimizer"):
    patching.wrap(_keras, "create_distributed_optimizer",
                  _create_distributed_optimizer)


def _shutdown(stock):

  def shutdown(*args, **kwargs):
    with _shutdown_lock:
      return stock(*args, **kwargs)

  return shutdown


def _sums(function, args, kwargs):
  """Returns whether a call of Horovod's functions requests the sum over ranks."""
  import horovod.tensorflow as hvd  # pylint: disable=g-import-not-at-top
  arguments = inspect.signature(function).bind(*args, **kwargs)
  arguments.apply_defaults()
  return arguments.arguments.get("op") == hvd.Sum


def _register(register, variables):
  """Registers the variables that are not a copy on every rank.

  Args:
    register: method of Horovod's object for one such variable.
    variables: list of anything.
  """
  import horovod.tensorflow as hvd  # pylint: disable=g-import-not-at-top
  for var in variables:
    if ev.is_embedding_variable(var) and (hvd.size() == 1 or keras_ranks_patch.is_spread(var)):
      register(var)


def _init(stock):

  def __init__(self, *args, **kwargs):  # pylint: disable=invalid-name
    stock(self, *args, **kwargs)
    if _sums(stock, (self,) + args, kwargs):
      # Horovod sums the others over ranks; gradients of spread tables are sums already.
      self.scale_local_gradients = False

  return __init__


def _compute_gradients(stock):

  def compute_gradients(self, *args, **kwargs):
    _register(self.register_local_var, ev.all_in_graph())
    with _registering(self):
      return stock(self, *args, **kwargs)

  return compute_gradients


@contextlib.contextmanager
def _registering(optimizer):
  """Context in which the wrapped optimizer's eager tables are registered once known."""
  inner = optimizer._optimizer  # pylint: disable=protected-access
  compute = inner.compute_gradients

  def compute_gradients(*args, **kwargs):
    pairs = compute(*args, **kwargs)
    _register(optimizer.register_local_var,
              [var for _, var in pairs if eager_variable.table_of(var) is not None])
    return pairs

  inner.compute_gradients = compute_gradients
  try:
    yield
  finally:
    del inner.compute_gradients


def _create_distributed_optimizer(stock):

  def create_distributed_optimizer(*args, **kwargs):
    arguments = inspect.signature(stock).bind(*args, **kwargs).arguments
    keras_ranks_patch.check_wrapped(arguments["optimizer"])
    optimizer = stock(*args, **kwargs)
    if _sums(stock, args, kwargs):
      optimizer.scale_local_gradients = False
    # The class was made for this object, and gradients reach it in two ways.
    patching.wrap(type(optimizer), "_allreduce", _allreduce)
    patching.wrap(type(optimizer), "apply_gradients", _apply_gradients, layer="_of_horovod")
    return optimizer

  return create_distributed_optimizer


def _apply_gradients(stock):

  def apply_gradients(self, *args, **kwargs):
    keras_ranks_patch.check_apply(self)
    return stock(self, *args, **kwargs)

  return apply_gradients


def _allreduce(stock):

  def allreduce(self, grads, variables, *args, **kwargs):
    _register(self.register_local_var, variables)
    return stock(self, grads, variables, *args, **kwargs)

  return allreduce


def _distributed_gradient_tape(stock):

  def distributed_gradient_tape(*args, **kwargs):
    tape = stock(*args, **kwargs)
    if _sums(stock, args, kwargs):
      tape.scale_local_gradients = False
    # The class was made for this object.
    patching.wrap(type(tape), "gradient", _gradient, layer="_of_horovod")
    return tape

  return distributed_gradient_tape


def _gradient(stock):

  def gradient(self, target, sources, *args, **kwargs):
    flat = [_of_tensorflow(s) for s in nest.flatten(sources)]
    _register(self.register_local_source, flat)
    return nest.pack_sequence_as(sources, stock(self, target, flat, *args, **kwargs))

  return gradient


def _of_tensorflow(var):
  """Returns the `tf.Variable` or table of a variable of Keras 3, or `var` itself.

  Horovod looks variables up by `ref()`, which those of Keras 3 do not have.
  """
  return var if hasattr(var, "ref") else getattr(var, "_value", var)


def _broadcast_variables(stock):

  def broadcast_variables(variables, root_rank, *args, **kwargs):
    variables = [_of_tensorflow(v) for v in variables]
    dense = [v for v in variables if not ev.is_embedding_variable(v)]
    copies = [v for v in variables if ev.is_embedding_variable(v) and
              not keras_ranks_patch.is_spread(v)]
    broadcast = [stock(dense, root_rank, *args, **kwargs)] if dense else []
    return control_flow_ops.group(
        *(broadcast + [_broadcast_table(v, root_rank) for v in copies]))

  return broadcast_variables


def _broadcast_table(var, root_rank):
  """Returns the op that makes a table equal to that of rank `root_rank`.

  This includes the default rows: the root's initializer runs once more, for all.
  """
  import horovod.tensorflow as hvd  # pylint: disable=g-import-not-at-top
  names, inits = list(var.slot_columns), list(var.slot_columns.values())
  is_root = hvd.rank() == root_rank

  def broadcast(tensor, what):
    # All ranks gather, also those without rows; their shapes may be unknown.
    mine = tensor if is_root else tensor[:0]
    # Horovod may be built without kernels for GPUs.
    with ops.device("/cpu:0"):
      return hvd.allgather(mine, name="ev_broadcast/%s/%s" % (var.op.name, what))

  with ops.name_scope(None), ops.name_scope("ev_broadcast/" + var.op.name), \
      ops.colocate_with(None, ignore_existing=True), ops.device(var.device):
    ensured = row_ops.ensure_slots(var.handle, names, inits)
    with ops.control_dependencies([ensured]):
      table = checkpoint_ops.export_table(var.handle, names)
    keys = broadcast(table.keys, "keys")
    default_rows = (checkpoint_ops.default_rows(var.handle) if taped.is_eager(var.handle)
                    else var.initial_value)
    # In one tensor with the default rows, which may be a constant: TensorFlow would run
    # a collective on a constant while it optimises the graph.
    rows = broadcast(array_ops.concat([default_rows, table.values], axis=0), "rows")
    num_defaults = array_ops.shape(rows)[0] - array_ops.size(keys)
    versions = broadcast(table.versions, "versions")
    frequencies = broadcast(table.frequencies, "frequencies")
    slots = [broadcast(s, "slot_%d" % i) for i, s in enumerate(table.slots)]
    filtered = []
    if var.policy.filter == "counter":
      filtered = [broadcast(t, "filtered_%d" % i)
                  for i, t in enumerate(table.filtered[:3])]
    with ops.control_dependencies(
        [keys, rows, versions, frequencies] + slots + filtered):
      initialized = handle_ops.initialize(var.handle, rows[:num_defaults])
    with ops.control_dependencies([initialized]):
      imported = checkpoint_ops.import_table(
          var.handle, keys, rows[num_defaults:], versions, frequencies, slots, names,
          inits)
    if not filtered:
      return imported
    with ops.control_dependencies([imported]):
      return checkpoint_ops.import_filtered(var.handle, *filtered)
