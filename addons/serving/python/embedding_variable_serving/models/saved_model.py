# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""A SavedModel in a session of its own: signatures, checked feeds, runs."""

import collections
import functools
import sys
import time

import numpy as np
import tensorflow as tf

from embedding_variable_serving import errors

# The message of Session._make_callable_from_options, which tf.compat.v1 has no name for.
_CallableOptions = sys.modules[tf.compat.v1.ConfigProto.__module__].CallableOptions

_dismantle_graph = sys.modules[tf.Graph.__module__].dismantle_graph

_INTERNAL = ("__saved_model_init_op", "__saved_model_train_op")

# Index of ConfigProto.session_inter_op_thread_pool whose threads run the ops of a load.
_LOAD_POOL = 1
# Ops run in the thread that calls Session.run.
_CALLER = -1

# Functions of a version that are kept, each for some outputs and a time limit.
_MOST_CALLABLES = 64
# Kinds of runs for which a new version is prepared. Each takes memory and time of a load.
_MOST_PREPARED = 8

# alias: that of the signature. tensor: one of the graph. dtype: tf.DType. shape: list, -1 for an
# unknown dimension, or None for an unknown rank. kind: NumPy dtype of the arrays.
Port = collections.namedtuple("Port", ["alias", "tensor", "dtype", "shape", "kind"])

# inputs, outputs: {alias: Port}, sorted. proto: SignatureDef.
Signature = collections.namedtuple("Signature", ["name", "method", "inputs", "outputs", "proto"])


def _pool(pool, name, num_threads):
  # Sessions of a process share a pool by its name, which stands for its size too.
  pool.num_threads = num_threads
  pool.global_name = "embedding_variable_serving_%s_%d" % (name, num_threads)


def new_kinds():
  """Returns an empty deque for the newest kinds of runs, (signature, outputs, time limit)."""
  return collections.deque(maxlen=_MOST_PREPARED)


def session_config(base=None, intra_op=0, inter_op=0, load_threads=1):
  """Returns a ConfigProto with separate inter-op threads for requests and for loads.

  Args:
    base: ConfigProto to start from, or None.
    intra_op: number of threads; 0: TensorFlow's default.
    inter_op: number of threads of requests; 0: TensorFlow's default.
    load_threads: number of threads of loads.
  """
  config = tf.compat.v1.ConfigProto()
  if base is not None:
    config.CopyFrom(base)
  if intra_op:
    config.intra_op_parallelism_threads = intra_op
  del config.session_inter_op_thread_pool[:]
  _pool(config.session_inter_op_thread_pool.add(), "requests", inter_op)
  _pool(config.session_inter_op_thread_pool.add(), "loads", load_threads)
  return config


class _Session(tf.compat.v1.Session):
  """Session whose runs use the threads of loads, and later those of `pool`."""

  pool = _LOAD_POOL

  def run(self, fetches, feed_dict=None, options=None, run_metadata=None):
    if self.pool and options is None:
      options = tf.compat.v1.RunOptions(inter_op_thread_pool=self.pool)
    return super().run(fetches, feed_dict, options, run_metadata)


def _port(graph, alias, info):
  # A missing tensor raises KeyError while the version loads, not when a request comes.
  tensor = graph.get_tensor_by_name(info.name)
  shape = None if info.tensor_shape.unknown_rank else [
      dim.size for dim in info.tensor_shape.dim]
  dtype = tf.as_dtype(info.dtype)
  return Port(alias, tensor, dtype, shape, np.dtype(dtype.as_numpy_dtype))


def _ports(graph, infos):
  return collections.OrderedDict(
      (alias, _port(graph, alias, infos[alias])) for alias in sorted(infos)
      if infos[alias].name)


