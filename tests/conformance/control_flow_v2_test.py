# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Lookups in conditions and loops of control flow v2.

Lookups work. Their gradients raise an error when the graph is built, except if every branch
of a condition looks up the table.
"""

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

import pairs


def _ids():
  return tf.SparseTensor([[0, 0], [0, 1], [2, 0]], tf.constant([3, 1, 3], tf.int64), [3, 2])


class ControlFlowV2Test(parameterized.TestCase):

  def _control_flow_v2(self):
    tf.enable_control_flow_v2()
    self.addCleanup(tf.disable_control_flow_v2)

  @parameterized.parameters(
      ("tf.cond", lambda rows: tf.cond(
          tf.placeholder_with_default(True, []), rows, lambda: 0.)),
      ("tf.case", lambda rows: tf.case(
          [(tf.placeholder_with_default(True, []), rows)], default=lambda: 0.)),
      ("tf.switch_case", lambda rows: tf.switch_case(
          tf.placeholder_with_default(0, []), [rows, lambda: 0., lambda: 0.])),
      ("tf.while_loop", lambda rows: tf.while_loop(
          lambda i, _: i < 1, lambda i, total: (i + 1, total + rows()), [0, 0.])[1]),
      ("tf.map_fn", lambda rows: tf.reduce_sum(tf.map_fn(
          lambda _: rows(), tf.zeros([1])))),
      # Nested, and the cond of a function, which always uses v2.
      ("tf.while_loop", lambda rows: tf.cond(
          tf.placeholder_with_default(True, []), lambda: tf.while_loop(
              lambda i, _: i < 1, lambda i, total: (i + 1, total + rows()), [0, 0.])[1],
          lambda: 0.)),
      ("tf.cond", lambda rows: tf.function(lambda: tf.cond(
          tf.placeholder_with_default(True, []), rows, lambda: 0.))()))
  def test_gradients_of_control_flow_v2_are_refused(self, what, use):
    for lookup in (
        lambda v: tf.nn.embedding_lookup(v, [1, 2]),
        lambda v: tf.nn.embedding_lookup_sparse(
            v, _ids(), None, combiner="sum")):
      with tf.Graph().as_default(), pairs.session() as session:
        self._control_flow_v2()
        v = pairs.table("scope/v", np.ones([9, 3], np.float32))
        w = tf.get_variable("w", [], use_resource=True)
        loss = w * use(lambda: tf.reduce_sum(lookup(v)))  # pylint: disable=cell-var-from-loop
        # Lookups without gradients work.
        session.run(tf.global_variables_initializer())
        self.assertNotEqual(session.run(loss), 0)
        with self.assertRaisesRegex(
            NotImplementedError, "^embedding variable 'scope/v': control flow v2 has no "
            "gradient of a lookup in .*%s.*disable_control_flow_v2" % what):
          tf.train.AdagradOptimizer(.1).minimize(loss)
        # The workaround that the error suggests works.
        rows = lookup(v)
        loss = w * use(lambda: tf.reduce_sum(rows))  # pylint: disable=cell-var-from-loop
        train = tf.train.AdagradOptimizer(.1).minimize(loss)
        session.run(tf.global_variables_initializer())
        session.run(train)
        self.assertGreater(session.run(v.total_count())[0], 0)

  def test_every_branch_looks_up(self):
    self._control_flow_v2()
    found = []
    for kind in ("table", "resource"):
      with tf.Graph().as_default(), pairs.session() as session:
        v = pairs.make(kind, "v", pairs.rows(9, 3))
        rows = tf.cond(tf.placeholder_with_default(False, []),
                       lambda: tf.nn.embedding_lookup(v, [1, 2, 1, 4, 5]),  # pylint: disable=cell-var-from-loop
                       lambda: tf.nn.embedding_lookup(v, [3, 3, 6, 7, 0]))  # pylint: disable=cell-var-from-loop
        train = tf.train.GradientDescentOptimizer(.01).minimize(
            tf.reduce_sum(tf.square(rows)))
        session.run(tf.global_variables_initializer())
        first = session.run(rows)
        session.run(train)
        found.append((first, session.run(pairs.read_all(v, 9))))
    for table, dense in zip(*found):
      np.testing.assert_allclose(table, dense, rtol=1e-5, atol=1e-6)
    self.assertTrue((found[0][1] != pairs.rows(9, 3)).any())


if __name__ == "__main__":
  absltest.main()
