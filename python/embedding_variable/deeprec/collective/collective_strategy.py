# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""DeepRec's CollectiveStrategy: group lookups and dense layers over Horovod's ranks.

  strategy = collective_strategy.CollectiveStrategy()
  with strategy.scope():
    ...
    train_op = tf.train.AdagradOptimizer(0.1).minimize(loss, global_step=step)
    with tf.train.MonitoredTrainingSession(checkpoint_dir=folder) as session:
      ...

Start one process per rank, for example by `horovodrun -np 4 python train.py`.
"""

import contextlib
import os

from embedding_variable.deeprec import distributed
from embedding_variable.deeprec import notices
from embedding_variable.deeprec.collective import collective_estimator
from embedding_variable.deeprec.collective import collective_export
from embedding_variable.deeprec.collective import collective_state
from embedding_variable.deeprec.patches import collective_patch
from embedding_variable.lookup import group

# Values of the environment variable COLLECTIVE_STRATEGY: SparseOperationKit, and
# HybridBackend, for which it stands in.
KINDS = ("sok", "hb")


class CollectiveStrategy(object):
  """Trains one model on the ranks of a Horovod job.

  Not thread-safe: a scope is active for the whole process.
  """

  def __init__(self):
    """Initializes Horovod, and SparseOperationKit unless it is initialized.

    All ranks must call it. Arguments of `sok.init` stay in effect if the script calls it
    first, after `hvd.init()`.

    Raises:
      ValueError: the environment variable COLLECTIVE_STRATEGY is not one of `KINDS`.
      ImportError: Horovod or SparseOperationKit is not installed.
    """
    kind = os.environ.get("COLLECTIVE_STRATEGY", KINDS[0])
    if kind not in KINDS:
      raise ValueError("CollectiveStrategy: COLLECTIVE_STRATEGY: expected one of %s, got %r" %
                       (", ".join(KINDS), kind))
    self._lookup = distributed.initialize()
    notices.stands_in("CollectiveStrategy", "Horovod's ranks and sok.lookup_sparse")
    collective_patch.install()

  def world_size(self):
    """Returns the number of ranks."""
    return collective_state.horovod().size()

  def rank(self):
    """Returns the rank of this process in the whole job.

    DeepRec returns the rank on this host, so that several hosts read the same data.
    """
    return collective_state.horovod().rank()

  @contextlib.contextmanager
  def scope(self):
    """Context in which a model is built and trained over the ranks.

    Inside:

    - group lookups and columns of `group_embedding_column_scope` go over the ranks;
    - `compute_gradients` of every `tf.train` optimizer averages over the ranks, as
      `sok.DistributedOptimizer` does, and its learning rate is multiplied by the number
      of ranks, at its first use;
    - `MonitoredTrainingSession` gives all ranks the dense variables of rank 0, treats
      each rank as chief, and uses the GPU with the number of the rank on its host. If no
      table is spread over ranks, only rank 0 has a `checkpoint_dir`;
    - a `tf.train.Saver` may have no variables.

    Scopes may be nested; the end of the outermost one undoes this.

    Yields:
      The strategy.
    """
    previous = group.set_lookup(self._lookup)
    collective_state.enter()
    try:
      yield self
    finally:
      collective_state.leave()
      group.set_lookup(previous)

  @contextlib.contextmanager
  def embedding_scope(self, **options):
    """Context for tables and lookups; the same as `scope`.

    Args:
      **options: no effect; each is reported once.
    """
    notices.ignored("CollectiveStrategy.embedding_scope",
                    "the scope has no options; give a table's to the function that makes it",
                    **{name: (value, None) for name, value in options.items()})
    with self.scope():
      yield self

  def estimator(self, model_fn, **kwargs):
    """Returns an Estimator that trains and evaluates over the ranks.

    Args:
      model_fn: as of `tf.estimator.Estimator`. It is called inside of `scope`.
      **kwargs: arguments of `tf.estimator.Estimator`; `config` is required.

    Returns:
      A `collective_estimator.CollectiveEstimator`.

    Raises:
      ValueError: there is no `config`, or it has no model_dir.
    """
    return collective_estimator.make(self, model_fn, **kwargs)

  def export_saved_model(self, savedmodel_dir, checkpoint_dir=None, signature_def_fn=None,
                         assets_extra=None, as_text=False, clear_devices=True,
                         strip_default_attrs=True):
    """Exports a checkpoint of all ranks as one SavedModel, on rank 0.

    Rank 0 reads the rows of all ranks, so its memory must hold them.

    Args:
      savedmodel_dir: string, folder that does not exist.
      checkpoint_dir: string, folder of the checkpoint; None: that of the last
        `MonitoredTrainingSession` in the scope.
      signature_def_fn: function that builds the prediction graph in the default graph and
        returns its SignatureDef, or a dict from names to SignatureDefs.
      assets_extra: None, or a dict from names in `assets.extra` to paths.
      as_text: bool, whether to write the graph as text.
      clear_devices: bool, whether to drop the devices of ops.
      strip_default_attrs: bool, whether to drop attributes with default values.

    Returns:
      The folder as a string; None on other ranks, which do nothing.

    Raises:
      ValueError: an argument is missing, or a signature's tensor is not in the graph.
      NotFoundError: there is no checkpoint.
    """
    if self.rank():
      return None
    with self.local_lookups():
      return collective_export.export(
          savedmodel_dir, checkpoint_dir or collective_state.checkpoint_dir(),
          signature_def_fn, assets_extra, as_text, clear_devices, strip_default_attrs)

  @contextlib.contextmanager
  def local_lookups(self):
    """Context in which group lookups do not go over ranks, for a prediction graph."""
    previous = group.set_lookup(None)
    try:
      yield
    finally:
      group.set_lookup(previous)
