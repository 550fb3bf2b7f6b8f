# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Patch: the error for code that makes a table's gradient dense.

Why: stock TensorFlow reports "IndexedSlices without dense_shape", or "<NOT CONVERTIBLE
TO TENSOR>" for an op that takes a list, and names neither the variable nor a remedy.
The error is a NotImplementedError, because stock code replaces a ValueError by its own.

`tf.contrib.layers.optimize_loss(gradient_noise_scale=)` fails before that: it draws
noise of the gradient's dense shape.
"""

from embedding_variable.integration import patching
from embedding_variable.ops import table_gradients
from embedding_variable.tf_names import ops
from embedding_variable.variables import variable as ev

# Priority; TensorFlow's conversion of IndexedSlices has 100.
_BEFORE_STOCK = 90


def install():
  """Registers a conversion, and patches contrib's noise once contrib is imported."""
  ops.register_tensor_conversion_function(ops.IndexedSlices, _to_tensor, _BEFORE_STOCK)
  patching.after_import("tensorflow.contrib.layers.python.layers.optimizers",
                        _patch_contrib)


def _to_tensor(value, dtype=None, name=None, as_ref=False):
  del dtype, name, as_ref
  if table_gradients.has_no_dense_value(value):
    table = table_gradients.table_of(value)
    if table is not None:
      table_gradients.refuse_dense(table)
  return NotImplemented


def _patch_contrib(optimizers):
  patching.wrap(optimizers, "_add_scaled_noise_to_gradients",
                _add_scaled_noise_to_gradients)


def _add_scaled_noise_to_gradients(stock):

  def add_scaled_noise_to_gradients(grads_and_vars, *args, **kwargs):
    for grad, var in grads_and_vars:
      if ev.is_embedding_variable(var) and table_gradients.has_no_dense_value(grad):
        table_gradients.refuse_dense(
            var.op.name, "gradient_noise_scale cannot add noise to every row. Pass a "
            "function as clip_gradients that adds noise to the gradients that should "
            "have it")
    return stock(grads_and_vars, *args, **kwargs)

  return add_scaled_noise_to_gradients
