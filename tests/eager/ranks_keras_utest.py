# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Keras models with tables over ranks, trained by `fit`; every rank runs this program."""

import contextlib

from absl.testing import absltest
from absl.testing import parameterized
import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

from embedding_variable import tf_names
import ranks_models as models
import sparse_operation_kit as sok

_BATCH = 8  # of each rank
_STEPS = 3
_DIMS = (4, 3)


def _data():
  """Returns (ids, labels) of all ranks, in the order of one process's batches."""
  rng = np.random.RandomState(1)
  count = _STEPS * _BATCH * hvd.size()
  return (rng.randint(0, 30, [count, 2]).astype(np.int64),
          rng.uniform(0, 1, [count, 1]).astype(np.float32))


def _mine(array):
  """Returns this rank's part of every batch."""
  batches = array.reshape((_STEPS, hvd.size(), _BATCH) + array.shape[1:])
  return batches[:, hvd.rank()].reshape((-1,) + array.shape[1:])


def _layer():
  return sok.layers.Embedding(list(_DIMS), combiner=["sum", "mean"],
                              initializer=tf.keras.initializers.Constant(.1))


def _dense():
  return tf.keras.layers.Dense(
      1, kernel_initializer=tf.keras.initializers.Constant(
          np.linspace(-1, 1, sum(_DIMS))[:, None]))


def _functional(layer):
  ids = tf.keras.Input([2], dtype="int64")
  outputs = layer([ids, ids])
  return tf.keras.Model(ids, _dense()(tf.keras.layers.Concatenate()(outputs)))


class Subclassed(tf.keras.Model):

  def __init__(self, layer):
    super(Subclassed, self).__init__()
    self.embedding, self.dense = layer, _dense()

  def call(self, ids):
    return self.dense(tf.concat(self.embedding([ids, ids]), 1))


class _Alone(tf.keras.layers.Layer):
  """The tables of one process, regardless of the number of ranks."""

  def __init__(self):
    super(_Alone, self).__init__()
    for i, dim in enumerate(_DIMS):
      setattr(self, "table_%d" % i, tf.compat.v1.get_embedding_variable(
          "alone_%d" % i, dim, initializer=tf.constant_initializer(.1)))
    self.embedding_variables = [self.table_0, self.table_1]

  def call(self, inputs):
    ids = [tf.RaggedTensor.from_tensor(x) for x in inputs]
    return models.local(self.embedding_variables, ids, None, ["sum", "mean"])


class FitTest(parameterized.TestCase):

  @parameterized.parameters(
      ("functional", "adam"), ("functional", "legacy"), ("subclassed", "legacy"),
      ("eager", "adam"))
  def test_like_one_process(self, kind, optimizer):
    keras = tf.keras.optimizers

    def make():
      return keras.legacy.Adagrad(.1) if optimizer == "legacy" else keras.Adam(.1)

    build = Subclassed if kind == "subclassed" else _functional
    layer, alone = _layer(), _Alone()
    model, whole = build(layer), build(alone)
    ids, labels = _data()
    model.compile(hvd.DistributedOptimizer(make()), "mse", run_eagerly=kind == "eager")
    whole.compile(make(), "mse")
    losses = model.fit(_mine(ids), _mine(labels), batch_size=_BATCH, epochs=2,
                       shuffle=False, verbose=0).history["loss"]
    expected = whole.fit(ids, labels, batch_size=_BATCH * hvd.size(), epochs=2,
                         shuffle=False, verbose=0).history["loss"]
    losses = [float(hvd.allreduce(tf.constant(x), op=hvd.Average)) for x in losses]
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    for table, other in zip(layer.embedding_variables, alone.embedding_variables):
      models.compare(table, other)
    np.testing.assert_allclose(model.evaluate(ids, labels, verbose=0),
                               whole.evaluate(ids, labels, verbose=0), rtol=1e-5)
    np.testing.assert_allclose(model.predict(ids[:5], verbose=0),
                               whole.predict(ids[:5], verbose=0), rtol=1e-4, atol=1e-5)

  def test_by_sok(self):
    model = _functional(_layer())
    model.compile(sok.DistributedOptimizer(tf.keras.optimizers.Adagrad(.1)), "mse")
    ids, labels = _data()
    losses = model.fit(_mine(ids), _mine(labels), batch_size=_BATCH, epochs=4,
                       shuffle=False, verbose=0).history["loss"]
    self.assertLess(losses[-1], losses[0])

  def test_broadcast_leaves_tables_alone(self):
    layer = _layer()
    model = _functional(layer)
    ids, labels = _data()
    model.compile(hvd.DistributedOptimizer(tf.keras.optimizers.SGD(.1)), "mse")
    from horovod.tensorflow.keras import callbacks  # pylint: disable=g-import-not-at-top
    model.layers[-1].bias.assign([float(hvd.rank())])
    model.fit(_mine(ids), _mine(labels), batch_size=_BATCH, verbose=0,
              callbacks=[callbacks.BroadcastGlobalVariablesCallback(0)])
    values = models.gathered(model.layers[-1].get_weights()[0][None])
    np.testing.assert_array_equal(values, np.resize(values[:1], values.shape))
    for table in layer.embedding_variables:
      keys, _ = models.contents(table, hvd.size() > 1)
      self.assertEqual(sorted(set(ids.flatten().tolist())), keys.tolist())


class WrongUseTest(absltest.TestCase):

  def setUp(self):
    super(WrongUseTest, self).setUp()
    self.model, self.data = _functional(_layer()), [_mine(a) for a in _data()]

  def _error(self, kind, words):
    """Returns the context of an error on several ranks, of none on one."""
    return (self.assertRaisesRegex(kind, words) if hvd.size() > 1 else
            contextlib.suppress())

  def test_a_plain_optimizer(self):
    before = self.model.layers[-1].get_weights()
    self.model.compile(tf.keras.optimizers.SGD(.1), "mse")
    with self._error(RuntimeError, "SGD does not average the gradients of '.*; use hvd.Dis"):
      self.model.fit(*self.data, batch_size=_BATCH, verbose=0)
    if hvd.size() > 1:
      np.testing.assert_array_equal(before[0], self.model.layers[-1].get_weights()[0])
    self.model.compile(hvd.DistributedOptimizer(tf.keras.optimizers.SGD(.1)), "mse")
    self.model.fit(*self.data, batch_size=_BATCH, verbose=0)

  def test_a_loop_that_does_not_average(self):
    optimizer = hvd.DistributedOptimizer(tf.keras.optimizers.SGD(.1))
    variables = self.model.trainable_variables
    ids = tf.constant(self.data[0][:_BATCH])
    loss = lambda: tf.reduce_sum(self.model(ids) ** 2)
    with tf.GradientTape() as tape:
      value = loss()
    gradients = tape.gradient(value, variables)
    with self._error(RuntimeError, "SGD.apply_gradients does not average gradients over"):
      optimizer.apply_gradients(zip(gradients, variables))
    optimizer.minimize(loss, variables)

  def test_an_optimizer_of_keras_3(self):
    optimizers = tf_names.find("keras").optimizers
    if not hasattr(optimizers.Optimizer, "apply"):
      return
    wraps = [sok.DistributedOptimizer]
    if tf.keras.optimizers.SGD is optimizers.SGD:
      wraps.append(hvd.DistributedOptimizer)
    for wrap in wraps:
      with self._error(NotImplementedError, r"\.DistributedOptimizer: Horovod does not "):
        wrap(optimizers.SGD(.1))


if __name__ == "__main__":
  hvd.init()
  sok.init()
  absltest.main()
