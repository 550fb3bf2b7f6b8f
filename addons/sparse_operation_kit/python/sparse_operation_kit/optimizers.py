# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""sok.OptimizerWrapper, sok.SGD and sok.optimizers.Adam.

Stock optimizers already work on embedding variables, so these classes only provide the
names and methods that scripts use.
"""

from embedding_variable import tf_names
from embedding_variable.eager import keras_update
from embedding_variable.optimizers import keras_step_rules
from embedding_variable.optimizers import slot_view
from embedding_variable.tf_names import tf

from sparse_operation_kit import own_counters

_train = tf.compat.v1.train

# Attributes in which optimizers keep their learning rate.
_RATES = ("lr", "_learning_rate", "_lr")


def _steps(optimizer):
  """Returns whether it is an optimizer of Keras 2.11 and later, without slot methods."""
  return isinstance(optimizer, tuple(tf_names.keras_step_bases()))


def existing_slots(optimizer, var):
  """Returns a list of (slot name, slot) of an optimizer's slots of a table.

  Args:
    optimizer: a `tf.train` or Keras optimizer or an `OptimizerWrapper`.
    var: an embedding variable.
  """
  inner = optimizer.optimizer if isinstance(optimizer, OptimizerWrapper) else optimizer
  if _steps(inner):
    return list(keras_step_rules.existing_slots(inner, var).items())
  found = []
  for slot in optimizer.get_slot_names():
    try:
      view = optimizer.get_slot(var, slot)
    except KeyError:  # a Keras optimizer without this slot for the variable
      continue
    if view is not None:
      found.append((slot, view))
  return found


def create_slots(optimizer, var):
  """Creates an optimizer's slots of a table before its first update.

  The arguments are those of `existing_slots`.
  """
  inner = optimizer.optimizer if isinstance(optimizer, OptimizerWrapper) else optimizer
  if _steps(inner):
    keras_update.check(inner, var).slots(inner, var)
  else:
    slot_view.create_slots(optimizer, [var])


class OptimizerWrapper(object):
  """Wraps any `tf.train` or Keras optimizer to train SOK variables.

  Only rows with a gradient change; with momentum, the momentum of other rows does not
  decay. The wrapper has its own copy of the optimizer's counters (Adam's powers of
  beta, `iterations` of Keras), so the optimizer may update dense variables directly in
  the same step. All other attributes are those of the wrapped optimizer.

  Example:

    dense_optimizer = tf.train.AdamOptimizer(0.001)
    optimizer = sok.OptimizerWrapper(dense_optimizer)
    sparse, dense = sok.filter_variables(tf.trainable_variables())
    train_op = tf.group(
        optimizer.apply_gradients(zip(tf.gradients(loss, sparse), sparse)),
        dense_optimizer.apply_gradients(zip(tf.gradients(loss, dense), dense)))

  Raises:
    TypeError: `optimizer` is not an optimizer.
  """

  def __init__(self, optimizer):
    if not isinstance(optimizer,
                      (_train.Optimizer,) + tf_names.keras_optimizer_classes()):
      raise TypeError("sok.OptimizerWrapper: expected a tf.train or tf.keras optimizer, "
                      "got %r" % (optimizer,))
    self._optimizer = optimizer
    self._counters = own_counters.OwnCounters(optimizer)

  @property
  def optimizer(self):
    """The wrapped optimizer."""
    return self._optimizer

  @property
  def _is_keras(self):
    return isinstance(self._optimizer, tf_names.keras_optimizer_classes())

  @property
  def lr(self):
    """The learning rate attribute of the optimizer.

    Raises:
      AttributeError: the optimizer has none.
    """
    for name in _RATES:
      if hasattr(self._optimizer, name):
        return getattr(self._optimizer, name)
    raise AttributeError("%s has no learning rate" % type(self._optimizer).__name__)

  @property
  def iterations(self):
    """int64 variable: number of updates through the wrapper, for Keras optimizers.

    Raises:
      AttributeError: the optimizer is from `tf.train`, which does not count updates.
    """
    with self._counters.shown():
      return self._optimizer.iterations

  def get_slot_names(self):
    """Returns the list of slot names."""
    if _steps(self._optimizer):
      return keras_step_rules.slot_names(self._optimizer)
    return list(self._optimizer.get_slot_names())

  def get_slot(self, var, slot_name):
    """Returns the slot of a variable, or None if `tf.train` returns None.

    For an optimizer of Keras 2.11 and later, a table's slot or None.
    """
    if _steps(self._optimizer):
      return dict(existing_slots(self, var)).get(slot_name)
    return self._optimizer.get_slot(var, slot_name)

  @property
  def _slots(self):
    return self._optimizer._slots  # pylint: disable=protected-access

  def _create_slots(self, var_list):
    """Creates the slots of variables before the first update."""
    with self._counters.shown():
      slot_view.create_slots(self._optimizer, list(var_list))

  def apply_gradients(self, grads_and_vars, global_step=None, name=None):
    """Returns the op that updates variables.

    Args:
      grads_and_vars: iterable of (gradient, variable); pairs whose gradient is None are
        ignored.
      global_step: variable to increment, or None. Must be None for Keras optimizers,
        which count in `iterations`.
      name: name of the op.

    Raises:
      ValueError: no variable has a gradient, or a Keras optimizer got a global_step.
    """
    pairs = [(g, v) for g, v in grads_and_vars if g is not None]
    if not pairs:
      raise ValueError("sok.OptimizerWrapper: no variable has a gradient")
    arguments = {} if self._is_keras else {"global_step": global_step}
    if self._is_keras and global_step is not None:
      raise ValueError("sok.OptimizerWrapper: a Keras optimizer counts its own steps; "
                       "leave global_step out")
    if name is not None or not _steps(self._optimizer):
      arguments["name"] = name  # Keras 3 has no such argument
    with self._counters.shown():
      return self._optimizer.apply_gradients(pairs, **arguments)

  def minimize(self, loss, var_list=None, global_step=None, name=None):
    """Returns the op that minimizes a loss.

    Args:
      loss: scalar tensor, or for a Keras optimizer also a function that returns one.
      var_list: variables; None: all trainable ones.
      global_step: as in `apply_gradients`.
      name: name of the op.
    """
    if callable(loss) and tf.executing_eagerly():
      with tf.GradientTape() as tape:
        value = loss()
      var_list = list(tape.watched_variables() if var_list is None else var_list)
      return self.apply_gradients(
          zip(tape.gradient(value, var_list), var_list), global_step, name)
    if callable(loss):
      loss = loss()
    if var_list is None:
      var_list = tf.compat.v1.trainable_variables()
    var_list = list(var_list)
    return self.apply_gradients(
        zip(tf.gradients(loss, var_list), var_list), global_step, name)

  def __getattr__(self, name):
    if name in ("_optimizer", "_counters"):  # copying reads attributes before __init__
      raise AttributeError(name)
    return getattr(self._optimizer, name)


def Adam(learning_rate=0.001, beta_1=0.9, beta_2=0.999, epsilon=1e-7, **kwargs):  # pylint: disable=invalid-name
  """Returns `tf.keras.optimizers.Adam`, for scripts of SOK before 2.0.

  It is `sok.tf.keras.optimizers.LazyAdamOptimizer`, too.

  Only rows with a gradient change, as with any optimizer of tables.

  Args:
    learning_rate, beta_1, beta_2, epsilon: as for `tf.keras.optimizers.Adam`.
    **kwargs: its other arguments.
  """
  return tf_names.keras_of_mode().optimizers.Adam(
      learning_rate=learning_rate, beta_1=beta_1, beta_2=beta_2, epsilon=epsilon, **kwargs)


class SGD(_train.GradientDescentOptimizer):
  """Gradient descent, `row -= lr * gradient`, whose rate is a variable.

  Example:

    optimizer = sok.SGD(lr=0.1)
    train_op = optimizer.minimize(loss)
    half = optimizer.lr.assign(optimizer.lr * 0.5)

  Args:
    lr: number, or a float32 variable or tensor.
  """

  def __init__(self, lr):
    if not isinstance(lr, (tf.Variable, tf.Tensor)):
      lr = tf.compat.v1.Variable(
          float(lr), trainable=False, dtype=tf.float32, use_resource=True,
          name="sok_SGD_lr")
    super(SGD, self).__init__(lr, name="SGD")
    self._lr = lr

  @property
  def lr(self):
    """The variable (or tensor) of the learning rate."""
    return self._lr
