# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Batch sizes that no batch can have raise an error in every lookup.

TensorFlow ends the process if it makes a shape of such a size, so a failing case may kill
the test program.
"""

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

import embedding_variable as ev
import sparse_operation_kit as sok

_INDICES = np.array([[0, 0], [1, 0]], np.int64)


def _table(**kwargs):
  return tf.get_embedding_variable(
      "user", embedding_dim=2, initializer=tf.ones_initializer(), **kwargs)


def _parts():
  return _table(partitioner=tf.fixed_size_partitioner(2))


def _dense():
  return tf.get_variable("dense", [5, 2])


def _weights(ids):
  return tf.SparseTensor(ids.indices, tf.constant([1., 2.]), ids.dense_shape)


def _gradient(ids):
  table = _table()
  output, = ev.lookup_sparse([table], [ids])
  return tf.gradients(output, [table])[0].values


def _column(ids):
  column = tf.feature_column.categorical_column_with_embedding("c", dtype=tf.int64)
  return tf.feature_column.input_layer(
      {"c": ids}, [tf.feature_column.embedding_column(column, 2)])


_LOOKUPS = {
    "one": lambda s: ev.lookup_sparse([_table()], [s])[0],
    "weights": lambda s: ev.lookup_sparse([_table()], [s], [_weights(s)])[0],
    "max": lambda s: ev.lookup_sparse([_table()], [s], combiners=["max"])[0],
    "gradient": _gradient,
    "parts": lambda s: ev.lookup_sparse([_parts()], [s])[0],
    "parts_weights": lambda s: ev.lookup_sparse([_parts()], [s], [_weights(s)])[0],
    "parts_max": lambda s: ev.lookup_sparse([_parts()], [s], combiners=["max"])[0],
    "stock": lambda s: tf.nn.embedding_lookup_sparse(_table(), s, None),
    "max_norm": lambda s: tf.nn.embedding_lookup_sparse(_table(), s, None, max_norm=1.),
    "safe": lambda s: tf.nn.safe_embedding_lookup_sparse(_table(), s),
    "safe_default": lambda s: tf.nn.safe_embedding_lookup_sparse(
        _table(), s, default_id=3),
    "fused": lambda s: tf.nn.fused_embedding_lookup_sparse(_table(), s),
    "fused_default": lambda s: tf.nn.fused_embedding_lookup_sparse(
        _table(), s, _weights(s), default_id=3),
    "group": lambda s: tf.nn.group_embedding_lookup_sparse([_table()], [s], ["sum"])[0],
    "group_rows": lambda s: tf.nn.group_embedding_lookup_sparse(
        [_table()], [s], ["sum"], is_sequence=True)[0],
    "group_dense": lambda s: tf.nn.group_embedding_lookup_sparse(
        [_dense()], [s], ["sum"])[0],
    "adaptive": lambda s: tf.nn.adaptive_embedding_lookup_sparse(
        _dense(), _table(), s, tf.constant([0, 1])),
    "safe_adaptive": lambda s: tf.nn.safe_adaptive_embedding_lookup_sparse(
        _dense(), _table(), s, tf.constant([0, 1]), default_id=3),
    "multihash": lambda s: tf.nn.embedding_lookup_sparse(
        tf.get_multihash_variable("user", [[3, 2], [4, 2]]), s, None),
    "column": _column,
    "sok": lambda s: sok.lookup_sparse(_table(), s, combiners="mean"),
    "sok_filter": lambda s: sok.lookup_sparse(
        sok.DynamicVariable(2, "1", filter_ratio=.5), s, combiners="mean",
        use_low_frequency_filter=True),
}


class BatchSizesTest(parameterized.TestCase):

  @parameterized.product(lookup=sorted(_LOOKUPS), size=(2 ** 62, 2 ** 31 - 1, -1),
                         is_known=(False, True))
  def test_impossible_sizes_raise(self, lookup, size, is_known):
    shape = np.array([size, 1], np.int64)
    with tf.Graph().as_default():
      fed = tf.placeholder(tf.int64, [2])
      try:
        output = _LOOKUPS[lookup](tf.SparseTensor(
            _INDICES, tf.constant([1, 2], tf.int64),
            tf.constant(shape) if is_known else fed))
      except ValueError as error:
        self.assertTrue(is_known, error)
        return
      with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "%d|negative" % size):
          session.run(output, {fed: shape})


if __name__ == "__main__":
  absltest.main()
