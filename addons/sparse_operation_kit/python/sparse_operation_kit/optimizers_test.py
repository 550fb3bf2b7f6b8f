# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of sok.OptimizerWrapper and sok.SGD in one process."""

from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from sparse_operation_kit import communication
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
    # Every row has a gradient at every step, so lazy and dense updates are equal.
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


class _Wrapping(_train.Optimizer):
  """Forwards gradients to another optimizer, as Horovod's does."""

  def __init__(self, optimizer):
    super(_Wrapping, self).__init__(False, "Wrapping")
    self._optimizer = optimizer

  def apply_gradients(self, *args, **kwargs):
    return self._optimizer.apply_gradients(*args, **kwargs)


class SharedOptimizerTest(parameterized.TestCase):
  """Trains tables through a wrapper and dense variables by one optimizer object."""

  def _train(self, optimizer, dense_optimizer, tables_first=True):
    """Returns (row, dense value, global variables' names)."""
    wrapper = sok.OptimizerWrapper(optimizer)
    v = sok.DynamicVariable(2, "ones", name="v")
    dense = tf.compat.v1.get_variable("d", initializer=[[1., 1.]], use_resource=True)
    # Neither gradient depends on the other variable.
    pairs = [
        (wrapper, tf.gradients(tf.nn.embedding_lookup(v, [7]) ** 2, v)[0], v),
        (dense_optimizer, tf.gradients(dense ** 2, dense)[0], dense),
    ]
    train = [o.apply_gradients([(g, x)]) for o, g, x in
             (pairs if tables_first else pairs[::-1])]
    with tf.compat.v1.Session() as session:
      session.run(tf.compat.v1.global_variables_initializer())
      for _ in range(5):
        session.run(train)
      row, value = session.run([sok.export(v)[1], dense])
      counted = session.run(
          [x for x in tf.compat.v1.global_variables() if "iter" in x.name])
    self.assertEqual(counted, [5] * len(counted))
    return row, value, [x.name for x in tf.compat.v1.global_variables()]

  @parameterized.parameters(("Adam", True), ("Adam", False), ("KerasAdamax", False),
                            ("KerasNadam", True))
  def test_each_counts_its_own_steps(self, name, tables_first):
    with tf.Graph().as_default():
      optimizer = _OPTIMIZERS[name]()
      shared = self._train(optimizer, optimizer, tables_first)
    with tf.Graph().as_default():
      apart = self._train(_OPTIMIZERS[name](), _OPTIMIZERS[name](), tables_first)
    np.testing.assert_array_equal(shared[0], apart[0])
    np.testing.assert_array_equal(shared[1], apart[1])

  def test_behind_another_optimizer(self):
    with tf.Graph().as_default():
      adam = _train.AdamOptimizer(.1)
      wrapped = _Wrapping(adam)
      shared = self._train(wrapped, wrapped)
      self.assertLen([x for x in adam.variables() if "power" in x.name], 4)
    with tf.Graph().as_default():
      apart = self._train(_train.AdamOptimizer(.1), _train.AdamOptimizer(.1))
    np.testing.assert_array_equal(shared[0], apart[0])
    np.testing.assert_array_equal(shared[1], apart[1])

  def test_names_of_a_wrapper_alone(self):
    with tf.Graph().as_default():
      v = sok.DynamicVariable(2, name="v")
      adam = _train.AdamOptimizer(.1)
      sok.OptimizerWrapper(adam).apply_gradients([(_slices([[1., 1.]], [1]), v)])
      self.assertEqual([x.name for x in tf.compat.v1.global_variables()],
                       ["v:0", "beta1_power:0", "beta2_power:0"])
      self.assertLen([x for x in adam.variables() if "power" in x.name], 2)

  def test_two_wrappers_of_one_optimizer(self):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      keras = _keras.Adam(.1)
      wrappers = [sok.OptimizerWrapper(keras) for _ in range(3)]
      tables = [sok.DynamicVariable(1) for _ in wrappers]
      train = [w.apply_gradients([(_slices([[1.]], [1]), v)])
               for w, v in zip(wrappers, tables)]
      counts = [w.iterations for w in wrappers]
      session.run(tf.compat.v1.global_variables_initializer())
      session.run(train[1:])
      session.run(train[2:])
      self.assertEqual(session.run(counts), [0, 1, 2])

  @parameterized.parameters("Adam", "KerasAdam")
  def test_object_based_checkpoints_have_both(self, name):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      optimizer = _OPTIMIZERS[name]()
      dense = tf.compat.v1.get_variable("d", initializer=[1.], use_resource=True)
      v = sok.DynamicVariable(1, name="v")
      train = sok.OptimizerWrapper(optimizer).apply_gradients(
          [(_slices([[1.]], [1]), v)])
      optimizer.apply_gradients([(tf.constant([1.]), dense)])
      numbers = [x for x in tf.compat.v1.global_variables()
                 if "power" in x.name or "iter" in x.name]
      self.assertLen(numbers, 4 if name == "Adam" else 2)
      checkpoint = tf.train.Checkpoint(optimizer=optimizer)
      session.run(tf.compat.v1.global_variables_initializer())
      session.run(train)
      before = session.run(numbers)
      path = checkpoint.save(self.create_tempdir().full_path + "/c", session=session)
      session.run(train)
      checkpoint.restore(path).run_restore_ops(session)
      self.assertEqual(session.run(numbers), before)

  def test_a_failed_call_leaves_the_optimizer_its_numbers(self):
    with tf.Graph().as_default():
      adam = _train.AdamOptimizer(.1)
      dense = tf.compat.v1.get_variable("d", initializer=[1.], use_resource=True)
      adam.apply_gradients([(tf.constant([1.]), dense)])
      before = adam.variables()
      with self.assertRaises(TypeError):
        sok.OptimizerWrapper(adam).apply_gradients(
            [(tf.constant([1.]), sok.DynamicVariable(1))])
      self.assertEqual([id(x) for x in adam.variables() if x in before],
                       [id(x) for x in before])
      adam._create_slots([dense])
      self.assertContainsSubset(before, adam.variables())


