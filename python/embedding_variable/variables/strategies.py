# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checks which strategies of `tf.distribute` can hold and train a table."""

from embedding_variable.tf_names import distribution_strategy_context
from embedding_variable.tf_names import mirrored_strategy
from embedding_variable.tf_names import one_device_strategy
from embedding_variable.tf_names import tpu_strategy

# Strategies that keep a copy of a variable on each replica. MultiWorkerMirroredStrategy
# and the strategies of tf.contrib.distribute derive from them.
_MIRRORED = (mirrored_strategy.MirroredExtended, tpu_strategy.TPUExtended)


def current():
  """Returns the reference that a variable stores to the strategy it is created in, or
  None.
  """
  if not distribution_strategy_context.has_strategy():
    return None
  strategy = distribution_strategy_context.get_strategy()
  return strategy.extended._container_strategy_weakref()  # pylint: disable=protected-access


def check(name):
  """Raises NotImplementedError in the scope of a strategy that mirrors variables.

  Args:
    name: string, name of the table.
  """
  strategy = distribution_strategy_context.get_strategy()
  if isinstance(strategy.extended, _MIRRORED):
    _refuse(name, strategy, "keeps a copy of every variable on each replica, and a table "
            "cannot be copied")


def check_update(variable):
  """Raises unless the current strategy, if any, can apply gradients to a table.

  Args:
    variable: an embedding variable.

  Raises:
    NotImplementedError: the strategy mirrors variables, or has several replicas.
    ValueError: the strategy sends gradients to the variable's device, and it has none.
  """
  check(variable.op.name)
  if not distribution_strategy_context.has_strategy():
    return
  strategy = distribution_strategy_context.get_strategy()
  if strategy.num_replicas_in_sync > 1:
    _refuse(variable.op.name, strategy, "with several replicas adds gradients as dense "
            "tensors, which a table's gradient cannot become")
  if variable.device or isinstance(strategy.extended,
                                   one_device_strategy.OneDeviceExtended):
    return
  raise ValueError(
      "embedding variable '%s' has no device, and tf.distribute's %s sends gradients to "
      "the device of a variable. Create the variable in the function that the strategy "
      "runs on each replica (an Estimator's model_fn is one), or in tf.device('/cpu:0')" %
      (variable.op.name, _name_of(strategy)))


def _refuse(name, strategy, why):
  raise NotImplementedError(
      "embedding variable '%s': tf.distribute's %s %s. For several processes use Horovod "
      "and sparse_operation_kit.lookup_sparse; for one device, OneDeviceStrategy or no "
      "strategy; for parameter servers, ParameterServerStrategy with one replica per "
      "worker" % (name, _name_of(strategy), why))


def _name_of(strategy):
  """Returns the class name that scripts use: TensorFlow 1.x appends V1 internally."""
  name = type(strategy).__name__
  return name[:-2] if name.endswith("V1") else name
