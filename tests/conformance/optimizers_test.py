# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Compares every optimizer on an embedding variable with itself on a dense variable."""

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

import embedding_variable as ev
import pairs

_ROWS, _DIM = 37, 5

_TRAIN = tf.train
_KERAS = tf.keras.optimizers

# Update rules round square roots correctly, while TensorFlow's vector code approximates
# the last bit. Three steps with values around 1 stay within this tolerance.
_TOLERANCE = 2e-6


def _step():
  return tf.train.get_global_step()


# name: (make, whether bits are equal, whether stock code decays untouched rows too)
_OPTIMIZERS = {
    "GradientDescent": (lambda: _TRAIN.GradientDescentOptimizer(.01), False, False),
    "Momentum": (lambda: _TRAIN.MomentumOptimizer(.01, .9), True, False),
    "Nesterov":
        (lambda: _TRAIN.MomentumOptimizer(.01, .9, use_nesterov=True), True, False),
    "Adagrad": (lambda: _TRAIN.AdagradOptimizer(.1), False, False),
    "Adam": (lambda: _TRAIN.AdamOptimizer(.01), False, True),
    "Ftrl": (lambda: _TRAIN.FtrlOptimizer(
        .1, l1_regularization_strength=.01, l2_regularization_strength=.1), True,
             False),
    "FtrlShrinkage": (lambda: _TRAIN.FtrlOptimizer(
        .1, learning_rate_power=-.3, l1_regularization_strength=.01,
        l2_shrinkage_regularization_strength=.1), False, False),
    "RMSProp": (lambda: _TRAIN.RMSPropOptimizer(.01, momentum=.5), False, False),
    "CenteredRMSProp": (lambda: _TRAIN.RMSPropOptimizer(
        .01, momentum=.5, centered=True), False, False),
    "Adadelta": (lambda: _TRAIN.AdadeltaOptimizer(.1), False, False),
    "AdamAsync": (lambda: _TRAIN.AdamAsyncOptimizer(.01), False, False),
    "AdamAsyncSparseRmsprop": (lambda: _TRAIN.AdamAsyncOptimizer(
        .01, apply_sparse_rmsprop=True), False, False),
    "AdagradDecay": (lambda: _TRAIN.AdagradDecayOptimizer(
        .1, _step(), accumulator_decay_step=2, accumulator_decay_rate=.5), False,
                     False),
    "AdagradDecayV2": (lambda: _TRAIN.AdagradDecayOptimizerV2(
        .1, _step(), accumulator_decay_step=2, accumulator_decay_rate=.5), False,
                       False),
    "RowWiseAdagrad": (lambda: ev.RowWiseAdagradOptimizer(.1), False, False),
    # The generic path runs the stock code itself.
    "ProximalAdagrad": (lambda: _TRAIN.ProximalAdagradOptimizer(
        .1, l1_regularization_strength=.01), True, False),
    "ProximalGradientDescent": (lambda: _TRAIN.ProximalGradientDescentOptimizer(
        .01, l2_regularization_strength=.01), True, False),
    "AdagradDA": (lambda: _TRAIN.AdagradDAOptimizer(.1, _step()), True, False),
}

_KERAS_OPTIMIZERS = {
    "SGD": (lambda: _KERAS.SGD(.01), False, False),
    "SGDMomentum": (lambda: _KERAS.SGD(.01, momentum=.9), True, False),
    "SGDNesterov":
        (lambda: _KERAS.SGD(.01, momentum=.9, nesterov=True), True, False),
    "Adam": (lambda: _KERAS.Adam(.01), False, True),
    "AmsGrad": (lambda: _KERAS.Adam(.01, amsgrad=True), True, True),
    "Adagrad": (lambda: _KERAS.Adagrad(.1), True, False),
    "RMSprop": (lambda: _KERAS.RMSprop(.01), True, True),
    "RMSpropMomentum": (lambda: _KERAS.RMSprop(.01, momentum=.5), False, False),
    "RMSpropCentered": (lambda: _KERAS.RMSprop(.01, momentum=.5, centered=True),
                        False, False),
    "Adadelta": (lambda: _KERAS.Adadelta(.1), False, False),
    "Ftrl": (lambda: _KERAS.Ftrl(.1, l1_regularization_strength=.01), True, False),
    "Adamax": (lambda: _KERAS.Adamax(.01), True, False),
    "Nadam": (lambda: _KERAS.Nadam(.01), True, True),
}


