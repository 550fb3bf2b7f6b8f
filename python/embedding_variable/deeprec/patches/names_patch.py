# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Patch: adds DeepRec's names of the stand-ins to `tf`.

Why: a script uses `tf.staged` and the like. `tf` and `tf.compat.v1` are two objects.
"""

import contextlib
import functools

import tensorflow as tf

from embedding_variable.deeprec import distributed
from embedding_variable.deeprec import notices
from embedding_variable.deeprec import session_options
from embedding_variable.deeprec import stages
from embedding_variable.integration import patching


def install():
  """Adds the names."""
  for owner in (tf, tf.compat.v1):
    patching.add_name(owner, "staged", _noticed(
        stages.staged, "tf.staged", "a queue that threads fill; no batch is dropped"))
    patching.add_name(owner, "prefetch_join", _noticed(
        stages.prefetch_join, "tf.prefetch_join", "a queue that threads fill"))
    patching.add_name(owner, "make_prefetch_hook", stages.make_prefetch_hook)
    patching.add_name(owner, "ExecutorPolicy", ExecutorPolicy)
    patching.add_name(owner, "SmartStageOptions", _smart_stage_options)
    patching.add_name(owner, "stream", _stream)
    patching.add_name(owner, "async_embedding_mark_node", _mark_async)
    patching.add_name(owner.train, "mark_target_node", _mark_target)
    for name in ("enable_distributed_strategy", "enable_group_embedding"):
      patching.add_name(owner.config.experimental, name, getattr(distributed, name))


def _noticed(function, name, what):
  """Returns the function, which reports at its first call that it stands in."""

  @functools.wraps(function)
  def call(*args, **kwargs):
    notices.stands_in(name, what)
    return function(*args, **kwargs)

  return call


class ExecutorPolicy(object):
  """Values of DeepRec's `ConfigProto.executor_policy`."""

  USE_NORMAL_EXECUTOR = 0
  USE_COST_MODEL_EXECUTOR = 1
  USE_INLINE_EXECUTOR = 2


def _smart_stage_options(*unused_args, **unused_kwargs):
  notices.no_effect("tf.SmartStageOptions", "tf.staged stages what it is given")
  return session_options.Ignored()


@contextlib.contextmanager
def _stream(unused_id):
  notices.no_effect("tf.stream", "stock TensorFlow uses one stream")
  yield


def _mark_async(tensor):
  notices.no_effect("tf.async_embedding_mark_node", "lookups are never stale")
  return tensor


def _mark_target(unused_targets):
  notices.no_effect("tf.train.mark_target_node", "tf.staged stages what it is given")
