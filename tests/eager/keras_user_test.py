# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Steps of a Keras user, with `sok.layers.Embedding` and with the stock layer."""

import importlib.util
import os
import pickle
import subprocess
import sys

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from embedding_variable.variables import table_contents
import sparse_operation_kit as sok

keras = tf.keras

_BATCH = 16
_IDS = np.random.RandomState(0).randint(0, 50, [64, 3])
_LABELS = (_IDS.sum(1) % 7).astype(np.float32)[:, None]
_UNSEEN = np.arange(50, 110).reshape(20, 3)
# All ids in each batch, once: Adam of Keras also moves rows without a gradient, and that
# of Keras 3 does not add gradients of one id.
_ONCE = np.tile(np.arange(48).reshape(16, 3), [4, 1])
_BIG = 2 ** 53 + 1  # no float64 is this number

# Keras 2.11 has no files that layers write themselves.
_HAS_FILES = hasattr(keras.layers.Layer, "save_own_variables")


def _ours(**kwargs):
  return sok.layers.Embedding(4, **dict({"initializer": "ones"}, **kwargs))


def _stock(**kwargs):
  if not hasattr(keras, "Variable"):
    kwargs["input_length"] = 3  # Keras 2 needs it for the layers behind
  return keras.layers.Embedding(1000, 4, embeddings_initializer="ones", **kwargs)


def _legacy(**kwargs):
  return sok.All2AllDenseEmbedding(
      1000, 4, 1, 3, **dict({"embedding_initializer": "ones"}, **kwargs))


def _sequential(layer, *front):
  keras.utils.set_random_seed(1)
  return keras.Sequential(list(front) + [layer, keras.layers.Flatten(),
                                         keras.layers.Dense(1)])


def _functional(layer):
  keras.utils.set_random_seed(1)
  given = keras.Input((3,), dtype="int64")
  return keras.Model(given, keras.layers.Dense(1)(keras.layers.Flatten()(layer(given))))


class Subclassed(keras.Model):

  def __init__(self, layer):
    super(Subclassed, self).__init__()
    keras.utils.set_random_seed(1)
    self.rows = layer
    self.flat = keras.layers.Flatten()
    self.out = keras.layers.Dense(1)

  def call(self, inputs):
    return self.out(self.flat(self.rows(inputs)))


def _compiled(model, optimizer=None):
  model.compile(optimizer or keras.optimizers.SGD(.05), "mse")
  return model


def _fit(model, ids=_IDS, labels=_LABELS, **kwargs):
  """Returns the losses of a fit."""
  kwargs = dict(dict(batch_size=_BATCH, epochs=3, shuffle=False, verbose=0), **kwargs)
  if labels is None:
    del kwargs["batch_size"]
  return model.fit(ids, labels, **kwargs).history["loss"]


def _predict(model, ids=_IDS):
  return model.predict(ids, verbose=0)


def _table(model):
  layer = next(x for x in model.layers if hasattr(x, "ids_dtype"))
  return getattr(layer, "embedding_variable", None) or layer.embedding_variables[0]


