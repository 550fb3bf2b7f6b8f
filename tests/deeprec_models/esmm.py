# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""ESMM as a script for DeepRec: a purchase is a click followed by a conversion."""

import tensorflow as tf

import parts
import zoo

INPUTS = parts.TWO_TASKS


def model(args, features, input_partitioner, dense_partitioner):
  """Returns the logits [B, 2] of a click and of a purchase."""
  dense, profile = parts.inputs_of(args, features, input_partitioner)
  net = tf.concat([dense] + profile, 1)
  click = parts.logit(args, zoo.tower(args, net, "click", [32, 16], dense_partitioner),
                      "click_logits")
  conversion = parts.logit(
      args, zoo.tower(args, net, "conversion", [32, 16], dense_partitioner),
      "conversion_logits")
  # A purchase has the product of both probabilities.
  log_purchase = tf.log_sigmoid(click) + tf.log_sigmoid(conversion)
  purchase = log_purchase - tf.log1p(-tf.exp(log_purchase))
  return tf.stack([click, purchase], 1)


if __name__ == "__main__":
  zoo.main(model, inputs=INPUTS)
