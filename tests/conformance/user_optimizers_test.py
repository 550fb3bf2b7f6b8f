# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Optimizers that users write, on embedding variables and on dense variables."""

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from embedding_variable.optimizers import registry
import pairs

_ROWS, _DIM = 20, 3


class WithSlots(tf.train.Optimizer):
  """Hand-written momentum with gather and scatter."""

  def __init__(self, learning_rate=.1, name="WithSlots"):
    super(WithSlots, self).__init__(False, name)
    self._rate = learning_rate

  def _create_slots(self, var_list):
    for var in var_list:
      self._get_or_make_slot_with_initializer(
          var, tf.constant_initializer(.5), var.shape, var.dtype.base_dtype,
          "velocity", self._name)
      self._zeros_slot(var, "count", self._name)

  def _resource_apply_dense(self, grad, var):
    raise NotImplementedError()

  def _resource_apply_sparse(self, grad, var, indices):
    velocity, count = self.get_slot(var, "velocity"), self.get_slot(var, "count")
    new = .9 * tf.gather(velocity, indices) + grad
    with tf.control_dependencies([
        velocity.scatter_update(tf.IndexedSlices(new, indices)),
        count.scatter_add(tf.IndexedSlices(tf.ones_like(new), indices))]):
      return var.scatter_sub(tf.IndexedSlices(
          self._rate * new / tf.gather(count, indices), indices))


class ScaledAdagrad(tf.train.AdagradOptimizer):
  """Scales the gradient before the stock update."""

  def _resource_apply_sparse(self, grad, var, indices):
    return super(ScaledAdagrad, self)._resource_apply_sparse(
        grad * 3.0, var, indices)


class RenamedAdagrad(tf.train.AdagradOptimizer):
  """A subclass that does not change the update."""

  def __init__(self):
    super(RenamedAdagrad, self).__init__(.1, name="Renamed")


class OwnApply(tf.train.AdagradOptimizer):
  """Changes all gradients, then calls the base class to apply them."""

  def apply_gradients(self, grads_and_vars, global_step=None, name=None):
    halved = [(tf.IndexedSlices(g.values / 2, g.indices, g.dense_shape), v)
              for g, v in grads_and_vars]
    return super(OwnApply, self).apply_gradients(halved, global_step, name)


class OnlyReference(tf.train.Optimizer):
  """Supports reference variables only."""

  def __init__(self):
    super(OnlyReference, self).__init__(False, "OnlyReference")

  def _apply_sparse(self, grad, var):
    return tf.scatter_sub(var, grad.indices, .1 * tf.sign(grad.values))

  def _apply_dense(self, grad, var):
    raise NotImplementedError()


class SharedAdam(tf.train.AdamOptimizer):
  """Overrides the code that Adam's two sparse updates share."""

  def _apply_sparse_shared(self, grad, var, indices, scatter_add):
    return scatter_add(var, indices, -.1 * tf.sign(grad))


class ScatteringKeras(tf.keras.optimizers.Adam):
  """Overrides a part of the sparse update."""

  def _resource_scatter_add(self, x, i, v):
    return super(ScatteringKeras, self)._resource_scatter_add(x, i, 2 * v)


class KerasSign(tf.keras.optimizers.Optimizer):
  """A user's own Keras optimizer."""

  def __init__(self, name="KerasSign", **kwargs):
    super(KerasSign, self).__init__(name, **kwargs)
    self._set_hyper("learning_rate", .1)

  def _create_slots(self, var_list):
    for var in var_list:
      self.add_slot(var, "steps")

  def _resource_apply_dense(self, grad, var, apply_state=None):
    return var.assign_sub(self._get_hyper("learning_rate") * tf.sign(grad)).op

  def _resource_apply_sparse(self, grad, var, indices, apply_state=None):
    steps = self.get_slot(var, "steps")
    rate = self._get_hyper("learning_rate", tf.float32)
    with tf.control_dependencies([
        steps.scatter_add(tf.IndexedSlices(tf.ones_like(grad), indices))]):
      return var.scatter_sub(tf.IndexedSlices(
          rate * tf.sign(grad) / tf.gather(steps, indices), indices))

  def get_config(self):
    return super(KerasSign, self).get_config()