class FitTest(parameterized.TestCase):

  def _same(self, run, tolerance=1e-5):
    """Compares the results of a function with our layer, and with the stock layer."""
    expected = run(_stock)
    for make in (_ours, _legacy):
      np.testing.assert_allclose(expected, run(make), rtol=tolerance)

  @parameterized.parameters(_sequential, _functional, Subclassed)
  def test_arrays(self, make):
    self._same(lambda layer: _fit(_compiled(make(layer()))))

  @parameterized.parameters(np.int32, np.int64)
  def test_types_of_ids(self, dtype):
    self._same(lambda layer: _fit(_compiled(_sequential(layer())), _IDS.astype(dtype)))

  def test_tf_data(self):
    data = tf.data.Dataset.from_tensor_slices((_IDS, _LABELS)).batch(_BATCH)
    self._same(lambda layer: _fit(_compiled(_sequential(layer())), data, None))

  @parameterized.parameters(_sequential, _functional, Subclassed)
  def test_all_64_bits_of_ids(self, make):
    model = _compiled(make(_ours()))
    _fit(model, _IDS + _BIG)
    self.assertCountEqual(np.unique(_IDS + _BIG), _table(model).export().keys.numpy())

  def test_all_64_bits_of_ids_on_a_legacy_layer(self):
    model = _compiled(_sequential(_legacy()))
    _fit(model, _IDS + _BIG)
    self.assertCountEqual(np.unique(_IDS + _BIG), _table(model).export().keys.numpy())

  @parameterized.parameters(_ours, _legacy)
  def test_float_ids_are_refused_by_name(self, layer):
    given = keras.Input((3,))
    with self.assertRaisesRegex(TypeError, "layer 'users': expected ids of int64"):
      model = keras.Model(given, keras.layers.Flatten()(layer(name="users")(given)))
      _predict(model)
    self.assertEqual((64, 1), _predict(_functional(layer())).shape)

  def test_ragged_ids(self):
    ragged = tf.RaggedTensor.from_row_lengths(tf.constant(_IDS.ravel()), [1, 3, 0, 4] * 24)
    labels = np.arange(96.)[:, None] % 5
    keras.utils.set_random_seed(1)
    given = keras.Input((None,), dtype="int64", ragged=True)
    rows = sok.layers.Embedding(4, combiner="sum", initializer="ones")(given)
    model = _compiled(keras.Model(given, keras.layers.Dense(1)(rows)))
    losses = _fit(model, tf.data.Dataset.from_tensor_slices((ragged, labels)).batch(8), None)
    self.assertLess(losses[-1], losses[0])
    self.assertLen(np.unique(_IDS), int(_table(model).total_count()[0]))

  def test_hashing_and_string_lookup_in_front(self):
    words = np.char.add("w", _IDS.astype(str)).astype(object)
    vocabulary = ["w%d" % i for i in range(50)]
    data = tf.data.Dataset.from_tensor_slices((words, _LABELS)).batch(_BATCH)
    for front in (lambda: keras.layers.Hashing(500),
                  lambda: keras.layers.StringLookup(vocabulary=vocabulary)):
      def run(layer):
        given = keras.Input((3,), dtype="string")
        rows = keras.layers.Flatten()(layer()(front()(given)))
        keras.utils.set_random_seed(1)
        return _fit(_compiled(keras.Model(given, keras.layers.Dense(1)(rows))), data, None)
      self._same(run)

  def test_evaluate_and_train_on_batch(self):
    def run(layer):
      model = _compiled(_sequential(layer()))
      steps = [model.train_on_batch(_IDS[:8], _LABELS[:8]) for _ in range(3)]
      return steps + [model.evaluate(_IDS, _LABELS, verbose=0)]
    self._same(run)


class FreezeTest(parameterized.TestCase):

  @parameterized.product(layer=[_ours, _legacy], make=[_sequential, _functional])
  def test_a_layer_that_was_built_while_frozen_trains_afterwards(self, layer, make):
    frozen = layer(trainable=False)
    model = _compiled(make(frozen))
    _fit(model)
    self.assertLen(model.trainable_weights, 2)
    self.assertLen(model.weights, 3)
    rows = tf.nn.embedding_lookup(_table(model), np.unique(_IDS)).numpy()
    np.testing.assert_array_equal(np.ones_like(rows), rows)
    frozen.trainable = True
    _compiled(model)
    self.assertLen(model.trainable_weights, 3)
    _fit(model)
    rows = tf.nn.embedding_lookup(_table(model), np.unique(_IDS)).numpy()
    self.assertTrue(np.all(rows != 1.))

  @parameterized.parameters(_ours, _legacy)
  def test_losses_are_those_of_the_stock_layer(self, layer):
    def run(layer):
      rows = layer()
      model = _compiled(_sequential(rows))
      losses = _fit(model)
      for trainable in (False, True):
        rows.trainable = trainable
        losses += _fit(_compiled(model))
      return losses
    np.testing.assert_allclose(run(_stock), run(layer), rtol=1e-5)


