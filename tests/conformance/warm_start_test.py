# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""`tf.train.init_from_checkpoint` and warm starts of embedding variables."""

import os
import pathlib
import re

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

import saved_model

_DIM = saved_model.DIM


class WarmStartTest(parameterized.TestCase):

  def setUp(self):
    super(WarmStartTest, self).setUp()
    self._path = os.path.join(self.create_tempdir().full_path, "model.ckpt")

  def _save(self, model):
    return model.saver.save(model.session, self._path, write_meta_graph=False)

  @parameterized.product(
      saved=(None, 2), restored=(None, 3),
      assignment=({"v": "v", "dense": "dense"}, {"/": "/"}, "objects"))
  def test_init_from_checkpoint(self, saved, restored, assignment):
    one = saved_model.Model(tf.train.GradientDescentOptimizer, parts=saved).start()
    one.run(3, seed=1)
    path = self._save(one)

    def init():
      mapping = assignment
      if assignment == "objects":
        tables = tf.get_collection("embedding_variables")
        mapping = {"v": tables if restored else tables[0]}
      tf.train.init_from_checkpoint(path, mapping)
      return tf.train.Saver()

    two = saved_model.Model(tf.train.GradientDescentOptimizer, parts=restored, saver=init)
    two.start()
    self.assertEqual(two.contents(), one.contents())
    if not isinstance(assignment, str):
      np.testing.assert_array_equal(
          two.session.run(two.dense), one.session.run(one.dense))

  @parameterized.product(saved=(None, 2), restored=(1, 3))
  def test_warm_start_of_a_partitioned_table(self, saved, restored):
    one = saved_model.Model(tf.train.GradientDescentOptimizer, parts=saved).start()
    one.run(3, seed=1)
    path = self._save(one)

    def warm(*args):

      def start():
        tf.train.warm_start(path, *args)
        return tf.train.Saver()

      return start

    two = saved_model.Model(parts=restored, train=False, saver=warm()).start()
    self.assertEqual(two.contents(), one.contents())
    # Restores from another name.
    three = saved_model.Model(parts=restored, train=False, name="scope/w",
                              saver=warm("scope/w", None, {"scope/w": "v"})).start()
    self.assertEqual(three.contents(), one.contents())
    with self.assertRaisesRegex(ValueError, "Tensor w/part_0 is not found"):
      saved_model.Model(parts=restored, train=False, name="w", saver=warm("w"))

  def test_warm_start_of_a_canned_estimator(self):
    ids = tf.feature_column.categorical_column_with_embedding(
        "id", dtype=tf.int64)
    column = tf.feature_column.embedding_column(ids, _DIM)

    def estimator(warm_start_from=None):
      return tf.estimator.DNNClassifier(
          [4], [column], warm_start_from=warm_start_from,
          model_dir=self.create_tempdir().full_path)

    def input_fn():
      return {"id": tf.constant([[3], [5]], tf.int64)}, tf.constant([[0], [1]])

    first = estimator()
    first.train(input_fn, steps=2)
    keys, = [n for n, _ in tf.train.list_variables(first.model_dir)
             if re.search(r"embedding_weights(/part_\d+)?-keys$", n)]
    second = estimator(first.model_dir)
    second.train(input_fn, steps=1)
    values = [tf.train.load_variable(e.model_dir, keys[:-len("keys")] + "values")
              for e in (first, second)]
    self.assertEqual(values[0].shape, (2, _DIM))
    # One Adagrad step moves a row by at most the rate, 0.05; new rows would differ more.
    self.assertLess(np.abs(values[1] - values[0]).max(), .051)

  def test_init_from_a_path_object(self):
    one = saved_model.Model(train=False).start()
    path = pathlib.Path(self._save(one))
    saved_model.Model(train=False,
                      saver=lambda: tf.train.init_from_checkpoint(path, {"v": "v"}))

  def test_init_from_checkpoint_that_does_not_fit(self):
    one = saved_model.Model(train=False).start()
    path = self._save(one)
    with self.assertRaisesRegex(ValueError, r"v:0 \(\(4,\)\) doesn't match.*\[3\]"):
      saved_model.Model(dim=4, train=False,
                        saver=lambda: tf.train.init_from_checkpoint(path, {"v": "v"}))
    with self.assertRaisesRegex(ValueError, "Tensor w is not found"):
      saved_model.Model(train=False,
                        saver=lambda: tf.train.init_from_checkpoint(path, {"w": "v"}))

  def test_init_from_checkpoint_of_another_dim_on_demand(self):
    one = saved_model.Model().start()
    one.run(2, seed=1)
    path = self._save(one)
    os.environ["TF_EV_RESTORE_CUSTOM_DIM"] = "1"
    self.addCleanup(os.environ.pop, "TF_EV_RESTORE_CUSTOM_DIM")

    def init():
      tf.train.init_from_checkpoint(path, {"v": "v"})
      return tf.train.Saver()

    two = saved_model.Model(dim=_DIM - 1, train=False, saver=init).start()
    self.assertEqual(two.contents(),
                     {key: row[:_DIM - 1] for key, row in one.contents().items()})
    with self.assertRaisesRegex(ValueError, r"dense:0 \(\(2,\)\) doesn't match.*\[3\]"):
      saved_model.Model(dim=_DIM - 1, train=False,
                        saver=lambda: tf.train.init_from_checkpoint(path, {"dense": "dense"}))


if __name__ == "__main__":
  absltest.main()