def _cases(optimizers):
  for name, entry in sorted(optimizers.items()):
    for lookup in ("rows", "pooled"):
      yield ("%s_%s" % (name, lookup),) + entry + (lookup,)


def _batches(steps, all_rows):
  """Returns batches of an even number of ids with duplicates, optionally of all rows."""
  random = np.random.RandomState(1)
  batches = []
  for _ in range(steps):
    ids = random.randint(0, _ROWS, size=48)
    if all_rows:
      ids = np.concatenate([np.arange(_ROWS), ids[:11]])
    batches.append(ids.astype(np.int64))
  return batches


def _train(kind, make, lookup, keras, all_rows, steps=3):
  """Trains; returns (rows, dense weights, losses)."""
  with tf.Graph().as_default():
    global_step = tf.train.get_or_create_global_step()
    variable = pairs.make(kind, "v", pairs.rows(_ROWS, _DIM))
    weights = tf.get_variable("d", initializer=np.ones([_DIM], np.float32),
                              use_resource=True)
    ids = tf.placeholder(tf.int64, [None])
    if lookup == "rows":
      found = tf.nn.embedding_lookup(variable, ids)
    else:
      # Each sample has two ids.
      count = tf.size(ids, out_type=tf.int64)
      position = tf.range(count)
      sparse = tf.SparseTensor(
          tf.stack([position // 2, position % 2], axis=1), ids, [count // 2, 2])
      found = tf.nn.embedding_lookup_sparse(variable, sparse, None, combiner="sum")
    target = tf.cast(tf.range(tf.size(found)) % 7, tf.float32) / 7
    loss = tf.reduce_sum(
        tf.square(found * weights - tf.reshape(target, tf.shape(found))))
    optimizer = make()
    if keras:
      both = [variable, weights]
      train = optimizer.apply_gradients(zip(tf.gradients(loss, both), both))
    else:
      train = optimizer.minimize(loss, global_step=global_step)
    with pairs.session() as session:
      session.run(tf.global_variables_initializer())
      losses = []
      for batch in _batches(steps, all_rows):
        losses.append(session.run([loss, train], {ids: batch})[0])
      return session.run(
          [pairs.read_all(variable, _ROWS), weights]) + [np.array(losses)]


class OptimizersTest(parameterized.TestCase):

  def _check(self, make, equal_bits, decays_all, lookup, keras):
    for all_rows in (True, False):
      if decays_all and not all_rows:
        continue
      table = _train("table", make, lookup, keras, all_rows)
      for kind in ("resource",) if keras else ("resource", "ref"):
        dense = _train(kind, make, lookup, keras, all_rows)
        # Both kinds moved, by moderate steps, to the same values.
        self.assertTrue((dense[0] != pairs.rows(_ROWS, _DIM)).any())
        self.assertTrue((dense[1] != 1.0).all())
        self.assertLess(np.abs(dense[0]).max(), 10.0)
        if equal_bits and lookup == "rows":
          np.testing.assert_array_equal(table[0], dense[0])
        np.testing.assert_allclose(table[0], dense[0], rtol=0, atol=_TOLERANCE)
        np.testing.assert_allclose(table[1], dense[1], rtol=0, atol=_TOLERANCE)
        np.testing.assert_allclose(table[2], dense[2], rtol=1e-5)

  @parameterized.named_parameters(*_cases(_OPTIMIZERS))
  def test_train(self, make, equal_bits, decays_all, lookup):
    self._check(make, equal_bits, decays_all, lookup, keras=False)

  @parameterized.named_parameters(*_cases(_KERAS_OPTIMIZERS))
  def test_keras(self, make, equal_bits, decays_all, lookup):
    self._check(make, equal_bits, decays_all, lookup, keras=True)

  def test_untouched_rows_do_not_move(self):
    # Updates are lazy: Adam's momentum does not move rows without a gradient.
    values = pairs.rows(4, 3)
    with tf.Graph().as_default():
      variable = pairs.table("v", values)
      ids = tf.placeholder(tf.int64, [None])
      loss = tf.reduce_sum(tf.nn.embedding_lookup(variable, ids))
      train = tf.train.AdamOptimizer(.1).minimize(loss)
      rows = pairs.read_all(variable, 4)
      with pairs.session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train, {ids: [0, 1]})
        before = session.run(rows)
        session.run(train, {ids: [1, 2]})
        after = session.run(rows)
    np.testing.assert_array_equal(after[[0, 3]], before[[0, 3]])
    self.assertTrue((after[[1, 2]] != before[[1, 2]]).all())

  def test_adam_w(self):
    # On a table the decay is scaled by the learning rate; on a dense variable it is not.
    decay, lr, beta1, beta2, epsilon = .05, .1, .9, .999, 1e-8
    values, rates = pairs.rows(4, 3), []
    expected = {"table": values.astype(np.float64), "ref": values.astype(np.float64)}
    m, v = np.zeros([4, 3]), np.zeros([4, 3])
    for step in range(1, 4):
      gradient = np.full([4, 3], 2.0)
      gradient[step] = 0
      touched = gradient != 0
      m[touched] += (1 - beta1) * (gradient - m)[touched]
      v[touched] += (1 - beta2) * (gradient ** 2 - v)[touched]
      rates.append(lr * np.sqrt(1 - beta2 ** step) / (1 - beta1 ** step))
      for kind, scale in (("table", rates[-1]), ("ref", 1)):
        w = expected[kind]
        change = rates[-1] * m / (np.sqrt(v) + epsilon) + scale * decay * w
        w[touched] -= change[touched]
    for kind in ("table", "resource", "ref"):
      with tf.Graph().as_default(), pairs.session() as session:
        variable = pairs.make(kind, "v", values)
        ids = tf.placeholder(tf.int64, [None])
        train = _TRAIN.AdamWOptimizer(decay, lr).minimize(
            2 * tf.reduce_sum(tf.nn.embedding_lookup(variable, ids)))
        session.run(tf.global_variables_initializer())
        for step in range(1, 4):
          session.run(train, {ids: [i for i in range(4) if i != step]})
        rows = session.run(pairs.read_all(variable, 4))
      np.testing.assert_allclose(
          rows, expected["table" if kind == "table" else "ref"], rtol=1e-5, atol=1e-6)

  @parameterized.parameters(True, False)
  def test_adam_w_of_a_dense_gradient(self, use_resource):
    with tf.Graph().as_default(), pairs.session() as session:
      variable = pairs.dense("v", np.ones([2], np.float32), use_resource)
      train = _TRAIN.AdamWOptimizer(.01, .001).apply_gradients(
          [(tf.zeros([2]), variable)])
      session.run(tf.global_variables_initializer())
      for _ in range(3):
        session.run(train)
      np.testing.assert_allclose(session.run(variable), [.99 ** 3] * 2, rtol=1e-6)

  def test_group_ftrl(self):
    values = np.array([[1, -2], [.1, .1], [3, .01]], np.float32)
    gradient = np.array([[1, 2], [.2, .1], [-1, .01]], np.float32)
    lr, l1, l2, n0 = .5, 1.2, .1, .1
    n = n0 + gradient ** 2
    z = gradient - (np.sqrt(n) - np.sqrt(n0)) / lr * values
    length = np.sqrt((z ** 2).sum(axis=1, keepdims=True))
    expected = np.where(
        length > l1, (l1 / length - 1) * z / (np.sqrt(n) / lr + 2 * l2), 0)
    # One row becomes zero as a whole. In another row one number is below l1 but stays.
    self.assertEqual((expected == 0).all(axis=1).tolist(), [False, True, False])
    self.assertLess(np.abs(z[2, 1]), l1)
    for kind in ("table", "resource", "ref"):
      with tf.Graph().as_default(), pairs.session() as session:
        variable = pairs.make(kind, "v", values)
        optimizer = ev.GroupFtrlOptimizer(
            lr, initial_accumulator_value=n0, l1_regularization_strength=l1,
            l2_regularization_strength=l2)
        train = optimizer.minimize(
            tf.reduce_sum(tf.nn.embedding_lookup(variable, [0, 1, 2]) * gradient))
        session.run(tf.global_variables_initializer())
        session.run(train)
        np.testing.assert_allclose(
            session.run(pairs.read_all(variable, 3)), expected, rtol=1e-5, atol=1e-7)

  def test_row_wise_adagrad(self):
    values = np.array([[1, -2, 3], [.1, .2, .3]], np.float32)
    gradient = np.array([[1, 2, -2], [.2, .1, .4]], np.float32)
    accumulator = .25 + (gradient ** 2).mean(axis=1, keepdims=True)
    expected = values - .5 / (np.sqrt(accumulator) + .1) * gradient

    class Own(ev.RowWiseAdagradOptimizer):
      """Runs its own code, on the generic path."""

      def _resource_apply_sparse(self, grad, var, indices):
        return super(Own, self)._resource_apply_sparse(grad, var, indices)

    for cls in (ev.RowWiseAdagradOptimizer, Own):
      for kind in ("table", "resource", "ref"):
        with tf.Graph().as_default(), pairs.session() as session:
          variable = pairs.make(kind, "v", values)
          optimizer = cls(.5, initial_accumulator_value=.25, epsilon=.1)
          train = optimizer.minimize(
              tf.reduce_sum(tf.nn.embedding_lookup(variable, [0, 1]) * gradient))
          slot = optimizer.get_slot(variable, "accumulator")
          session.run(tf.global_variables_initializer())
          session.run(train)
          np.testing.assert_allclose(
              session.run(pairs.read_all(variable, 2)), expected, rtol=1e-6)
          if kind == "table":
            self.assertEqual(slot.shape.as_list(), [1])
            slot = slot.sparse_read([0, 1])
          np.testing.assert_allclose(session.run(slot), accumulator, rtol=1e-6)

  def test_row_wise_adagrad_is_restored(self):
    with tf.Graph().as_default():
      variable = tf.get_embedding_variable("v", embedding_dim=4)
      train = ev.RowWiseAdagradOptimizer(.5).minimize(
          tf.reduce_sum(tf.nn.embedding_lookup(variable, [7, -3, 7]) ** 2))
      rows = tf.nn.embedding_lookup(variable, [7, -3])
      saver = tf.train.Saver()
      path = self.create_tempdir().full_path + "/model"
      with pairs.session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train)
        saver.save(session, path)
        session.run(train)
        expected = session.run(rows)
      reader = tf.train.load_checkpoint(path)
      self.assertEqual(reader.get_tensor("v/RowWiseAdagrad@row-values").shape, (2, 1))
      with pairs.session() as session:
        saver.restore(session, path)
        session.run(train)
        np.testing.assert_array_equal(session.run(rows), expected)

  def test_row_wise_adagrad_checks_its_numbers(self):
    with self.assertRaisesRegex(ValueError, "epsilon: expected at least 0, got -1"):
      ev.RowWiseAdagradOptimizer(.1, epsilon=-1)
    with self.assertRaisesRegex(ValueError, "initial_accumulator_value: expected"):
      ev.RowWiseAdagradOptimizer(.1, initial_accumulator_value=float("nan"))
    ev.RowWiseAdagradOptimizer(.1)

  @parameterized.parameters(True, False)
  def test_adam_async_of_parts(self, use_resource):
    partitioner = tf.fixed_size_partitioner(2)
    with tf.Graph().as_default(), pairs.session() as session:
      dense = tf.get_variable("d", [8, 3], partitioner=partitioner,
                              initializer=tf.ones_initializer(),
                              use_resource=use_resource)
      table = tf.get_embedding_variable("t", 3, partitioner=partitioner)
      optimizer = _TRAIN.AdamAsyncOptimizer(.1)
      train = optimizer.minimize(
          tf.reduce_sum(dense) * tf.reduce_sum(tf.nn.embedding_lookup(table, [1, 2])))
      saver = tf.train.Saver()
      slots = [optimizer.get_slot(part, name) for part in list(dense) + list(table)
               for name in ("beta1_power", "beta2_power")]
      session.run(tf.global_variables_initializer())
      session.run(train)
      before = session.run(slots)
      np.testing.assert_allclose(np.concatenate([np.ravel(b) for b in before]),
                                 [.81, .998001] * 4, rtol=1e-5)
      path = saver.save(session, self.create_tempdir().full_path + "/c")
      session.run(train)
      saver.restore(session, path)
      self.assertEqual(session.run(slots), before)
      shapes = tf.train.NewCheckpointReader(path).get_variable_to_shape_map()
      self.assertEqual(
          {k: s for k, s in shapes.items() if "Adam" in k and "-" not in k},
          dict({"d/AdamAsync": [8, 3], "d/AdamAsync_1": [8, 3]},
               **{"%s/part_%d/AdamAsync_%d" % (name, part, slot): shape
                  for name, shape in (("d", []), ("t", [1]))
                  for part in (0, 1) for slot in (2, 3)}))

  @parameterized.parameters(
      # Names and shapes of earlier versions, as a scalar, and of another number of parts.
      (None, "v/AdamAsync/beta%d_power", [1]), (2, "v/AdamAsync/beta%d_power", [1]),
      (None, "v/AdamAsync_%d", []), (None, "v/part_0/AdamAsync_%d", [1]),
      (2, "v/AdamAsync_%d", []), (2, "v/part_0/AdamAsync_%d", [1]))
  def test_adam_async_restores_powers_by_other_names(self, parts, name, shape):
    path = self.create_tempdir().full_path + "/c"
    numbers = (1, 2) if "beta" in name else (2, 3)
    with tf.Graph().as_default(), pairs.session() as session:
      others = [tf.get_variable(name % number, initializer=np.full(shape, i, np.float32))
                for i, number in enumerate(numbers)]
      session.run(tf.global_variables_initializer())
      tf.train.Saver(others).save(session, path)
    partitioner = tf.fixed_size_partitioner(parts) if parts else None
    for kind in ("table", "resource", "ref"):
      with tf.Graph().as_default(), pairs.session() as session:
        if kind == "table":
          v = tf.get_embedding_variable("v", 3, partitioner=partitioner)
        else:
          v = tf.get_variable("v", [8, 3], partitioner=partitioner,
                              use_resource=kind == "resource")
        optimizer = _TRAIN.AdamAsyncOptimizer()
        optimizer.minimize(tf.reduce_sum(tf.nn.embedding_lookup(v, [1])))
        powers = [optimizer.get_slot(part, "beta%d_power" % i)
                  for part in (list(v) if parts else [v]) for i in (1, 2)]
        tf.train.Saver(powers).restore(session, path)
        self.assertEqual([float(np.squeeze(x)) for x in session.run(powers)],
                         [0, 1] * (parts or 1))

  def test_adam_async_without_powers_in_the_checkpoint(self):
    path = self.create_tempdir().full_path + "/c"
    with tf.Graph().as_default(), pairs.session() as session:
      w = tf.get_variable("w/AdamAsync_2", [2])
      session.run(w.initializer)
      tf.train.Saver().save(session, path)
    with tf.Graph().as_default(), pairs.session() as session:
      optimizer = _TRAIN.AdamAsyncOptimizer()
      v, w = tf.get_variable("v", [2]), tf.get_variable("w", [2])
      optimizer.minimize(tf.reduce_sum(v + w))
      power, other = [optimizer.get_slot(x, "beta1_power") for x in (v, w)]
      with self.assertRaisesRegex(tf.errors.NotFoundError, "Key v/AdamAsync_2 not"):
        tf.train.Saver([power]).restore(session, path)
      with self.assertRaisesRegex(tf.errors.InvalidArgumentError,
                                  "w/AdamAsync_2 .* one float, got float .2."):
        tf.train.Saver([other]).restore(session, path)
      # A name that the user chooses is the only name that is searched.
      with self.assertRaisesRegex(tf.errors.NotFoundError, "Key mine not found"):
        tf.train.Saver({"mine": power}).restore(session, path)

  def test_adam_async_in_checkpoints_of_version_1(self):
    path = self.create_tempdir().full_path + "/c"
    with tf.Graph().as_default(), pairs.session() as session:
      v = tf.get_variable("v", [2])
      optimizer = _TRAIN.AdamAsyncOptimizer()
      train = optimizer.minimize(tf.reduce_sum(v))
      saver = tf.train.Saver(write_version=tf.train.SaverDef.V1)
      session.run(tf.global_variables_initializer())
      saver.save(session, path)
      session.run(train)
      saver.restore(session, path)
      self.assertEqual(session.run(optimizer.get_slot(v, "beta1_power")),
                       np.float32(.9))


if __name__ == "__main__":
  absltest.main()
