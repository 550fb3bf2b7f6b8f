# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Patch: servers take DeepRec's protocols.

Why: stock TensorFlow has no server for them. They differ from grpc in speed alone.
"""

from tensorflow.python.training import server_lib

from embedding_variable.deeprec import notices
from embedding_variable.integration import patching

PROTOCOLS = ("grpc++", "star_server")


def install():
  """Wraps the constructor of `tf.train.Server`, which is `tf.distribute.Server`."""
  patching.wrap(server_lib.Server, "__init__", _init, layer="_deeprec")


def _init(stock):

  def init(self, server_or_cluster_def, job_name=None, task_index=None, protocol=None,
           *args, **kwargs):
    if protocol in PROTOCOLS:
      notices.stands_in("protocol " + protocol, "grpc")
      protocol = "grpc"
    stock(self, server_or_cluster_def, job_name, task_index, protocol, *args, **kwargs)

  return init
