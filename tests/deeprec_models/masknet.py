# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""MaskNet as a script for DeepRec: parallel blocks with masks made from the instance."""

import tensorflow as tf

import parts
import zoo

INPUTS = parts.PLAIN


def _block(args, embeddings, net, units, name):
  """Returns a mask block [B, units]: the mask depends on the embeddings alone."""
  with tf.variable_scope(name):
    width = net.shape[1].value
    mask = parts.layer(args, embeddings, 2 * width, "aggregation", tf.nn.relu)
    mask = parts.layer(args, mask, width, "projection")
    hidden = tf.layers.dense(
        net * mask, units, use_bias=False, name="hidden",
        kernel_initializer=tf.glorot_uniform_initializer(args.seed))
    return tf.nn.relu(tf.contrib.layers.layer_norm(hidden))


def model(args, features, input_partitioner, dense_partitioner):
  """Returns the logits [B]."""
  dense, profile = parts.inputs_of(args, features, input_partitioner)
  embeddings = tf.concat([dense] + profile, 1)
  normed = [tf.contrib.layers.layer_norm(e) for e in profile]
  net = tf.concat([dense] + normed, 1)
  blocks = [_block(args, embeddings, net, 8, "block_%d" % i) for i in range(2)]
  net = zoo.tower(args, tf.concat(blocks, 1), "dnn", [16], dense_partitioner)
  return parts.logit(args, net)


if __name__ == "__main__":
  zoo.main(model, inputs=INPUTS)
