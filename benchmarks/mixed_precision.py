# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Float16 outputs of lookups and dense layers, with variables of float32.

With float16 the loss is multiplied by a constant before it is differentiated, so that the
gradients of samples do not underflow. Adagrad divides a gradient by the root of a sum of
squares, which has the same factor, if the accumulator starts with its square. So no
gradient is divided, and variables change as they would without the factor.
"""

import math

from absl import flags
import tensorflow as tf

import embedding_variable

import defaults

FLAGS = flags.FLAGS

flags.DEFINE_bool("row_wise", False, "Adagrad with one accumulator per row.")

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


def aligned(tensors):
  """Returns the columns of several matrices as one.

  With float16, columns of zeros complete rows to a multiple of 16 bytes, which products on
  tensor cores need. HugeCTR's interaction has such a column.
  """
  missing = -sum(x.shape.as_list()[1] for x in tensors) % 8
  if FLAGS.dtype == "float16" and missing:
    tensors = tensors + [tf.zeros_like(tensors[-1][:, :missing])]
  return tf.concat(tensors, axis=1)


def loss(labels, values):
  """Returns the cross entropy of float32 logits."""
  return tf.reduce_mean(
      tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=values))


def _loss_scale():
  return 1. if FLAGS.dtype == "float32" else 1024.


def adagrad():
  """Returns Adagrad, or with --row_wise row-wise Adagrad, for gradients of `scaled` losses."""
  cls = (embedding_variable.RowWiseAdagradOptimizer if FLAGS.row_wise else
         tf.compat.v1.train.AdagradOptimizer)
  return cls(defaults.LEARNING_RATE, initial_accumulator_value=.1 * _loss_scale()**2)


def scaled(value):
  """Returns the loss to differentiate."""
  return value * _loss_scale() if _loss_scale() != 1. else value


def initial_rows(rows, seed):
  """Returns the initializer of a table of so many rows.

  It is MLPerf's: uniform, within one over the root of the number of rows. Sums of such rows,
  and the products of layers, are far from float16's limit.
  """
  limit = 1. / math.sqrt(rows)
  return tf.compat.v1.random_uniform_initializer(-limit, limit, seed=seed)


def check_finite(losses, graph_name):
  """Raises FloatingPointError if a loss is infinite or NaN."""
  if not all(math.isfinite(x) for x in losses):
    raise FloatingPointError(
        "the losses of graph '%s' in %s: expected finite numbers, got %s before the steps and "
        "%s after them" % ((graph_name, FLAGS.dtype) + tuple(losses)))


def lookup_options():
  """Returns the arguments of lookup_sparse for outputs of --dtype."""
  return {} if FLAGS.dtype == "float32" else {"output_dtype": tf.as_dtype(FLAGS.dtype)}
