# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""sok.init: configures the communication between ranks."""

from embedding_variable.tf_names import tf

from sparse_operation_kit import communication
from sparse_operation_kit import settings
from sparse_operation_kit.exchange import carriers

_initialized = False


def is_initialized():
  """Returns whether `init` has been called in this process, after `hvd.init()`."""
  return _initialized


def init(comm_tool=communication.HOROVOD, use_legacy_optimizer=True, exchange_dtype=None,
         exchange_timeout=None, exchange=None,
         intra_op_parallelism_threads=None):
  """Prepares SparseOperationKit; call it once, after `hvd.init()` if you use Horovod.

  Without Horovod, training runs in this single process, which is logged (level INFO).
  A later call sets these arguments again, and omitted ones return to their defaults:
  exchange_dtype for lookups that are built afterwards, exchange_timeout at once for all
  waits of the process, intra_op_parallelism_threads for sessions that this package opens
  afterwards. A call that fails leaves all three unchanged.

  Example:

    import horovod.tensorflow as hvd
    hvd.init()
    sok.init()

  Args:
    comm_tool: "horovod", the only tool.
    use_legacy_optimizer: accepted and ignored, on TensorFlow 1.15 and 2.x.
    exchange_dtype: `tf.float32`, `tf.float16` or `tf.bfloat16`: the type of rows and
      their gradients in messages between ranks; None: float32. All ranks must pass the
      same type. Sums are always computed in float32. float16 cannot hold values beyond
      65504 or below about 6e-8: prefer bfloat16 for gradients that may be large or
      small.
    exchange_timeout: seconds that a lookup may wait for other ranks before it fails on
      all of them; 0: forever. Saves, loads and dumps, which ranks make together, have
      the same limit. At most `threading.TIMEOUT_MAX`. None: the environment variable
      SOK_EXCHANGE_TIMEOUT_SECONDS, or 600 if it is not set. Choose more than the
      longest time that one rank may be ahead of another, for example while one writes
      a checkpoint.
    exchange: the transport of ids, rows and gradients between ranks. "horovod";
      "memory": shared memory, for ranks on one host; "nccl": NCCL between GPUs, one per
      rank; "auto": the first of "nccl", "memory" and "horovod" that all ranks can use
      (logged). None: the environment variable SOK_EXCHANGE, or "horovod" if it is not
      set. With anything except "horovod" this call is collective: all ranks must make
      it, with the same value. A rank with another value is reported within seconds
      under horovodrun, and after exchange_timeout under MPI.
    intra_op_parallelism_threads: number of threads that may share the work of one op in
      this process, as in `tf.ConfigProto`; None: one per CPU. TensorFlow takes the
      number from the first session of the process and ignores it in later ones. With an
      `exchange` other than "horovod" this call opens that first session, unless the
      script has opened one before.

  Raises:
    ValueError: an invalid value of `comm_tool`, `exchange_dtype`, `exchange_timeout`,
      `exchange` or `intra_op_parallelism_threads`, or ranks that pass different
      exchanges.
    RuntimeError: a rank cannot use the exchange (the error names the rank and the
      reason). Or this process already uses another one, which cannot be changed: after
      "memory" or "nccl", a call with "horovod" or without `exchange` raises an error too.
      Or a launcher started several processes, but the script has not called
      `hvd.init()`, so that each would train its own model.
  """
  del use_legacy_optimizer
  communication.check_tool(comm_tool, "sok.init: comm_tool")
  wanted = settings.wanted_exchange(exchange, carriers.KINDS)
  undo = settings.set_all(exchange_dtype, exchange_timeout, intra_op_parallelism_threads)
  try:
    _start(wanted)
  except Exception:
    undo()
    raise


def _start(wanted):
  """Starts an exchange and logs how this process trains."""
  global _initialized
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
  _initialized = True
  ranks = communication.num_ranks()
  if ranks == 1:
    tf.compat.v1.logging.info("sok.init: Horovod runs a single rank.")
  else:
    tf.compat.v1.logging.info(
        "sok.init: rank %d of %d, exchange by %s.", communication.rank(), ranks, carrier)
