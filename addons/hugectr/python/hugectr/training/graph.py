# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""A model's TensorFlow graph: training step and evaluation with shared parameters."""

import tensorflow.compat.v1 as tf

import sparse_operation_kit as sok

from hugectr.data import batches
from hugectr.layers import losses
from hugectr.layers import network
from hugectr.layers import parameters as params
from hugectr.training import concat
from hugectr.training import optimizers
from hugectr.training import tables as embedding_tables


class Graph(object):
  """Builds the ops in the default graph.

  Attributes:
    parameters: layers' Parameters.
    lookups: list of tables.Layer, one per embedding of the model.
    embeddings: list of those that have tables of their own.
    optimizers: list of Optimizer; the first updates dense parameters.
    optimizer_of: dict from an embedding layer's name to its Optimizer.
    layouts: list of data's InputLayout, in the order of the lookups.
    feeds: list of placeholders, in the order of `feeds_of`.
    train: tensors (loss, op) of a step.
    new_rate, set_rate: placeholder, and the op that sets it as the rate of all
      optimizers.
    evaluate: tensors (loss, predictions).
    train_tensors, evaluate_tensors: dicts of the tensors of both towers by name.
  """

  def __init__(self, model, batch_size, ranks, beyond=None, scaler=None,
               gpu=None):
    """Builds the graph.

    Args:
      model: config's Model.
      batch_size: int, samples per training batch over all ranks.
      ranks: Ranks.
      beyond: as in tables.Maker.
      scaler: float; lookups give float16, layers compute in float16 if they can, and the
        loss is multiplied by this while gradients are computed. None: everything is
        float32.
      gpu: as in tables.Maker.
    """
    self._scaler = scaler
    self._on_gpu = gpu is not None
    self._model = model
    self._batch_size = batch_size
    self._ranks = ranks.count
    self.parameters = params.Parameters()
    self._make_optimizers()
    self._tables = embedding_tables.Maker(
        ranks.count, beyond, gpu, tf.float32 if scaler is None else tf.float16)
    found = {}
    for e in model.embeddings:
      found[e.name] = self._tables.make(e, len(self.optimizer_of[e.name].row_slots),
                                        found.get(e.table))
    self.lookups = [found[e.name] for e in model.embeddings]
    self.embeddings = [layer for layer in self.lookups if layer.embedding.table is None]
    self.layouts = [
        batches.InputLayout(e.bottom.first_slot, e.bottom.slot_num,
                            embedding_tables.is_slot_major(e)) for e in model.embeddings]
    data = model.data
    self._labels = tf.placeholder(tf.float32, [None, data.label_dim], "labels")
    self._dense = tf.placeholder(tf.float32, [None, data.dense_dim], "dense")
    self.feeds = [self._labels, self._dense]
    for layer in self.lookups:
      self.feeds += [layer.keys, layer.splits]
    self.train = (self._gradients(), self.updated())
    self.new_rate = tf.placeholder(tf.float32, [], "new_learning_rate")
    self.set_rate = tf.group(*[o.lr.assign(self.new_rate) for o in self.optimizers])
    self.evaluate = self._evaluate()

  def feeds_of(self, batch):
    """Returns the arrays of a data Batch, in the order of `feeds`.

    Raises:
      DataError: a sample has too many keys for a lookup of combiner "concat".
    """
    concat.check(self._model.embeddings, batch.inputs)
    return [batch.labels, batch.dense] + [a for keys in batch.inputs for a in keys]

  def _make_optimizers(self):
    self.optimizers = [optimizers.Optimizer(self._model.optimizer, "optimizer")]
    self.optimizer_of = {}
    for embedding in self._model.embeddings:
      self.optimizer_of[embedding.name] = self.optimizer_of.get(embedding.table,
                                                                self.optimizers[0])
      if embedding.optimizer is not None and embedding.table is None:
        own = optimizers.Optimizer(embedding.optimizer, "optimizer_%d" %
                                   len(self.optimizers))
        self.optimizers.append(own)
        self.optimizer_of[embedding.name] = own

  def _tower(self, is_training):
    """Returns (tensors by name, Loss, updates) of a tower."""
    tensors = {self._model.data.label_top: self._labels,
               self._model.data.dense_top: self._dense}
    self._tables.lookup(self.lookups, tensors)
    return (tensors,) + network.build(self._model, tensors, self.parameters, is_training,
                                      self._scaler is not None, self._on_gpu)

  def _gradients(self):
    """Adds the training tower; returns the shown loss."""
    self.train_tensors, loss, self._updates = self._tower(is_training=True)
    more = losses.regularization(self._model.losses[0], self.parameters.trained,
                                 self._batch_size)
    # The divisor is the same in every step: a short batch counts as a full one whose
    # missing samples have no gradient. The ranks' gradients are averaged later.
    total = tf.reduce_sum(loss.per_sample) * (self._ranks / self._batch_size)
    shown = tf.reduce_mean(loss.per_sample)
    if more is not None:
      total += more
      shown += more
    self._owner = {}
    for layer in self.embeddings:
      for table in layer.tables:
        self._owner[table] = self.optimizer_of[layer.embedding.name]
    for var in self.parameters.trained:
      self._owner[var] = self.optimizers[0]
    spread = sok.DistributedOptimizer(self.optimizers[0].stock)
    if self._scaler not in (None, 1):
      # Otherwise small gradients would be zero in float16.
      total *= self._scaler
    found = spread.compute_gradients(total, var_list=list(self._owner))
    self._found = self._unscaled(found)
    return shown

  def _unscaled(self, found):
    """Divides gradients by the scaler: those of tables are float32 sums by then.

    One constant multiplies the gradients of all tables, so that fused updates take it.
    """
    if self._scaler in (None, 1):
      return found
    with tf.device("/cpu:0"):
      factor = tf.constant(1. / self._scaler)
    dense, result = set(self.parameters.trained), []
    for gradient, var in found:
      if gradient is not None:
        gradient = gradient / self._scaler if var in dense else tf.IndexedSlices(
            gradient.values * factor, gradient.indices, gradient.dense_shape)
      result.append((gradient, var))
    return result

  def updated(self, frozen=()):
    """Returns the op of a training step; a new one in each call.

    Args:
      frozen: collection of dense variables and tables that stay as they are.
    """
    applied = []
    for optimizer in self.optimizers:
      mine = [(g, v) for g, v in self._found
              if self._owner[v] is optimizer and g is not None and v not in frozen]
      if mine:
        applied.append(optimizer.apply(mine))
    return tf.group(*(applied + self._updates))

  def _evaluate(self):
    tensors, loss, _ = self._tower(is_training=False)
    at = 0
    for layer in self._model.losses:
      # Probabilities, as in upstream's evaluation.
      end = at + layer.in_shapes[1].width
      tensors[layer.bottoms[0]] = (loss.predictions if len(self._model.losses) == 1 else
                                   loss.predictions[:, at:end])
      at = end
    self.evaluate_tensors = tensors
    return tf.reduce_mean(loss.per_sample), loss.predictions
