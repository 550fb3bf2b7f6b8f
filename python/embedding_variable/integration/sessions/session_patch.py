# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Patch: error messages of exchanges between ranks that stock ops perform.

Why: Horovod reports that it was shut down, but not what this interrupted; TensorFlow
names the op only at the end of a long message. The code that creates an op sets a
prefix for its errors (`handle_ops.name_in_errors`), like that of our own ops. A fault
has the same message and type whatever carries the exchange. It is an InternalError,
since TensorFlow's sessions retry after an AbortedError or UnavailableError, in vain.
"""

from tensorflow.python.client import session
from tensorflow.python.framework import errors

from embedding_variable.integration import patching
from embedding_variable.ops import handle_ops


def install():
  """Wraps the method that all session runs use."""
  patching.wrap(session.BaseSession, "_do_call", _do_call)


def _do_call(stock):

  def do_call(self, *args, **kwargs):
    try:
      return stock(self, *args, **kwargs)
    except errors.OpError as e:
      start = handle_ops.start_of_errors(e.op)
      if start is None:
        raise
      lost = isinstance(e, (errors.UnknownError, errors.AbortedError))
      error = (errors.InternalError if lost else type(e))(
          e.node_def, e.op, "%s: %s" % (
              start, handle_ops.reason_of_lost_rank(e.message) if lost else e.message))
    raise error

  return do_call
