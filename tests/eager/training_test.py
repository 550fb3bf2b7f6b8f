# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of training in eager execution and in `tf.function`."""

import gc

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

import embedding_variable
from embedding_variable.ops import pack_ops
import eager_models as models
import sparse_operation_kit as sok

_V1 = {
    "sgd": lambda: tf.compat.v1.train.GradientDescentOptimizer(.1),
    "momentum": lambda: tf.compat.v1.train.MomentumOptimizer(.1, .9),
    "adagrad": lambda: tf.compat.v1.train.AdagradOptimizer(.1),
    "adam": lambda: tf.compat.v1.train.AdamOptimizer(.1),
    "rmsprop": lambda: tf.compat.v1.train.RMSPropOptimizer(.1, momentum=.5),
    "ftrl": lambda: tf.compat.v1.train.FtrlOptimizer(.1, l1_regularization_strength=.01),
    "adadelta": lambda: tf.compat.v1.train.AdadeltaOptimizer(.1),
    # Its own code runs on the rows.
    "proximal": lambda: tf.compat.v1.train.ProximalAdagradOptimizer(.1),
    # DeepRec's.
    "adamw": lambda: tf.compat.v1.train.AdamWOptimizer(weight_decay=.01, learning_rate=.1),
    "group ftrl": lambda: embedding_variable.GroupFtrlOptimizer(.1),
    "row-wise adagrad": lambda: embedding_variable.RowWiseAdagradOptimizer(.1),
}


def _step_optimizers():
  keras = tf.keras.optimizers
  return {
      "sgd": lambda: keras.SGD(.1),
      "adagrad": lambda: keras.Adagrad(.1),
      "adagrad with epsilon": lambda: keras.Adagrad(.1, epsilon=.5),
      "adam": lambda: keras.Adam(.1),
      "adadelta": lambda: keras.Adadelta(.5),
      "rmsprop": lambda: keras.RMSprop(.1),
      "rmsprop with momentum": lambda: keras.RMSprop(.1, momentum=.5),
      "centered rmsprop": lambda: keras.RMSprop(.1, centered=True),
      "ftrl": lambda: keras.Ftrl(.1, l1_regularization_strength=.01,
                                 l2_regularization_strength=.02, beta=.1),
      "schedule": lambda: keras.Adam(keras.schedules.InverseTimeDecay(.1, 1, .5)),
  }


def _legacy():
  """Returns the legacy optimizers of Keras 2, or none."""
  legacy = getattr(tf.keras.optimizers, "legacy", None)
  if legacy is None or not hasattr(legacy, "Adam"):
    return {}
  try:
    legacy.Adam()
  except ImportError:  # Keras 3 has the names
    return {}
  return {"adagrad": lambda: legacy.Adagrad(.1), "adam": lambda: legacy.Adam(.1),
          "ftrl": lambda: legacy.Ftrl(.1), "momentum": lambda: legacy.SGD(.1, momentum=.9),
          "nadam": lambda: legacy.Nadam(.1), "adamax": lambda: legacy.Adamax(.1),
          "rmsprop": lambda: legacy.RMSprop(.1),
          "amsgrad": lambda: legacy.Adam(.1, amsgrad=True)}


def _in_modes(names):
  return [(name, mode) for name in sorted(names) for mode in models.MODES]


