# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Patch: errors of exchanges between ranks that stock ops carry.

Why: Horovod says that it was shut down, and not what that ended; TensorFlow names the op
at the end of the message, behind everything else. The code that makes an op says under which
name its error is to begin (`handle_ops.name_in_errors`), as those of our own ops do. The
same fault has the same form and type whatever carries the exchange: an InternalError, since
TensorFlow's sessions try again after an AbortedError or UnavailableError, in vain.
"""

from tensorflow.python.client import session
from tensorflow.python.framework import errors

from embedding_variable.integration import patching
from embedding_variable.ops import handle_ops


def install():
  """Wraps what all runs of sessions go through."""
  patching.wrap(session.BaseSession, "_do_call", _do_call)


def _do_call(stock):

  def do_call(self, *args):
    try:
      return stock(self, *args)
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