class SlotsAsVariablesTest(parameterized.TestCase):
  """Reads and writes slots like upstream's, which are variables."""

  def _slot(self, v):
    optimizer = sok.OptimizerWrapper(_train.MomentumOptimizer(.5, .5))
    train = optimizer.apply_gradients([(_slices([[1., 2.], [3., 4.]], [2, 1]), v)])
    return optimizer.get_slot(v, "momentum"), train

  def test_of_a_dynamic_variable(self):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      v = sok.DynamicVariable(2, "ones", name="v")
      slot, train = self._slot(v)
      exported, rows = sok.export(slot), sok.export(v)
      assign = sok.assign(slot, [2, -5, 2], [[7., 7.], [8., 8.], [9., 9.]])
      session.run(tf.compat.v1.global_variables_initializer())
      tf.compat.v1.get_default_graph().finalize()
      # Before the first update too.
      self.assertEqual([x.shape for x in session.run(exported)], [(0,), (0, 2)])
      session.run(train)
      np.testing.assert_array_equal(session.run(slot), [2, 2])
      np.testing.assert_array_equal(slot.eval(session), [2, 2])
      keys, momentum = session.run(exported)
      np.testing.assert_array_equal(keys, [1, 2])
      np.testing.assert_array_equal(momentum, [[3, 4], [1, 2]])
      before = session.run(rows)[1]
      session.run(assign)
      keys, momentum = session.run(exported)
      np.testing.assert_array_equal(keys, [-5, 1, 2])
      np.testing.assert_array_equal(momentum, [[8, 8], [3, 4], [9, 9]])
      # A new key starts with its default row; the others keep their rows.
      np.testing.assert_array_equal(
          session.run(rows)[1], np.concatenate([[[1, 1]], before]))

  def test_other_slots_stay(self):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      v = sok.DynamicVariable(1, name="v")
      optimizer = sok.OptimizerWrapper(_train.AdamOptimizer(.1))
      train = optimizer.apply_gradients([(_slices([[2.]], [1]), v)])
      m, second = optimizer.get_slot(v, "m"), optimizer.get_slot(v, "v")
      read = sok.export(second)[1]
      assign = sok.assign(m, [1], [[5.]])
      session.run(tf.compat.v1.global_variables_initializer())
      session.run(train)
      before = session.run(read)
      session.run(assign)
      self.assertEqual(session.run(read), before)
      self.assertGreater(before, 0)

  def test_of_a_variable_of_fixed_size(self):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      v = sok.Variable(np.ones([3, 2], np.float32), name="v")
      slot, train = self._slot(v)
      self.assertEqual(slot.shape.as_list(), [3, 2])
      doubled = tf.convert_to_tensor(slot) * 2
      assign = sok.assign(slot, [0], [[5., 6.]])
      session.run(tf.compat.v1.global_variables_initializer())
      tf.compat.v1.get_default_graph().finalize()
      np.testing.assert_array_equal(session.run(slot), np.zeros([3, 2]))
      session.run(train)
      np.testing.assert_array_equal(session.run(slot), [[0, 0], [3, 4], [1, 2]])
      session.run(assign)
      np.testing.assert_array_equal(
          session.run(doubled), [[10, 12], [6, 8], [2, 4]])

  def test_refuses(self):
    with tf.Graph().as_default():
      slot, _ = self._slot(sok.DynamicVariable(2, name="v"))
      with self.assertRaisesRegex(ValueError, "'Momentum' of 'v'.*values: expected"):
        sok.assign(slot, [1], [[1.]])
      with self.assertRaisesRegex(NotImplementedError, "'v'.*no dense value"):
        tf.convert_to_tensor(slot)

  @parameterized.parameters("Ftrl", "ProximalAdagrad", "AdagradDA")
  def test_on_a_rank_without_rows(self, name):
    make = dict(_OPTIMIZERS, **{
        "ProximalAdagrad": lambda: _train.ProximalAdagradOptimizer(.1, .3),
        "AdagradDA": lambda: _train.AdagradDAOptimizer(
            .1, _train.create_global_step(), .2),
    })[name]
    initial = {"Ftrl": .1, "ProximalAdagrad": .3, "AdagradDA": .2}[name]
    for early in (False, True):
      with tf.Graph().as_default(), tf.compat.v1.Session() as session, \
          mock.patch.object(communication, "num_ranks", return_value=2):
        v = sok.Variable(np.ones([3, 2], np.float32), mode="localized:1")
        optimizer = sok.OptimizerWrapper(make())
        if early:
          optimizer._create_slots([v])
        train = optimizer.apply_gradients(
            [(tf.IndexedSlices(tf.zeros([0, 2]), tf.zeros([0], tf.int64)), v)])
        self.assertEqual(v.shape.as_list(), [0, 2])
        slots = [optimizer.get_slot(v, slot) for slot in optimizer.get_slot_names()]
        self.assertIn(np.float32(initial), [s.initial for s in slots])
        session.run(tf.compat.v1.global_variables_initializer())
        session.run(train)
        self.assertEqual([x.shape for x in session.run(slots)], [(0, 2)] * len(slots))


class DistributedOptimizerTest(absltest.TestCase):

  def test_one_process_checks_the_names_of_arguments(self):
    optimizer = _train.GradientDescentOptimizer(.1)
    with self.assertRaisesRegex(TypeError, "unknown arguments sparse_as_dens; it takes "
                                ".*compression, .*sparse_as_dense"):
      sok.DistributedOptimizer(optimizer, sparse_as_dens=True)
    self.assertIs(optimizer, sok.DistributedOptimizer(optimizer, sparse_as_dense=True,
                                                      compression=None))


class AdamTest(absltest.TestCase):

  def test_steps_like_adam_of_keras(self):
    rows = []
    for make in (sok.optimizers.Adam, tf.compat.v1.keras.optimizers.Adam):
      with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        v = sok.DynamicVariable(1, "1")
        optimizer = make(learning_rate=.1, beta_1=.8)
        train = optimizer.apply_gradients([(_slices([[1.]], [3]), v)])
        session.run(tf.compat.v1.global_variables_initializer())
        for _ in range(3):
          session.run(train)
        rows.append(session.run(sok.export(v))[1])
    np.testing.assert_array_equal(*rows)
    self.assertLess(rows[0][0, 0], 1.)


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