class TrainingTest(parameterized.TestCase):

  @parameterized.parameters(_in_modes(_V1))
  def test_the_losses_of_a_graph(self, name, mode):
    expected = models.losses_in_a_graph(_V1[name])
    model = models.Model(_V1[name]())
    found = model.train(mode)
    if name == "group ftrl":  # its ops on the dense variable differ in the last bit
      np.testing.assert_allclose(expected, found, rtol=1e-6)
    else:
      self.assertEqual(expected, found)
    self.assertEqual([3, 4], model.users.total_count().numpy().tolist())

  @parameterized.parameters(_in_modes(_legacy()) or [("none", "eager")])
  def test_the_losses_of_a_graph_with_legacy_keras(self, name, mode):
    if name == "none":
      self.skipTest("this Keras has no legacy optimizers")
    expected = models.losses_in_a_graph(_legacy()[name])
    np.testing.assert_allclose(expected, models.Model(_legacy()[name]()).train(mode),
                               rtol=1e-6)

  @parameterized.parameters(_in_modes(_step_optimizers()))
  def test_rows_as_a_dense_variable(self, name, mode):
    make = _step_optimizers()[name]
    table = tf.compat.v1.get_embedding_variable("t", 4, initializer=models.rows(0, 4))
    keys = tf.constant([0, 1, 5], tf.int64)
    start = tf.nn.embedding_lookup(table, keys).numpy()
    dense = tf.Variable(start)
    factor = tf.constant(np.random.RandomState(2).uniform(-1, 1, [3, 4]), tf.float32)
    optimizer, of_dense = make(), make()

    def train_table():
      with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.nn.embedding_lookup(table, keys) ** 2 * factor)
      optimizer.apply_gradients([(tape.gradient(loss, table), table)])

    if mode == "function":
      train_table = tf.function(train_table)
    for _ in range(4):
      train_table()
      with tf.GradientTape() as tape:
        loss = tf.reduce_sum(dense ** 2 * factor)
      of_dense.apply_gradients([(tape.gradient(loss, dense), dense)])
    np.testing.assert_allclose(dense.numpy(), tf.nn.embedding_lookup(table, keys).numpy(),
                               rtol=2e-5, atol=1e-6)
    self.assertNotAllClose(start, dense.numpy())
    self.assertEqual(4, int(optimizer.iterations.numpy()))

  @parameterized.parameters(*models.MODES)
  def test_a_table_beside_a_dense_variable_in_keras(self, mode):
    schedule = tf.keras.optimizers.schedules.InverseTimeDecay(.1, 1, .5)
    keys = tf.constant([0, 1, 5], tf.int64)
    table = tf.compat.v1.get_embedding_variable("t", 4, initializer=models.rows(0, 4))
    rows = tf.Variable(tf.nn.embedding_lookup(table, keys).numpy())
    optimizer, weight = tf.keras.optimizers.Adam(schedule), tf.Variable([1., 2., 3., 4.])
    of_dense, dense_weight = tf.keras.optimizers.Adam(schedule), tf.Variable(weight)

    def train(optimizer, look_up, variables):
      with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.square(look_up() * variables[1]))
      optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))

    def train_table():
      train(optimizer, lambda: tf.nn.embedding_lookup(table, keys), [table, weight])

    if mode == "function":
      train_table = tf.function(train_table)
    for _ in range(4):
      train_table()
      train(of_dense, lambda: tf.identity(rows), [rows, dense_weight])
    np.testing.assert_allclose(rows.numpy(), tf.nn.embedding_lookup(table, keys).numpy(),
                               rtol=2e-5, atol=1e-6)
    np.testing.assert_allclose(dense_weight.numpy(), weight.numpy(), rtol=2e-5)
    self.assertEqual(4, int(optimizer.iterations.numpy()))

  @parameterized.parameters(*models.MODES)
  def test_dense_variables_without_gradients_in_keras(self, mode):
    model = models.Model(tf.keras.optimizers.SGD(.1))
    table, dense = model.users, tf.Variable([1., 2.])
    keys = tf.constant([1], tf.int64)

    def step(with_weight):
      with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.nn.embedding_lookup(table, keys))
        if with_weight:
          loss += tf.reduce_sum(model.weight)
      variables = [table, dense, model.weight]
      gradients = tape.gradient(loss, variables)
      self.assertIsNone(gradients[1])
      model.optimizer.apply_gradients(zip(gradients, variables))

    run = tf.function(step) if mode == "function" else step
    start = tf.nn.embedding_lookup(table, keys).numpy()
    for steps, with_weight in enumerate([False, True], 1):
      run(with_weight)
      np.testing.assert_allclose(start - .1 * steps,
                                 tf.nn.embedding_lookup(table, keys).numpy(), rtol=1e-6)
      self.assertEqual(steps, int(model.optimizer.iterations.numpy()))
    self.assertEqual([1., 2.], dense.numpy().tolist())
    self.assertAlmostEqual(.4, model.weight.numpy()[0, 0])

  def test_eager_tensors_for_an_op_on_a_gpu(self):
    given = [tf.range(10 ** 5 + i) for i in range(9)]
    for i, tensor in enumerate(pack_ops.to_device(given, "/device:GPU:0")):
      self.assertIs(given[i], tensor)
    graph = tf.function(
        lambda: pack_ops.to_device(given, "/device:GPU:0")).get_concrete_function().graph
    pack, = [op for op in graph.get_operations() if op.type == "EvPack"]
    self.assertLen(pack.inputs, 9)

  def assertNotAllClose(self, a, b):
    self.assertGreater(np.abs(a - b).max(), 1e-3)

  @parameterized.parameters(*models.MODES)
  def test_keys_of_an_unused_output_are_not_inserted(self, mode):
    model = models.Model(tf.keras.optimizers.SGD(.1))

    def step():
      with tf.GradientTape() as tape:
        used, _ = sok.lookup_sparse([model.users, model.items], [models.ids()] * 2,
                                    combiners=["sum", "sum"])
        loss = tf.reduce_sum(used)
      gradients = tape.gradient(loss, [model.users, model.items])
      assert gradients[1] is None
      model.optimizer.apply_gradients([(gradients[0], model.users)])

    (step if mode == "eager" else tf.function(step))()
    self.assertEqual(3, model.users.total_count().numpy()[0])
    self.assertEqual(0, model.items.total_count().numpy()[0])

  @parameterized.parameters(*models.MODES)
  def test_two_lookups_of_a_table(self, mode):
    table = tf.compat.v1.get_embedding_variable("t", 2, initializer=tf.ones_initializer())
    optimizer = tf.keras.optimizers.SGD(1.)

    def step():
      with tf.GradientTape() as tape:
        pooled = sok.lookup_sparse(table, models.ids(), combiners="sum")
        row = tf.nn.embedding_lookup(table, tf.constant([7, 7], tf.int64))
        loss = tf.reduce_sum(pooled) + 10. * tf.reduce_sum(row)
      optimizer.apply_gradients([(tape.gradient(loss, table), table)])

    (step if mode == "eager" else tf.function(step))()
    rows = tf.nn.embedding_lookup(table, tf.constant([7, -3, 2 ** 62, 1], tf.int64))
    self.assertEqual([[1 - 21.] * 2, [0.] * 2, [0.] * 2, [1.] * 2], rows.numpy().tolist())

  @parameterized.parameters(*models.MODES)
  def test_clipped_gradients_keep_their_plan(self, mode):
    model = models.Model(tf.keras.optimizers.SGD(1.))
    before = tf.nn.embedding_lookup(model.users, models.ids().values).numpy()

    def step():
      with tf.GradientTape() as tape:
        loss = models.loss_of(model.users, model.items, model.weight, models.ids())
      variables = model.variables_of_model()
      gradients, norm = tf.clip_by_global_norm(tape.gradient(loss, variables), .5)
      model.optimizer.apply_gradients(zip(gradients, variables))
      return norm, gradients[0].values

    norm, values = (step if mode == "eager" else tf.function(step))()
    self.assertGreater(float(norm), .5)
    after = tf.nn.embedding_lookup(model.users, models.ids().values).numpy()
    np.testing.assert_allclose(before - after, values.numpy(), rtol=1e-5)

  def test_weights_have_gradients(self):
    table = tf.compat.v1.get_embedding_variable("t", 2, initializer=tf.ones_initializer())
    weights = tf.Variable([1., 2., 3.])
    given = models.ids()
    with tf.GradientTape() as tape:
      pooled = sok.lookup_sparse(
          table, given, tf.SparseTensor(given.indices, weights, given.dense_shape),
          combiners="sum")
      loss = tf.reduce_sum(pooled * [[1.], [1.], [5.]])
    of_table, of_weights = tape.gradient(loss, [table, weights])
    self.assertEqual([2., 2., 10.], of_weights.numpy().tolist())
    self.assertEqual({7: 1., -3: 2., 2 ** 62: 15.}, dict(zip(
        of_table.indices.numpy().tolist(), of_table.values.numpy()[:, 0].tolist())))

  def test_a_tape_outside_of_the_function(self):
    model = models.Model(tf.keras.optimizers.SGD(.1))
    forward = tf.function(lambda: models.loss_of(model.users, model.items, model.weight,
                                                 models.ids()))
    variables = model.variables_of_model()
    for _ in range(2):
      with tf.GradientTape() as tape:
        inside = models.loss_of(model.users, model.items, model.weight, models.ids())
      expected = tape.gradient(inside, variables)
      with tf.GradientTape() as tape:
        loss = forward()
      got = tape.gradient(loss, variables)
      for a, b in zip(expected[:2], got[:2]):
        self.assertEqual(a.indices.numpy().tolist(), b.indices.numpy().tolist())
        np.testing.assert_allclose(a.values.numpy(), b.values.numpy(), rtol=1e-6)
      model.optimizer.apply_gradients(zip(got, variables))

  @parameterized.parameters(*models.MODES)
  def test_a_scaled_loss(self, mode):
    keras = tf.keras
    kind = getattr(keras.mixed_precision, "LossScaleOptimizer", None)
    if hasattr(keras, "Variable"):  # Keras 3
      model = models.Model(keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(.1)))
      with self.assertRaisesRegex(TypeError, "'users'.*LossScaleOptimizer"):
        model.step()
      self.assertEqual(0, model.users.total_count().numpy()[0])
      return
    model = models.Model(kind(keras.optimizers.SGD(.1)))
    variables, optimizer = model.variables_of_model(), model.optimizer

    def step(factor):
      with tf.GradientTape() as tape:
        loss = models.loss_of(*variables, given=models.ids()) * factor
        scaled = optimizer.get_scaled_loss(loss)
      gradients = optimizer.get_unscaled_gradients(tape.gradient(scaled, variables))
      optimizer.apply_gradients(zip(gradients, variables))
      return loss

    step = tf.function(step) if mode == "function" else step
    expected = models.Model(keras.optimizers.SGD(.1)).train(mode, 2)
    found = [float(step(tf.constant(1.)))]
    scale = float(optimizer.loss_scale)
    step(tf.constant(np.inf))  # skipped
    self.assertLess(float(optimizer.loss_scale), scale)
    np.testing.assert_allclose(expected, found + [float(step(tf.constant(1.)))], rtol=1e-6)

  @parameterized.parameters(*models.MODES)
  def test_a_table_in_parts(self, mode):
    whole, parts = [tf.compat.v1.get_embedding_variable(
        "t", 4, initializer=models.rows(0, 4), partitioner=partitioner)
                    for partitioner in (None, tf.compat.v1.fixed_size_partitioner(3))]
    optimizer = tf.keras.optimizers.Adagrad(.1)

    def step(table, variables):
      with tf.GradientTape() as tape:
        loss = tf.reduce_sum(sok.lookup_sparse(table, models.ids(), combiners="sum") ** 2)
      gradients = tape.gradient(loss, variables)
      optimizer.apply_gradients([
          (g, v) for g, v in zip(gradients, variables) if g is not None])
      return loss

    run = tf.function(step) if mode == "function" else step
    for _ in range(3):
      np.testing.assert_allclose(float(run(whole, [whole])), float(run(parts, list(parts))),
                                 rtol=1e-6)
    self.assertEqual(3, sum(int(p.total_count()[0]) for p in parts))

  def test_a_persistent_tape(self):
    table = tf.compat.v1.get_embedding_variable("t", 2, initializer=tf.ones_initializer())
    with tf.GradientTape(persistent=True) as tape:
      first, second = sok.lookup_sparse([table, table], [models.ids()] * 2,
                                        combiners=["sum", "sum"])
      loss, other = tf.reduce_sum(first), 3. * tf.reduce_sum(second)
    self.assertEqual([1.] * 3, tape.gradient(loss, table).values.numpy()[:, 0].tolist())
    self.assertEqual([3.] * 3, tape.gradient(other, table).values.numpy()[:, 0].tolist())


