# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Ops that write a checkpoint atomically: either all of its files appear, or none.

A saver writes to `<prefix>.partial` and renames the files once they are on disk
(`delta_ops.publish_checkpoint`). `checkpoint_format.interrupted` finishes what a process
left unfinished.
"""

import os

from embedding_variable.checkpoint_format import durable
from embedding_variable.ops import delta_ops
from embedding_variable.tf_names import control_flow_ops
from embedding_variable.tf_names import string_ops

_STAGED = ".partial"


def add_save_ops(prefix, make):
  """Wraps a save so that the checkpoint is written atomically; returns a string scalar.

  Args:
    prefix: string scalar, the checkpoint's prefix.
    make: function from the prefix to write to, to a tensor that is computed when the
      files are written.
  """
  staged = string_ops.string_join([prefix, _STAGED])
  written = make(staged)
  from_op = [written.op if hasattr(written, "op") else written]
  with_prefix = control_flow_ops.with_dependencies(from_op, prefix)
  published = delta_ops.publish_checkpoint(
      control_flow_ops.with_dependencies(from_op, staged), with_prefix)
  return control_flow_ops.with_dependencies([published], prefix)


def add_part_ops(prefix, make):
  """Wraps a save whose files another process publishes; returns a string scalar.

  Args:
    prefix: string scalar, the checkpoint's prefix.
    make: as for `add_save_ops`.
  """
  written = make(string_ops.string_join([prefix, _STAGED]))
  from_op = [written.op if hasattr(written, "op") else written]
  return control_flow_ops.with_dependencies(from_op, prefix)


def sync_state(directory, latest_filename=None):
  """Syncs the state file, which names the newest checkpoint."""
  if not durable.is_local(directory):
    return
  path = os.path.join(directory, latest_filename or "checkpoint")
  if os.path.exists(durable.local(path)):
    durable.sync(path)
    durable.sync(directory or ".")
