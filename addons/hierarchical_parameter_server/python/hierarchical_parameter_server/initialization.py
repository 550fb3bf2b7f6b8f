# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""hps.Init: starts the parameter server of this process."""

import os
import sys

import tensorflow as tf

from hierarchical_parameter_server import _lib

# Strategies whose replicas share a batch.
_STRATEGIES = ("MirroredStrategy", "MirroredStrategyV1", "MultiWorkerMirroredStrategy",
               "CollectiveAllReduceStrategy", "CollectiveAllReduceStrategyV1")


def num_replicas():
  """Returns the number of replicas that share the global batch.

  Under a tf.distribute strategy, its replicas; otherwise Horovod's processes, if
  horovod.tensorflow is imported and initialized; otherwise 1.

  Raises:
    RuntimeError: the strategy is not a MirroredStrategy or MultiWorkerMirroredStrategy.
  """
  if tf.distribute.has_strategy():
    strategy = tf.distribute.get_strategy()
    if type(strategy).__name__ not in _STRATEGIES:
      raise RuntimeError(
          "hps.Init: expected tf.distribute.MirroredStrategy or MultiWorkerMirroredStrategy, "
          "got %s" % type(strategy).__name__)
    return strategy.num_replicas_in_sync
  horovod = sys.modules.get("horovod.tensorflow")
  if horovod is not None:
    try:
      return horovod.size()
    except ValueError:  # imported, but not initialized
      return 1
  return 1


def init_op(ps_config_file, global_batch_size, name=None):
  """Returns the output of an HpsInit op: the scalar string tensor "OK".

  Args:
    ps_config_file: string, or a scalar string tensor that is read when the op runs.
    global_batch_size: int.
    name: name of the op.

  Raises:
    TypeError, ValueError: an argument is wrong.
  """
  if isinstance(global_batch_size, bool) or not isinstance(global_batch_size, int):
    raise TypeError("global_batch_size: expected an int, got %r" % (global_batch_size,))
  if global_batch_size < 1:
    raise ValueError("global_batch_size: expected at least 1, got %d" % global_batch_size)
  if not isinstance(ps_config_file, (str, bytes, os.PathLike, tf.Tensor)):
    raise TypeError("ps_config_file: expected a path or a string tensor, got %r" %
                    (ps_config_file,))
  if not isinstance(ps_config_file, tf.Tensor):
    # Passes the file system's own bytes, which may not be UTF-8.
    ps_config_file = os.fsencode(ps_config_file)
  return _lib.load().hps_init(
      ps_config_file=ps_config_file, num_replicas=num_replicas(),
      global_batch_size=global_batch_size, name=name)


def Init(**kwargs):  # pylint: disable=invalid-name
  """Starts the parameter server of this process: opens databases and loads tables.

  In graph mode the server starts when the returned tensor is evaluated:

    init = hps.Init(ps_config_file="ps.json", global_batch_size=1024)
    with tf.Session() as sess:
      sess.run(init)

  The call is optional: a layer with a `ps_config_file` starts the server in its first
  lookup. A process has one server. Starting it again with the same configuration is a
  no-op; with another one, running the op raises FailedPreconditionError, which names
  both. The environment variable HPS_PS_CONFIG_FILE overrides the argument, so that a
  saved graph can be served elsewhere.

  Args:
    global_batch_size: int >= 1, default 1; samples of a batch over all replicas. It
      must be a multiple of the replicas, and a replica's share must not exceed any
      model's `max_batch_size`.
    ps_config_file: path of the JSON configuration, or a string tensor.

  Returns:
    Scalar string tensor, "OK".

  Raises:
    TypeError: an argument is unknown or has the wrong type.
    ValueError: global_batch_size < 1.
    RuntimeError: a strategy other than MirroredStrategy or MultiWorkerMirroredStrategy.

  If running the op fails, nothing has changed. It raises NotFoundError (no such file),
  InvalidArgumentError (the configuration, a table's files or the batch; the message
  names key, limit and value), FailedPreconditionError or ResourceExhaustedError
  (memory).

  Thread-safe. Cost: the time to read the tables; with `multi_process_hash_map` none.
  """
  known = {"global_batch_size": 1, "ps_config_file": ""}
  unknown = sorted(set(kwargs) - set(known))
  if unknown:
    raise TypeError("hps.Init: unknown arguments %s; it takes %s" %
                    (", ".join(unknown), ", ".join(sorted(known))))
  known.update(kwargs)
  return init_op(known["ps_config_file"], known["global_batch_size"])
