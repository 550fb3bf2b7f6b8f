# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of SavedModels with eager tables."""

import os
import subprocess
import sys

from absl.testing import absltest
import numpy as np
import tensorflow as tf

import eager_models as models
import sparse_operation_kit as sok

_IDS = [[7, -3], [2 ** 62, 1]]

_IN_A_FRESH_PROCESS = """
import sys
import tensorflow as tf
import sparse_operation_kit
loaded = tf.saved_model.load(sys.argv[1])
ids = tf.constant(%r, tf.int64)
print(loaded.signatures["serving_default"](ids)["score"].numpy().tolist())
""" % _IDS


class _Served(tf.Module):

  def __init__(self, model):
    super(_Served, self).__init__()
    self.users = model.users
    self.weight = model.weight

  @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int64)])
  def score(self, ids):
    rows = tf.nn.embedding_lookup(self.users, ids)
    return {"score": tf.matmul(tf.reduce_sum(rows, 1), self.weight)[:, 0]}


class SavedModelTest(absltest.TestCase):

  def setUp(self):
    super(SavedModelTest, self).setUp()
    model = models.Model(tf.keras.optimizers.Adam(.1))
    model.train("function")
    self.served = _Served(model)
    self.expected = self.served.score(tf.constant(_IDS, tf.int64))["score"].numpy().tolist()
    self.folder = os.path.join(self.create_tempdir().full_path, "saved")
    tf.saved_model.save(self.served, self.folder, signatures=self.served.score)

  def test_loads_in_this_process(self):
    loaded = tf.saved_model.load(self.folder)
    score = loaded.signatures["serving_default"](tf.constant(_IDS, tf.int64))["score"]
    self.assertEqual(self.expected, score.numpy().tolist())
    self.assertEqual(3, loaded.users.total_count().numpy()[0])
    self.assertIsNot(self.served.users, loaded.users)

  def test_loads_in_a_fresh_process(self):
    output = subprocess.check_output(
        [sys.executable, "-c", _IN_A_FRESH_PROCESS, self.folder], text=True,
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)))
    self.assertEqual(str(self.expected), output.splitlines()[-1])

  def test_loads_in_a_session(self):
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
      graph = v1.saved_model.load(session, ["serve"], self.folder)
      signature = graph.signature_def["serving_default"]
      given, score = signature.inputs["ids"].name, signature.outputs["score"].name
      self.assertEqual(self.expected, session.run(score, {given: _IDS}).tolist())

  def test_a_loaded_table_trains(self):
    loaded = tf.saved_model.load(self.folder)
    with tf.GradientTape() as tape:
      loss = tf.reduce_sum(sok.lookup_sparse(loaded.users, models.ids(), combiners="sum"))
    tf.keras.optimizers.SGD(1.).apply_gradients(
        [(tape.gradient(loss, loaded.users), loaded.users)])
    key = tf.constant([7], tf.int64)
    np.testing.assert_allclose(
        tf.nn.embedding_lookup(self.served.users, key).numpy() - 1.,
        tf.nn.embedding_lookup(loaded.users, key).numpy(), rtol=1e-6)

  def test_narrow_values_stay_narrow(self):
    module = tf.Module()
    module.table = tf.compat.v1.get_embedding_variable(
        "narrow", 4, value_dtype=tf.bfloat16,
        initializer=tf.keras.initializers.RandomNormal(seed=1))
    ids = tf.constant([3, 5, 3], tf.int64)

    def train(table):
      with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.square(tf.nn.embedding_lookup(table, ids) - 1.))
      tf.keras.optimizers.SGD(.1).apply_gradients([(tape.gradient(loss, table), table)])
      rows = tf.nn.embedding_lookup(table, ids).numpy()
      np.testing.assert_array_equal(rows, tf.cast(tf.cast(rows, tf.bfloat16), tf.float32))
      return rows

    train(module.table)
    folder = os.path.join(self.create_tempdir().full_path, "narrow")
    tf.saved_model.save(module, folder)
    loaded = tf.saved_model.load(folder)
    self.assertEqual(loaded.table.table_options.value_dtype, tf.bfloat16)
    # The random bits continue, too.
    np.testing.assert_array_equal(train(module.table), train(loaded.table))
    self.assertEqual(0, loaded.table.overflows().numpy())


if __name__ == "__main__":
  absltest.main()
