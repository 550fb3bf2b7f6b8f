# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Patch: optimizers, sessions and savers inside of a CollectiveStrategy's scope.

Why: a script for DeepRec uses the stock names in the scope, and expects that they train
over ranks. Outside of a scope nothing changes.
"""

import inspect
import os

import tensorflow as tf

from tensorflow.python.training import monitored_session
from tensorflow.python.training import optimizer as optimizer_lib
from tensorflow.python.training import saver as saver_lib

from embedding_variable.deeprec.collective import collective_state
from embedding_variable.integration import patching
from embedding_variable.ops import handle_ops
from embedding_variable.variables import variable as ev

_LAYER = "_collective"

# Attributes in which `tf.train` optimizers keep their learning rate.
_RATES = ("_learning_rate", "_lr")

# Attributes in which an optimizer keeps another one that it calls.
_INNER = ("_opt", "_optimizer")

# Attributes that a scope sets: Horovod's wrapper of the optimizer, and whether the rate
# was changed.
_WRAPPER = "_embedding_variable_over_ranks"
_IS_SCALED = "_embedding_variable_rate_is_scaled"

# Calls of Horovod's compute_gradients that have not returned.
_averaging = [0]


def install():
  """Replaces the functions."""
  for name, make in (("compute_gradients", _compute_gradients),
                     ("apply_gradients", _apply_gradients)):
    patching.wrap(optimizer_lib.Optimizer, name, make, layer=_LAYER)
  horovod_class = getattr(collective_state.horovod(), "_DistributedOptimizer", None)
  if horovod_class is not None:
    patching.wrap(horovod_class, "compute_gradients", _count_calls, layer=_LAYER)
  patching.wrap(saver_lib.Saver, "__init__", _init_saver, layer=_LAYER)
  patching.wrap(monitored_session, "MonitoredTrainingSession",
                _monitored_training_session, layer=_LAYER)
  patching.replace_exports()


def _count_calls(stock):

  def compute_gradients(self, *args, **kwargs):
    _averaging[0] += 1
    try:
      return stock(self, *args, **kwargs)
    finally:
      _averaging[0] -= 1

  return compute_gradients


def _compute_gradients(stock):

  def compute_gradients(self, *args, **kwargs):
    if not collective_state.is_active() or _averaging[0]:
      return stock(self, *args, **kwargs)
    if _WRAPPER not in self.__dict__:
      self.__dict__[_WRAPPER] = collective_state.sok().DistributedOptimizer(self)
    wrapper = self.__dict__[_WRAPPER]
    # One rank has no wrapper.
    return (stock(self, *args, **kwargs) if wrapper is self else
            wrapper.compute_gradients(*args, **kwargs))

  return compute_gradients


def _apply_gradients(stock):

  def apply_gradients(self, *args, **kwargs):
    if collective_state.is_active():
      _scale_rate(self, collective_state.horovod().size())
    return stock(self, *args, **kwargs)

  return apply_gradients


def _scale_rate(optimizer, factor):
  """Multiplies the learning rate of an optimizer, once."""
  state = optimizer.__dict__
  if factor == 1 or _IS_SCALED in state:
    return
  rates = [name for name in _RATES if state.get(name) is not None]
  if not rates:
    if any(isinstance(state.get(name), optimizer_lib.Optimizer) for name in _INNER):
      return
    raise ValueError(
        "CollectiveStrategy: no learning rate found in %s, which must be multiplied by the "
        "number of ranks; use it outside of the scope, in sok.DistributedOptimizer" %
        type(optimizer).__name__)
  for name in rates:
    state[name] = _scaled(state[name], factor)
  state[_IS_SCALED] = True


def _scaled(rate, factor):
  return (lambda: rate() * factor) if callable(rate) else rate * factor


def _init_saver(stock):

  def init(self, *args, **kwargs):
    if collective_state.is_active():
      kwargs.setdefault("allow_empty", True)
    stock(self, *args, **kwargs)

  return init


def _monitored_training_session(stock):
  names = list(inspect.signature(stock).parameters)

  def monitored_training_session(*args, **kwargs):
    if not collective_state.is_active():
      return stock(*args, **kwargs)
    kwargs.update(zip(names, args))
    hvd = collective_state.horovod()
    collective_state.set_checkpoint_dir(kwargs.get("checkpoint_dir"))
    kwargs["is_chief"] = True
    kwargs["config"] = _with_gpu(kwargs.get("config"), hvd)
    if hvd.size() > 1:
      kwargs["hooks"] = [hvd.BroadcastGlobalVariablesHook(0)] + list(
          kwargs.get("hooks") or [])
    if hvd.rank() and not _has_spread_table():
      kwargs["checkpoint_dir"] = None
    return stock(**kwargs)

  return monitored_training_session


def _has_spread_table():
  """Returns whether a table of the graph is spread over ranks: then all ranks save."""
  return any(ev.is_embedding_variable(v) and handle_ops.is_spread_over_ranks(v.handle)
             for v in tf.compat.v1.global_variables())


def _with_gpu(config, hvd):
  """Returns a config that uses one of the GPUs that this process sees."""
  if hvd.local_size() == 1 or not tf.test.is_built_with_cuda():
    return config
  copied = tf.compat.v1.ConfigProto()
  if config is not None:
    copied.CopyFrom(config)
  if not copied.gpu_options.visible_device_list:
    seen = os.environ.get("CUDA_VISIBLE_DEVICES")
    count = len(seen.split(",")) if seen else hvd.local_size()
    copied.gpu_options.visible_device_list = str(hvd.local_rank() % count)
  return copied
