# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of sok.OptimizerWrapper and sok.SGD in one process."""

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from sparse_operation_kit import experiment as sok

_train = tf.compat.v1.train
_keras = tf.keras.optimizers

_OPTIMIZERS = {
    "GradientDescent": lambda: _train.GradientDescentOptimizer(.1),
    "Momentum": lambda: _train.MomentumOptimizer(.1, .9),
    "Adagrad": lambda: _train.AdagradOptimizer(.1),
    "Adadelta": lambda: _train.AdadeltaOptimizer(.1),
    "Adam": lambda: _train.AdamOptimizer(.1),
    "Ftrl": lambda: _train.FtrlOptimizer(.1),
    "RMSProp": lambda: _train.RMSPropOptimizer(.1),
    "KerasSGD": lambda: _keras.SGD(.1),
    "KerasMomentum": lambda: _keras.SGD(.1, momentum=.9),
    "KerasAdamax": lambda: _keras.Adamax(.1),
    "KerasAdadelta": lambda: _keras.Adadelta(.1),
    "KerasAdagrad": lambda: _keras.Adagrad(.1),
    "KerasFtrl": lambda: _keras.Ftrl(.1),
    "KerasRMSprop": lambda: _keras.RMSprop(.1),
    "KerasAdam": lambda: _keras.Adam(.1),
    "KerasNadam": lambda: _keras.Nadam(.1),
}

_ROWS = 6


def _slices(values, keys):
  return tf.IndexedSlices(tf.constant(values), tf.constant(keys, tf.int64))


class OptimizerWrapperTest(parameterized.TestCase):

  @parameterized.parameters(*sorted(_OPTIMIZERS))
  def test_rows_equal_those_of_a_dense_variable(self, name):
    # Every row has a gradient at every step, so that lazy is the same as not.
    initial = np.linspace(-1, 1, _ROWS * 3, dtype=np.float32).reshape(_ROWS, 3)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      v = sok.DynamicVariable(3, name="v")
      dense = tf.compat.v1.get_variable("dense", initializer=initial, use_resource=True)
      keys = tf.constant([5, 0, 1, 2, 3, 4, 3], tf.int64)
      outputs = [tf.nn.embedding_lookup(v, keys), tf.gather(dense, keys)]
      train = []
      for output, var in zip(outputs, (v, dense)):
        optimizer = sok.OptimizerWrapper(_OPTIMIZERS[name]())
        gradients = tf.gradients(tf.reduce_sum(output ** 2), [var])
        train.append(optimizer.apply_gradients(zip(gradients, [var])))
        self.assertIsNotNone(optimizer.lr)
        for slot in optimizer.get_slot_names():
          self.assertIsNotNone(optimizer.get_slot(var, slot))
      session.run(tf.compat.v1.global_variables_initializer())
      session.run(sok.assign(v, np.arange(_ROWS), initial))
      for _ in range(4):
        session.run(train)
      rows, expected = session.run([sok.export(v)[1], dense])
      np.testing.assert_allclose(rows, expected, rtol=2e-5, atol=2e-6)
      self.assertGreater(np.abs(rows - initial).max(), 1e-4)

  @parameterized.parameters("Adagrad", "KerasAdagrad")
  def test_minimize(self, name):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      v = sok.DynamicVariable(1, "2", name="v")
      dense = tf.compat.v1.get_variable("d", initializer=[[1.]], use_resource=True)
      tf.compat.v1.get_variable("unused", initializer=[1.], use_resource=True)
      optimizer = sok.OptimizerWrapper(_OPTIMIZERS[name]())
      loss = lambda: tf.reduce_sum(tf.nn.embedding_lookup(v, [1]) * dense)
      train = optimizer.minimize(loss if name == "KerasAdagrad" else loss())
      session.run(tf.compat.v1.global_variables_initializer())
      session.run(train)
      self.assertLess(session.run(sok.export(v))[1][0, 0], 2.)
      self.assertLess(session.run(dense)[0, 0], 1.)

  def test_slots_can_be_made_early(self):
    with tf.Graph().as_default():
      v = sok.DynamicVariable(1)
      optimizer = sok.OptimizerWrapper(_train.AdagradOptimizer(.1))
      self.assertEqual(optimizer.get_slot_names(), [])
      optimizer._create_slots([v])
      self.assertEqual(optimizer.get_slot_names(), ["accumulator"])
      self.assertIs(optimizer.get_slot(v, "accumulator").primary, v)
      self.assertIs(optimizer._slots, optimizer.optimizer._slots)

  def test_refuses(self):
    with self.assertRaisesRegex(TypeError, "expected a tf.train or tf.keras optimizer"):
      sok.OptimizerWrapper("adam")
    with tf.Graph().as_default():
      v = sok.DynamicVariable(1)
      wrapper = sok.OptimizerWrapper(_keras.SGD(.1))
      with self.assertRaisesRegex(ValueError, "no variable has a gradient"):
        wrapper.apply_gradients([(None, v)])
      step = _train.create_global_step()
      with self.assertRaisesRegex(ValueError, "counts its own steps"):
        wrapper.apply_gradients([(_slices([[1.]], [1]), v)], global_step=step)

  def test_global_step(self):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      v = sok.DynamicVariable(1)
      step = _train.create_global_step()
      train = sok.OptimizerWrapper(_train.AdagradOptimizer(.1)).apply_gradients(
          [(_slices([[1.]], [1]), v)], global_step=step)
      session.run(tf.compat.v1.global_variables_initializer())
      session.run(train)
      self.assertEqual(session.run(step), 1)


class SgdTest(absltest.TestCase):

  def test_the_rate_is_a_variable(self):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      v = sok.DynamicVariable(1, "0")
      optimizer = sok.SGD(lr=.5)
      train = optimizer.apply_gradients(
          [(_slices([[1.], [2.]], [1, 1]), v)])
      session.run(tf.compat.v1.global_variables_initializer())
      session.run(train)
      np.testing.assert_array_equal(session.run(sok.export(v))[1], [[-1.5]])
      session.run(optimizer.lr.assign(1.))
      session.run(train)
      np.testing.assert_array_equal(session.run(sok.export(v))[1], [[-4.5]])

  def test_a_rate_of_the_callers(self):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      dense = tf.compat.v1.get_variable("d", initializer=[1.])
      rate = tf.constant(.25)
      optimizer = sok.SGD(rate)
      self.assertIs(optimizer.lr, rate)
      train = optimizer.minimize(tf.reduce_sum(dense))
      session.run(tf.compat.v1.global_variables_initializer())
      session.run(train)
      np.testing.assert_array_equal(session.run(dense), [.75])


if __name__ == "__main__":
  absltest.main()
