# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""sok.init: says how ranks talk to each other."""

import tensorflow as tf

from sparse_operation_kit import carriers
from sparse_operation_kit import communication
from sparse_operation_kit import settings


def init(comm_tool=communication.HOROVOD, use_legacy_optimizer=True, exchange_dtype=None,
         exchange_timeout=None, exchange=None,
         intra_op_parallelism_threads=None):
  """Prepares SparseOperationKit; call it once, after `hvd.init()` if you use Horovod.

  Without Horovod it works too and trains in this one process; a line in the log
  (level INFO) says so. Calling it again changes what it is told anew, for lookups
  that are built afterwards.

  Example:

    import horovod.tensorflow as hvd
    hvd.init()
    sok.init()

  Args:
    comm_tool: "horovod", the only one there is.
    use_legacy_optimizer: accepted for scripts that pass it; TensorFlow 1.15 has
      one generation of optimizers, so it changes nothing.
    exchange_dtype: `tf.float32`, `tf.float16` or `tf.bfloat16`: what rows and their
      gradients travel as between ranks; None: float32. Sums are formed in float32
      whatever it is. float16 holds nothing beyond 65504 and little below 6e-8: prefer
      bfloat16 for gradients that may be large or small.
    exchange_timeout: seconds that a lookup may wait for the other ranks to take part,
      before it fails on all of them; 0: for ever. None: what the environment variable
      SOK_EXCHANGE_TIMEOUT_SECONDS says, 600 without it. Make it longer than the
      longest time that ranks may be apart, a checkpoint on one rank included.
    exchange: what carries ids, rows and gradients between ranks. "horovod"; "memory":
      shared memory, for ranks that are all on one host; "nccl": NCCL between the ranks'
      GPUs, one for each rank; "auto": the first of "nccl", "memory" and "horovod" that
      all ranks can have, the log says which. None: what the environment variable
      SOK_EXCHANGE says, "horovod" without it. With anything but "horovod" this call is
      collective: all ranks make it, with the same value, and wait for each other. Those
      that differ are told apart within seconds under horovodrun, and after
      exchange_timeout under MPI.
    intra_op_parallelism_threads: how many threads may share one op's work in this
      process, as in `tf.ConfigProto`; None: one per processor. TensorFlow takes it from
      the first session of the process and ignores it in those that follow. With an
      `exchange` other than "horovod" this call opens that first session, unless the
      script has opened one before.

  Raises:
    ValueError: `comm_tool`, `exchange_dtype`, `exchange_timeout`, `exchange` or
      `intra_op_parallelism_threads` is something else, or ranks do not ask for the same
      exchange.
    RuntimeError: a rank cannot have the exchange that was asked for (the error says
      which one, and why), or the process has another one already (a carrier stays for
      its life: "horovod", and naming none, are errors then); or a launcher started
      several processes, but the script has not called `hvd.init()`: each would train a
      model of its own.
  """
  del use_legacy_optimizer
  communication.check_tool(comm_tool, "sok.init: comm_tool")
  settings.set_exchange(exchange_dtype)
  settings.set_exchange_timeout(exchange_timeout)
  settings.set_intra_op_threads(intra_op_parallelism_threads)
  wanted = settings.wanted_exchange(exchange, carriers.KINDS)
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
  carrier = carriers.start(wanted)
  settings.set_exchange_carrier(carrier)
  ranks = communication.num_ranks()
  if ranks == 1:
    tf.compat.v1.logging.info("sok.init: Horovod runs a single rank.")
  else:
    tf.compat.v1.logging.info(
        "sok.init: rank %d of %d, exchange by %s.", communication.rank(), ranks, carrier)
