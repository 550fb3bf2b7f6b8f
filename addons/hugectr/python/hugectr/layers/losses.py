# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Losses per sample, and the probabilities for metrics."""

import collections

import tensorflow.compat.v1 as tf

from hugectr.config import shapes

# per_sample: float32 [batch]; its mean over the batch is the loss. predictions: float32
# [batch, labels], probabilities; [batch * rows, labels] if each label of a sample
# applies to several rows.
Loss = collections.namedtuple("Loss", ["per_sample", "predictions"])


def binary_cross_entropy(layer, logits, label):
  """Returns the Loss of logits `[batch, 1]` and labels `[batch, 1]`."""
  del layer
  crossed = tf.nn.sigmoid_cross_entropy_with_logits(labels=label, logits=logits)
  return Loss(tf.reshape(crossed, [-1]), tf.sigmoid(logits))


def cross_entropy(layer, logits, label):
  """Returns the Loss of logits `[batch, 2]` and labels `[batch, 1]`.

  A label of at least 0.5 means the second class, whose probability is the prediction.
  """
  del layer
  classes = tf.cast(tf.reshape(label, [-1]) >= 0.5, tf.int32)
  crossed = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=classes, logits=logits)
  return Loss(crossed, tf.nn.softmax(logits)[:, 1:])


def multi_cross_entropy(layer, logits, label):
  """Returns the Loss of logits and labels `[batch, labels]`.

  A label below -0.5 is ignored: it adds nothing to the loss, but counts in the mean.
  """
  weight = tf.constant(layer.params["target_weight"], tf.float32)
  known = label >= -0.5
  crossed = weight * tf.nn.sigmoid_cross_entropy_with_logits(
      labels=tf.where(known, label, tf.zeros_like(label)), logits=logits)
  crossed = tf.where(known, crossed, tf.zeros_like(crossed))
  return Loss(tf.reduce_mean(crossed, axis=1), tf.sigmoid(logits))


OF_TYPE = {
    "BinaryCrossEntropyLoss": binary_cross_entropy,
    "CrossEntropyLoss": cross_entropy,
    "MultiCrossEntropyLoss": multi_cross_entropy,
}


def of(layer, logits, label):
  """Returns the Loss of a layer.

  Args:
    layer: Layer, the loss.
    logits: float32 `[batch * rows, columns]`; rows are those of layer.in_shapes[0].
    label: float32 `[batch, labels]`: the labels of all rows side by side, or those of
      one row, which apply to each row of the sample.
  """
  rows = layer.in_shapes[0].rows
  if rows == 1:
    return OF_TYPE[layer.type](layer, logits, label)
  each = shapes.labels_of_row(layer.type, layer.in_shapes[0])
  has_own = layer.in_shapes[1].width == rows * each
  if not has_own:
    label = tf.tile(label[:, tf.newaxis, :], [1, rows, 1])
  loss = OF_TYPE[layer.type](layer, logits, tf.reshape(label, [-1, each]))
  return Loss(tf.reduce_mean(tf.reshape(loss.per_sample, [-1, rows]), axis=1),
              tf.reshape(loss.predictions, [-1, rows * each if has_own else each]))


def joined(layers, found):
  """Returns the weighted sum of Losses; their predictions stand side by side.

  Args:
    layers: list of Layer; `loss_weight` of its clause is the weight, 1 unless given.
    found: list of Loss, one per layer.
  """
  weights = [layer.params.get("loss_weight", 1) for layer in layers]
  terms = [loss.per_sample if weight == 1 else weight * loss.per_sample
           for weight, loss in zip(weights, found)]
  if len(found) == 1:
    return Loss(terms[0], found[0].predictions)
  return Loss(tf.add_n(terms), tf.concat([loss.predictions for loss in found], axis=1))


def regularization(layer, weights, batch):
  """Returns the regularizer's term of the loss, or None.

  Args:
    layer: Layer, the loss.
    weights: list of variables, all dense parameters.
    batch: int, samples per batch.

  Returns:
    lambda / batch times the sum of |w| (L1) or w^2 / 2 (L2), a scalar.
  """
  kind = layer.params.get("regularizer")
  if kind is None:
    return None
  if kind == "L1":
    sums = [tf.reduce_sum(tf.abs(w)) for w in weights]
  else:
    sums = [tf.nn.l2_loss(w) for w in weights]
  return layer.params["lambda"] / batch * tf.add_n(sums)
