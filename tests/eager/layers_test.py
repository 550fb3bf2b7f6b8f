# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `sok.layers.Embedding` and of the layers of SOK 1.x in Keras models."""

import os
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from embedding_variable.eager.patches import keras_ranks_patch
import sparse_operation_kit as sok

keras = tf.keras

_SAMPLES = 4096


def _data():
  """Returns ids `[N, 4]` of any size, and labels that their sum of scores decides."""
  random = np.random.RandomState(0)
  ids = random.randint(0, 100, [_SAMPLES, 4])
  scores = random.normal(size=[4, 100])
  labels = sum(scores[k][ids[:, k]] for k in range(4)) > 0
  return (ids * 2 ** 40 - 2 ** 46 + np.arange(4)).astype(np.int64), labels.astype(np.float32)


def _functional():
  inputs = [keras.Input((1,), dtype="int64", name="c%d" % i) for i in range(4)]
  rows = sok.layers.Embedding([8] * 4, combiner="sum", initializer="uniform")(inputs)
  hidden = keras.layers.Dense(16, activation="relu")(keras.layers.Concatenate()(rows))
  return keras.Model(inputs, keras.layers.Dense(1, activation="sigmoid")(hidden))


class Subclassed(keras.Model):

  def __init__(self):
    super(Subclassed, self).__init__()
    self.rows = sok.layers.Embedding(8, initializer="uniform")
    self.flat = keras.layers.Flatten()
    self.out = keras.layers.Dense(1, activation="sigmoid")

  def call(self, inputs):
    return self.out(self.flat(self.rows(inputs)))


def _columns(ids):
  return [ids[:, i:i + 1] for i in range(4)]


class FitTest(parameterized.TestCase):

  @parameterized.parameters("adam", "adagrad")
  def test_a_functional_model_learns(self, name):
    ids, labels = _data()
    keras.utils.set_random_seed(1)
    model = _functional()
    optimizer = {"adam": keras.optimizers.Adam(.02),
                 "adagrad": keras.optimizers.Adagrad(.5)}[name]
    model.compile(optimizer, "binary_crossentropy", metrics=["accuracy"])
    model.fit(_columns(ids), labels, batch_size=256, epochs=4, verbose=0)
    self.assertGreater(model.evaluate(_columns(ids), labels, verbose=0)[1], .85)
    for table in model.layers[4].embedding_variables:
      self.assertEqual(100, table.total_count().numpy()[0])

  def test_a_subclassed_model_learns(self):
    ids, labels = _data()
    keras.utils.set_random_seed(1)
    model = Subclassed()
    model.compile(keras.optimizers.Adam(.02), "binary_crossentropy", metrics=["accuracy"])
    model.fit(ids, labels, batch_size=256, epochs=4, verbose=0)
    self.assertGreater(model.evaluate(ids, labels, verbose=0)[1], .9)
    before = model.rows.embedding_variables[0].total_count().numpy()[0]
    model.predict(ids + 10 ** 15, verbose=0)
    self.assertEqual(before, model.rows.embedding_variables[0].total_count().numpy()[0])

  def test_tables_are_weights(self):
    model = _functional()
    self.assertLen(model.trainable_weights, 4 + 4)


