# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Values of TF_CONFIG for a job on this machine."""

import socket


def tasks(counts):
  """Returns the values for all tasks, in the order of `counts`.

  Args:
    counts: dict from jobs to the number of their tasks.
  """
  sockets = [socket.socket() for _ in range(sum(counts.values()))]
  for s in sockets:
    s.bind(("localhost", 0))
  hosts = ["localhost:%d" % s.getsockname()[1] for s in sockets]
  for s in sockets:
    s.close()
  left = iter(hosts)
  cluster = {job: [next(left) for _ in range(n)] for job, n in counts.items()}
  return [{"cluster": cluster, "task": {"type": job, "index": i}}
          for job, n in counts.items() for i in range(n)]
