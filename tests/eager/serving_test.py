# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The network server answers with a SavedModel of eager tables."""

import os

from absl.testing import absltest
import tensorflow as tf

import eager_models as models
from embedding_variable_serving import testing

_IDS = [[7, -3], [2 ** 62, 1]]


class _Served(tf.Module):

  def __init__(self, model):
    super(_Served, self).__init__()
    self.users = model.users
    self.weight = model.weight

  @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int64)])
  def score(self, ids):
    rows = tf.nn.embedding_lookup(self.users, ids)
    return {"score": tf.matmul(tf.reduce_sum(rows, 1), self.weight)[:, 0]}


class ServingTest(absltest.TestCase):

  def test_answers_as_the_function(self):
    model = models.Model(tf.keras.optimizers.Adam(.1))
    model.train("function")
    served = _Served(model)
    folder = testing.folder()
    tf.saved_model.save(served, os.path.join(folder, "1"), signatures=served.score)
    server = testing.start(folder)
    self.addCleanup(server.stop, 5)
    self.assertTrue(server.manager.wait(["default"], 60))
    expected = served.score(tf.constant(_IDS, tf.int64))["score"].numpy().tolist()
    status, answer = testing.http(server, "/v1/models/default:predict", {"inputs": _IDS})
    self.assertEqual(status, 200, answer)
    self.assertSequenceAlmostEqual(answer["outputs"], expected, places=5)


if __name__ == "__main__":
  absltest.main()
