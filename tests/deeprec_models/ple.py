# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""PLE as a script for DeepRec: two levels of shared and of each task's own experts."""

import tensorflow as tf

import parts
import zoo

INPUTS = parts.TWO_TASKS
_SHARED = "shared"


def _level(args, nets, name, has_shared_gate, partitioner):
  """Returns a dict of each gate's mixture; `nets` is a dict of the level's inputs."""
  experts = {
      group: [zoo.tower(args, net, "%s/%s_%d" % (name, group, i), [16], partitioner)
              for i in range(2)]
      for group, net in sorted(nets.items())}
  outputs = {}
  for group in parts.TASKS + [_SHARED] * has_shared_gate:
    if group == _SHARED:
      seen = [e for key in sorted(experts) for e in experts[key]]
    else:
      seen = experts[group] + experts[_SHARED]
    gate = parts.layer(args, nets[group], len(seen), "%s/gate_%s" % (name, group),
                       tf.nn.softmax)
    outputs[group] = tf.reduce_sum(tf.stack(seen, 1) * tf.expand_dims(gate, 2), 1)
  return outputs


def model(args, features, input_partitioner, dense_partitioner):
  """Returns the logits [B, 2] of a click and of a purchase."""
  dense, profile = parts.inputs_of(args, features, input_partitioner)
  net = tf.concat([dense] + profile, 1)
  nets = {group: net for group in parts.TASKS + [_SHARED]}
  nets = _level(args, nets, "level_1", True, dense_partitioner)
  nets = _level(args, nets, "level_2", False, dense_partitioner)
  logits = []
  for task in parts.TASKS:
    tower = zoo.tower(args, nets[task], "tower_" + task, [8], dense_partitioner)
    logits.append(parts.logit(args, tower, "logits_" + task))
  return tf.stack(logits, 1)


if __name__ == "__main__":
  zoo.main(model, inputs=INPUTS)
