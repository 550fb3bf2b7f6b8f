# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes a stock V2 checkpoint tensor by tensor."""

import glob
import os
import shutil

import numpy as np

from embedding_variable.checkpoint import publishing
from embedding_variable.checkpoint_format import errors
from embedding_variable.tf_names import array_ops
from embedding_variable.tf_names import constant_op
from embedding_variable.tf_names import dtypes
from embedding_variable.tf_names import errors as tf_errors
from embedding_variable.tf_names import gen_io_ops
from embedding_variable.tf_names import io_ops
from embedding_variable.tf_names import ops
from embedding_variable.tf_names import session as session_lib

# Tensors are written together up to this size: one file for a small checkpoint, little
# memory for a large one.
_FLUSH_BYTES = 256 << 20


class BundleWriter(object):
  """Writes a checkpoint in pieces, which are merged when all are complete.

  Use as a context manager. The checkpoint's index appears last, so the checkpoint is
  either complete or absent; after an error all files are removed.
  """

  def __init__(self, prefix, flush_bytes=_FLUSH_BYTES):
    """Args: prefix, of the checkpoint; flush_bytes, most bytes kept in memory."""
    self._prefix = prefix
    self._flush_bytes = flush_bytes
    # Next to the target, so that publishing only renames files.
    self._directory = prefix + "_partial"
    self._pending = []
    self._pending_bytes = 0
    self._parts = []

  def __enter__(self):
    try:
      os.makedirs(os.path.dirname(self._prefix), exist_ok=True)
      os.mkdir(self._directory)
    except OSError as e:
      raise errors.CheckpointError("%s cannot be written: %s" % (self._prefix, e))
    return self

  def __exit__(self, kind, *unused):
    try:
      if kind is None:
        self._flush()
        self._run(self._publish)
    finally:
      for path in glob.glob(glob.escape(self._prefix) + ".partial.*"):
        os.remove(path)
      shutil.rmtree(self._directory, ignore_errors=True)

  def add(self, name, array):
    """Adds a tensor; `array` is a NumPy array or scalar."""
    self._pending.append((name, array))
    self._pending_bytes += getattr(array, "nbytes", 0)
    if self._pending_bytes >= self._flush_bytes:
      self._flush()

  def _publish(self):
    merge = lambda staged: gen_io_ops.merge_v2_checkpoints(
        self._parts, staged, delete_old_dirs=False)
    return publishing.add_save_ops(constant_op.constant(self._prefix), merge), {}

  def _flush(self):
    if not self._pending:
      return
    pending, self._pending, self._pending_bytes = self._pending, [], 0
    part = os.path.join(self._directory, "part_%05d" % len(self._parts))

    def save():
      # Fed, since a constant is limited to 2 GiB.
      feed = {}
      for _, array in pending:
        # NumPy's own bytes type would drop trailing zeros.
        array = np.asarray(array, object if isinstance(array, bytes) else None)
        dtype = dtypes.string if array.dtype == object else dtypes.as_dtype(array.dtype)
        feed[array_ops.placeholder(dtype, array.shape)] = array
      return io_ops.save_v2(part, [n for n, _ in pending], [""] * len(pending),
                            list(feed)), feed

    self._run(save)
    self._parts.append(part)

  def _run(self, make):
    """Runs the (op, feed dict) returned by `make` in a graph of its own."""
    try:
      with ops.Graph().as_default() as graph, ops.device("/cpu:0"):
        op, feed = make()
        with session_lib.Session(graph=graph) as session:
          session.run(op, feed)
    except tf_errors.OpError as e:
      raise errors.CheckpointError("%s cannot be written: %s" % (self._prefix, e.message))
