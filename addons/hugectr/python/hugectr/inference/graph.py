# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The TensorFlow graph of a model's predictions, with rows of the parameter server."""

import tensorflow.compat.v1 as tf

from hugectr.config import model as models
from hugectr.layers import network
from hugectr.layers import parameters as params


class Graph(object):
  """Builds the ops in the default graph.

  Attributes:
    parameters: layers' Parameters.
    feeds: list of placeholders: labels, dense features, then keys and splits per
      embedding, sample by sample.
    predictions: float32 [samples, labels].
    loss: float32 [samples].
    tensors: dict of tensors by name.
  """

  def __init__(self, model, lookups, has_float16, on_gpu):
    """Builds the graph.

    Args:
      model: config's Model.
      lookups: list of functions (RaggedTensor of int64 keys) -> pooled rows, one per
        embedding.
      has_float16, on_gpu: as in layers' network.
    """
    data = model.data
    self.parameters = params.Parameters()
    self.feeds = [tf.placeholder(tf.float32, [None, data.label_dim], "labels"),
                  tf.placeholder(tf.float32, [None, data.dense_dim], "dense")]
    self.tensors = {data.label_top: self.feeds[0], data.dense_top: self.feeds[1]}
    for k, (embedding, lookup) in enumerate(zip(model.embeddings, lookups)):
      keys = tf.placeholder(tf.int64, [None], "keys_%d" % k)
      splits = tf.placeholder(tf.int64, [None], "splits_%d" % k)
      self.feeds += [keys, splits]
      rows = lookup(tf.RaggedTensor.from_row_splits(keys, splits, validate=False))
      self.tensors[embedding.top] = tf.reshape(
          rows, [-1, embedding.bottom.slot_num, models.top_width(embedding)])
    loss, _ = network.build(model, self.tensors, self.parameters, False, has_float16, on_gpu)
    self.predictions, self.loss = loss.predictions, loss.per_sample
    at = 0
    for layer in model.losses:
      # Probabilities, as in the trainer's evaluation.
      end = at + layer.in_shapes[1].width
      self.tensors[layer.bottoms[0]] = (loss.predictions if len(model.losses) == 1 else
                                        loss.predictions[:, at:end])
      at = end