class WeightsTest(parameterized.TestCase):

  @parameterized.parameters(_ours, _legacy)
  def test_get_and_set(self, layer):
    model = _compiled(_sequential(layer()), keras.optimizers.Adagrad(.1))
    _fit(model)
    expected, weights = _predict(model), model.get_weights()
    self.assertEqual((len(np.unique(_IDS)), 4), weights[0].shape)
    self.assertCountEqual(np.unique(_IDS), weights[0].keys)
    for given in (weights, pickle.loads(pickle.dumps(weights)), [w.copy() for w in weights]):
      _fit(model, _IDS + 20)
      model.set_weights(given)
      np.testing.assert_array_equal(expected, _predict(model))
      self.assertLen(weights[0], int(_table(model).total_count()[0]))

  def test_set_to_another_model_with_other_default_rows(self):
    model = _compiled(_functional(_ours(initializer="uniform")))
    _fit(model)
    other = _functional(_ours(initializer="normal"))
    other.set_weights(model.get_weights())
    for ids in (_IDS, _UNSEEN):
      np.testing.assert_array_equal(_predict(model, ids), _predict(other, ids))

  def test_set_keeps_the_optimizers_slots_as_for_a_stock_layer(self):
    def run(layer):
      model = _compiled(_sequential(layer()), keras.optimizers.Adagrad(.1))
      losses = _fit(model, _ONCE)
      model.set_weights(model.get_weights())
      return losses + _fit(model, _ONCE)
    np.testing.assert_allclose(run(_stock), run(_ours), rtol=1e-4)

  def test_arrays_without_keys(self):
    model = _compiled(_functional(_ours()))
    _fit(model)
    expected, weights = _predict(model), model.get_weights()
    for array in (weights[0] * 2, np.array(weights[0]), weights[0][:3]):
      with self.assertRaisesRegex(TypeError, "expected the array of a whole table"):
        model.set_weights([array, weights[1] * 2, weights[2]])
    with self.assertRaisesRegex(ValueError, "shape"):
      model.set_weights([weights[0], weights[1][:2], weights[2]])
    with self.assertRaises(ValueError):
      model.set_weights(weights[:2])
    other = _functional(sok.layers.Embedding(5))
    with self.assertRaisesRegex(ValueError, r"of shape \[N, 5\], got \[\d+, 4\]"):
      other.set_weights([weights[0]] + other.get_weights()[1:])
    np.testing.assert_array_equal(expected, _predict(model))
    model.set_weights(weights)
    np.testing.assert_array_equal(expected, _predict(model))

  def test_clone(self):
    model = _compiled(_functional(_ours(initializer="uniform")))
    _fit(model)
    clone = keras.models.clone_model(model)
    clone.set_weights(model.get_weights())
    np.testing.assert_array_equal(_predict(model), _predict(clone))
    _fit(_compiled(clone), _IDS + 20)
    self.assertLen(np.unique(_IDS), int(_table(model).total_count()[0]))


class CallbacksTest(parameterized.TestCase):

  @parameterized.parameters(_ours, _legacy)
  def test_early_stopping_restores_the_best_weights(self, layer):
    def run(layer):
      model = _compiled(_sequential(layer()), keras.optimizers.SGD(.4))
      stopping = keras.callbacks.EarlyStopping(
          "val_loss", patience=1, restore_best_weights=True)
      losses = _fit(model, epochs=8, callbacks=[stopping],
                    validation_data=(_IDS[:20] + 7, _LABELS[:20]))
      return losses, _predict(model)
    expected, got = run(_stock), run(layer)
    self.assertLess(len(got[0]), 8)
    np.testing.assert_allclose(expected[0], got[0], rtol=1e-4)
    np.testing.assert_allclose(expected[1], got[1], rtol=1e-3)

  @parameterized.parameters(_ours, _legacy)
  def test_histograms_of_tensor_board(self, layer):
    if importlib.util.find_spec("tensorboard") is None:
      self.skipTest("TensorBoard is not installed")
    folder = self.create_tempdir().full_path
    model = _compiled(_sequential(layer(name="users")))
    board = keras.callbacks.TensorBoard(folder, histogram_freq=1, write_images=True)
    self.assertLen(_fit(model, callbacks=[board]), 3)
    found = set()
    for path in tf.io.gfile.glob(folder + "/train/*"):
      for record in tf.data.TFRecordDataset(path):
        event = tf.compat.v1.Event.FromString(record.numpy())
        found.update(value.tag for value in event.summary.value)
    self.assertTrue([tag for tag in found if "users" in tag and "histogram" in tag], found)

  def test_rows_as_a_tensor_for_histograms(self):
    model = _compiled(_functional(_ours()))
    _fit(model)
    rows, weight = model.get_weights()[0], model.layers[1].weights[0]
    with self.assertRaisesRegex(NotImplementedError, "no dense value"):
      tf.convert_to_tensor(weight)
    with table_contents.dense_reads():
      np.testing.assert_array_equal(rows, tf.convert_to_tensor(weight).numpy())

  @parameterized.product(layer=[_ours, _legacy], optimizer=["Adam", "Adagrad", "SGD"])
  def test_backup_and_restore_continues_as_if_not_stopped(self, layer, optimizer):
    def run(*stops):
      folder = self.create_tempdir().full_path
      for stop in stops:
        model = _functional(layer())
        _compiled(model, getattr(keras.optimizers, optimizer)(.05))
        losses = []
        try:
          _fit(model, epochs=4, callbacks=[
              keras.callbacks.BackupAndRestore(folder),
              keras.callbacks.LambdaCallback(
                  on_epoch_begin=lambda epoch, logs, stop=stop: _stop(epoch == stop),
                  on_epoch_end=lambda epoch, logs, to=losses: to.append(logs["loss"]))])
        except InterruptedError:
          pass
      return losses[-2:], _predict(model), _predict(model, _UNSEEN)
    for expected, got in zip(run(None), run(2, None)):
      np.testing.assert_array_equal(expected, got)

  @parameterized.parameters(_ours, _legacy)
  def test_other_callbacks(self, layer):
    folder = self.create_tempdir().full_path
    model = _compiled(_functional(layer()))
    suffix = ".weights.h5" if _HAS_FILES else ""
    best = os.path.join(folder, "best" + suffix)
    _fit(model, callbacks=[
        keras.callbacks.ModelCheckpoint(best, "loss", save_best_only=True,
                                        save_weights_only=True),
        keras.callbacks.ReduceLROnPlateau("loss"), keras.callbacks.TerminateOnNaN(),
        keras.callbacks.CSVLogger(folder + "/log.csv"),
        keras.callbacks.LearningRateScheduler(lambda epoch: .05 / (1 + epoch))])
    other = _functional(layer())
    other.load_weights(best)
    np.testing.assert_array_equal(_predict(model), _predict(other))