class SecondDerivativeTest(parameterized.TestCase):
  """A penalty on the gradient of rows, against the same of a dense variable."""

  @parameterized.parameters(*[(kind, mode) for kind in ("pooled", "weighted", "rows")
                              for mode in models.MODES])
  def test_a_penalty_on_gradients(self, kind, mode):
    table = tf.compat.v1.get_embedding_variable("t", 4, initializer=models.rows(0, 4))
    keys = [7, -3, 2 ** 62]
    dense = tf.Variable(tf.nn.embedding_lookup(table, tf.constant(keys, tf.int64)))
    scale, given = tf.Variable(3.), models.ids()
    factors = tf.Variable([2., .5, 4.])

    def of_table():
      if kind == "rows":
        return tf.nn.embedding_lookup(table, given.values)
      weights = None
      if kind == "weighted":
        weights = tf.SparseTensor(given.indices, factors, given.dense_shape)
      return sok.lookup_sparse(table, given, weights, combiners="sum")

    def of_dense():
      if kind == "rows":
        return tf.identity(dense)
      rows = dense * factors[:, tf.newaxis] if kind == "weighted" else dense
      return tf.stack([rows[0] + rows[1], tf.zeros([4]), rows[2]])

    def penalty(lookup, variable):
      with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
          loss = scale * tf.reduce_sum(lookup() ** 3)
        gradient = inner.gradient(loss, variable)
        squares = tf.reduce_sum(tf.convert_to_tensor(
            gradient.values if isinstance(gradient, tf.IndexedSlices) else gradient) ** 2)
      return outer.gradient(squares, [scale, variable, factors])

    run = (lambda f: f) if mode == "eager" else tf.function
    of_scale, slices, of_factors = run(lambda: penalty(of_table, table))()
    expected_scale, expected, expected_factors = run(lambda: penalty(of_dense, dense))()
    np.testing.assert_allclose(expected_scale.numpy(), of_scale.numpy(), rtol=1e-5)
    if kind == "weighted":
      np.testing.assert_allclose(expected_factors.numpy(), of_factors.numpy(), rtol=1e-5)
    found = dict(zip(slices.indices.numpy().tolist(), slices.values.numpy()))
    for key, row in zip(keys, expected.numpy()):
      np.testing.assert_allclose(row, found[key], rtol=1e-5)

  def test_a_gradient_of_the_gradient_of_weights(self):
    table = tf.compat.v1.get_embedding_variable("t", 2, initializer=tf.ones_initializer())
    weights, given = tf.Variable([1., 2., 3.]), models.ids()
    with tf.GradientTape() as outer:
      with tf.GradientTape() as inner:
        loss = tf.reduce_sum(sok.lookup_sparse(
            table, given, tf.SparseTensor(given.indices, weights, given.dense_shape),
            combiners="sum") ** 2)
      total = tf.reduce_sum(inner.gradient(loss, weights))
    with self.assertRaisesRegex(NotImplementedError, "gradient of the weights"):
      outer.gradient(total, weights)


