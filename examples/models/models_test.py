# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0

from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

import models
from models import dcnv2
from models import dlrm


class ModelsTest(parameterized.TestCase):

  @parameterized.parameters(*sorted(models.MODELS))
  def test_one_logit_per_sample_that_depends_on_every_input(self, name):
    model = models.MODELS[name]
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      tf.compat.v1.set_random_seed(1)
      rng = np.random.RandomState(0)
      numeric = tf.constant(rng.normal(size=[7, 13]), tf.float32)
      embeddings = {
          group: [tf.constant(rng.normal(size=[7, dim]), tf.float32)
                  for _ in range(26)]
          for group, dim in model.tables(8).items()
      }
      logits = model.logits(numeric, embeddings)
      self.assertEqual(logits.shape.as_list(), [7])
      inputs = [numeric] + [e for group in embeddings.values() for e in group]
      gradients = tf.gradients(logits, inputs)
      session.run(tf.compat.v1.global_variables_initializer())
      for gradient in session.run(gradients):
        self.assertTrue(np.any(gradient != 0))

  def test_dlrm_equals_products_of_stock_ops(self):

    def plain(vectors):
      return tf.stack([tf.reduce_sum(vectors[i] * vectors[j], axis=1)
                       for i in range(len(vectors)) for j in range(i)], axis=1)

    rng = np.random.RandomState(0)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      numeric = tf.constant(rng.normal(size=[7, 13]), tf.float32)
      vectors = [tf.constant(rng.normal(size=[7, 8]), tf.float32) for _ in range(26)]
      results = []
      for dots in dlrm.embedding_variable.dot_interaction, plain:
        with mock.patch.object(dlrm.embedding_variable, "dot_interaction", dots), \
            tf.compat.v1.variable_scope("model", reuse=tf.compat.v1.AUTO_REUSE):
          logits = dlrm.logits(numeric, {"embedding": vectors})
        results.append([logits] + tf.gradients(
            logits, [numeric] + vectors + tf.compat.v1.trainable_variables()))
      session.run(tf.compat.v1.global_variables_initializer())
      for ours, theirs in zip(*session.run(results)):
        self.assertTrue(np.any(theirs != 0))
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)

  @parameterized.parameters(None, 3)
  def test_cross(self, rank):
    random = np.random.RandomState(0)
    x0 = random.normal(size=[5, 6]).astype(np.float32)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      got = dcnv2.cross(tf.constant(x0), "cross", num_layers=2, rank=rank)
      values = {}
      for variable in tf.compat.v1.global_variables():
        value = random.normal(size=variable.shape.as_list()).astype(np.float32)
        session.run(variable.initializer)
        variable.load(value, session)
        values[variable.op.name] = value
      got = session.run(got)
    x = x0
    for layer in ("cross/layer_0/", "cross/layer_1/"):
      if rank:
        product = x.dot(values[layer + "down"]).dot(values[layer + "up/kernel"])
        product += values[layer + "up/bias"]
      else:
        product = x.dot(values[layer + "full/kernel"]) + values[layer + "full/bias"]
      x = x0 * product + x
    np.testing.assert_allclose(got, x, rtol=1e-4, atol=1e-4)


if __name__ == "__main__":
  absltest.main()