def _stop(now):
  if now:
    raise InterruptedError


_LOAD = """
import sys
import numpy as np
import tensorflow as tf
import sparse_operation_kit
model = tf.keras.models.load_model(sys.argv[1])
print(model.predict(np.array(eval(sys.argv[2])), verbose=0).tolist())
print(model.fit(np.array(eval(sys.argv[2])), np.ones([20, 1]), batch_size=20, verbose=0,
                epochs=2).history["loss"])
"""

# Legacy layers have random default rows in both of their forms.
_MAKERS = (lambda: _ours(initializer="uniform"),
           lambda: _legacy(embedding_initializer="uniform"),
           lambda: _legacy(embedding_initializer="uniform", use_hashtable=False))


def _all_options():
  """Returns an option object in which every part has other values than the default."""
  names = tf.compat.v1
  return names.EmbeddingVariableOption(
      evict_option=names.GlobalStepEvict(steps_to_live=100),
      filter_option=names.CBFFilter(2, 1000, .01, tf.uint16),
      storage_option=names.StorageOption(storage_size=[1 << 20], max_capacity=1000),
      init_option=names.InitializerOption(keras.initializers.RandomUniform(seed=1), 64, .5))


class FilesTest(parameterized.TestCase):

  def setUp(self):
    super(FilesTest, self).setUp()
    self.folder = self.create_tempdir().full_path

  def _path(self, name):
    if not _HAS_FILES:
      self.skipTest("this Keras has no files that layers write themselves")
    return os.path.join(self.folder, name)

  def _trained(self, layer, optimizer=None):
    model = _compiled(_functional(layer()), optimizer or keras.optimizers.Adam(.05))
    _fit(model)
    return model

  @parameterized.parameters(*_MAKERS, lambda: _ours(ev_option=_all_options()))
  def test_a_model_file_in_a_process_with_the_import_alone(self, layer):
    path = self._path("model.keras")
    model = self._trained(layer)
    model.save(path)
    output = subprocess.check_output(
        [sys.executable, "-c", _LOAD, path, repr(_UNSEEN.tolist())], text=True,
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))).splitlines()
    self.assertEqual(str(_predict(model, _UNSEEN).tolist()), output[-2])
    # With the slots and the count of steps of the optimizer.
    losses = model.fit(_UNSEEN, np.ones([20, 1]), batch_size=20, verbose=0, epochs=2)
    np.testing.assert_allclose(losses.history["loss"], eval(output[-1]), rtol=1e-6)

  def test_the_model_of_the_readme(self):
    path = self._path("model.keras")
    ids = keras.Input((None,), dtype="int64", ragged=True)
    rows = sok.layers.Embedding(16, combiner="mean")(ids)
    model = keras.Model(ids, keras.layers.Dense(1, activation="sigmoid")(rows))
    model.compile("adam", "binary_crossentropy")
    model.save(path)
    given = tf.ragged.constant([[7, -3], [], [2 ** 62]], dtype=tf.int64)
    other = keras.models.load_model(path)
    np.testing.assert_array_equal(model(given).numpy(), other(given).numpy())

  def test_a_clone_has_the_options_of_its_table(self):
    model = _functional(_ours(ev_option=_all_options()))
    clone = keras.models.clone_model(model)
    configs = [m.layers[1].get_config()["ev_option"] for m in (model, clone)]
    self.assertEqual(*configs)
    self.assertEqual((2, "uint16"), (configs[0]["filter_option"]["filter_freq"],
                                     configs[0]["filter_option"]["counter_type"]))
    self.assertEqual(*[_table(m).op.table_options for m in (model, clone)])
    self.assertIsNone(_ours().get_config()["ev_option"])

  @parameterized.parameters(*_MAKERS)
  def test_weights_hold_default_rows(self, layer):
    path = self._path("w.weights.h5")
    model = self._trained(layer)
    model.save_weights(path)
    other = _functional(layer())
    other.load_weights(path)
    for ids in (_IDS, _UNSEEN):
      np.testing.assert_array_equal(_predict(model, ids), _predict(other, ids))
    # The loaded rows train on.
    _compiled(other, keras.optimizers.Adam(.05))
    self.assertLess(_fit(other)[-1], _fit(self._trained(layer), epochs=1)[0])

  def test_what_the_table_records_of_its_keys(self):
    option = lambda: sok_option(
        filter_option=tf.compat.v1.CounterFilter(filter_freq=3),
        evict_option=tf.compat.v1.GlobalStepEvict(steps_to_live=100))
    sok_option = tf.compat.v1.EmbeddingVariableOption
    make = lambda: _functional(_ours(ev_option=option()))
    path = self._path("w.weights.h5")
    model = _compiled(make())
    _fit(model, epochs=1)
    model.save_weights(path)
    other = _compiled(make())
    other.load_weights(path)
    found = []
    for each in (model, other):
      table = _table(each)
      found.append([table.get_frequency(np.arange(50)).numpy().tolist(),
                    table.get_version(np.arange(50)).numpy().tolist()])
      _fit(each, epochs=1)
      found[-1].append(_predict(each).tolist())
    self.assertEqual(found[0], found[1])
    self.assertTrue({1, 2} & set(found[0][0]))

  def test_files_of_earlier_versions(self):
    model = self._trained(_MAKERS[0])
    layer = model.layers[1]
    store = {}
    layer.save_own_variables(store)
    old = {name: store[name] for name in ("0_keys", "0_values")}
    other = _functional(_ours(initializer="zeros"))
    other.layers[1].load_own_variables(old)
    other.layers[-1].set_weights(model.layers[-1].get_weights())
    np.testing.assert_array_equal(_predict(model), _predict(other))
    bias = other.layers[-1].get_weights()[1]
    np.testing.assert_array_equal(np.tile(bias, [20, 1]), _predict(other, _UNSEEN))

  def test_rows_of_another_length(self):
    store = {}
    self._trained(_MAKERS[0]).layers[1].save_own_variables(store)
    other = _functional(sok.layers.Embedding(5, initializer="ones"))
    with self.assertRaisesRegex(ValueError, r"expected values of shape \[N, 5\]"):
      other.layers[1].load_own_variables(store)
    self.assertEqual(0, int(_table(other).total_count()[0]))
    store = {}
    _functional(sok.layers.Embedding(5, initializer="zeros")).layers[1].save_own_variables(
        store)
    other.layers[1].load_own_variables(store)

  @parameterized.parameters(*_MAKERS)
  def test_a_checkpoint(self, layer):
    model = self._trained(layer)
    path = tf.train.Checkpoint(model=model).save(os.path.join(self.folder, "c"))
    other = _functional(layer())
    tf.train.Checkpoint(model=other).restore(path)
    for ids in (_IDS, _UNSEEN):
      np.testing.assert_array_equal(_predict(model, ids), _predict(other, ids))

  def test_export(self):
    model = self._trained(_MAKERS[0])
    path = os.path.join(self.folder, "exported")
    if hasattr(model, "export"):
      model.export(path)
    else:
      tf.saved_model.save(model, path)
    loaded = tf.saved_model.load(path)
    serve = getattr(loaded, "serve", loaded)
    np.testing.assert_allclose(_predict(model), serve(tf.constant(_IDS)).numpy(), rtol=1e-6)

  @parameterized.parameters(
      lambda: sok.layers.Embedding([4, 3], combiner=["sum", "mean"], key_dtype="int32"),
      lambda: sok.layers.Embedding(
          4, initializer=keras.initializers.RandomNormal(0., 2.), dtype="mixed_float16"),
      lambda: sok.DistributedEmbedding("mean", 10, 4, 2, 3, key_dtype=tf.uint32,
                                       use_hashtable=False, max_feature_num=5),
      lambda: sok.All2AllDenseEmbedding(10, 4, 2, 3, dynamic_input=True))
  def test_configurations(self, make):
    layer = make()
    config = keras.layers.serialize(layer)
    self.assertEqual(config, keras.layers.serialize(keras.layers.deserialize(config)))