class CallTest(parameterized.TestCase):

  def test_ids_of_every_kind(self):
    layer = sok.layers.Embedding(2, combiner="sum", initializer="ones")
    expected = [[2., 2.], [0., 0.], [1., 1.]]
    ragged = tf.ragged.constant([[7, -3], [], [7]], dtype=tf.int64)
    self.assertEqual(expected, layer(ragged).numpy().tolist())
    self.assertEqual(expected, layer(ragged.to_sparse()).numpy().tolist())
    self.assertEqual([[3., 3.]], layer(tf.constant([[1, 2, 3]])).numpy().tolist())

  def test_weights(self):
    layer = sok.layers.Embedding(1, combiner="mean", initializer="ones")
    got = layer(tf.constant([[1, 2]]), weights=tf.constant([[1., 3.]]))
    self.assertEqual([[1.]], got.numpy().tolist())

  def test_a_row_per_id(self):
    layer = sok.layers.Embedding(3, initializer="ones")
    self.assertEqual([2, 2, 3], layer(tf.constant([[1, 2], [3, 4]])).shape.as_list())
    ragged = layer(tf.ragged.constant([[1], [2, 3]], dtype=tf.int64))
    self.assertEqual([[[1.] * 3], [[1.] * 3] * 2], ragged.to_list())

  @parameterized.product(dtype=("float16", "bfloat16"), combiner=("mean", None),
                         in_function=(False, True))
  def test_half_precision(self, dtype, combiner, in_function):
    ids = tf.constant([[1, 2], [2, 3]])
    rows = []
    for policy in ("mixed_" + dtype, "float32"):
      layer = sok.layers.Embedding(3, combiner=combiner, dtype=policy,
                                   initializer=keras.initializers.Constant(.1))
      layer.build()
      table, = layer.embedding_variables
      optimizer = keras.optimizers.SGD(.3)

      def step():
        with tf.GradientTape() as tape:
          output = layer(ids)
          narrow = tf.cast(output, dtype)
          loss = tf.reduce_sum(tf.cast(narrow, tf.float32) ** 3)
        gradient = tape.gradient(loss, table)
        self.assertEqual(tf.float32, gradient.values.dtype)
        optimizer.apply_gradients([(gradient, table)])
        return output

      step = tf.function(step) if in_function else step
      for _ in range(3):
        output = step()
      self.assertEqual(policy.replace("mixed_", ""), output.dtype.name)
      rows.append(tf.nn.embedding_lookup(table, [1, 2, 3]).numpy())
    np.testing.assert_array_equal(*rows)
    self.assertNotIn(np.float32(.1), rows[0])

  def test_wrong_use(self):
    with self.assertRaisesRegex(ValueError, "2 tables got the combiners"):
      sok.layers.Embedding([2, 3], combiner=["sum"])
    layer = sok.layers.Embedding([2, 3], combiner="sum")
    with self.assertRaisesRegex(ValueError, "2 tables got 1 inputs"):
      layer([tf.constant([[1]])])
    with self.assertRaisesRegex(ValueError, "weights need a combiner"):
      sok.layers.Embedding(2)(tf.constant([[1]]), weights=tf.constant([[1.]]))


class MixedPolicyTest(parameterized.TestCase):

  def _model(self, policy):
    keras.mixed_precision.set_global_policy(policy)
    self.addCleanup(keras.mixed_precision.set_global_policy, "float32")
    inputs = keras.Input((1,), dtype="int64")
    rows = sok.layers.Embedding(4, combiner="sum", initializer="ones", name="users")(inputs)
    self.assertEqual(policy.replace("mixed_", ""), tf.as_dtype(rows.dtype).name)
    outputs = keras.layers.Dense(1, dtype="float32", kernel_initializer="ones")(rows)
    return keras.Model(inputs, outputs)

  def test_a_step_that_is_not_finite_changes_nothing(self):
    model = self._model("mixed_float16")
    model.compile(keras.optimizers.SGD(.01), "mse")
    table, = model.get_layer("users").embedding_variables
    ids = np.array([[7], [8]])
    if hasattr(keras, "Variable"):
      # Keras 3 checks gradients as dense tensors, which a table's gradient cannot become.
      with self.assertRaisesRegex(TypeError, "'users'.*LossScaleOptimizer"):
        model.train_on_batch(ids, np.array([[1.], [1.]]))
      self.assertEqual(0, table.total_count().numpy()[0])
      model.compile(keras.optimizers.SGD(.01), "mse", auto_scale_loss=False)
    else:
      kernel = model.layers[-1].kernel.numpy()
      for label in (np.inf, np.nan):
        model.train_on_batch(ids, np.array([[1.], [label]]))
      self.assertEqual(0, table.total_count().numpy()[0])
      np.testing.assert_array_equal(kernel, model.layers[-1].kernel.numpy())
    model.train_on_batch(ids, np.array([[1.], [1.]]))
    self.assertEqual(2, table.total_count().numpy()[0])

  def test_bfloat16_has_no_loss_scale(self):
    model = self._model("mixed_bfloat16")
    model.compile(keras.optimizers.SGD(.01), "mse")
    losses = [float(model.train_on_batch(np.array([[7], [8]]), np.array([[1.], [2.]])))
              for _ in range(5)]
    self.assertLess(losses[-1], losses[0])


