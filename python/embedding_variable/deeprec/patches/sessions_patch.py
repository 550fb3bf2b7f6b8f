# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Patch: sessions act on DeepRec's options, and take its arguments.

Why: DeepRec's session makes micro batches of a graph and reads environment variables,
and its MonitoredTrainingSession has more arguments.
"""

import os
import threading

from tensorflow.python.client import session as session_lib
from tensorflow.python.framework import ops
from tensorflow.python.training import basic_session_run_hooks
from tensorflow.python.training import monitored_session

from embedding_variable.deeprec import keep_weights
from embedding_variable.deeprec import micro_batch
from embedding_variable.deeprec import notices
from embedding_variable.deeprec import session_options
from embedding_variable.integration import patching

# Environment variables of DeepRec, and why they have no effect.
ENVIRONMENT = {
    "START_STATISTIC_STEP": "stock TensorFlow has no memory planner",
    "STOP_STATISTIC_STEP": "stock TensorFlow has no memory planner",
    "STABLE_STATISTIC_STEP": "stock TensorFlow has no memory planner",
    "MAX_STATISTIC_STEP": "stock TensorFlow has no memory planner",
    "ENABLE_MEMORY_OPTIMIZATION": "stock TensorFlow has no memory planner",
    "START_NODE_STATS_STEP": "stock TensorFlow has one executor",
    "STOP_NODE_STATS_STEP": "stock TensorFlow has one executor",
    "MALLOC_CONF": "only jemalloc reads it, when the process starts",
    "TF_GPU_VMEM": "stock TensorFlow has no such allocator",
    "TF_CGMODE_FLAGS": "stock TensorFlow has no CUDA graphs",
    "OPTIMIZE_START_TIME": "every checkpoint is written as usual",
    "TARGET_NODES_NAME": "tf.staged stages what it is given",
    "TF_SEASTAR_ENDPOINT_MAP_PATH": "servers use grpc",
    "WORKER_ENABLE_POLLING": "servers use grpc",
    "PS_ENABLE_POLLING": "servers use grpc",
    "NETWORK_PS_CORE_NUMBER": "servers use grpc",
    "NETWORK_WORKER_CORE_NUMBER": "servers use grpc",
}

# .listeners: those of the running MonitoredTrainingSession call.
_calls = threading.local()


def install():
  """Replaces the functions."""
  micro_batch.record_all_optimizers()
  patching.wrap(session_lib.BaseSession, "__init__", _init_session, layer="_deeprec")
  for creator in (monitored_session.ChiefSessionCreator,
                  monitored_session.WorkerSessionCreator):
    patching.wrap(creator, "create_session", _create_session, layer="_deeprec")
  patching.wrap(basic_session_run_hooks.CheckpointSaverHook, "__init__", _init_saver_hook,
                layer="_deeprec")
  patching.wrap(monitored_session, "MonitoredTrainingSession",
                _monitored_training_session, layer="_deeprec")
  patching.replace_exports()


def _prepare(graph, config):
  """Applies the options of a session to its graph, once."""
  for name in sorted(set(ENVIRONMENT) & set(os.environ)):
    notices.no_effect(name, ENVIRONMENT[name])
  if graph.finalized:
    return
  keep_weights.check(graph)
  micro_batch.apply_recorded(graph, session_options.micro_batches_of(config))


def _init_session(stock):

  def init(self, target="", graph=None, config=None):
    _prepare(graph or ops.get_default_graph(), config)
    stock(self, target, graph, config)

  return init


def _create_session(stock):

  def create_session(self):
    _prepare(ops.get_default_graph(), self._config)  # pylint: disable=protected-access
    return stock(self)

  return create_session


def _init_saver_hook(stock):

  def init(self, checkpoint_dir, save_secs=None, save_steps=None, saver=None,
           checkpoint_basename="model.ckpt", scaffold=None, listeners=None, **kwargs):
    listeners = listeners or getattr(_calls, "listeners", None)
    stock(self, checkpoint_dir, save_secs, save_steps, saver, checkpoint_basename,
          scaffold, listeners, **kwargs)

  return init


def _monitored_training_session(stock):

  def monitored_training_session(*args, target_nodes_or_tensors=None,
                                 saving_listeners=None, **kwargs):
    if target_nodes_or_tensors is not None:
      notices.no_effect("target_nodes_or_tensors", "tf.staged stages what it is given")
    _calls.listeners = saving_listeners
    try:
      return stock(*args, **kwargs)
    finally:
      _calls.listeners = None

  return monitored_training_session
