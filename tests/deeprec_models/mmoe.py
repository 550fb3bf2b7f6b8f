# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""MMoE as a script for DeepRec: each task has a gate over shared experts."""

import tensorflow as tf

import parts
import zoo

INPUTS = parts.TWO_TASKS
_EXPERTS = 3


def model(args, features, input_partitioner, dense_partitioner):
  """Returns the logits [B, 2] of a click and of a purchase."""
  dense, profile = parts.inputs_of(args, features, input_partitioner)
  net = tf.concat([dense] + profile, 1)
  experts = tf.stack(
      [zoo.tower(args, net, "expert_%d" % i, [32, 16], dense_partitioner)
       for i in range(_EXPERTS)], 1)
  logits = []
  for task in parts.TASKS:
    gate = parts.layer(args, net, _EXPERTS, "gate_" + task, tf.nn.softmax)
    mixed = tf.reduce_sum(experts * tf.expand_dims(gate, 2), 1)
    tower = zoo.tower(args, mixed, task, [8], dense_partitioner)
    logits.append(parts.logit(args, tower, "logits_" + task))
  return tf.stack(logits, 1)


if __name__ == "__main__":
  zoo.main(model, inputs=INPUTS)