class OverRanksTest(absltest.TestCase):
  """Errors for models of which each rank would train its own; in one process."""

  def setUp(self):
    super(OverRanksTest, self).setUp()
    ids, labels = _data()
    self.model, self.data = _functional(), (_columns(ids[:64]), labels[:64])
    for name, value in (("num_ranks", 2), ("is_spread", True)):
      replaced = mock.patch.object(keras_ranks_patch, name, return_value=value)
      replaced.start()
      self.addCleanup(replaced.stop)

  def test_fit_with_a_plain_optimizer(self):
    self.model.compile(keras.optimizers.Adam(.02), "binary_crossentropy")
    for call in (self.model.fit, self.model.train_on_batch):
      with self.assertRaisesRegex(
          RuntimeError, "Adam does not average the gradients of '.*' over the 2 ranks that "
          "share the table '.*; use hvd.Distributed"):
        call(*self.data)
    with mock.patch.object(keras_ranks_patch, "num_ranks", return_value=1):
      self.model.fit(*self.data, verbose=0)

  def test_a_model_that_fit_builds(self):
    model = Subclassed()
    model.compile(keras.optimizers.Adam(.02), "binary_crossentropy")
    ids = np.concatenate(self.data[0], 1)
    with self.assertRaisesRegex(RuntimeError, "does not average the gradients of"):
      model.fit(ids, self.data[1], verbose=0)
    with mock.patch.object(keras_ranks_patch, "num_ranks", return_value=1):
      model.compile(keras.optimizers.Adam(.02), "binary_crossentropy")
      model.fit(ids, self.data[1], verbose=0)

  def test_models_that_average_or_share_everything(self):
    self.model.compile(keras.optimizers.Adam(.02), "binary_crossentropy")
    for layer in self.model.layers:
      layer.trainable = isinstance(layer, sok.layers.Embedding)
    self.model.compile(keras.optimizers.Adam(.02), "binary_crossentropy")
    self.model.fit(*self.data, verbose=0)

  def test_what_horovod_can_wrap(self):
    optimizer = keras.optimizers.SGD(.1)
    if hasattr(optimizer, "apply"):
      for what in ("hvd.DistributedOptimizer", "sok.DistributedOptimizer"):
        with self.assertRaisesRegex(
            NotImplementedError, what + ": Horovod does not average the gradients of SGD of "
            "Keras 3.*; use hvd.DistributedGradientTape"):
          keras_ranks_patch.check_wrapped(optimizer, what)
    else:
      keras_ranks_patch.check_wrapped(optimizer)
    with mock.patch.object(keras_ranks_patch, "num_ranks", return_value=1):
      keras_ranks_patch.check_wrapped(optimizer)


class SavingTest(absltest.TestCase):

  def setUp(self):
    super(SavingTest, self).setUp()
    ids, labels = _data()
    self.given = _columns(ids[:64])
    self.model = _functional()
    self.model.compile(keras.optimizers.Adam(.02), "binary_crossentropy")
    self.model.fit(_columns(ids), labels, batch_size=512, verbose=0)
    self.expected = self.model.predict(self.given, verbose=0).tolist()
    self.folder = self.create_tempdir().full_path

  def test_checkpoint(self):
    path = tf.train.Checkpoint(model=self.model).save(os.path.join(self.folder, "ckpt"))
    other = _functional()
    tf.train.Checkpoint(model=other).restore(path)
    self.assertEqual(self.expected, other.predict(self.given, verbose=0).tolist())

  def test_weights(self):
    # Keras 2.11 has no files that layers write themselves.
    path = os.path.join(self.folder, "w.weights.h5")
    try:
      self.model.save_weights(path)
    except NotImplementedError as e:
      self.assertIn("cannot save a table in an HDF5 file", str(e))
      path = os.path.join(self.folder, "weights")
      self.model.save_weights(path)
    other = _functional()
    other.load_weights(path)
    self.assertEqual(self.expected, other.predict(self.given, verbose=0).tolist())

  def test_a_model_file(self):
    path = os.path.join(self.folder, "model.keras")
    try:
      self.model.save(path)
    except NotImplementedError:
      self.skipTest("this Keras has no files that layers write themselves")
    other = keras.models.load_model(path)
    self.assertEqual(self.expected, other.predict(self.given, verbose=0).tolist())


class Pooled(keras.Model):
  """A model on top of a `sok.DistributedEmbedding`, whose ids are ragged."""

  def __init__(self, **kwargs):
    super(Pooled, self).__init__()
    self.rows = sok.DistributedEmbedding("sum", 100, 4, slot_num=1, max_nnz=4,
                                         embedding_initializer="ones", **kwargs)
    self.out = keras.layers.Dense(1)

  def call(self, inputs):
    return self.out(self.rows(tf.RaggedTensor.from_tensor(inputs))[:, 0])


def _each(**kwargs):
  """Returns a functional model on top of a `sok.All2AllDenseEmbedding`."""
  inputs = keras.Input((2, 2), dtype="int64")
  rows = sok.All2AllDenseEmbedding(100, 4, slot_num=2, nnz_per_slot=2,
                                   embedding_initializer="ones", **kwargs)(inputs)
  return keras.Model(inputs, keras.layers.Dense(1)(keras.layers.Flatten()(rows)))


def _layer_of(model):
  return next(x for x in model.layers if hasattr(x, "embedding_variable"))


