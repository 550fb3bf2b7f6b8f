# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""DeepRec's WorkQueue: a list of works, usually files, that workers share.

  queue = work_queue.WorkQueue(files, num_epochs=2, shuffle=True, seed=1)
  dataset = tf.data.TextLineDataset(queue.input_dataset())

Each work is handed to one worker. Workers of one parameter server job share the queue
of a name, if their graphs create it on the server; otherwise a queue belongs to a
session. `ranks=True` shares it among the ranks of a Horovod job.

The queue is saved with the model. A restored queue has the works that were not handed
out, and those that were and are unfinished, so no work is lost when a worker dies.
"""

from embedding_variable.deeprec import graph_lists
from embedding_variable.deeprec import notices
from embedding_variable.deeprec import work_queue_graph
from embedding_variable.deeprec import work_queue_ranks
from embedding_variable.deeprec.patches import work_queue_sessions
from embedding_variable.tf_names import array_ops
from embedding_variable.tf_names import compat
from embedding_variable.tf_names import control_flow_ops
from embedding_variable.tf_names import data_flow_ops
from embedding_variable.tf_names import dataset_ops
from embedding_variable.tf_names import dtypes
from embedding_variable.tf_names import logging_ops
from embedding_variable.tf_names import math_ops
from embedding_variable.tf_names import ops
from embedding_variable.tf_names import queue_runner
from embedding_variable.tf_names import resources
from embedding_variable.tf_names import saver as saver_lib
from embedding_variable.tf_names import string_ops
from embedding_variable.tf_names import summary
from embedding_variable.tf_names import tensor_shape
from embedding_variable.variables import number_checks

# The last works of a worker that are unfinished: one in the pipeline's queue, one that
# waits for it, one that is read, and one whose records are in later buffers.
HELD = 4


def of_graph(graph):
  """Returns the list of the WorkQueues of a graph."""
  return list(graph_lists.of(graph, graph_lists.WORK_QUEUES))


class WorkQueue(saver_lib.BaseSaverBuilder.SaveableObject):
  """Works that are handed out once per epoch.

  The order is that of the list, or a new one for each epoch. All epochs are in the queue
  from the start. With `tf.train.MonitoredTrainingSession` the chief fills the queue; in a
  plain session run `queue.initializer`.

  A work is unfinished until its worker has taken `held` more, or until its
  `MonitoredSession` ends because there is no more input, or `queue.finish()` runs.

  Attributes:
    initializer: op that fills the queue, and is a no-op if it is filled.
  """

  def __init__(self, works, num_epochs=1, shuffle=True, seed=None, prefix=None,
               num_slices=None, num_clients=1, name=None, local_work_mgr=None,
               at_most_once=None, held=HELD, ranks=None):
    """Creates the queue in the current graph.

    Args:
      works: list of at least one string or bytes; spaces around them are removed.
      num_epochs: int >= 1, how often each work is handed out.
      shuffle: bool.
      seed: int or None. With it, or the graph's seed, the order is the same in every run.
      prefix: string that is put before each work by the worker, or None.
      num_slices: no effect: files are never sliced; reported once.
      num_clients: no effect; reported once.
      name: string or None. Workers that share a queue use the same name.
      local_work_mgr: None; DeepRec's LocalWorkMgr is not supported.
      at_most_once: bool; True: a restored queue leaves out unfinished works, as
        DeepRec's does. None: `set_default_at_most_once`, False at first.
      held: int >= 0, number of a worker's last works that count as unfinished.
      ranks: bool; True: the ranks of the Horovod job share the queue, which rank 0
        holds. All ranks create their queues in the same order, over all graphs of a
        process. None: the value of `set_default_ranks`, False at first.

    Raises:
      ValueError: no works, a work that is no string, a number out of its range.
      TypeError: `num_epochs` is None.
      NotImplementedError: `local_work_mgr` is given.
    """
    self._works = _checked_works(works)
    if num_epochs is None:
      raise TypeError("WorkQueue: num_epochs: expected an integer, got None")
    if not number_checks.is_int(num_epochs, 1):
      raise ValueError("WorkQueue: num_epochs: expected an integer of at least 1, got %r" %
                       (num_epochs,))
    if not number_checks.is_int(held, 0):
      raise ValueError("WorkQueue: held: expected an integer of at least 0, got %r" %
                       (held,))
    if local_work_mgr is not None:
      raise NotImplementedError(
          "WorkQueue: local_work_mgr is not supported; unfinished works are in the "
          "checkpoint")
    notices.ignored("WorkQueue", "works are files, which are not sliced",
                    num_slices=(num_slices, None))
    notices.ignored("WorkQueue", "a take that waits holds no thread of a pool",
                    num_clients=(num_clients, 1))
    self._prefix = prefix
    self._num_clients = num_clients
    self._at_most_once = (_defaults["at_most_once"] if at_most_once is None else
                          bool(at_most_once))
    ranks = _defaults["ranks"] if ranks is None else ranks
    with ops.name_scope(None):
      self._name = ops.get_default_graph().unique_name(name or "work_queue")
    self._epochs = num_epochs
    state_class = work_queue_ranks.RanksState if ranks else work_queue_graph.GraphState
    with ops.name_scope(None):
      self._state = state_class(self._name, self._works, num_epochs, shuffle, seed, held)
      self._producer = None
      with ops.name_scope(self._name + "_state/"):
        self.initializer = self._state.initialize()
        self._is_initialized = self._state.is_initialized()
        specs = self._save_specs()
    super(WorkQueue, self).__init__(self._state.op, specs, self._name)
    resources.register_resource(self._state.op, self.initializer, self._is_initialized,
                                is_shared=True)
    ops.add_to_collection(ops.GraphKeys.SAVEABLE_OBJECTS, self)
    graph_lists.of(ops.get_default_graph(), graph_lists.WORK_QUEUES).append(self)
    work_queue_sessions.install()

  @property
  def works(self):
    """List of the works of one epoch."""
    return list(self._works)

  @property
  def num_clients(self):
    """The constructor's argument."""
    return self._num_clients

  @property
  def digest(self):
    """String that identifies the list of works in checkpoints."""
    return ",".join(self._works)

  @property
  def name(self):
    """Name of the queue and of its tensors in checkpoints."""
    return self._name

  @name.setter
  def name(self, value):
    # The base class sets it.
    self._name = value

  def __len__(self):
    return len(self._works)

  # Saving.

  def _save_specs(self):
    spec = saver_lib.BaseSaverBuilder.SaveSpec
    # All tensors of a saveable object are on one device.
    with self._state.host():
      digest = ops.convert_to_tensor(self.digest, name="digest")
    return [spec(digest, "", self._name + "_digest"),
            spec(self._state.left(self._at_most_once), "", self._name + "_works")]

  def restore(self, restored_tensors, restored_shapes):
    """Returns an op that refills the queue; called by savers.

    The works of a checkpoint whose list of works differs are not used: the queue is
    filled as at first, and a line is printed.
    """
    del restored_shapes
    digest, works = restored_tensors
    is_same = math_ops.equal(array_ops.reshape(digest, []), self.digest)
    return control_flow_ops.group(
        self._state.restore(array_ops.reshape(works, [-1]), is_same),
        control_flow_ops.cond(
            is_same, control_flow_ops.no_op,
            lambda: logging_ops.print_v2(
                "work queue '%s': the checkpoint's list of works differs; starting from "
                "the first work" % self._name)))

  # Reading.

  def take(self):
    """Returns the next work, a string scalar.

    Each run of the tensor takes one. OutOfRange if all works were taken.
    FailedPrecondition if the queue was not filled.
    """
    with ops.name_scope(self._name + "_take"):
      work = self._state.take()
      if self._prefix is not None:
        work = string_ops.string_join([self._prefix, work])
      work.set_shape([])
      return work

  def input_producer(self):
    """Returns a local FIFOQueue of works, which a queue runner fills.

    A monitored session starts the runner; in a plain session call
    `tf.train.start_queue_runners`. Repeated calls return the same queue.
    """
    if self._producer is None:
      with ops.name_scope(self._name + "_producer"):
        queue = data_flow_ops.FIFOQueue(1, [dtypes.string], [[]], name=self._name)
        queue_runner.add_queue_runner(
            queue_runner.QueueRunner(queue, [queue.enqueue(self.take())]))
      self._producer = queue
    return self._producer

  def input_dataset(self):
    """Returns a Dataset of works, string scalars, that ends with the queue.

    Its iterator must be initializable. The queue runner of `input_producer` fills it.
    """
    producer = self.input_producer()
    endless = dataset_ops.Dataset.from_tensors(0).repeat()

    def following(unused_number):
      return producer.dequeue()

    works = dataset_ops.MapDataset(endless, following, preserve_cardinality=False)
    return dataset_ops.DatasetV1Adapter(works)

  def add_summary(self):
    """Adds the summary `<name>/fraction_of_<name>_full`: works left by works per epoch."""
    left = math_ops.cast(self.size(), dtypes.float32)
    summary.scalar("%s/fraction_of_%s_full" % (self._name, self._name),
                   left / float(len(self._works)))

  def size(self):
    """Returns the number of works that were not handed out, an int64 scalar."""
    with ops.name_scope(self._name + "_size"):
      size = self._state.size()
      size.set_shape(tensor_shape.scalar())
      return size

  def finish(self):
    """Returns an op: the works that this worker has taken are finished."""
    with ops.name_scope(self._name + "_finish"):
      return self._state.finish()

  def held(self):
    """Returns the number of unfinished works that this worker has taken, a scalar."""
    with ops.name_scope(self._name + "_held_works"):
      return self._state.held()

  def finish_consumed(self):
    """Like `finish`, but a no-op if the queue of `input_producer` still has a work.

    A session that used up its training input has not read the files for evaluation.
    """
    if self._producer is None:
      return self.finish()
    with ops.name_scope(self._name + "_finish_consumed"):
      return control_flow_ops.cond(math_ops.equal(self._producer.size(), 0),
                                   self._state.finish, control_flow_ops.no_op).op


_defaults = {"at_most_once": False, "ranks": False}


def set_default_at_most_once(value):
  """Sets the value of WorkQueue's argument `at_most_once` where it is None."""
  _defaults["at_most_once"] = bool(value)


def set_default_ranks(value):
  """Sets the value of WorkQueue's argument `ranks` where it is None."""
  _defaults["ranks"] = bool(value)


def _checked_works(works):
  if not isinstance(works, list) or not works:
    raise ValueError("WorkQueue: works: expected a list of at least one string, got %r" %
                     (works,))
  for work in works:
    if not isinstance(work, (str, bytes)):
      raise ValueError("WorkQueue: works: expected strings, got %r" % (work,))
  return [compat.as_str(work).strip() for work in works]