class FilterTest(parameterized.TestCase):

  @parameterized.parameters(*models.MODES)
  def test_occurrences_are_counted(self, mode):
    option = embedding_variable.EmbeddingVariableOption(
        filter_option=embedding_variable.CounterFilter(filter_freq=3))
    table = tf.compat.v1.get_embedding_variable(
        "t", 2, initializer=tf.ones_initializer(), ev_option=option)
    optimizer = tf.keras.optimizers.SGD(1.)
    given = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], tf.constant([5, 5, 6], tf.int64),
                            [2, 2])

    def step():
      with tf.GradientTape() as tape:
        loss = tf.reduce_sum(sok.lookup_sparse(table, given, combiners="sum"))
      optimizer.apply_gradients([(tape.gradient(loss, table), table)])

    step = step if mode == "eager" else tf.function(step)
    counts = []
    for _ in range(3):
      step()
      counts.append(table.get_frequency(tf.constant([5, 6], tf.int64)).numpy().tolist())
    self.assertEqual([[2, 1], [4, 2], [6, 3]], counts)
    self.assertEqual(2, table.total_count().numpy()[0])

  def test_counts_are_in_a_checkpoint(self):
    option = embedding_variable.EmbeddingVariableOption(
        filter_option=embedding_variable.CounterFilter(filter_freq=3))
    tables = [tf.compat.v1.get_embedding_variable("t", 2, ev_option=option)
              for _ in range(2)]
    key = tf.constant([5], tf.int64)

    def step(table):
      with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.nn.embedding_lookup(table, key))
      tf.keras.optimizers.SGD(1.).apply_gradients([(tape.gradient(loss, table), table)])

    step(tables[0])
    step(tables[0])
    path = tf.train.Checkpoint(t=tables[0]).save(
        self.create_tempdir().full_path + "/ckpt")
    tf.train.Checkpoint(t=tables[1]).restore(path)
    self.assertEqual([2], tables[1].get_frequency(key).numpy().tolist())
    self.assertEqual(0, tables[1].total_count().numpy()[0])
    step(tables[1])
    self.assertEqual(1, tables[1].total_count().numpy()[0])


