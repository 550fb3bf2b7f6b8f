# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""A hook by which all ranks save one checkpoint."""

from embedding_variable.tf_names import tf


class CheckpointSaverHook(tf.compat.v1.train.CheckpointSaverHook):
  """Saves one checkpoint of the whole job every N steps or seconds, on all ranks.

  A `tf.train.CheckpointSaverHook` for sessions that the script creates itself: create
  one on every rank, with the same arguments. `save_secs` uses the clock of rank 0. A
  `MonitoredTrainingSession` with the same `checkpoint_dir` on all ranks already has
  such a hook.

  Example:

    hooks = [sok.CheckpointSaverHook("./model", save_steps=1000)]
    with tf.train.SingularMonitoredSession(hooks=hooks, checkpoint_dir="./model") as sess:
      ...

  Raises:
    ValueError: raised on all ranks when the session is created, if the hooks of the
      ranks differ or some ranks have none.
  """