def _train(kind, make, keras=False, all_rows=False, steps=4):
  random = np.random.RandomState(0)
  with tf.Graph().as_default(), pairs.session() as session:
    variable = pairs.make(kind, "v", pairs.rows(_ROWS, _DIM))
    ids = tf.placeholder(tf.int64, [None])
    loss = tf.reduce_sum(tf.square(tf.nn.embedding_lookup(variable, ids)))
    optimizer = make()
    if keras:
      train = optimizer.apply_gradients(
          zip(tf.gradients(loss, [variable]), [variable]))
    else:
      train = optimizer.minimize(loss, var_list=[variable])
    session.run(tf.global_variables_initializer())
    for _ in range(steps):
      batch = random.randint(0, _ROWS, size=15)
      if all_rows:
        batch = np.concatenate([batch, np.arange(_ROWS)])
      session.run(train, {ids: batch})
    return session.run(pairs.read_all(variable, _ROWS))


class UserOptimizersTest(parameterized.TestCase):

  @parameterized.named_parameters(
      ("_slots", WithSlots, "resource", False),
      ("_scaled", lambda: ScaledAdagrad(.1), "resource", False),
      ("_reference", OnlyReference, "ref", False), ("_keras", KerasSign, "resource", True),
      ("_contrib_lazy_adam", lambda: tf.contrib.opt.LazyAdamOptimizer(.1), "resource", False),
      ("_shared", SharedAdam, "resource", False),
      ("_scattering_keras", ScatteringKeras, "resource", True, True),
      ("_contrib_nadam", lambda: tf.contrib.opt.NadamOptimizer(.1), "resource", False, True),
      # Also moves rows without a gradient, and supports reference variables only.
      ("_contrib_power_sign", lambda: tf.contrib.opt.PowerSignOptimizer(.1), "ref", False,
       True))
  def test_same_as_dense(self, make, kind, keras, all_rows=False):
    table = _train("table", make, keras, all_rows)
    np.testing.assert_array_equal(table, _train(kind, make, keras, all_rows))
    self.assertTrue((table != pairs.rows(_ROWS, _DIM)).any())

  @parameterized.parameters((RenamedAdagrad,), (OwnApply, .1))
  def test_fused_if_the_update_is_stock(self, make, *args):
    np.testing.assert_allclose(
        _train("table", lambda: make(*args)),
        _train("resource", lambda: make(*args)), rtol=0, atol=1e-6)
    self.assertIsNotNone(registry.find(make(*args)))

  @parameterized.named_parameters(
      ("_scaled", ScaledAdagrad, .1), ("_slots", WithSlots), ("_reference", OnlyReference),
      ("_shared", SharedAdam), ("_scattering_keras", ScatteringKeras),
      ("_contrib_nadam", lambda: tf.contrib.opt.NadamOptimizer()))
  def test_generic_if_the_update_is_not_stock(self, make, *args):
    self.assertIsNone(registry.find(make(*args)))

  @parameterized.parameters((False, 1), (True, 1), (True, 0))
  def test_decoupled_weight_decay(self, with_list, decays):
    momentum_w = tf.contrib.opt.extend_with_decoupled_weight_decay(
        tf.train.MomentumOptimizer)
    values = pairs.rows(3, 2)
    with tf.Graph().as_default(), pairs.session() as session:
      variable = pairs.table("v", values)
      other = tf.get_variable("other", [])
      listed = [variable] if decays else [other]
      train = momentum_w(.1, learning_rate=.5, momentum=.9).apply_gradients(
          [(tf.IndexedSlices(tf.ones([2, 2]), tf.constant([0, 2], tf.int64)), variable)],
          **({"decay_var_list": listed} if with_list else {}))
      session.run(tf.global_variables_initializer())
      session.run(train)
      expected = values.copy()
      expected[[0, 2]] -= .1 * decays * values[[0, 2]] + .5
      np.testing.assert_allclose(
          session.run(pairs.read_all(variable, 3)), expected, rtol=1e-6)

  def test_shampoo_is_refused(self):
    with tf.Graph().as_default() as graph:
      variable = pairs.table("v", pairs.rows(3, 2))
      optimizer = tf.contrib.opt.ShampooOptimizer(
          tf.train.get_or_create_global_step())
      loss = tf.reduce_sum(tf.nn.embedding_lookup(variable, [1]))
      with self.assertRaisesRegex(NotImplementedError, "'v'.*ShampooOptimizer"):
        optimizer.minimize(loss)
      self.assertEqual(graph.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES), [variable])
      self.assertEmpty(variable.slot_columns)

  def test_method_replaced_on_the_object(self):
    optimizer = tf.train.AdagradOptimizer(.1)
    self.assertIsNotNone(registry.find(optimizer))
    optimizer._resource_apply_sparse = lambda *args: None  # pylint: disable=protected-access
    self.assertIsNone(registry.find(optimizer))

  def test_slots_are_saved_by_their_names(self):
    with tf.Graph().as_default():
      v = tf.get_embedding_variable("v", _DIM)
      WithSlots().minimize(
          tf.reduce_sum(tf.nn.embedding_lookup(v, [1])), var_list=[v])
      self.assertEqual(dict(v.slot_columns), {"WithSlots": .5, "WithSlots_1": 0})

  def test_learning_rate_schedules(self):
    def make():
      step = tf.train.get_or_create_global_step()
      rate = tf.train.exponential_decay(.5, step, 1, .5)

      class Counting(tf.train.AdagradOptimizer):

        def minimize(self, *args, **kwargs):
          return super(Counting, self).minimize(
              *args, global_step=step, **kwargs)

      return Counting(rate)

    np.testing.assert_allclose(
        _train("table", make), _train("resource", make), rtol=0, atol=1e-6)

  def test_learning_rate_functions(self):
    make = lambda: tf.train.AdagradOptimizer(lambda: .3)
    np.testing.assert_allclose(
        _train("table", make), _train("resource", make), rtol=0, atol=1e-6)

  def test_failed_update_releases_the_lock(self):
    class Failing(tf.train.GradientDescentOptimizer):

      def _resource_apply_sparse_duplicate_indices(self, grad, handle, indices):
        with tf.control_dependencies([
            tf.Assert(tf.reduce_max(grad) < 100.0, ["too large"])]):
          return handle.scatter_sub(tf.IndexedSlices(tf.identity(grad), indices))

    with tf.Graph().as_default(), pairs.session() as session:
      v = tf.get_embedding_variable("v", 1, initializer=tf.zeros_initializer())
      scale = tf.placeholder(tf.float32, [])
      train = Failing(.1).minimize(
          scale * tf.reduce_sum(tf.nn.embedding_lookup(v, [1])))
      session.run(v.initializer)
      for _ in range(2):
        with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "too large"):
          session.run(train, {scale: 1000.0})
        session.run(train, {scale: 1.0})
      self.assertEqual(
          session.run(tf.nn.embedding_lookup(v, [1])).tolist(), [[-2.0]])

  def test_temporaries_are_in_no_collection(self):
    with tf.Graph().as_default() as graph:
      v = tf.get_embedding_variable("v", _DIM)
      WithSlots().minimize(
          tf.reduce_sum(tf.nn.embedding_lookup(v, [1])), var_list=[v])
      self.assertEqual(tf.global_variables(), [v])
      self.assertEqual(tf.local_variables(), [])
      self.assertNotIn("critical_sections", graph.get_all_collection_keys())
      # A graph that is exported without a warning can be imported.
      tf.train.export_meta_graph()


if __name__ == "__main__":
  absltest.main()
