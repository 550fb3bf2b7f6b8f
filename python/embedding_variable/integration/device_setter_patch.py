# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Patch: places embedding variables on parameter servers.

Why: `tf.train.replica_device_setter` puts ops of the listed types on parameter servers
and everything else on the worker.
"""

from tensorflow.python.training import device_setter

from embedding_variable.variables import variable as ev


def install():
  """Adds the handle's op type to the list."""
  stock = device_setter.STANDARD_PS_OPS
  if ev.HANDLE_OP not in stock:
    device_setter.STANDARD_PS_OPS = type(stock)(stock) + type(stock)(
        (ev.HANDLE_OP,))
