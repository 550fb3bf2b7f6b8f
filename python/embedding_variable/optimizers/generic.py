# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Updates tables with any optimizer's own code.

The touched rows and their slots are copied into small dense variables of shape `[number
of unique keys, dim]`. The optimizer's own sparse update runs on those with indices 0,
1, 2, ..., and the rows are written back. All of this is one critical section per table,
so concurrent steps apply one after the other.

Keys that the variable's filter does not admit are counted and left out.

Only touched rows change: momentum of other rows does not decay ("lazy" semantics).
"""

from embedding_variable.ops import row_ops
from embedding_variable.optimizers import apply_scope
from embedding_variable.optimizers import occurrences
from embedding_variable.optimizers import slot_view
from embedding_variable.tf_names import array_ops
from embedding_variable.tf_names import control_flow_ops
from embedding_variable.tf_names import dtypes
from embedding_variable.tf_names import gen_resource_variable_ops
from embedding_variable.tf_names import math_ops
from embedding_variable.tf_names import ops
from embedding_variable.tf_names import optimizer as optimizer_v1
from embedding_variable.tf_names import resource_variable_ops
from embedding_variable.tf_names import tensor_shape


def check(optimizer, var):
  """Raises NotImplementedError for an optimizer that cannot work on a table's rows.

  Args:
    optimizer: any optimizer.
    var: the embedding variable, for the message.
  """
  for cls in type(optimizer).__mro__:
    if cls.__name__ == "ShampooOptimizer" and "contrib.opt" in cls.__module__:
      raise NotImplementedError(
          "embedding variable '%s': ShampooOptimizer preconditions a gradient by a "
          "matrix over all rows of a variable, and a table has no last row. Train it "
          "by another optimizer, and dense variables by this one" % var.op.name)


def update(optimizer, grad, var, run):
  """Returns the op that updates `var` with the optimizer's own code.

  Args:
    optimizer: the optimizer; its slots exist and it is prepared.
    grad: IndexedSlices, duplicates allowed.
    var: the embedding variable.
    run: function (grad `[U, dim]`, variable, indices `[U]`) that calls the optimizer's
      sparse update and returns its op or tensor.
  """
  step = var.version_of_update(apply_scope.current(optimizer).step())
  with ops.name_scope("generic_update"):
    indices = math_ops.cast(grad.indices, dtypes.int64)
    keys, inverse, counts = row_ops.unique(indices)
    count = array_ops.size(keys)
    if var.need_counts():
      each = occurrences.of(grad)
      if each is not None:
        counts = math_ops.unsorted_segment_sum(each, inverse, count)
    values = math_ops.unsorted_segment_sum(grad.values, inverse, count)
    if var.policy.filter != "none":
      admitted = row_ops.admit(var.handle, keys, counts, step)
      keys = array_ops.gather(keys, admitted)
      counts = array_ops.gather(counts, admitted)
      values = array_ops.gather(values, admitted)
      count = array_ops.size(keys)
    values.set_shape([None, var.dim])
    rows = math_ops.range(math_ops.cast(count, dtypes.int64))
    return exclusively(
        var, [keys, counts, values, rows, step],
        lambda: _update_rows(optimizer, var, keys, counts, values, rows, step, run))


def exclusively(var, inputs, write):
  """Returns the op that reads and writes rows under the table's mutex.

  Args:
    var: the embedding variable.
    inputs: list of all tensors computed outside of the critical section.
    write: function without arguments that returns the op.
  """
  mutex = gen_resource_variable_ops.mutex_v2(
      shared_name="ev_update/" + var.op.name, name="mutex")
  # Locks only after all outside inputs are computed.
  with ops.control_dependencies(inputs):
    lock = gen_resource_variable_ops.mutex_lock(mutex)
  with ops.control_dependencies([lock]):
    written = write()
  with ops.control_dependencies([written]):
    unlock = gen_resource_variable_ops.consume_mutex_lock(lock)
  return control_flow_ops.group(unlock, name="update")


def _update_rows(optimizer, var, keys, counts, values, rows, step, run):
  """Reads rows, runs the optimizer on them, writes them back; returns the write."""
  slots = slots_of(optimizer, var)
  columns = [view.column for _, view in slots]
  initial = [view.initial for _, view in slots]
  row_values, slot_values = row_ops.read_rows(var.handle, keys, columns, initial)
  temporary = _temporary(var.dim, "rows")
  slot_temporaries = [_temporary(view.dim, "slot_%d" % s)
                      for s, (_, view) in enumerate(slots)]
  filled = [
      resource_variable_ops.assign_variable_op(t.handle, v)
      for t, v in zip([temporary] + slot_temporaries, [row_values] + slot_values)
  ]
  with _Substitution(optimizer, var, temporary, slots, slot_temporaries):
    with ops.control_dependencies(filled):
      done = run(array_ops.identity(values), temporary, rows)
  with ops.control_dependencies([done] if done is not None else filled):
    new_values = temporary.read_value()
    new_slots = [t.read_value() for t in slot_temporaries]
    written = row_ops.write_rows(var.handle, keys, counts, step, new_values,
                                 new_slots, columns, initial)
  with ops.control_dependencies([written]):
    # Frees the batch of rows at the end of a step. (If an empty matrix were assigned
    # instead, Grappler would conclude that the number of rows is 0.)
    return control_flow_ops.group(*[
        gen_resource_variable_ops.destroy_resource_op(t.handle)
        for t in [temporary] + slot_temporaries
    ])


def _temporary(dim, name):
  """Returns a dense variable `[None, dim]`, in no collection, assigned before use."""
  return resource_variable_ops.ResourceVariable(
      initial_value=lambda: array_ops.zeros([0, dim]),
      shape=tensor_shape.TensorShape([None, dim]), dtype=dtypes.float32,
      trainable=False, collections=[], name=name)


def _slot_table(optimizer, var):
  """Returns the optimizer's slots of `var`: name -> `SlotView` or stock variable."""
  slots = optimizer._slots  # pylint: disable=protected-access
  if isinstance(optimizer, optimizer_v1.Optimizer):
    key = optimizer_v1._var_key(var)  # pylint: disable=protected-access
    return {name: by_var[key] for name, by_var in slots.items() if key in by_var}
  return dict(slots.get(_keras_key(var), {}))


