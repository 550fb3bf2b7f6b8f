# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Sessions of this package, separate from the user's.

They use only the CPU and have their own threads: they run during the user's session and
must not wait for its threads.

The first session of a process sets the number of threads per op for all later ones,
since TensorFlow keeps one such pool. A session of this module may be the first, so it
uses the number given to `sok.init`, or TensorFlow's default: one per CPU.
"""

from embedding_variable.tf_names import tf

from sparse_operation_kit import settings


def on_cpu(build, num_threads=1):
  """Builds a graph and opens a session of it.

  Args:
    build: callable without arguments that adds ops to the default graph.
    num_threads: number of ops that may run at once, including ops that wait for other
      ranks.

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
