# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Updates of eager tables by optimizers of Keras 2.11 and later."""

import contextlib

from embedding_variable.eager import eager_variable
from embedding_variable.optimizers import apply_scope
from embedding_variable.optimizers import fused
from embedding_variable.optimizers import keras_step_rules
from embedding_variable.tf_names import ops
from embedding_variable.tf_names import tf_logging as logging

# Arguments of the optimizers that change gradients or variables in ways that the update
# of a table does not have -> what to do instead.
_REFUSED = (
    ("clipnorm", "call tf.clip_by_norm on its gradient"),
    ("global_clipnorm", "call tf.clip_by_global_norm on all gradients"),
    ("clipvalue", "call tf.clip_by_value on its gradient"),
    ("weight_decay", "call exclude_from_weight_decay(var_list=[table]) of the optimizer "
     "before training, or give the table an optimizer without it"),
    ("use_ema", "give the table an optimizer without it"),
    ("gradient_accumulation_steps", "give the table an optimizer without it"),
    ("loss_scale_factor", "scale the loss, and the gradients back, in the script"),
)


def split(pairs):
  """Returns (pairs whose variable is or holds an eager table, the other pairs)."""
  tables, others = [], []
  for grad, var in pairs:
    (others if eager_variable.table_of(var) is None else tables).append((grad, var))
  return tables, others


def check(optimizer, variable):
  """Returns the rule by which an optimizer updates a table.

  Args:
    optimizer: optimizer of Keras whose update is `update_step`.
    variable: eager table, or Keras's holder of it.

  Raises:
    TypeError: its formula is no rule of the engine.
    ValueError: it has an argument that has no meaning for a table.
  """
  table = eager_variable.table_of(variable)
  rule = keras_step_rules.find(optimizer)
  kind = "%s of %s" % (type(optimizer).__name__, type(optimizer).__module__)
  if rule is None:
    raise TypeError(
        "embedding variable '%s': the optimizer %s cannot train a table. Use SGD without "
        "momentum, Adagrad, Adam without amsgrad, Adadelta, RMSprop or Ftrl of "
        "tf.keras.optimizers, or an optimizer of tf.compat.v1.train" %
        (table.op.name, kind))
  for name, remedy in _REFUSED:
    if getattr(optimizer, name, None) and not (
        name == "weight_decay" and _is_excluded(optimizer, variable, table)):
      raise ValueError(
          "embedding variable '%s': %s=%r of the optimizer %s does not work on a table: "
          "%s" % (table.op.name, name, getattr(optimizer, name), kind, remedy))
  return rule


def _is_excluded(optimizer, *variables):
  """Returns whether the optimizer's weight decay leaves out one of the variables."""
  return not all(optimizer._use_weight_decay(var) for var in variables)  # pylint: disable=protected-access


def step(optimizer, tables, others, stock):
  """Updates tables and other variables by an optimizer.

  Nothing is updated if an argument is wrong. The other variables are updated first, so
  that an error of the stock method leaves the tables unchanged.

  Args:
    optimizer: optimizer of Keras whose update is `update_step`.
    tables: non-empty list of (gradient, table or Keras's holder of it). A table whose
      gradient is None is left out.
    others: list of (gradient, variable). Stock optimizers leave out variables whose
      gradient is None, and raise an error if all gradients are None.
    stock: function without arguments: the stock method for `others`. It increments the
      optimizer's count of steps.

  Returns:
    The result of `stock`, or of the increment.

  Raises:
    TypeError: a gradient is no IndexedSlices, or as for `check`.
    ValueError: as for `check` or the stock method.
  """
  only_tables = all(grad is None for grad, _ in others) and (
      not others or any(grad is not None for grad, _ in tables))
  with _updates(optimizer, tables) as update_tables:
    if not only_tables:
      result = stock()
      update_tables()
      return result
    if others:
      variables = [var for _, var in others]
      # Like the stock method, which creates the slots of all variables in its first call.
      with ops.name_scope(optimizer.name), ops.init_scope():
        optimizer.build(variables)
      logging.warning("Gradients do not exist for variables %s when minimizing the loss",
                      [getattr(var, "path", var.name) for var in variables])
    update_tables()
    return optimizer.iterations.assign_add(1)


@contextlib.contextmanager
def _updates(optimizer, pairs):
  """Context that yields a function without arguments, which updates tables.

  The function uses the optimizer's learning rate and count of steps at the start of the
  context. The count of steps is unchanged.

  Args:
    optimizer: optimizer of Keras whose update is `update_step`.
    pairs: as `tables` of `step`.

  Raises:
    TypeError: a gradient is no IndexedSlices, or as for `check`.
    ValueError: as for `check`.
  """
  for _, var in pairs:
    keras_step_rules.remember(optimizer, eager_variable.table_of(var))
  pairs = [(grad, var) for grad, var in pairs if grad is not None]
  rules = [check(optimizer, var) for _, var in pairs]
  pairs = [(grad, eager_variable.table_of(var)) for grad, var in pairs]
  for grad, table in pairs:
    if not isinstance(grad, ops.IndexedSlices):
      raise TypeError("embedding variable '%s': its gradient: expected an IndexedSlices as "
                      "a tf.GradientTape gives it, got %r" % (table.op.name, grad))

  def update():
    for rule, (grad, table) in zip(rules, pairs):
      fused.update(optimizer, rule, grad, table)

  with apply_scope.enter(optimizer, pairs):
    keras_step_rules.read_counters(optimizer)
    yield update
