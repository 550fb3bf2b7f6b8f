# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Patch: Keras models over Horovod's ranks whose gradients nothing averages.

Why: such ranks train dense variables that differ more with every step, without an
error, while the rows of spread tables are shared. Three programs do so:

- `hvd.DistributedOptimizer` of an optimizer of Keras 3. Horovod replaces the methods of
  Keras 2 that compute gradients, and Keras 3 has none of them.
- `hvd.DistributedOptimizer` of an optimizer of Keras 2.11 to 2.15, in a loop that calls
  only `apply_gradients`.
- `fit` or `minimize` with an optimizer that is not Horovod's.

No-op without Horovod.
"""

import contextlib
import inspect
import sys

from embedding_variable import tf_names
from embedding_variable.checkpoint import job
from embedding_variable.eager import eager_variable
from embedding_variable.eager import taped
from embedding_variable.integration import patching
from embedding_variable.ops import handle_ops
from embedding_variable.variables import variable as ev

# Methods of Keras 2 that Horovod replaces.
_METHODS = ("aggregate_gradients", "_aggregate_gradients", "compute_gradients",
            "_compute_gradients")

# Packages of optimizers that average nothing.
_STOCK = ("embedding_variable", "keras", "sparse_operation_kit", "tensorflow",
          "tensorflow_core", "tf_keras")

_KERAS_2 = ("use hvd.DistributedOptimizer(optimizer), or hvd.DistributedGradientTape and "
            "optimizer.apply_gradients")
_KERAS_3 = ("use hvd.DistributedGradientTape and optimizer.apply_gradients in a train_step or "
            "loop of your own, or Keras 2 (TF_USE_LEGACY_KERAS=1 in the environment before "
            "TensorFlow is imported, with the package tf_keras) and "
            "hvd.DistributedOptimizer(optimizer)")


def install():
  """Replaces `minimize` and `get_updates` of Keras 2 and `make_train_function` of models.

  A model that is not built yet is checked by `minimize`.
  """
  classes = [module.OptimizerV2 for module in tf_names.keras_optimizers("optimizer_v2")]
  for cls in classes + tf_names.keras_step_bases():
    for name, make in (("minimize", _minimize), ("get_updates", _get_updates)):
      if hasattr(cls, name):
        patching.wrap(cls, name, make)
  models = [(module.Model, _KERAS_2) for module in tf_names.keras_modules("engine.training")]
  keras_3 = tf_names.find("keras.src.backend.tensorflow.trainer")
  if keras_3 is not None:
    models.append((keras_3.TensorFlowTrainer, _KERAS_3))
  for cls, remedy in models:
    if hasattr(cls, "train_step"):
      patching.wrap(cls, "make_train_function", _make_train_function(cls.train_step, remedy))


def num_ranks():
  """Returns the number of Horovod's ranks, 1 if the script has not initialized it."""
  hvd = sys.modules.get("horovod.tensorflow")
  return hvd.size() if hvd is not None and hvd.is_initialized() else 1


def is_spread(var):
  """Returns whether other ranks hold other rows of an embedding variable."""
  if taped.is_eager(var.handle) and job.current().placement(var) is not None:
    return True  # before its first lookup
  return handle_ops.is_spread_over_ranks(var.handle)


def check_wrapped(optimizer, what="hvd.DistributedOptimizer"):
  """Raises NotImplementedError for an optimizer whose gradients Horovod does not average.

  Args:
    optimizer: a Keras optimizer that Horovod is to wrap.
    what: string that starts the error.
  """
  if num_ranks() > 1 and not any(hasattr(optimizer, name) for name in _METHODS):
    raise NotImplementedError(
        "%s: Horovod does not average the gradients of %s of Keras 3, so that each of %d ranks "
        "would train a model of its own; %s" %
        (what, type(optimizer).__name__, num_ranks(), _KERAS_3))


