# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Float16 outputs of lookups and dense layers, with variables of float32.

For measuring time, not for training: nothing scales the loss. The loss of float16 is the
sum over the samples, not the mean, so that the gradients of samples do not underflow. With
large batches and wide models it overflows to NaN.
"""

from absl import flags
import tensorflow as tf

FLAGS = flags.FLAGS

flags.DEFINE_enum("dtype", "float32", ["float32", "float16"],
                  "Of the lookups' outputs and of the dense layers; variables and the "
                  "loss are float32.")


def _variable(getter, *args, **kwargs):
  dtype = tf.as_dtype(kwargs.get("dtype") or tf.float32)
  if dtype != tf.float16:
    return getter(*args, **kwargs)
  kwargs["dtype"] = tf.float32
  return tf.cast(getter(*args, **kwargs), dtype)


def logits(model, numbers, vectors):
  """Returns the float32 logits of `model(numbers, vectors)`, computed in --dtype."""
  with tf.compat.v1.variable_scope(tf.compat.v1.get_variable_scope(),
                                   custom_getter=_variable):
    return tf.cast(model(tf.cast(numbers, FLAGS.dtype), vectors), tf.float32)


def loss(labels, values):
  """Returns the cross entropy of float32 logits."""
  samples = tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=values)
  return tf.reduce_mean(samples) if FLAGS.dtype == "float32" else tf.reduce_sum(samples)


def lookup_options():
  """Returns the arguments of lookup_sparse for outputs of --dtype."""
  return {} if FLAGS.dtype == "float32" else {"output_dtype": tf.as_dtype(FLAGS.dtype)}
