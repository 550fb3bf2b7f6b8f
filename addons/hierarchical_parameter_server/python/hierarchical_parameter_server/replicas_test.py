# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Layers under tf.distribute.MirroredStrategy, in graph mode."""

import os

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

import hierarchical_parameter_server as hps
from hierarchical_parameter_server import testing

_ROWS, _DIM, _BATCH = 100, 6, 8

# The CPU as one device, and as two.
_DEVICES = (["/cpu:0"], ["/cpu:0", "/cpu:1"])


class ReplicasTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    hps.stop()
    self.folder = self.create_tempdir().full_path
    self.rows = np.random.RandomState(3).normal(size=[_ROWS, _DIM]).astype(np.float32)
    testing.write_table(os.path.join(self.folder, "t"), np.arange(_ROWS), self.rows)
    # The process's first session decides its devices, so it is created with two CPUs.
    self.config = tf.compat.v1.ConfigProto(device_count={"CPU": 2, "GPU": 0})
    tf.compat.v1.Session(config=self.config).close()

  def tearDown(self):
    tf.keras.backend.clear_session()
    hps.stop()
    super().tearDown()

  def layer(self, kind=hps.LookupLayer, **more):
    path = testing.write_config(
        os.path.join(self.folder, "ps.json"),
        [testing.model("m", ["t"], [_DIM], max_batch_size=_BATCH)])
    return kind(
        model_name="m", table_id=0, emb_vec_size=_DIM, emb_vec_dtype=tf.float32,
        ps_config_file=path, **more)

  @parameterized.parameters(*[(d,) for d in _DEVICES])
  def test_each_replica_has_its_rows(self, devices):
    replicas = len(devices)
    ids = np.random.RandomState(1).randint(0, _ROWS, [replicas * _BATCH, 2])
    with tf.Graph().as_default():
      strategy = tf.distribute.MirroredStrategy(devices)
      self.assertEqual(strategy.num_replicas_in_sync, replicas)
      with strategy.scope():
        dense = self.layer(global_batch_size=replicas * _BATCH)
        sparse = self.layer(hps.SparseLookupLayer, global_batch_size=replicas * _BATCH)
        init = hps.Init(
            ps_config_file=dense.ps_config_file, global_batch_size=replicas * _BATCH)

        def step(batch):
          places = tf.where(tf.ones_like(batch, tf.bool))
          sp_ids = tf.SparseTensor(places, tf.reshape(batch, [-1]),
                                   tf.shape(batch, out_type=tf.int64))
          return batch, dense(batch), sparse(sp_ids, sp_weights=None, combiner="sum")

        data = tf.data.Dataset.from_tensor_slices(ids).batch(replicas * _BATCH)
        iterator = strategy.make_dataset_iterator(data)
        found = [
            strategy.experimental_local_results(value)
            for value in strategy.experimental_run(step, iterator)
        ]
        ready = iterator.initialize()
      with tf.compat.v1.Session(config=self.config) as session:
        self.assertEqual(set(session.run(strategy.experimental_local_results(init))),
                         {b"OK"})
        session.run(ready)
        batches, rows, sums = session.run(found)
    self.assertLen(rows, replicas)
    np.testing.assert_array_equal(np.concatenate(batches), ids)
    np.testing.assert_array_equal(np.concatenate(rows), self.rows[ids])
    np.testing.assert_allclose(
        np.concatenate(sums), self.rows[ids].sum(axis=1), rtol=1e-6, atol=1e-6)

  @parameterized.parameters(*[(d,) for d in _DEVICES])
  def test_replicas_share_the_batch(self, devices):
    with tf.Graph().as_default(), tf.compat.v1.Session(config=self.config) as session:
      with tf.distribute.MirroredStrategy(devices).scope():
        path = self.layer().ps_config_file
        for batch in ((_BATCH + 1) * len(devices), _BATCH * len(devices)):
          init = hps.Init(ps_config_file=path, global_batch_size=batch)
          if batch > _BATCH * len(devices):
            with self.assertRaisesRegex(
                tf.errors.InvalidArgumentError,
                "is %d samples on each of %d replicas" % (_BATCH + 1, len(devices))):
              session.run(init)
          else:
            self.assertEqual(session.run(init), b"OK")

  def test_another_strategy_is_an_error(self):
    with tf.Graph().as_default():
      with tf.distribute.OneDeviceStrategy("/cpu:0").scope():
        with self.assertRaisesRegex(RuntimeError, "got OneDeviceStrategy"):
          hps.Init(ps_config_file="ps.json", global_batch_size=1)

  @parameterized.parameters(*[(d,) for d in _DEVICES])
  def test_a_keras_model(self, devices):
    batch = _BATCH * len(devices)
    random = np.random.RandomState(2)
    ids = random.randint(0, _ROWS, [4 * batch, 3])
    targets = self.rows[ids].sum(axis=(1, 2))[:, None]
    with tf.Graph().as_default():
      session = tf.compat.v1.Session(config=self.config)
      tf.compat.v1.keras.backend.set_session(session)
      with tf.distribute.MirroredStrategy(devices).scope():
        given = tf.keras.Input([3], dtype=tf.int64)
        rows = self.layer(global_batch_size=batch)(given)
        output = tf.keras.layers.Dense(1)(tf.keras.layers.Flatten()(rows))
        model = tf.keras.Model(given, output)
        model.compile(tf.keras.optimizers.SGD(.02), "mse")
      data = tf.data.Dataset.from_tensor_slices((ids, targets)).batch(batch).repeat()
      history = model.fit(data, epochs=15, steps_per_epoch=4, verbose=0).history["loss"]
      self.assertLess(history[-1], .1 * history[0])
      kernel, bias = model.get_weights()
      np.testing.assert_allclose(
          model.predict(tf.data.Dataset.from_tensor_slices(ids).batch(batch), steps=4),
          self.rows[ids].reshape([len(ids), -1]) @ kernel + bias, rtol=1e-4, atol=1e-4)
      session.close()

  def test_a_keras_model_with_sparse_ids(self):
    lists = [[1, 2], [], [7], [3, 3, 9]]
    places = [[r, c] for r, row in enumerate(lists) for c in range(len(row))]
    sparse = tf.compat.v1.SparseTensorValue(
        np.array(places, np.int64), np.array([i for row in lists for i in row], np.int64),
        np.array([4, 3], np.int64))
    pooled = np.stack([self.rows[row].sum(axis=0) for row in lists])
    with tf.Graph().as_default(), tf.compat.v1.Session(config=self.config) as session:
      tf.compat.v1.keras.backend.set_session(session)
      given = tf.keras.Input([3], dtype=tf.int64, sparse=True)
      rows = self.layer(hps.SparseLookupLayer, global_batch_size=4)(
          given, sp_weights=None, combiner="sum")
      model = tf.keras.Model(given, tf.keras.layers.Dense(1)(rows))
      session.run(tf.compat.v1.global_variables_initializer())
      kernel, bias = model.get_weights()
      found = session.run(model.output, {model.input: sparse})
      np.testing.assert_allclose(found, pooled @ kernel + bias, rtol=1e-5, atol=1e-5)
      again = tf.keras.Model.from_config(
          model.get_config(), {"SparseLookupLayer": hps.SparseLookupLayer})
      again.set_weights([kernel, bias])
      np.testing.assert_array_equal(session.run(again.output, {again.input: sparse}), found)


if __name__ == "__main__":
  absltest.main()