class LegacyLayersTest(parameterized.TestCase):

  def _fit(self, make, trainable=True, **kwargs):
    """Returns a trained model, its ids and the first row before and after training."""
    model = make(trainable=trainable, **kwargs)
    ids = np.arange(8).reshape([2, 4] if make is Pooled else [2, 2, 2])
    model.compile(keras.optimizers.SGD(.1), "mse")
    model.fit(ids, np.array([[3.], [5.]]), epochs=2, verbose=0)
    rows = tf.nn.embedding_lookup(_layer_of(model).embedding_variable, [0, 99])
    return model, ids, rows.numpy()

  @parameterized.product(make=[Pooled, _each], use_hashtable=[True, False])
  def test_fit_trains_the_table(self, make, use_hashtable):
    model, _, rows = self._fit(make, use_hashtable=use_hashtable)
    self.assertNotEqual([1.] * 4, rows[0].tolist())
    self.assertEqual([1.] * 4, rows[1].tolist())
    self.assertLen(_layer_of(model).weights, 1)
    self.assertLen(model.trainable_weights, 1 + 2)

  @parameterized.product(make=[Pooled, _each], use_hashtable=[True, False])
  def test_not_trainable(self, make, use_hashtable):
    model, _, rows = self._fit(make, trainable=False, use_hashtable=use_hashtable)
    self.assertEqual([[1.] * 4] * 2, rows.tolist())
    self.assertLen(model.trainable_weights, 2)

  @parameterized.parameters(True, False)
  def test_files(self, use_hashtable):
    model, ids, _ = self._fit(_each, use_hashtable=use_hashtable)
    expected = model.predict(ids, verbose=0).tolist()
    folder = self.create_tempdir().full_path
    path = tf.train.Checkpoint(model=model).save(os.path.join(folder, "ckpt"))
    other = _each(use_hashtable=use_hashtable)
    tf.train.Checkpoint(model=other).restore(path)
    self.assertEqual(expected, other.predict(ids, verbose=0).tolist())
    # Keras 2.11 has no files that layers write themselves.
    path = os.path.join(folder, "w.weights.h5")
    try:
      model.save_weights(path)
    except NotImplementedError as e:
      self.assertIn("cannot save a table in an HDF5 file", str(e))
      return
    other = _each(use_hashtable=use_hashtable)
    other.load_weights(path)
    self.assertEqual(expected, other.predict(ids, verbose=0).tolist())

  def test_a_file_with_other_rows(self):
    table = sok.All2AllDenseEmbedding(8, 4, 1, 1, use_hashtable=False)
    store = {}
    table.save_own_variables(store)
    other = sok.All2AllDenseEmbedding(9, 4, 1, 1, use_hashtable=False)
    with self.assertRaisesRegex(ValueError, "exactly the rows 0 to 8"):
      other.load_own_variables(store)


class WeightsTest(absltest.TestCase):
  """Tests of SOK's functions with the weights of a layer, which Keras 3 wraps."""

  def setUp(self):
    super(WeightsTest, self).setUp()
    inputs = keras.Input((2,), dtype="int64")
    rows = sok.layers.Embedding(4, combiner="sum", initializer="ones")(inputs)
    self.model = keras.Model(inputs, keras.layers.Dense(1)(rows))
    self.table = self.model.layers[1].embedding_variables[0]

  def test_split(self):
    weights = self.model.trainable_weights
    tables, others = sok.filter_variables(weights)
    self.assertEqual([id(weights[0])], [id(v) for v in tables])
    self.assertEqual([id(v) for v in weights[1:]], [id(v) for v in others])

  def test_optimizer_scope(self):
    with sok.OptimizerScope(self.model.trainable_weights):
      pass
    with self.assertRaisesRegex(TypeError, "expected variables, got 3"):
      with sok.OptimizerScope([3]):
        pass

  def test_lookups_and_files(self):
    weight = self.model.layers[1].weights[0]
    folder = self.create_tempdir().full_path
    sok.assign(weight, tf.constant([5], tf.int64), np.full([1, 4], 2.))
    sok.dump(folder + "/dumped", [weight])
    sok.Saver().dump_to_file(weight, folder + "/saved")
    for read in (lambda: sok.load(folder + "/dumped", [self.table]),
                 lambda: sok.Saver().restore_from_file(weight, folder + "/saved")):
      sok.assign(weight, tf.constant([5, 6], tf.int64), np.full([2, 4], 3.))
      read()
      self.assertEqual([5], sok.export(weight)[0].numpy().tolist())
      ids = tf.ragged.constant([[5, 6]], dtype=tf.int64)
      self.assertEqual([[3.] * 4],
                       sok.lookup_sparse(weight, ids, combiners="sum").numpy().tolist())
    self.assertEqual([[2.] * 4, [1.] * 4], sok.all2all_dense_embedding(
        weight, tf.constant([5, 6], tf.int64)).numpy().tolist())


if __name__ == "__main__":
  absltest.main()