def check_apply(optimizer):
  """Raises RuntimeError if Horovod's optimizer applies gradients that it has not averaged.

  Args:
    optimizer: result of `hvd.DistributedOptimizer` for an optimizer of Keras.
  """
  # `apply_gradients` of other optimizers calls _aggregate_gradients, which averages.
  averages_later = hasattr(optimizer, "_aggregate_gradients") and not hasattr(
      optimizer, "aggregate_gradients")
  if (num_ranks() > 1 and not averages_later and
      not optimizer._aggregated_gradients):  # pylint: disable=protected-access
    raise RuntimeError(
        "hvd.DistributedOptimizer: %s.apply_gradients does not average gradients over the %d "
        "ranks in this version of Keras; compute them by hvd.DistributedGradientTape and "
        "apply them by an optimizer without hvd.DistributedOptimizer, or call minimize" %
        (type(optimizer).__name__, num_ranks()))


def _is_plain(optimizer, depth=3):
  """Returns whether an optimizer is a stock one in which Horovod has no part."""
  if hasattr(optimizer, "register_local_var"):
    return False
  if type(optimizer).__module__.split(".")[0] not in _STOCK:
    return False
  inner = [value for value in vars(optimizer).values() if hasattr(value, "apply_gradients")]
  return depth == 0 or all(_is_plain(value, depth - 1) for value in inner)


def _check_averaged(what, optimizer, variables, remedy):
  """Raises RuntimeError if nothing averages the gradients of dense variables.

  Args:
    what: string that starts the error.
    optimizer: a Keras optimizer.
    variables: iterable of the variables that it trains.
    remedy: string.
  """
  if num_ranks() == 1 or not _is_plain(optimizer):
    return
  tables, dense = [], []
  for var in variables:
    table = eager_variable.table_of(var)
    table = var if table is None else table
    (tables if ev.is_embedding_variable(table) else dense).append(table)
  spread = [table.op.name for table in tables if is_spread(table)]
  if spread and dense:
    raise RuntimeError(
        "%s: %s does not average the gradients of '%s' over the %d ranks that share the table "
        "'%s', so that each rank would train a model of its own; %s" %
        (what, type(optimizer).__name__, getattr(dense[0], "path", dense[0].name), num_ranks(),
         spread[0], remedy))


def _minimize(stock):
  signature = inspect.signature(stock)

  def minimize(self, *args, **kwargs):
    given = signature.bind(self, *args, **kwargs).arguments
    tape = given.get("tape")
    # A subclass of the tape is Horovod's.
    if tape is None or type(tape).__module__.split(".")[0] in _STOCK:
      variables = given.get("var_list")
      _check_averaged("minimize", self, variables() if callable(variables) else variables or (),
                      _KERAS_2)
    return stock(self, *args, **kwargs)

  return minimize


def _get_updates(stock):

  def get_updates(self, loss, params, *args, **kwargs):
    _check_averaged("Model.fit", self, params, _KERAS_2)
    return stock(self, loss, params, *args, **kwargs)

  return get_updates


def _make_train_function(train_step, remedy):

  def make(stock):

    def make_train_function(self, *args, **kwargs):
      if num_ranks() == 1 or self.optimizer is None or type(self).train_step is not train_step:
        return stock(self, *args, **kwargs)
      check = lambda variables: _check_averaged(
          "model '%s': fit" % self.name, self.optimizer, variables, remedy)
      if self.built:
        check(self.trainable_variables)
      if self.built or not hasattr(self.optimizer, "apply"):
        return stock(self, *args, **kwargs)
      # In Keras 3 the first step builds the model.
      with _attribute(self, "train_step", _checked_step(self, train_step, check)):
        return stock(self, *args, **kwargs)

    return make_train_function

  return make


def _checked_step(model, train_step, check):

  def step(data):
    apply = model.optimizer.apply

    def checked(grads, trainable_variables=None, *args, **kwargs):
      check(trainable_variables or ())
      return apply(grads, trainable_variables, *args, **kwargs)

    with _attribute(model.optimizer, "apply", checked):
      return train_step(model, data)

  return step


@contextlib.contextmanager
def _attribute(owner, name, value):
  """Context in which an object has an attribute in place of a method of its class."""
  vars(owner)[name] = value
  try:
    yield
  finally:
    del vars(owner)[name]
