# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the parameter server's layers in Keras models: train, convert, serve."""

import os
import subprocess
import sys
from unittest import mock

from absl.testing import absltest
import numpy as np
import tensorflow as tf

import eager_models as models
import hierarchical_parameter_server as hps
from hierarchical_parameter_server import convert
from hierarchical_parameter_server import layers
from hierarchical_parameter_server import testing

keras = tf.keras

_IDS = [[7, -3], [2 ** 62, 1]]

_IN_A_FRESH_PROCESS = """
import sys
import tensorflow as tf
import hierarchical_parameter_server
loaded = tf.saved_model.load(sys.argv[1])
print(loaded.score(tf.constant(%r, tf.int64)).numpy().tolist())
""" % _IDS


class _Subclassed(keras.Model):

  def __init__(self, config, **kwargs):
    super(_Subclassed, self).__init__(name="subclassed", **kwargs)
    self.rows = hps.LookupLayer(model_name="m", table_id=0, emb_vec_size=4,
                                ps_config_file=config)
    self.flat = keras.layers.Flatten()
    self.out = keras.layers.Dense(1)

  def call(self, inputs):
    return self.out(self.flat(self.rows(inputs)))


class HpsTest(absltest.TestCase):

  # More keys of the model in the server's configuration.
  more = {}

  def setUp(self):
    super(HpsTest, self).setUp()
    hps.stop()
    model = models.Model(keras.optimizers.Adagrad(.1))
    model.train("function")
    folder = self.create_tempdir().full_path
    path = tf.train.Checkpoint(users=model.users).save(os.path.join(folder, "ckpt"))
    self.assertEqual({"users": (3, 4)},
                     convert.from_checkpoint(path, os.path.join(folder, "t"), ["users"]))
    self.folder = folder
    self.config = testing.write_config(
        os.path.join(folder, "ps.json"),
        [testing.model("m", [os.path.join(folder, "t", "users")], [4], [.25],
                       **self.more)],
        supportlonglong=True)
    keys = tf.constant(_IDS, tf.int64)
    self.expected = tf.nn.embedding_lookup(model.users, keys).numpy()
    self.expected[1, 1] = .25  # 1 was not trained

  def tearDown(self):
    hps.stop()
    super(HpsTest, self).tearDown()

  def layer(self, kind=hps.LookupLayer):
    return kind(model_name="m", table_id=0, emb_vec_size=4, ps_config_file=self.config)

  def test_rows_of_the_trained_table(self):
    self.assertEqual(b"OK", hps.Init(ps_config_file=self.config).numpy())
    got = self.layer()(tf.constant(_IDS, tf.int64))
    np.testing.assert_array_equal(self.expected, got.numpy())

  def test_pooled_rows(self):
    ids = tf.sparse.from_dense(tf.constant(_IDS, tf.int64))
    got = self.layer(hps.SparseLookupLayer)(ids, combiner="sum")
    np.testing.assert_array_equal(self.expected.sum(1), got.numpy())

  def test_a_functional_model(self):
    given = keras.Input((2,), dtype="int64")
    model = keras.Model(given, self.layer()(given))
    np.testing.assert_array_equal(self.expected,
                                  model.predict(np.array(_IDS), verbose=0))

  def test_a_sequential_model_without_an_input_layer(self):
    model = keras.Sequential([self.layer()])
    np.testing.assert_array_equal(self.expected,
                                  model.predict(np.array(_IDS), verbose=0))

  def test_a_model_file_after_the_import_alone(self):
    for layer in (self.layer(), self.layer(hps.SparseLookupLayer)):
      config = keras.layers.serialize(layer)
      self.assertIs(type(layer), type(keras.layers.deserialize(config)))
    if not hasattr(keras.layers.Layer, "save_own_variables"):
      self.skipTest("Keras 2.11 has no files that layers write themselves")
    given = keras.Input((2,), dtype="int64")
    path = os.path.join(self.folder, "m.keras")
    keras.Model(given, self.layer()(given)).save(path)
    model = keras.models.load_model(path)
    np.testing.assert_array_equal(self.expected,
                                  model.predict(np.array(_IDS), verbose=0))

  def test_ids_and_rows_on_a_gpu_in_eager_execution(self):
    with mock.patch.object(layers, "_gpu_of", return_value="/device:GPU:0"):
      got = self.layer()(tf.constant(_IDS, tf.int64))
    np.testing.assert_array_equal(self.expected, got.numpy())

  def test_keras_does_not_compile_a_model_by_xla(self):
    given = keras.Input((2,), dtype="int64")
    model = keras.Model(given, self.layer()(given))
    devices = [mock.Mock(device_type="GPU")]
    with mock.patch.object(tf.config, "list_physical_devices", return_value=devices):
      model.compile(keras.optimizers.SGD(.05), "mse")
    # Keras 2.11 has no property for it.
    self.assertFalse(model.jit_compile if hasattr(model, "jit_compile")
                     else model._jit_compile)  # pylint: disable=protected-access

  def test_dense_layers_train_on_served_rows(self):
    model = _Subclassed(self.config)
    model.compile(keras.optimizers.SGD(.05), "mse")
    ids, labels = np.array(_IDS * 8), np.array([[1.], [-1.]] * 8)
    losses = model.fit(ids, labels, epochs=100, verbose=0).history["loss"]
    self.assertLess(losses[-1], .5 * losses[0])
    self.assertLen(model.trainable_weights, 2)

  def test_a_saved_model_in_a_fresh_process(self):
    layer = self.layer()
    module = tf.Module()
    module.weight = tf.Variable([[1.], [2.], [3.], [4.]])
    module.score = tf.function(
        lambda ids: tf.matmul(tf.reduce_sum(layer(ids), 1), module.weight)[:, 0],
        input_signature=[tf.TensorSpec([None, None], tf.int64)])
    expected = module.score(tf.constant(_IDS, tf.int64)).numpy().tolist()
    folder = os.path.join(self.folder, "saved")
    tf.saved_model.save(module, folder)
    output = subprocess.check_output(
        [sys.executable, "-c", _IN_A_FRESH_PROCESS, folder], text=True,
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)))
    self.assertEqual(str(expected), output.splitlines()[-1])


@absltest.skipIf(not tf.config.list_physical_devices("GPU"), "TensorFlow has no GPU")
class HpsOnGpuTest(HpsTest):
  """The same with a cache in GPU memory and layers on TensorFlow's GPU, its default."""

  more = {"gpucache": True, "gpucacheper": 1.}

  def test_rows_come_from_the_cache_in_gpu_memory(self):
    layer = self.layer()
    for _ in range(2):
      with tf.device("/gpu:0"):
        got = layer(tf.constant(_IDS, tf.int64))
      self.assertIn("GPU", got.device)
      np.testing.assert_array_equal(self.expected, got.numpy())
    # Key 1 is in no tier and not kept.
    self.assertEqual(6, hps.metrics()["models"][0]["tables"][0]["cache"]["hits"])


if __name__ == "__main__":
  absltest.main()
