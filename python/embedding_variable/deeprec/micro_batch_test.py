# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""A step of N micro batches equals a step of the merged batch."""

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

import embedding_variable  # pylint: disable=unused-import
from embedding_variable.deeprec import graph_lists
from embedding_variable.deeprec import micro_batch

_PARTS = 4
_STEPS = 3

_OPTIMIZERS = {
    "adagrad": lambda: tf.train.AdagradOptimizer(.1),
    "adagrad_decay": lambda: tf.train.AdagradDecayOptimizer(
        .1, tf.train.get_or_create_global_step()),
    "adam": lambda: tf.train.AdamOptimizer(.01),
    "adam_async": lambda: tf.train.AdamAsyncOptimizer(.01),
    "adam_w": lambda: tf.train.AdamWOptimizer(.01, learning_rate=.01),
    "ftrl": lambda: tf.train.FtrlOptimizer(.1),
    "momentum": lambda: tf.train.MomentumOptimizer(.001, .9),
    "sgd": lambda: tf.train.GradientDescentOptimizer(.001),
}


def _data(batch_size):
  numbers = np.random.RandomState(5)
  ids = numbers.randint(-9, 9, [_STEPS * _PARTS * 8, 3]).astype(np.int64)
  labels = numbers.rand(len(ids)).astype(np.float32)
  return tf.data.Dataset.from_tensor_slices((ids, labels)).batch(batch_size)


def _counter():
  """Returns a function that returns 0, 1, 2 and so on."""
  numbers = iter(range(800))
  return lambda: next(numbers)


def _tables(ids):
  """Looks up an embedding variable and a dense variable."""
  table = tf.get_embedding_variable("table", 4, initializer=tf.ones_initializer())
  dense = tf.get_variable("dense", [18, 4], initializer=tf.constant_initializer(.5))
  rows = tf.reshape(tf.nn.embedding_lookup(table, ids), [-1, 12])
  return tf.concat(
      [rows, tf.reshape(tf.nn.embedding_lookup(dense, ids + 9), [-1, 12])], 1)


def _pooled(ids):
  column = tf.feature_column.categorical_column_with_embedding("ids", dtype=tf.int64)
  return tf.feature_column.input_layer({"ids": ids}, [tf.feature_column.embedding_column(
      column, 4, combiner="sum", initializer=tf.ones_initializer())])


def _recurrent(ids):
  """Runs a loop whose length depends on the batch."""
  rows = tf.reshape(_tables(ids), [-1, 3, 8])
  cell = tf.nn.rnn_cell.GRUCell(5, kernel_initializer=tf.constant_initializer(.1))
  length = 1 + tf.cast(tf.abs(ids[:, 0]) % 3, tf.int32)
  return tf.nn.dynamic_rnn(cell, rows, length, dtype=tf.float32)[1]


