# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Sessions of the package's own, beside the user's.

On the CPU only, with threads of their own: they run while the user's session does, and
must not wait for its threads.

The first session of a process decides for all that follow how many threads share one
op's work (TensorFlow keeps one pool of them, whatever later sessions ask for). One of
these may be the first, so it takes what `sok.init` was told, and TensorFlow's default
otherwise: one per processor.
"""

import tensorflow as tf

from sparse_operation_kit import settings


def on_cpu(build, num_threads=1):
  """Builds a graph and opens a session of it.

  Args:
    build: callable without arguments that adds ops to the default graph.
    num_threads: ops that may run at once, also such as wait for other ranks.

  Returns:
    (session, what `build` returned). The caller closes the session.
  """
  graph = tf.Graph()
  with graph.as_default(), tf.device("/device:CPU:0"):
    built = build()
  config = tf.compat.v1.ConfigProto(
      device_count={"GPU": 0}, use_per_session_threads=True,
      inter_op_parallelism_threads=num_threads,
      intra_op_parallelism_threads=settings.intra_op_threads())
  return tf.compat.v1.Session(graph=graph, config=config), built
