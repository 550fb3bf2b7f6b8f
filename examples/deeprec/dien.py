# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""A model with a recurrent layer over features, as a script for DeepRec: see zoo.py.

It has the parts of DIEN that stand-ins must handle: a loop in the forward pass, one in
the gradients, and attention.
"""

import tensorflow as tf

import zoo


def model(args, features, input_partitioner, dense_partitioner):
  """Returns the logits [B]."""
  numeric, embedded = zoo.columns(args)
  with tf.variable_scope("input", partitioner=input_partitioner, reuse=tf.AUTO_REUSE):
    dense = tf.feature_column.input_layer(features, numeric)
    tensors = {}
    tf.feature_column.input_layer(features, embedded, cols_to_output_tensors=tensors)
  sequence = tf.stack([tensors[c] for c in embedded[1:]], 1)
  target = tensors[embedded[0]]
  with tf.variable_scope("interest"):
    cell = tf.nn.rnn_cell.GRUCell(
        8, kernel_initializer=tf.glorot_uniform_initializer(args.seed))
    states, last = tf.nn.dynamic_rnn(cell, sequence, dtype=tf.float32)
  scores = tf.nn.softmax(tf.reduce_sum(states * tf.expand_dims(target, 1), 2))
  interest = tf.reduce_sum(states * tf.expand_dims(scores, 2), 1)
  net = zoo.tower(args, tf.concat([dense, target, interest, last], 1), "dnn", [32],
                  dense_partitioner)
  return tf.squeeze(tf.layers.dense(
      net, 1, name="logits",
      kernel_initializer=tf.glorot_uniform_initializer(args.seed)), 1)


if __name__ == "__main__":
  zoo.main(model)