def slots_of(optimizer, var):
  """Returns the (name, `SlotView`) pairs of `var`, sorted by name."""
  table = _slot_table(optimizer, var)
  return [(name, table[name]) for name in sorted(table)
          if isinstance(table[name], slot_view.SlotView)]


def _keras_key(var):
  """Returns the key of a variable in a Keras optimizer's `_slots`."""
  return var._unique_id  # pylint: disable=protected-access


class _Substitution(object):
  """Context in which the optimizer sees the temporaries as a variable with its slots."""

  def __init__(self, optimizer, var, temporary, slots, slot_temporaries):
    self._optimizer = optimizer
    self._var = var
    self._temporary = temporary
    # A slot that is not a column (one number for the variable, say) is used as it is.
    self._slots = _slot_table(optimizer, var)
    self._slots.update(
        {name: t for (name, _), t in zip(slots, slot_temporaries)})

  def __enter__(self):
    slots = self._optimizer._slots  # pylint: disable=protected-access
    if isinstance(self._optimizer, optimizer_v1.Optimizer):
      key = optimizer_v1._var_key(self._temporary)  # pylint: disable=protected-access
      for name, slot in self._slots.items():
        slots[name][key] = slot
    else:
      slots[_keras_key(self._temporary)] = self._slots

    # Contrib's weight decay checks whether the variable is in its list.
    decayed = getattr(self._optimizer, "_decay_var_list", None)
    if decayed and self._var in decayed:
      decayed.add(self._temporary)

  def __exit__(self, *unused_exception):
    decayed = getattr(self._optimizer, "_decay_var_list", None)
    if decayed:
      decayed.discard(self._temporary)
    slots = self._optimizer._slots  # pylint: disable=protected-access
    if isinstance(self._optimizer, optimizer_v1.Optimizer):
      key = optimizer_v1._var_key(self._temporary)  # pylint: disable=protected-access
      for name in self._slots:
        slots[name].pop(key, None)
    else:
      slots.pop(_keras_key(self._temporary), None)