class CompileTest(parameterized.TestCase):

  @parameterized.parameters(_ours, _legacy)
  def test_xla_is_refused_or_left_out(self, layer):
    model = _functional(layer(name="users"))
    if hasattr(keras, "Variable"):  # Keras 3 warns
      model.compile("sgd", "mse", jit_compile=True)
      self.assertFalse(model.jit_compile)
    else:
      with self.assertRaisesRegex(ValueError, r"layer 'users': expected.*jit_compile"):
        model.compile("sgd", "mse", jit_compile=True)
    model.compile(keras.optimizers.SGD(.01), "mse")
    self.assertLen(_fit(model), 3)
    plain = _functional(_stock())
    plain.compile("sgd", "mse", jit_compile=True)

  def test_a_table_in_a_layer_turns_xla_off(self):
    if not hasattr(keras, "Variable"):
      self.skipTest("Keras 2 asks for XLA only if the user does")

    class Own(keras.layers.Layer):

      def __init__(self):
        super().__init__(name="own")
        self.tables = {"ids": tf.compat.v1.get_embedding_variable("users", 4)}

      def call(self, ids):
        return tf.reduce_mean(tf.nn.embedding_lookup(self.tables["ids"], ids), 1)

    model = keras.Sequential([keras.Input([3], dtype="int64"), Own(), keras.layers.Dense(1)])
    model.compile("sgd", "mse", jit_compile=True)
    ids, labels = np.arange(12).reshape(4, 3), np.ones([4, 1])
    with self.assertWarnsRegex(UserWarning, "layer 'own' looks up.*'users:0'"):
      model.fit(ids, labels, verbose=0)
    self.assertFalse(model.jit_compile)
    self.assertEqual(model.predict(ids, verbose=0).shape, (4, 1))

  def _adam_w(self, **kwargs):
    cls = getattr(keras.optimizers, "AdamW", None) or keras.optimizers.experimental.AdamW
    return cls(.01, **kwargs)

  @parameterized.parameters("layer's weight", "table", "name")
  def test_weight_decay_of_dense_layers_alone(self, by):
    def run(layer, decay):
      model = _functional(layer(name="users"))
      optimizer = self._adam_w(weight_decay=decay)
      if by == "name":
        optimizer.exclude_from_weight_decay(var_names=["users", "embeddings"])
      elif by == "table" and layer is _ours:
        optimizer.exclude_from_weight_decay(var_list=model.layers[1].embedding_variables)
      else:
        optimizer.exclude_from_weight_decay(var_list=model.layers[1].weights)
      return _fit(_compiled(model, optimizer), _ONCE)
    got = run(_ours, .3)
    np.testing.assert_allclose(run(_stock, .3), got, rtol=2e-3)
    self.assertGreater(np.abs(np.subtract(got, run(_ours, 0.))).max(), .01)

  def test_weight_decay_of_a_table_is_refused_by_name(self):
    model = _functional(_ours(name="users"))
    with self.assertRaisesRegex(ValueError, "'users': weight_decay.*exclude_from_weight_dec"):
      _fit(_compiled(model, self._adam_w(weight_decay=.1)))
    _compiled(model, self._adam_w(weight_decay=0.))
    self.assertLen(_fit(model), 3)

  def test_a_type_of_rows_is_reported(self):
    with self.assertLogs("tensorflow", "WARNING") as logs:
      _ours(name="users", dtype="float64")
    self.assertIn("layer 'users': dtype='float64'", logs.output[0])
    rows = _ours(dtype="mixed_float16")(tf.constant([[1]]))
    self.assertEqual(tf.float16, rows.dtype)


if __name__ == "__main__":
  absltest.main()
