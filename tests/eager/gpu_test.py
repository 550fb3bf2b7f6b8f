# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of eager tables with rows in GPU memory.

Tables are on the CPU device, and on TensorFlow's GPU device too if it has one. Without a
GPU all cases are skipped; on_test_device_test runs them with the engine's test device.
"""

import os

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

import embedding_variable as ev
from embedding_variable.variables import config_pb2
import eager_models as models

_STORAGES = ("HBM", "HBM_DRAM")
_DEVICES = ["/cpu:0"] + (["/gpu:0"] if tf.config.list_physical_devices("GPU") else [])
_ADAGRAD = lambda: tf.compat.v1.train.AdagradOptimizer(.1)


def _option(storage):
  # The smallest that a table of dim 4 may have: 64 rows.
  size = [64 * 4 * 4] if storage == "HBM_DRAM" else None
  return ev.EmbeddingVariableOption(storage_option=ev.StorageOption(
      storage_type=config_pb2.StorageType.Value(storage), storage_size=size))


def why_no_gpu():
  """Returns the error of creating a table in GPU memory, or None."""
  try:
    tf.compat.v1.get_embedding_variable("probe", 4, ev_option=_option("HBM"))
  except tf.errors.FailedPreconditionError as e:
    return e.message
  return None


def _model(storage, device):
  """Returns a model whose tables are on a device; its dense variable is on the CPU."""
  with tf.device(device):
    return models.Model(_ADAGRAD(), _option(storage))


def _checkpoint(model):
  return tf.train.Checkpoint(users=model.users, items=model.items, weight=model.weight,
                             optimizer=model.optimizer)


def _ids(step):
  """Returns a SparseTensor with more ids than HBM_DRAM has rows in GPU memory."""
  values = np.random.RandomState(step).randint(-100, 100, 300)
  return tf.SparseTensor([[i // 3, i % 3] for i in range(300)],
                         tf.constant(values, tf.int64), [100, 3])


def _train(model, mode, steps=range(5)):
  run = model.step if mode == "eager" else model.function
  return [float(run(_ids(step))) for step in steps]


def _cases(*more):
  return [(storage, device) + rest for storage in _STORAGES for device in _DEVICES
          for rest in ([(m,) for m in more] or [()])]


class GpuTest(parameterized.TestCase):

  def setUp(self):
    super(GpuTest, self).setUp()
    why = why_no_gpu()
    if why:
      self.skipTest(why)

  @parameterized.parameters(_cases(*models.MODES))
  def test_the_losses_of_tables_in_cpu_memory(self, storage, device, mode):
    reference, model = models.Model(_ADAGRAD()), _model(storage, device)
    np.testing.assert_allclose(_train(reference, mode), _train(model, mode), rtol=1e-5)
    count = int(reference.users.total_count()[0])
    self.assertEqual([count, 4], model.users.total_count().numpy().tolist())
    above, below = model.users.tier_stats().numpy().tolist()[:2]
    self.assertEqual(count, above + below)
    self.assertEqual(storage == "HBM_DRAM", below > 0)

  @parameterized.parameters(_cases(*models.MODES))
  def test_a_checkpoint_moves_between_memories_to_the_bit(self, storage, device, mode):
    model = _model(storage, device)
    _train(model, mode)
    prefix = os.path.join(self.create_tempdir().full_path, "model")
    path = _checkpoint(model).save(prefix)
    expected = model.users.export()
    for other in (models.Model(_ADAGRAD()), _model(storage, device)):
      _checkpoint(other).restore(path).assert_existing_objects_matched()
      found = other.users.export()
      order = [np.argsort(rows.keys.numpy()) for rows in (expected, found)]
      for name in ("keys", "values"):
        np.testing.assert_array_equal(getattr(expected, name).numpy()[order[0]],
                                      getattr(found, name).numpy()[order[1]])
      again = _checkpoint(other).save(prefix + "-again")
      first, second = (tf.train.load_checkpoint(p) for p in (path, again))
      order = [np.argsort(r.get_tensor("users-keys")) for r in (first, second)]
      for name in ("users-keys", "users-values", "users/Adagrad-values"):
        np.testing.assert_array_equal(first.get_tensor(name)[order[0]],
                                      second.get_tensor(name)[order[1]])
    np.testing.assert_allclose(_train(model, mode), _train(other, mode), rtol=1e-5)

  @parameterized.parameters(_cases())
  def test_a_keras_model(self, storage, device):
    import sparse_operation_kit as sok  # pylint: disable=g-import-not-at-top
    ids = np.random.RandomState(0).randint(0, 50, [512, 2]).astype(np.int64)
    labels = (ids[:, 0] % 2).astype(np.float32)
    histories = []
    for option in (None, _option(storage)):
      tf.keras.utils.set_random_seed(1)
      with tf.device(device):
        layer = sok.layers.Embedding(4, combiner="sum", initializer="ones",
                                     ev_option=option)
        inputs = tf.keras.Input((2,), dtype="int64")
        outputs = tf.keras.layers.Dense(1, activation="sigmoid")(layer(inputs))
        model = tf.keras.Model(inputs, outputs)
        model.compile("adam", "binary_crossentropy")
        histories.append(model.fit(ids, labels, 64, epochs=3, shuffle=False,
                                   verbose=0).history["loss"])
    np.testing.assert_allclose(histories[0], histories[1], rtol=1e-4)
    self.assertLess(histories[1][-1], histories[1][0])

  @parameterized.parameters(_cases())
  def test_a_saved_model(self, storage, device):
    model = _model(storage, device)
    _train(model, "eager")
    keys = tf.constant([7, -3, 5], tf.int64)
    expected = tf.nn.embedding_lookup(model.users, keys).numpy()
    module = tf.Module()
    module.users = model.users
    module.serve = tf.function(
        lambda ids: tf.nn.embedding_lookup(module.users, ids),
        input_signature=[tf.TensorSpec([None], tf.int64)])
    folder = self.create_tempdir().full_path
    tf.saved_model.save(module, folder)
    loaded = tf.saved_model.load(folder)
    np.testing.assert_array_equal(expected, loaded.serve(keys))

  @parameterized.parameters(*models.MODES)
  def test_rows_of_a_table_on_the_gpu_are_in_gpu_memory(self, mode):
    if "/gpu:0" not in _DEVICES:
      self.skipTest("TensorFlow has no GPU")
    with tf.device("/gpu:0"):
      table = tf.compat.v1.get_embedding_variable("t", 4, ev_option=_option("HBM"))
    keys = tf.constant([1, 2], tf.int64)
    look_up = lambda: tf.nn.embedding_lookup(table, keys)
    rows = tf.function(look_up)() if mode == "function" else look_up()
    self.assertIn("GPU:0", rows.device)

  def test_a_table_without_a_device_is_on_the_cpu(self):
    table = tf.compat.v1.get_embedding_variable("t", 4, ev_option=_option("HBM"))
    self.assertIn("CPU:0", table.handle.device)

  def test_evict_and_erase(self):
    table = tf.compat.v1.get_embedding_variable("t", 4, ev_option=_option("HBM"))
    optimizer = tf.keras.optimizers.SGD(.1)
    with tf.GradientTape() as tape:
      loss = tf.reduce_sum(tf.nn.embedding_lookup(table, tf.constant([1, 2, 3], tf.int64)))
    optimizer.apply_gradients([(tape.gradient(loss, table), table)])
    table.erase(tf.constant([2], tf.int64))
    self.assertEqual([1, 3], sorted(table.export().keys.numpy()))


if __name__ == "__main__":
  absltest.main()
