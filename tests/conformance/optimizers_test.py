# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Every optimizer on an embedding variable against itself on a dense variable."""

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

import pairs

_ROWS, _DIM = 37, 5

_TRAIN = tf.train
_KERAS = tf.keras.optimizers

# The rules use the correctly rounded root; TensorFlow's vector code approximates it in
# the last bit. Three steps of values around 1 stay within this.
_TOLERANCE = 2e-6


def _step():
  return tf.train.get_global_step()


# name: (make, bits are equal, stock decays untouched rows too)
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
    "AdamW": (lambda: _TRAIN.AdamWOptimizer(.01, .01), False, False),
    "AdagradDecay": (lambda: _TRAIN.AdagradDecayOptimizer(
        .1, _step(), accumulator_decay_step=2, accumulator_decay_rate=.5), False,
                     False),
    "AdagradDecayV2": (lambda: _TRAIN.AdagradDecayOptimizerV2(
        .1, _step(), accumulator_decay_step=2, accumulator_decay_rate=.5), False,
                       False),
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
  """An even number of ids with duplicates; all rows occur in each step, or not."""
  random = np.random.RandomState(1)
  batches = []
  for _ in range(steps):
    ids = random.randint(0, _ROWS, size=48)
    if all_rows:
      ids = np.concatenate([np.arange(_ROWS), ids[:11]])
    batches.append(ids.astype(np.int64))
  return batches


def _train(kind, make, lookup, keras, all_rows, steps=3):
  """Trains and returns (rows, dense weights, losses)."""
  with tf.Graph().as_default():
    global_step = tf.train.get_or_create_global_step()
    variable = pairs.make(kind, "v", pairs.rows(_ROWS, _DIM))
    weights = tf.get_variable("d", initializer=np.ones([_DIM], np.float32),
                              use_resource=True)
    ids = tf.placeholder(tf.int64, [None])
    if lookup == "rows":
      found = tf.nn.embedding_lookup(variable, ids)
    else:
      # Two ids in each sample.
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
        # Something moved, by moderate steps, and the same.
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
    # Lazy semantics: Adam's momentum does not carry rows without a gradient.
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


if __name__ == "__main__":
  absltest.main()