class SavedModel(object):
  """A loaded SavedModel.

  Attributes:
    signatures: {name: Signature}.
    session: runs in it change the served state.
    has_deltas: bool, whether apply_delta can change its tables.
    follower: deltas.Follower, which changes its tables, or None.
    broken: string, why a delta was applied in part, so that no request is answered; or None.
    ran: function of the seconds of each run of a request's ops, or None.
  """

  def __init__(self, path, tags=("serve",), config=None, in_caller=False, kinds=None):
    """Loads a SavedModel.

    Args:
      path: its folder.
      tags: those of its meta graph.
      config: ConfigProto from session_config.
      in_caller: requests run their ops in the thread that calls `run`.
      kinds: a deque of `new_kinds` that the versions of a model share, or None.
    """
    self._request_pool = _CALLER if in_caller else 0
    self._kinds = new_kinds() if kinds is None else kinds
    self.follower = self.broken = self.ran = None
    self._callable = functools.lru_cache(_MOST_CALLABLES)(self._make_callable)
    graph = tf.Graph()
    self.session = _Session(graph=graph, config=config)
    try:
      with graph.as_default():
        meta_graph = tf.compat.v1.saved_model.load(self.session, list(tags), path)
      graph.finalize()
      self._deltas = meta_graph.saver_def.restore_op_name.rpartition("/")[0] + "/deltas/"
      names = {op.name for op in graph.get_operations()}
      self.has_deltas = self._deltas + "restore_tables" in names
      self.signatures = {
          name: Signature(name, definition.method_name, _ports(graph, definition.inputs),
                          _ports(graph, definition.outputs), definition)
          for name, definition in meta_graph.signature_def.items() if name not in _INTERNAL}
    except BaseException:
      self.session.close()
      raise

  def start_serving(self):
    """Lets later runs use the threads of requests.

    TensorFlow prunes and optimizes the graph for each kind of run. This is done now for those
    that requests of the model have used, or for all outputs of each signature if there was no
    request yet. So no request of these kinds waits for it.
    """
    self.session.pool = self._request_pool
    self._callable.cache_clear()  # The pool is part of a callable.
    first = [(name, tuple(s.outputs), 0) for name, s in self.signatures.items()]
    for name, outputs, limit in list(self._kinds) or first:
      if name in self.signatures and self.signatures[name].outputs.keys() >= set(outputs):
        self._callable(name, outputs, limit)

  def close(self):
    """Closes the session and frees the graph.

    The objects of a graph refer to each other, and main.py has excluded them from the garbage
    collector, whose runs over them would make requests wait.
    """
    self._callable = None
    self.session.close()
    graph = self.session.graph
    variables = graph.get_collection(tf.compat.v1.GraphKeys.GLOBAL_VARIABLES)
    _dismantle_graph(graph)
    for variable in variables:
      vars(variable).clear()  # On TensorFlow 2.x tables and their handles refer to each other.
    # A follower of deltas and this object do, too.
    self.session = self.follower = None

  def _make_callable(self, name, outputs, timeout_ms):
    """Returns a function from the arrays of all inputs, sorted by name, to those of outputs.

    It leaves out the work that Session.run does in Python beside the ops.
    """
    kind = name, outputs, timeout_ms
    if self.session.pool != _LOAD_POOL and kind not in self._kinds:
      self._kinds.append(kind)
    signature = self.signatures[name]
    options = _CallableOptions(
        feed=[port.tensor.name for port in signature.inputs.values()],
        fetch=[signature.outputs[output].tensor.name for output in outputs])
    options.run_options.timeout_in_ms = timeout_ms
    options.run_options.inter_op_thread_pool = self.session.pool
    # pylint: disable=protected-access
    return self.session._make_callable_from_options(options)

  def apply_delta(self, prefix):
    """Applies an incremental checkpoint to the tables, then to all other variables.

    No request may run meanwhile. The ops run in the threads of loads.

    Args:
      prefix: its prefix; it has been checked.

    Raises:
      tf.errors.OpError: it was applied in part or not at all.
    """
    options = tf.compat.v1.RunOptions(inter_op_thread_pool=_LOAD_POOL)
    for name in ("restore_tables", "restore_others"):
      self.session.run(self._deltas + name, {self._deltas + "prefix:0": prefix},
                       options=options)

  def probe(self):
    """Runs each signature once, on zeros.

    Raises:
      tf.errors.OpError: an error of any kind that zeros cannot cause, such as variables without
        values.
    """
    for signature in self.signatures.values():
      feeds = {}
      for port in signature.inputs.values():
        if port.shape is None:
          break
        shape = [1 if length < 0 else length for length in port.shape]
        if port.dtype == tf.string:
          feeds[port.alias] = np.full(shape, b"", object)
        else:
          feeds[port.alias] = np.zeros(shape, port.kind)
      else:
        try:
          self.run(signature, feeds, list(signature.outputs))
        except tf.errors.InvalidArgumentError:
          pass  # Zeros are not valid values of all models.

  def run(self, signature, feeds, outputs, timeout_ms=None):
    """Returns the arrays of some outputs, in their order.

    Args:
      signature: signature of `signatures`.
      feeds: {alias: NumPy array}; the caller has called `check`.
      outputs: list of aliases.
      timeout_ms: number; ops that run for longer, up to twice as long, are cancelled. None: no
        limit.

    Raises:
      ServingError: UNAVAILABLE, a delta was applied in part.
    """
    if self.broken:
      raise errors.ServingError("UNAVAILABLE", self.broken)
    names = tuple(sorted(set(outputs)))
    # A power of two, since the limit is part of a callable. 0 is none.
    limit = 0 if timeout_ms is None else 1 << max(0, int(timeout_ms).bit_length())
    run = self._callable(signature.name, names, limit)
    begin = time.time()
    arrays = run(*[feeds[name] for name in signature.inputs])
    if self.ran:
      self.ran(time.time() - begin)
    found = dict(zip(names, arrays))
    return [found[name] for name in outputs]


def check(signature, feeds):
  """Compares names, types and shapes of feeds with a signature.

  Args:
    signature: Signature.
    feeds: {alias: NumPy array}.

  Raises:
    ServingError: INVALID_ARGUMENT; the message has the input, what was expected, and what
      came.
  """
  if len(feeds) != len(signature.inputs) or any(name not in signature.inputs for name in feeds):
    raise errors.invalid(
        "input names do not match signature '%s': expected [%s], missing [%s], not in the "
        "signature [%s]", signature.name, ", ".join(signature.inputs),
        ", ".join(name for name in signature.inputs if name not in feeds),
        ", ".join(sorted(name for name in feeds if name not in signature.inputs)))
  for name, array in feeds.items():
    port = signature.inputs[name]
    # Strings are arrays of objects.
    if array.dtype != port.kind:
      raise errors.invalid("input '%s' of signature '%s': expected type %s, got %s", name,
                           signature.name, port.dtype.name, _type_name(array))
    if port.shape is not None and not _fits(port.shape, array.shape):
      raise errors.invalid(
          "input '%s' of signature '%s': expected shape %s, got %s", name, signature.name,
          port.shape, list(array.shape))


def _type_name(array):
  return "string" if array.dtype == object else array.dtype.name


def _fits(expected, shape):
  return len(expected) == len(shape) and all(
      want < 0 or want == length for want, length in zip(expected, shape))
