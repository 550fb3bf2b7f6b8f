# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The hook by which all ranks save one checkpoint."""

import tensorflow as tf


class CheckpointSaverHook(tf.compat.v1.train.CheckpointSaverHook):
  """Saves one checkpoint of the whole job every N steps or seconds, on all ranks.

  `tf.train.CheckpointSaverHook`, for sessions that the script makes itself: every rank
  gets one with the same arguments. `save_secs` goes by the clock of rank 0. A
  `MonitoredTrainingSession` with the same `checkpoint_dir` on all ranks has such a hook
  already.

  Example:

    hooks = [sok.CheckpointSaverHook("./model", save_steps=1000)]
    with tf.train.SingularMonitoredSession(hooks=hooks, checkpoint_dir="./model") as sess:
      ...

  Raises:
    ValueError: when the session is made, on all ranks: the ranks' hooks differ, or some
      ranks have none.
  """
