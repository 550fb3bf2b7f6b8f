# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""DeepRec's stages: threads run the input part of a graph ahead of the training step.

  features = stages.staged(iterator.get_next(), num_threads=4, capacity=40)
  ...
  with tf.train.MonitoredTrainingSession(hooks=[stages.make_prefetch_hook()]) as session:

A stage is a FIFO queue of batches. A full queue makes its threads wait: no batch is
dropped. If the input ends, the batches in the queue are delivered, then OutOfRange.
"""

from embedding_variable.deeprec import graph_lists
from embedding_variable.deeprec import notices
from embedding_variable.deeprec import stage_runner
from embedding_variable.deeprec.patches import stage_sessions
from embedding_variable.tf_names import data_flow_ops
from embedding_variable.tf_names import errors
from embedding_variable.tf_names import nest
from embedding_variable.tf_names import ops
from embedding_variable.tf_names import session_run_hook
from embedding_variable.variables import number_checks


def staged(features, feed_dict=None, capacity=1, num_threads=1, num_clients=1,
           timeout_millis=300000, closed_exception_types=None,
           ignored_exception_types=None, use_stage_subgraph_thread_pool=False,
           stage_subgraph_thread_pool_id=0, stage_subgraph_stream_id=0, name=None,
           feed_list=None, feed_generator=None):
  """Returns `features` as they come from a queue that threads fill.

  Args:
    features: nest of Tensors, SparseTensors and Nones.
    feed_dict: dict from placeholders to Tensors: a thread runs the Tensors, then feeds
      their values to the placeholders that `features` depend on.
    capacity: int >= 1, batches in the queue.
    num_threads: int >= 1. With several, the order of batches is not fixed.
    num_clients: no effect; another value than the default is reported once, as of the
      other arguments without effect.
    timeout_millis: no effect: a thread waits until there is room.
    closed_exception_types: error classes or codes that end a thread; the last thread
      closes the queue. Default: OutOfRangeError and StopIteration.
    ignored_exception_types: error classes or codes after which a thread goes on, with a
      warning.
    use_stage_subgraph_thread_pool: no effect.
    stage_subgraph_thread_pool_id: no effect.
    stage_subgraph_stream_id: no effect.
    name: name of the ops.
    feed_list: list of placeholders, of DeepRec's releases before 2306.
    feed_generator: function of a session that yields a tuple of values for `feed_list`.

  Returns:
    The same structure, with the same dtypes and static shapes.

  Raises:
    ValueError: `capacity` or `num_threads` is below 1, or there is no tensor.
    TypeError: `feed_dict` has a value that is no Tensor.
  """
  _report("tf.staged", num_clients, timeout_millis)
  notices.ignored(
      "tf.staged", "sessions have TensorFlow's own threads and streams",
      use_stage_subgraph_thread_pool=(use_stage_subgraph_thread_pool, False),
      stage_subgraph_thread_pool_id=(stage_subgraph_thread_pool_id, 0),
      stage_subgraph_stream_id=(stage_subgraph_stream_id, 0))
  if not number_checks.is_int(num_threads, 1):
    raise ValueError("staged: num_threads: expected an integer of at least 1, got %r" %
                     (num_threads,))
  return _staged([features] * num_threads, capacity, closed_exception_types,
                 ignored_exception_types, name, feed_dict, feed_list, feed_generator)


def prefetch_join(thread_to_features, feed_dict=None, capacity=1, num_clients=1,
                  timeout_millis=300000, closed_exception_types=None,
                  ignored_exception_types=None, name=None, feed_list=None,
                  feed_generator=None):
  """Like `staged`, with a thread for each entry of the list `thread_to_features`.

  All entries have the same structure, dtypes and ranks.

  Raises:
    ValueError: the list is empty, or entries differ in structure.
  """
  _report("tf.prefetch_join", num_clients, timeout_millis)
  entries = list(thread_to_features)
  if not entries:
    raise ValueError("prefetch_join: thread_to_features is empty")
  for entry in entries[1:]:
    nest.assert_same_structure(entries[0], entry, expand_composites=True)
  return _staged(entries, capacity, closed_exception_types, ignored_exception_types, name,
                 feed_dict, feed_list, feed_generator)


def _report(function, num_clients, timeout_millis):
  """Reports arguments without effect that both functions have."""
  notices.ignored(function, "every thread of a process uses the same queue",
                  num_clients=(num_clients, 1))
  notices.ignored(function, "a thread waits until there is room; no batch is dropped",
                  timeout_millis=(timeout_millis, 300000))


def _staged(entries, capacity, closed, ignored, name, feed_dict, feed_list,
            feed_generator):
  """Builds the queue; `entries` has the features of each thread."""
  if not number_checks.is_int(capacity, 1):
    raise ValueError("staged: capacity: expected an integer of at least 1, got %r" %
                     (capacity,))
  feeds = stage_runner.Feeds(feed_dict, feed_list, feed_generator)
  with ops.name_scope(name, "staged"):
    flat = nest.flatten(entries[0], expand_composites=True)
    tensors = [ops.convert_to_tensor(t) for t in flat if t is not None]
    if not tensors:
      raise ValueError("staged: features have no tensor")
    queue = data_flow_ops.FIFOQueue(capacity, [t.dtype for t in tensors], name="stage")
    enqueues = {}
    for entry in entries:
      if id(entry) not in enqueues:
        enqueues[id(entry)] = queue.enqueue(
            [t for t in nest.flatten(entry, expand_composites=True) if t is not None])
    dequeued = queue.dequeue()
    dequeued = dequeued if isinstance(dequeued, list) else [dequeued]
    taken = iter(dequeued)
    shapes = [_common_shape(tensors_of) for tensors_of in zip(
        *[nest.flatten(e, expand_composites=True) for e in entries])]
    results = []
    for tensor, shape in zip(flat, shapes):
      results.append(None if tensor is None else next(taken))
      if tensor is not None:
        results[-1].set_shape(shape)
    runner = stage_runner.StageRunner(
        queue, dequeued, [enqueues[id(e)] for e in entries], feeds,
        stage_runner.Errors(closed, (errors.OutOfRangeError, StopIteration)),
        stage_runner.Errors(ignored, ()))
  graph_lists.of(queue.queue_ref.graph, graph_lists.STAGES).append(runner)
  stage_sessions.install()
  return nest.pack_sequence_as(entries[0], results, expand_composites=True)


def _common_shape(tensors):
  """Returns the static shape that all threads' tensors have."""
  if tensors[0] is None:
    return None
  shape = ops.convert_to_tensor(tensors[0]).shape
  for tensor in tensors[1:]:
    other = ops.convert_to_tensor(tensor).shape
    shape = shape.most_specific_compatible_shape(other)
  return shape