def _train(model, optimizer, num_micro_batches, is_recorded=False, with_step=True):
  """Trains; returns the values of all variables, and the global step."""
  with tf.Graph().as_default() as graph:
    tf.set_random_seed(1)
    ids, labels = tf.data.make_one_shot_iterator(
        _data(8 * _PARTS // num_micro_batches)).get_next()
    net = tf.layers.dense(model(ids), 1, kernel_initializer=tf.constant_initializer(.2))
    loss = tf.reduce_sum(tf.square(net[:, 0] - labels))
    step = tf.train.get_or_create_global_step() if with_step else None
    made = _OPTIMIZERS[optimizer]()
    if is_recorded:
      train_op = made.minimize(loss, global_step=step)
      micro_batch.apply_recorded(graph, num_micro_batches)
    else:
      pairs = micro_batch.add_up(made.compute_gradients(loss), num_micro_batches)
      train_op = made.apply_gradients(pairs, global_step=step)
    variables = [v for v in tf.global_variables() if v.op.name != "table" and
                 not hasattr(v, "export")]
    tables = [v.export()[:2] for v in tf.get_collection(
        tf.GraphKeys.EMBEDDING_VARIABLES)]
    with tf.Session() as session:
      session.run(tf.global_variables_initializer())
      for _ in range(_STEPS):
        session.run(train_op)
      dense = dict(zip([v.op.name for v in variables], session.run(variables)))
      for keys, rows in session.run(tables):
        order = np.argsort(keys)
        dense["keys"], dense["rows"] = keys[order], rows[order]
    return dense


class MicroBatchTest(parameterized.TestCase):

  @classmethod
  def setUpClass(cls):
    super(MicroBatchTest, cls).setUpClass()
    micro_batch.record_all_optimizers()

  def _assert_equal(self, found, expected):
    self.assertEqual(sorted(found), sorted(expected))
    self.assertIn("rows", expected)
    for name, value in expected.items():
      np.testing.assert_allclose(found[name], value, rtol=2e-4, atol=2e-5, err_msg=name)

  @parameterized.parameters(*sorted(_OPTIMIZERS))
  def test_equals_the_merged_batch(self, optimizer):
    self._assert_equal(_train(_tables, optimizer, _PARTS), _train(_tables, optimizer, 1))

  @parameterized.product(model=(_pooled, _recurrent), parts=(2, 4))
  def test_models(self, model, parts):
    self._assert_equal(_train(model, "adagrad", parts), _train(model, "adagrad", 1))

  @parameterized.product(optimizer=("adam", "adagrad_decay", "sgd"),
                         with_step=(True, False))
  def test_recorded_training_ops(self, optimizer, with_step):
    found = _train(_tables, optimizer, _PARTS, is_recorded=True, with_step=with_step)
    expected = _train(_tables, optimizer, 1, with_step=with_step)
    self._assert_equal(found, expected)
    if with_step:
      self.assertEqual(found["global_step"], _STEPS)

  def test_several_optimizers_share_the_batches(self):
    with tf.Graph().as_default() as graph:
      numbers = tf.data.make_one_shot_iterator(
          tf.data.Dataset.range(8).map(lambda x: tf.cast(x, tf.float32))).get_next()
      a, b = tf.get_variable("a", initializer=0.), tf.get_variable("b", initializer=0.)
      opt = tf.train.GradientDescentOptimizer(-1.)
      step = tf.train.get_or_create_global_step()
      train_op = tf.group(opt.minimize(a * numbers, var_list=[a], global_step=step),
                          opt.minimize(b * numbers, var_list=[b]))
      micro_batch.apply_recorded(graph, 4)
      micro_batch.apply_recorded(graph, 4)
      with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train_op)
        self.assertEqual(session.run([a, b, step]), [6., 6., 1])

  def test_control_dependencies_of_the_caller_are_kept(self):
    with tf.Graph().as_default() as graph:
      number = tf.data.make_one_shot_iterator(tf.data.Dataset.range(8)).get_next()
      a = tf.get_variable("a", initializer=0.)
      calls = tf.get_variable("calls", initializer=0, trainable=False)
      with tf.control_dependencies([calls.assign_add(1)]):
        train_op = tf.train.GradientDescentOptimizer(-1.).minimize(
            a * tf.cast(number, tf.float32))
      micro_batch.apply_recorded(graph, 2)
      with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train_op)
        self.assertEqual(session.run([a, calls]), [1., 1])

  def test_a_gradient_without_a_batch_is_counted_for_each(self):
    with tf.Graph().as_default():
      a, b = (tf.get_variable(n, initializer=0.) for n in "ab")
      number = tf.data.make_one_shot_iterator(tf.data.Dataset.range(8)).get_next()
      pairs = micro_batch.add_up([(tf.constant(2.), a), (tf.cast(number, tf.float32), b)],
                                 3)
      with tf.Session() as session:
        self.assertEqual(session.run([g for g, _ in pairs]), [6., 3.])

  @parameterized.named_parameters(
      ("placeholder", lambda: tf.placeholder(tf.float32, [None], "fed"), "'fed' .Placeh"),
      ("default", lambda: tf.placeholder_with_default([3.], [None], "fed"), "'fed' .Pla"),
      ("function", lambda: tf.compat.v1.wrap_function(
          lambda: tf.random.uniform([2]), [])(), "PartitionedCall"),
      ("constant", lambda: tf.constant([2.]), "constants and variables only"),
      ("py_function", lambda: tf.py_function(
          lambda x: x * x, [tf.get_variable("a", initializer=2.) + 1.], tf.float32),
       "'EagerPyFunc', a tf.py_function"))
  def test_refuses_one_batch_several_times(self, source, message):
    with tf.Graph().as_default():
      values = source()
      with tf.variable_scope("", reuse=tf.AUTO_REUSE):
        a = tf.get_variable("a", initializer=2.)
      opt = tf.train.GradientDescentOptimizer(1.)
      number = tf.cast(tf.data.make_one_shot_iterator(
          tf.data.Dataset.range(8)).get_next(), tf.float32)
      with self.assertRaisesRegex(NotImplementedError, message):
        micro_batch.add_up(opt.compute_gradients(tf.reduce_sum(a * values), [a]), 2)
      if "'fed'" in message:
        b = tf.get_variable("b", initializer=2.)
        loss = tf.reduce_sum(a * values) + b * number
        with self.assertRaisesRegex(NotImplementedError, "gradient of 'a:0'.*" + message):
          micro_batch.add_up(opt.compute_gradients(loss, [a, b]), 2)
      values = tf.stop_gradient(values)
      loss = tf.reduce_sum(a * values * number)
      (gradient, _), = micro_batch.add_up(opt.compute_gradients(loss, [a]), 2)
      with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        feed = {values: [3.]} if "'fed'" in message else {}
        self.assertEqual(session.run([gradient / tf.reduce_sum(values)], feed), [1.])

  @parameterized.named_parameters(
      ("iterator", lambda: tf.data.make_one_shot_iterator(
          tf.data.Dataset.range(800)).get_next()),
      ("branch", lambda: tf.cond(
          tf.placeholder_with_default(True, []),
          tf.data.make_one_shot_iterator(tf.data.Dataset.range(800)).get_next,
          tf.data.make_one_shot_iterator(tf.data.Dataset.range(1)).get_next)),
      ("py_func", lambda: tf.py_func(_counter(), [], tf.int64)),
      ("py_function", lambda: tf.py_function(_counter(), [], tf.int64)))
  def test_batches_are_taken_in_order(self, source):
    with tf.Graph().as_default():
      number = source()
      a = tf.get_variable("a", initializer=0.)
      # The first copy's gradient takes longest.
      work = tf.cond(number % 8 < 2, lambda: tf.reduce_sum(tf.matmul(
          *[tf.ones([300, 300]) * tf.cast(number, tf.float32)] * 2)), lambda: 0.)
      gradient = tf.IndexedSlices(tf.reshape(
          tf.cast(number, tf.float32) + 0. * work, [1]), tf.constant([0]))
      (gradient, _), = micro_batch.add_up([(gradient, a)], 8)
      with tf.Session() as session:
        for step in range(30):
          first, all_ = session.run([number, gradient.values])
          self.assertEqual(first, 8 * step)
          self.assertEqual(all_.tolist(), list(range(8 * step, 8 * step + 8)))

  def test_refuses_a_batch_whose_order_is_not_fixed(self):
    with tf.Graph().as_default():
      iterator = tf.data.make_one_shot_iterator(tf.data.Dataset.range(8))
      number, a = iterator.get_next(), tf.get_variable("a", initializer=0.)
      taken = tf.cond(number > 2, iterator.get_next, lambda: number)
      with self.assertRaisesRegex(NotImplementedError, "IteratorGetNext.*take the batch"):
        micro_batch.add_up([(tf.cast(taken, tf.float32), a)], 2)
      (gradient, _), = micro_batch.add_up([(tf.cast(number, tf.float32), a)], 2)
      with tf.Session() as session:
        self.assertEqual(session.run(gradient), 1.)

  def test_shuffled_queue(self):
    with tf.Graph().as_default():
      numbers = tf.train.shuffle_batch([tf.constant(2.)], 2, 8, 4)
      a = tf.get_variable("a", initializer=0.)
      (gradient, _), = micro_batch.add_up([(tf.reduce_sum(numbers), a)], 2)
      with tf.train.SingularMonitoredSession() as session:
        self.assertEqual(session.run(gradient), 8.)

  def test_generator_with_state(self):
    with tf.Graph().as_default():
      drawn = tf.random.experimental.Generator.from_seed(3).uniform([])
      a = tf.get_variable("a", initializer=0.)
      (gradient, _), = micro_batch.add_up([(drawn, a)], 2)
      with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        total, first = session.run([gradient, drawn])
        self.assertGreater(abs(total - 2 * first), 1e-4)

  def test_copies_draw_other_numbers(self):
    with tf.Graph().as_default():
      a = tf.get_variable("a", initializer=0.)
      drawn = tf.random_uniform([], seed=3)
      (gradient, _), = micro_batch.add_up([(drawn, a)], 2)
      with tf.Session() as session:
        total, first = session.run([gradient, drawn])
        self.assertGreater(total, first)
        self.assertNotAlmostEqual(total, 2 * first, places=4)

  def test_refuses_accumulators(self):
    with tf.Graph().as_default() as graph:
      a = tf.get_variable("a", initializer=0.)
      opt = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(1.), 1)
      opt.minimize(a * 2., global_step=tf.train.get_or_create_global_step())
      with self.assertRaisesRegex(NotImplementedError, "SyncReplicasOptimizer"):
        micro_batch.apply_recorded(graph, 2)

  @parameterized.parameters(0, -1, 1.5)
  def test_wrong_number(self, number):
    with self.assertRaisesRegex(ValueError, "num_micro_batches"):
      micro_batch.add_up([], number)

  def test_one_changes_nothing(self):
    with tf.Graph().as_default() as graph:
      a = tf.get_variable("a", initializer=0.)
      tf.train.GradientDescentOptimizer(1.).minimize(a)
      before = len(graph.get_operations())
      micro_batch.apply_recorded(graph, 1)
      self.assertLen(graph.get_operations(), before)
      self.assertLen(graph_lists.of(graph, graph_lists.APPLY_CALLS), 1)


if __name__ == "__main__":
  absltest.main()
