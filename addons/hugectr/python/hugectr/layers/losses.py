# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Losses per sample, and the probabilities for metrics."""

import collections

import tensorflow.compat.v1 as tf

from hugectr.layers import layer as layer_lib
from hugectr.layers.shapes import Shape, need, rank_is

# per_sample: float32 [batch]; its mean over the batch is the loss. predictions: float32
# [batch, labels], probabilities; [batch * rows, labels] if each label of a sample
# applies to several rows.
Loss = collections.namedtuple("Loss", ["per_sample", "predictions"])


class _Loss(layer_lib.Layer):
  """A loss over logits and labels.

  After a Reshape a sample may have several rows of logits. Its labels are then those of
  all rows side by side, or those of one row, which apply to each row.

  Attributes:
    width: int, columns of the logits; None: any.
  """

  is_loss = True
  least_bottoms = 2
  width = None
  keys = {
      "regularizer": layer_lib.one_of(
          "Adds to the loss lambda / batch times the sum over dense parameters of |w| (L1) or "
          "w^2 / 2 (L2).", ["L1", "L2"]),
      "lambda": layer_lib.number("Weight of the regularizer.", minimum=0),
      "loss_weight": layer_lib.number(
          "Weight in the sum of several losses.", minimum=0, default=1.0),
  }
  other_arguments = ("use_regularizer", "regularizer_type", "lambda")

  @classmethod
  def fill(cls, given):
    super().fill(given)
    if given.get("use_regularizer", False):
      given.put("regularizer", given.get("regularizer_type", "L1"))
      given.put("lambda", given.get("lambda", 0))

  @staticmethod
  def labels_of_row(logits):
    """Returns how many labels one row of logits (a Shape) needs."""
    del logits
    return 1

  @classmethod
  def shape(cls, shapes, params):
    need(len(shapes) == 2, "expected 2 bottoms, logits and label, got %d", len(shapes))
    logits, label = shapes
    rank_is(logits, 2, "the first bottom")
    if cls.width is not None:
      need(logits.dims[0] == cls.width, "the first bottom: expected [batch, %d], got %s",
           cls.width, logits)
    expected = cls.labels_of_row(logits)
    fitting = sorted({expected, expected * logits.rows})
    need(label.dims[0] in fitting, "the label: expected %s, got %s",
         " or ".join("[batch, %d]" % n for n in fitting), label)
    weights = params.get("target_weight")
    need(weights is None or len(weights) == expected,
         "target_weight: expected %d numbers, got %d", expected, len(weights or ()))
    return [Shape(0, ())]


class BinaryCrossEntropyLoss(_Loss):
  """Bottoms: logit [batch, 1], label. Mean over the batch of the cross entropy of
  sigmoid(logit). A sample may have several rows of logits: the loss is their mean.
  """

  width = 1

  @staticmethod
  def build(context, layer, logits, label):
    """Returns the Loss of logits `[batch, 1]` and labels `[batch, 1]`."""
    crossed = tf.nn.sigmoid_cross_entropy_with_logits(labels=label, logits=logits)
    return Loss(tf.reshape(crossed, [-1]), tf.sigmoid(logits))


class CrossEntropyLoss(_Loss):
  """Bottoms: logits [batch, 2], label [batch, 1]. Mean over the batch of the cross entropy
  of softmax(logits); a label of at least 0.5 is the second class. A sample may have several
  rows of logits: the loss is their mean.
  """

  width = 2

  @staticmethod
  def build(context, layer, logits, label):
    """Returns the Loss; its predictions are the probabilities of the second class."""
    classes = tf.cast(tf.reshape(label, [-1]) >= 0.5, tf.int32)
    crossed = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=classes, logits=logits)
    return Loss(crossed, tf.nn.softmax(logits)[:, 1:])


class MultiCrossEntropyLoss(_Loss):
  """Bottoms: logits [batch, labels], labels. Mean over batch and labels of weighted cross
  entropies of sigmoid(logit); a label below -0.5 counts as zero. A sample may have several
  rows of logits: the loss is their mean.
  """

  keys = dict(_Loss.keys, target_weight=layer_lib.array(
      "Weight of each label.", {"type": "number", "minimum": 0}, minItems=1))
  required = ("target_weight",)
  arguments = {"target_weight": ("target_weight_vec", [])}

  @staticmethod
  def labels_of_row(logits):
    return logits.dims[0]

  @staticmethod
  def build(context, layer, logits, label):
    """Returns the Loss of logits and labels `[batch, labels]`.

    A label below -0.5 is ignored: it adds nothing to the loss, but counts in the mean.
    """
    weight = tf.constant(layer.params["target_weight"], tf.float32)
    known = label >= -0.5
    crossed = weight * tf.nn.sigmoid_cross_entropy_with_logits(
        labels=tf.where(known, label, tf.zeros_like(label)), logits=logits)
    crossed = tf.where(known, crossed, tf.zeros_like(crossed))
    return Loss(tf.reduce_mean(crossed, axis=1), tf.sigmoid(logits))


def of(context, layer, logits, label):
  """Returns the Loss of a layer.

  Args:
    context: Context.
    layer: Layer, the loss.
    logits: float32 `[batch * rows, columns]`; rows are those of layer.in_shapes[0].
    label: float32 `[batch, labels]`: the labels of all rows side by side, or those of
      one row, which apply to each row of the sample.
  """
  rows, kind = layer.in_shapes[0].rows, layer_lib.OF_TYPE[layer.type]
  if rows == 1:
    return kind.build(context, layer, logits, label)
  each = kind.labels_of_row(layer.in_shapes[0])
  has_own = layer.in_shapes[1].width == rows * each
  if not has_own:
    label = tf.tile(label[:, tf.newaxis, :], [1, rows, 1])
  loss = kind.build(context, layer, logits, tf.reshape(label, [-1, each]))
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