def make_prefetch_hook(daemon=True, start=True, prefetch_rows=True):
  """Returns a SessionRunHook that starts the threads of the graph's stages.

  It starts them in every session it is used in, and stops them with the session.

  Args:
    daemon: bool, whether the threads are daemons.
    start: bool; False: the threads are created and registered, and the caller starts
      them.
    prefetch_rows: bool, whether the threads prefetch the rows that lookups of tables in
      `DRAM_SSDHASH`, `HBM_DRAM` and `HBM_DRAM_SSDHASH` will read, if their ids depend on
      the stage alone. The first hook that a graph's session is created with decides.
  """
  return PrefetchHook(daemon, start, prefetch_rows)


class PrefetchHook(session_run_hook.SessionRunHook):
  """Starts the threads of stages; see `make_prefetch_hook`."""

  def __init__(self, daemon=True, start=True, prefetch_rows=True):
    self._daemon = daemon
    self._start = start
    self._prefetch_rows = prefetch_rows

  def begin(self):
    graph = ops.get_default_graph()
    if self._prefetch_rows and not graph.finalized:
      for runner in graph_lists.of(graph, graph_lists.STAGES):
        runner.prefetch_rows(graph)

  def after_create_session(self, session, coord):
    runners = graph_lists.of(session.graph, graph_lists.STAGES)
    if not runners:
      raise errors.NotFoundError(
          None, None, "make_prefetch_hook: the graph has no stage: call tf.staged before "
          "the session is created")
    for runner in runners:
      runner.create_threads(session, coord, self._daemon, self._start)
