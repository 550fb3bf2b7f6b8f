# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""sok.init: says how ranks talk to each other."""

import tensorflow as tf

from sparse_operation_kit import communication

_HOROVOD = "horovod"


def init(comm_tool="horovod", use_legacy_optimizer=True):
  """Prepares SparseOperationKit; call it once, after `hvd.init()` if you use Horovod.

  Without Horovod it works too and trains in this one process; a line in the log
  (level INFO) says so. Calling it again changes nothing.

  Example:

    import horovod.tensorflow as hvd
    hvd.init()
    sok.init()

  Args:
    comm_tool: "horovod", the only one there is.
    use_legacy_optimizer: accepted for scripts that pass it; TensorFlow 1.15 has
      one generation of optimizers, so it changes nothing.

  Raises:
    ValueError: `comm_tool` is something else.
    RuntimeError: a launcher started several processes, but the script has not
      called `hvd.init()`: each would train a model of its own.
    NotImplementedError: Horovod runs more than one rank.
  """
  del use_legacy_optimizer
  if comm_tool != _HOROVOD:
    raise ValueError(
        "sok.init: comm_tool must be '%s', got %r" % (_HOROVOD, comm_tool))
  if not communication.horovod_initialized():
    launched = communication.launched_ranks()
    if launched > 1:
      raise RuntimeError(
          "sok.init: a launcher started %d processes, but Horovod is not "
          "initialized in this one. Call horovod.tensorflow.init() before "
          "sok.init()." % launched)
    tf.compat.v1.logging.info(
        "sok.init: Horovod is not initialized; training in a single process.")
    return
  communication.require_one_rank("sok.init")
  tf.compat.v1.logging.info("sok.init: Horovod runs a single rank.")