class LifeTest(absltest.TestCase):

  def test_tables_of_one_name_are_two(self):
    first = tf.compat.v1.get_embedding_variable("t", 2, initializer=tf.ones_initializer())
    second = tf.compat.v1.get_embedding_variable("t", 2, initializer=tf.zeros_initializer())
    key = tf.constant([1], tf.int64)
    self.assertEqual([[1., 1.]], tf.nn.embedding_lookup(first, key).numpy().tolist())
    self.assertEqual([[0., 0.]], tf.nn.embedding_lookup(second, key).numpy().tolist())
    self.assertNotEqual(first, second)
    self.assertLen({first, second}, 2)

  def test_a_table_ends_with_its_variable(self):
    table = tf.compat.v1.get_embedding_variable("t", 2)
    handle = table.handle
    del table
    gc.collect()
    with self.assertRaises(tf.errors.NotFoundError):
      tf.raw_ops.DestroyResourceOp(resource=handle, ignore_lookup_error=False)

  def test_rows_are_replaced(self):
    model = models.Model(tf.keras.optimizers.SGD(.1))
    model.train("eager", 1)
    model.users.import_rows([5], np.full([1, 4], 2., np.float32))
    self.assertEqual([1, 4], model.users.total_count().numpy().tolist())
    row = tf.nn.embedding_lookup(model.users, tf.constant([5], tf.int64))
    self.assertEqual([[2.] * 4], row.numpy().tolist())

  def test_old_rows_are_evicted(self):
    option = embedding_variable.EmbeddingVariableOption(
        evict_option=embedding_variable.GlobalStepEvict(steps_to_live=2))
    table = tf.compat.v1.get_embedding_variable("t", 2, ev_option=option)
    optimizer = tf.keras.optimizers.SGD(.1)
    for key in (1, 2, 3, 4, 5):
      with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.nn.embedding_lookup(table, tf.constant([key], tf.int64)))
      optimizer.apply_gradients([(tape.gradient(loss, table), table)])
    versions = table.get_version(tf.constant([1, 5], tf.int64)).numpy().tolist()
    self.assertEqual([0, 4], versions)
    self.assertEqual(3, int(table.evict(step=5)))
    self.assertEqual(2, table.total_count().numpy()[0])
    with self.assertRaisesRegex(ValueError, "'t'.*evict.* needs step"):
      table.evict()

  def test_rows_get_the_step_in_a_function(self):
    option = embedding_variable.EmbeddingVariableOption(
        evict_option=embedding_variable.GlobalStepEvict(steps_to_live=2))
    steps = tf.compat.v1.train.get_or_create_global_step
    for name, optimizer, kwargs in (
        ("Keras's", tf.keras.optimizers.SGD(.1), lambda: {}),
        ("v1's", tf.compat.v1.train.GradientDescentOptimizer(.1),
         lambda: {"global_step": steps()})):
      table = tf.compat.v1.get_embedding_variable("t", 2, ev_option=option)

      @tf.function
      def step(key):
        with tf.GradientTape() as tape:
          loss = tf.reduce_sum(tf.nn.embedding_lookup(table, key))
        optimizer.apply_gradients([(tape.gradient(loss, table), table)], **kwargs())

      with self.subTest(name):
        if kwargs():
          tf.compat.v1.train.get_global_step().assign(0)
        for key in (1, 2, 3):
          step(tf.constant([key], tf.int64))
        versions = table.get_version(tf.constant([1, 2, 3], tf.int64))
        self.assertEqual([0, 1, 2], versions.numpy().tolist())

  def test_a_table_that_evicts_needs_a_step(self):
    option = embedding_variable.EmbeddingVariableOption(
        evict_option=embedding_variable.GlobalStepEvict(steps_to_live=2))
    table = tf.compat.v1.get_embedding_variable("t", 2, ev_option=option)

    def step(optimizer):
      with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.nn.embedding_lookup(table, tf.constant([7], tf.int64)))
      optimizer.apply_gradients([(tape.gradient(loss, table), table)])

    if tf.compat.v1.train.get_global_step() is None:
      with self.assertRaisesRegex(ValueError, "'t' evicts rows by step: expected a global"):
        step(tf.compat.v1.train.GradientDescentOptimizer(.1))
      self.assertEqual(0, table.total_count().numpy()[0])
    step(tf.keras.optimizers.SGD(.1))
    self.assertEqual(1, table.total_count().numpy()[0])

  def test_rows_are_erased_and_exported(self):
    model = models.Model(tf.keras.optimizers.SGD(.1))
    model.train("eager", 1)
    self.assertEqual(1, int(model.users.erase(tf.constant([7, 8], tf.int64))))
    exported = model.users.export()
    self.assertEqual({-3, 2 ** 62}, set(exported.keys.numpy().tolist()))
    self.assertEqual((2, 4), exported.values.numpy().shape)


