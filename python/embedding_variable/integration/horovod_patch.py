# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Patch: Horovod leaves embedding variables to their rank.

Why: `DistributedOptimizer` would gather the gradients of all ranks on each, and
`broadcast_variables` would read a table whole. Without Horovod there is nothing to do.
"""

from tensorflow.python.platform import tf_logging as logging

from embedding_variable.integration import patching
from embedding_variable.variables import variable as ev


def install():
  """Replaces two functions of `horovod.tensorflow`, if there is one.

  Returns:
    True when Horovod is installed and patched.
  """
  try:
    import horovod.tensorflow as hvd  # pylint: disable=g-import-not-at-top
  except Exception as e:  # pylint: disable=broad-except
    # Not installed, or built without TensorFlow: embedding variables need none of it.
    logging.debug("embedding_variable: Horovod is left alone (%s)", e)
    return False
  optimizer = getattr(hvd, "_DistributedOptimizer", None)
  if optimizer is not None and hasattr(optimizer, "register_local_var"):
    patching.wrap(optimizer, "compute_gradients", _compute_gradients)
  if hasattr(hvd, "broadcast_variables"):
    stock, replacement = patching.wrap(hvd, "broadcast_variables",
                                       _broadcast_variables)
    patching.replace_exports(stock, replacement, prefix="horovod")
  return True


def _compute_gradients(stock):

  def compute_gradients(self, *args, **kwargs):
    for var in ev.all_in_graph():
      self.register_local_var(var)
    return stock(self, *args, **kwargs)

  return compute_gradients


def _broadcast_variables(stock):

  def broadcast_variables(variables, root_rank, *args, **kwargs):
    dense = [v for v in variables if not ev.is_embedding_variable(v)]
    return stock(dense, root_rank, *args, **kwargs)

  return broadcast_variables
