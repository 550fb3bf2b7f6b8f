# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of keep_weights."""

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from embedding_variable.deeprec import keep_weights


class KeepWeightsTest(parameterized.TestCase):

  def setUp(self):
    super(KeepWeightsTest, self).setUp()
    self.enter_context(tf.Graph().as_default())

  def _scope(self, *args, **kwargs):
    return keep_weights.keep_weights(tf.variable_scope(*args, **kwargs))

  @parameterized.parameters(None, 2)
  def test_variables_are_float32(self, parts):
    partitioner = parts and tf.fixed_size_partitioner(parts)
    with self._scope("a", partitioner=partitioner):
      with tf.variable_scope("inner"):
        low = tf.get_variable("w", [4, 2], tf.bfloat16)
      high = tf.get_variable("h", [4, 2])
    self.assertEqual(low.dtype, tf.bfloat16)
    self.assertEqual(low.op.name, "a/inner/w/cast")
    self.assertIsInstance(low, tf.Tensor)
    self.assertNotIsInstance(high, tf.Tensor)
    self.assertEqual({v.dtype.base_dtype for v in tf.global_variables()}, {tf.float32})

  def test_a_getter_of_the_scope_is_called(self):
    names = []

    def getter(stock, name, *args, **kwargs):
      names.append((name, kwargs["dtype"]))
      return stock(name, *args, **kwargs)

    with self._scope("a", custom_getter=getter):
      tf.get_variable("w", [2], tf.bfloat16)
    self.assertEqual(names, [("a/w", tf.float32)])

  def test_trains_near_float32(self):
    values = np.random.RandomState(0).rand(32, 8).astype(np.float32)
    losses = []
    for low in (False, True):
      with tf.Graph().as_default(), tf.Session() as session:
        net = tf.constant(values)
        with self._scope("tower"):
          net = tf.cast(net, tf.bfloat16) if low else net
          for units in (16, 1):
            net = tf.layers.dense(net, units, tf.nn.relu,
                                  kernel_initializer=tf.constant_initializer(.1))
          net = tf.cast(net, tf.float32)
        loss = tf.reduce_mean(tf.square(net[:, 0] - values[:, 0]))
        train_op = tf.train.AdagradOptimizer(.1).minimize(loss)
        keep_weights.check(tf.get_default_graph())
        session.run(tf.global_variables_initializer())
        losses.append([session.run([loss, train_op])[0] for _ in range(20)])
    self.assertLess(losses[1][-1], .7 * losses[1][0])
    np.testing.assert_allclose(losses[1], losses[0], rtol=.1, atol=.01)
    self.assertNotEqual(losses[0][0], losses[1][0])

  def test_an_op_without_a_kernel_is_named(self):
    x = tf.sigmoid(tf.zeros([2], tf.bfloat16), name="squash")
    with self.assertRaisesRegex(
        NotImplementedError, "op 'squash': .*no kernel of Sigmoid for bfloat16"):
      keep_weights.check(x.graph)


if __name__ == "__main__":
  absltest.main()
