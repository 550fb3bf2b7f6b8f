# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""DBMTL as a script for DeepRec: the purchase's tower continues the click's."""

import tensorflow as tf

import parts
import zoo

INPUTS = parts.TWO_TASKS


def model(args, features, input_partitioner, dense_partitioner):
  """Returns the logits [B, 2] of a click and of a purchase."""
  dense, profile = parts.inputs_of(args, features, input_partitioner)
  net = tf.concat([dense] + profile, 1)
  bottom = zoo.tower(args, net, "bottom", [32], dense_partitioner)
  click = zoo.tower(args, bottom, "click", [16, 8], dense_partitioner)
  purchase = zoo.tower(args, bottom, "purchase", [16, 8], dense_partitioner)
  # The relation layer: a purchase depends on what the click's tower found.
  related = zoo.tower(args, tf.concat([purchase, click], 1), "relation", [8],
                      dense_partitioner)
  return tf.stack([parts.logit(args, click, "click_logits"),
                   parts.logit(args, related, "purchase_logits")], 1)


if __name__ == "__main__":
  zoo.main(model, inputs=INPUTS)