class WrongUseTest(parameterized.TestCase):

  def test_creation_in_a_function(self):
    @tf.function
    def create():
      tf.compat.v1.get_embedding_variable("made_inside", 2)

    with self.assertRaisesRegex(ValueError, "made_inside.*outside of the function"):
      create()

  @parameterized.named_parameters(
      ("momentum", lambda: tf.keras.optimizers.SGD(.1, momentum=.9), TypeError, "SGD"),
      ("amsgrad", lambda: tf.keras.optimizers.Adam(amsgrad=True), TypeError, "Adam"),
      ("no rule", lambda: tf.keras.optimizers.Nadam(), TypeError, "Nadam"),
      ("clipnorm", lambda: tf.keras.optimizers.SGD(.1, clipnorm=1.), ValueError, "clipnorm"),
      ("ema", lambda: tf.keras.optimizers.SGD(.1, use_ema=True), ValueError, "use_ema"))
  def test_an_optimizer_that_cannot_train_a_table(self, make, error, message):
    model = models.Model(make())
    before = model.weight.numpy()
    with self.assertRaisesRegex(error, "'users'.*" + message):
      model.step()
    self.assertEqual(before.tolist(), model.weight.numpy().tolist())
    self.assertEqual(0, model.users.total_count().numpy()[0])

  def test_an_optimizer_of_a_script(self):
    class Own(tf.keras.optimizers.SGD):

      def update_step(self, *args, **kwargs):
        raise AssertionError

    with self.assertRaisesRegex(TypeError, "'users'.*Own"):
      models.Model(Own(.1)).step()

  def test_a_strategy_that_mirrors_variables(self):
    with tf.distribute.MirroredStrategy(["/cpu:0"]).scope():
      with self.assertRaisesRegex(NotImplementedError, "'mirrored'.*MirroredStrategy"):
        tf.compat.v1.get_embedding_variable("mirrored", 2)

  def test_a_dense_gradient(self):
    table = tf.compat.v1.get_embedding_variable("t", 2)
    with self.assertRaisesRegex(TypeError, "'t'.*IndexedSlices"):
      tf.keras.optimizers.SGD(.1).apply_gradients([(tf.ones([1, 2]), table)])

  @parameterized.parameters(*models.MODES)
  def test_an_optimizer_of_graph_mode(self, mode):
    dense, optimizer = tf.Variable([1.], name="w"), tf.compat.v1.train.AdamAsyncOptimizer()

    def step():
      optimizer.apply_gradients([(tf.ones([1]), dense)])

    with self.assertRaisesRegex(NotImplementedError, "'w:0'.*graph mode"):
      (tf.function(step) if mode == "function" else step)()

  def test_summaries(self):
    table = tf.compat.v1.get_embedding_variable("t", 2)
    with tf.Graph().as_default():
      with self.assertRaisesRegex(ValueError, "'t'.*eager"):
        embedding_variable.summaries([table])

  def test_no_gradients(self):
    model = models.Model(tf.keras.optimizers.SGD(.1))
    with self.assertRaisesRegex(ValueError, "No gradients"):
      model.optimizer.apply_gradients([(None, model.users), (None, model.weight)])

  @parameterized.parameters(*models.MODES)
  def test_a_dense_gradient_of_a_wrong_shape(self, mode):
    model = models.Model(tf.keras.optimizers.SGD(.1))
    keys = tf.constant([1], tf.int64)

    def step():
      with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.nn.embedding_lookup(model.users, keys))
      model.optimizer.apply_gradients([(tape.gradient(loss, model.users), model.users),
                                       (tf.ones([3, 5]), model.weight)])

    start = tf.nn.embedding_lookup(model.users, keys).numpy()
    with self.assertRaises((ValueError, tf.errors.InvalidArgumentError)):
      (tf.function(step) if mode == "function" else step)()
    self.assertEqual(start.tolist(),
                     tf.nn.embedding_lookup(model.users, keys).numpy().tolist())

  def test_a_gradient_through_a_conditional(self):
    model = models.Model(tf.keras.optimizers.SGD(.1))

    @tf.function
    def step(take):
      with tf.GradientTape() as tape:
        loss = tf.cond(take, lambda: models.loss_of(
            model.users, model.items, model.weight, models.ids()), lambda: 0.)
      return tape.gradient(loss, model.users)

    with self.assertRaisesRegex(NotImplementedError, "users"):
      step(tf.constant(True))

  def test_a_gradient_through_a_loop(self):
    model = models.Model(tf.keras.optimizers.SGD(.1))

    @tf.function
    def step():
      with tf.GradientTape() as tape:
        loss = tf.constant(0.)
        for _ in tf.range(3):
          loss += models.loss_of(model.users, model.items, model.weight, models.ids())
      return tape.gradient(loss, model.users)

    with self.assertRaisesRegex(NotImplementedError, "users"):
      step()

  def test_a_dense_value(self):
    table = tf.compat.v1.get_embedding_variable("t", 2)
    with self.assertRaisesRegex(NotImplementedError, "'t'.*no dense value"):
      tf.convert_to_tensor(table)

  def test_a_compiled_function(self):
    model = models.Model(tf.keras.optimizers.SGD(.1))
    with self.assertRaises((tf.errors.InvalidArgumentError, tf.errors.UnimplementedError)):
      tf.function(model.step, jit_compile=True)()


if __name__ == "__main__":
  absltest.main()
