# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

import embedding_variable  # pylint: disable=unused-import
from embedding_variable.optimizers import slot_view


class SlotViewTest(parameterized.TestCase):

  def setUp(self):
    super(SlotViewTest, self).setUp()
    self._graph = tf.Graph().as_default()
    self._graph.__enter__()
    self.addCleanup(self._graph.__exit__, None, None, None)
    self._variable = tf.get_embedding_variable("v", 3)

  @parameterized.parameters(
      (tf.zeros_initializer(), 0.0), (tf.ones_initializer, 1.0),
      (tf.constant_initializer(.25), .25), (tf.keras.initializers.Ones(), 1.0),
      (lambda shape: tf.fill(shape, 2.0), 2.0), (np.full([3], 3.0), 3.0), (.5, .5))
  def test_constants(self, value, expected):
    before = len(tf.get_default_graph().get_operations())
    self.assertEqual(
        slot_view.constant_of(self._variable, value, "slot"), expected)
    self.assertLen(tf.get_default_graph().get_operations(), before)

  def test_constant_tensor(self):
    self.assertEqual(
        slot_view.constant_of(self._variable, tf.constant(.5, shape=[3]), "s"), .5)

  @parameterized.parameters(
      (tf.random_normal_initializer(), "known at graph construction"),
      (lambda shape, dtype: tf.constant([1.0, 2.0, 3.0]), "the same in all"),
      (np.arange(3.0), "the same in all"))
  def test_a_value_that_is_not_constant(self, value, message):
    with self.assertRaisesRegex(ValueError, "'v'.*'slot'.*" + message):
      slot_view.constant_of(self._variable, value, "slot")

  def test_placeholder(self):
    with self.assertRaisesRegex(ValueError, "known at graph construction"):
      slot_view.constant_of(self._variable, tf.placeholder(tf.float32, [3]), "s")

  def test_names_count_up(self):
    columns = [slot_view.create(self._variable, name, init).column
               for name, init in (("Adam", 0), ("Adam", 0), ("Ftrl", .1),
                                  ("Adam", 0))]
    self.assertEqual(columns, ["Adam", "Adam_1", "Ftrl", "Adam_2"])
    self.assertEqual(list(self._variable.slot_columns.items()),
                     [("Adam", 0.0), ("Adam_1", 0.0), ("Ftrl", .1),
                      ("Adam_2", 0.0)])

  def test_read_inserts_nothing(self):
    slot = slot_view.create(self._variable, "Adam", .5)
    with tf.Session() as session:
      session.run(self._variable.initializer)
      rows = session.run(slot.sparse_read([[1, 2], [1, -9]]))
      np.testing.assert_array_equal(rows, np.full([2, 2, 3], .5))
      self.assertEqual(session.run(self._variable)[0], 0)

  def test_ordinary_slots(self):
    self.assertFalse(slot_view.wants_ordinary())
    with slot_view.ordinary_slots():
      self.assertTrue(slot_view.wants_ordinary())
    self.assertFalse(slot_view.wants_ordinary())
    # AdamAsync's powers are one number per variable, whatever its dim.
    narrow = tf.get_embedding_variable("narrow", 1)
    optimizer = tf.train.AdamAsyncOptimizer()
    optimizer.minimize(tf.reduce_sum(tf.nn.embedding_lookup(narrow, [1])))
    self.assertEqual(list(narrow.slot_columns), ["AdamAsync", "AdamAsync_1"])
    powers = [optimizer.get_slot(narrow, name) for name in ("beta1_power", "beta2_power")]
    self.assertEqual([(p.op.name, p.shape.as_list()) for p in powers],
                     [("narrow/AdamAsync_2", [1]), ("narrow/AdamAsync_3", [1])])


if __name__ == "__main__":
  absltest.main()
