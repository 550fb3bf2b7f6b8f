# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests the fused update: duplicates, slots, plans, wrong input."""

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from embedding_variable.ops import apply_ops
from embedding_variable.ops import checkpoint_ops
from embedding_variable.ops import gather_ops
from embedding_variable.ops import handle_ops
from embedding_variable.ops import lookup_sparse_ops
from embedding_variable.ops import row_ops
from embedding_variable.ops import testing


def _sgd(table, keys, grads, rate=1.0, step=0, **kwargs):
  return apply_ops.apply("SGD", [table.handle], [keys], [grads], [rate], step,
                         [[]], [[]], **kwargs)


class ApplyTest(parameterized.TestCase, tf.test.TestCase):

  def setUp(self):
    super(ApplyTest, self).setUp()
    tf.compat.v1.reset_default_graph()

  def test_sums_duplicates_and_inserts(self):
    table = testing.Table("user", 2)
    update = _sgd(table, [5, -3, 5], [[1.0, 2.0], [3.0, 4.0], [10.0, 20.0]],
                  rate=0.5)
    rows = gather_ops.gather(table.handle, [5, -3, 6])
    keys = handle_ops.shape(table.handle)
    with testing.session() as sess:
      sess.run(table.init)
      sess.run(update)
      want = testing.rows_of([5, -3, 6], table.defaults)
      want[0] -= [5.5, 11]
      want[1] -= [1.5, 2]
      self.assertAllClose(want, sess.run(rows))
      self.assertAllEqual([2, 2], sess.run(keys))

  def test_duplicates_are_summed_before_the_rule(self):
    table = testing.Table("user", 1)
    update = apply_ops.apply("Adagrad", [table.handle], [[5, 5]],
                             [[[3.0], [1.0]]], [0.1], 0, [["Adagrad"]], [[0.5]])
    values, (slot,) = row_ops.read_rows(table.handle, [5], ["Adagrad"], [0.5])
    with testing.session() as sess:
      sess.run(table.init)
      before = testing.rows_of([5], table.defaults)
      sess.run(update)
      got, accumulator = sess.run([values, slot])
      self.assertAllClose([[0.5 + 16]], accumulator)
      self.assertAllClose(before - 0.1 * 4 / np.sqrt(16.5), got)

  def test_several_tables_each_with_their_slots(self):
    tables = [testing.Table("a", 2), testing.Table("b", 3)]
    update = apply_ops.apply(
        "Adam", [t.handle for t in tables], [[1], [1, 2]],
        [np.ones([1, 2], np.float32), np.ones([2, 3], np.float32)],
        [0.1, 0.9, 0.999, 1e-8, 0.9, 0.999], 0,
        [["Adam", "Adam_1"], ["m", "v"]], [[0.0, 0.0], [0.0, 0.0]])
    reads = [
        row_ops.read_rows(tables[0].handle, [1], ["Adam", "Adam_1"], [0., 0.]),
        row_ops.read_rows(tables[1].handle, [1, 2], ["m", "v"], [0., 0.])
    ]
    with testing.session() as sess:
      sess.run([t.init for t in tables])
      sess.run(update)
      for table, keys, (values, (m, v)) in zip(tables, ([1], [1, 2]),
                                               sess.run(reads)):
        self.assertAllClose(np.full_like(m, 0.1), m)
        self.assertAllClose(np.full_like(v, 0.001), v, rtol=1e-4)
        self.assertAllClose(
            testing.rows_of(keys, table.defaults) - 0.1, values, rtol=1e-4)

  def test_no_keys_changes_nothing(self):
    table = testing.Table("user", 2)
    update = _sgd(table, tf.zeros([0], tf.int64), tf.zeros([0, 2]))
    keys = handle_ops.shape(table.handle)
    with testing.session() as sess:
      sess.run(table.init)
      sess.run(update)
      self.assertAllEqual([0, 2], sess.run(keys))

  def test_nan_gradient_stays_in_its_row(self):
    table = testing.Table("user", 2)
    update = _sgd(table, [1, 2], [[np.nan, np.inf], [1.0, 1.0]])
    rows = gather_ops.gather(table.handle, [1, 2, 3])
    with testing.session() as sess:
      sess.run(table.init)
      sess.run(update)
      got = sess.run(rows)
      want = testing.rows_of([2, 3], table.defaults)
      self.assertTrue(np.isnan(got[0, 0]) and np.isinf(got[0, 1]))
      self.assertAllClose(want[0] - 1, got[1])
      self.assertAllClose(want[1], got[2])

  # -- plans ------------------------------------------------------------------

  def _lookup_and_grads(self, tables, ids):
    outputs, _ = lookup_sparse_ops.lookup_sparse(
        [t.handle for t in tables], ids, [[0, len(i)] for i in ids],
        [1] * len(ids), ["sum"] * len(ids), [t.dim for t in tables])
    return tf.gradients(
        tf.add_n([tf.reduce_sum(o) for o in outputs]),
        [t.handle for t in tables])

  def _apply_with_plan(self, tables, grads, keys=None, plan_tables=None):
    plans = [lookup_sparse_ops.plan_of(g) for g in grads]
    return apply_ops.apply(
        "SGD", [t.handle for t in tables], keys or [g.indices for g in grads],
        [g.values for g in grads], [1.0], 7, [[]] * len(tables),
        [[]] * len(tables), plan=plans[0][0],
        plan_tables=plan_tables or [t for _, t in plans])

  def test_a_plan_does_not_change_the_result(self):
    tables = [
        testing.Table(name, 2, record_frequency=True, record_version=True)
        for name in ("a", "b")
    ]
    ids = [[1, 2, 1, -9], [2**40, 5, 5]]
    grads = self._lookup_and_grads(tables, ids)
    # In a different order from the lookup's.
    update = self._apply_with_plan(tables[::-1], grads[::-1])
    rows = [gather_ops.gather(t.handle, i) for t, i in zip(tables, ids)]
    meta = [gather_ops.get_meta(t.handle, i) for t, i in zip(tables, ids)]
    with testing.session() as sess:
      sess.run([t.init for t in tables])
      for _ in range(2):
        sess.run(update)
      got_rows, got_meta = sess.run([rows, meta])
    for table, batch, row, (frequencies, versions) in zip(
        tables, ids, got_rows, got_meta):
      counts = np.array([batch.count(i) for i in batch])
      self.assertAllClose(
          testing.rows_of(batch, table.defaults) - 2 * counts[:, None], row)
      self.assertAllEqual(2 * counts, frequencies)
      self.assertAllEqual(np.full(len(batch), 7), versions)

  def _pooled(self, tables, ids, **change):
    _, plan = lookup_sparse_ops.lookup_sparse(
        [t.handle for t in tables], ids, [[0, len(i)] for i in ids],
        [1] * len(ids), ["sum"] * len(ids), [t.dim for t in tables])
    args = dict(rule="SGD", resources=[t.handle for t in tables],
                grads=[tf.ones([1, t.dim]) for t in tables], hyper=[1.0], step=0,
                slot_names=[[] for _ in tables], slot_inits=[[] for _ in tables],
                plan=plan, plan_tables=list(range(len(tables))))
    args.update(change)
    return apply_ops.apply_pooled(**args)

  def test_gradients_of_the_outputs_reach_every_occurrence(self):
    tables = [testing.Table("a", 2), testing.Table("b", 3)]
    update = self._pooled(tables, [[7, 7, 8], [7]])
    rows = [gather_ops.gather(t.handle, [7, 8, 9]) for t in tables]
    with testing.session() as sess:
      sess.run([t.init for t in tables])
      sess.run(update)
      a, b = sess.run(rows)
      old = [testing.rows_of([7, 8, 9], t.defaults) for t in tables]
      self.assertAllClose(old[0] - [[2, 2], [1, 1], [0, 0]], a)
      self.assertAllClose(old[1] - [[1, 1, 1], [0, 0, 0], [0, 0, 0]], b)

  @parameterized.parameters(
      (dict(grads=[[[1.0, 2.0, 3.0]]]), "gradient of table 0: expected shape"),
      (dict(grads=[]), "1 tables got 0 grads"),
      (dict(plan_tables=[]), "1 tables got 0 plan_tables"),
      (dict(slot_names=[["a"]]), "1 slot names but 0 initial values"),
  )
  def test_pooled_wrong_at_construction(self, change, message):
    with self.assertRaisesRegex(ValueError, message):
      self._pooled([testing.Table("user", 2)], [[1]], **change)

  @parameterized.parameters(
      (1, 0, "the gradient: expected shape .1,2., got .3,2."),
      (0, 1, "is not table 1 of the lookup"),
  )
  def test_pooled_wrong_at_run_time_changes_nothing(self, is_long, number, message):
    with tf.Graph().as_default():
      grad = np.ones([3 if is_long else 1, 2], np.float32)
      change = dict(grads=[tf.placeholder_with_default(grad, None)],
                    plan_tables=[number])
      table = testing.Table("user", 2)
      update = self._pooled([table], [[1]], **change)
      keys = handle_ops.shape(table.handle)
      with testing.session() as sess:
        sess.run(table.init)
        with self.assertRaisesRegex(tf.errors.InvalidArgumentError, message):
          sess.run(update)
        self.assertAllEqual([0, 2], sess.run(keys))

  def test_keys_from_outside_the_plan_are_looked_up_again(self):
    tables = [testing.Table("a", 2)]
    grads = self._lookup_and_grads(tables, [[1, 2]])
    update = self._apply_with_plan(
        tables, grads, keys=[tf.constant([2, 8], tf.int64)])
    rows = gather_ops.gather(tables[0].handle, [1, 2, 8])
    with testing.session() as sess:
      sess.run(tables[0].init)
      sess.run(update)
      want = testing.rows_of([1, 2, 8], tables[0].defaults)
      want[1:] -= 1
      self.assertAllClose(want, sess.run(rows))

  @parameterized.parameters([[1, 0]], [[5, -1]])
  def test_keys_with_wrong_plan_tables_are_looked_up_again(self, plan_tables):
    tables = [testing.Table("a", 2), testing.Table("b", 2)]
    grads = self._lookup_and_grads(tables, [[1, 2], [1, 2]])
    update = self._apply_with_plan(tables, grads, plan_tables=plan_tables)
    rows = [gather_ops.gather(t.handle, [1, 2]) for t in tables]
    with testing.session() as sess:
      sess.run([t.init for t in tables])
      sess.run(update)
      for table, row in zip(tables, sess.run(rows)):
        self.assertAllClose(
            testing.rows_of([1, 2], table.defaults) - 1, row)

  def test_rows_erased_between_lookup_and_update(self):
    # The plan's row handles are stale then, which the update must detect.
    table = testing.Table("a", 2)
    first = _sgd(table, [1, 2, 3], np.ones([3, 2], np.float32))
    grads = self._lookup_and_grads([table], [[1, 2]])
    with tf.control_dependencies([grads[0].values]):
      erase = row_ops.erase(table.handle, [1, 3])
      with tf.control_dependencies([erase]):
        other = _sgd(table, [77], np.full([1, 2], 5, np.float32))
        with tf.control_dependencies([other]):
          update = self._apply_with_plan([table], grads)
    rows = gather_ops.gather(table.handle, [1, 2, 3, 77])
    with testing.session() as sess:
      sess.run(table.init)
      sess.run(first)
      sess.run(update)
      want = testing.rows_of([1, 2, 3, 77], table.defaults)
      self.assertAllClose(want - [[1], [2], [0], [5]], sess.run(rows))

  def test_table_initialised_again_between_lookup_and_update(self):
    table = testing.Table("a", 2)
    grads = self._lookup_and_grads([table], [[1, 2]])
    first = _sgd(table, [1, 2, 3], np.ones([3, 2], np.float32))
    with tf.control_dependencies([grads[0].values]):
      again = handle_ops.initialize(table.handle, table.defaults)
      with tf.control_dependencies([again]):
        update = self._apply_with_plan([table], grads)
    rows = gather_ops.gather(table.handle, [1, 2, 3])
    with testing.session() as sess:
      sess.run(table.init)
      sess.run(first)
      sess.run(update)
      want = testing.rows_of([1, 2, 3], table.defaults)
      self.assertAllClose(want - [[1], [1], [0]], sess.run(rows))

  def test_a_slot_added_between_lookup_and_update(self):
    # Widening the rows must not leave the plan with addresses of the old ones.
    table = testing.Table("a", 2)
    first = _sgd(table, [1, 2], np.ones([2, 2], np.float32))
    grads = self._lookup_and_grads([table], [[1, 2]])
    with tf.control_dependencies([grads[0].values]):
      _, (slot,) = row_ops.read_rows(table.handle, [1], ["late"], [0.25])
      with tf.control_dependencies([slot]):
        update = self._apply_with_plan([table], grads)
    rows = gather_ops.gather(table.handle, [1, 2])
    with testing.session() as sess:
      sess.run(table.init)
      sess.run(first)
      got_slot, _ = sess.run([slot, update])
      self.assertAllEqual([[0.25, 0.25]], got_slot)
      self.assertAllClose(
          testing.rows_of([1, 2], table.defaults) - 2, sess.run(rows))

  # -- wrong input ------------------------------------------------------------

  @parameterized.parameters(
      (dict(keys=[[1, 2]]), "gradient of table 0: expected shape"),
      (dict(keys=[[[1]]]), "keys of table 0: expected rank 1"),
      (dict(grads=[[[1.0, 2.0, 3.0]]]), "gradient of table 0: expected shape"),
      (dict(grads=[[1.0, 2.0]]), "gradient of table 0: expected rank 2"),
      (dict(hyper=[[0.1, 0.2]]), "hyperparameter 0: expected rank 0"),
      (dict(step=[1]), "step: expected rank 0"),
      (dict(slot_names=[["a"]]), "1 slot names but 0 initial values"),
      (dict(slot_names=[]), "1 tables got 0 slot_names"),
      (dict(keys=[]), "1 tables got 0 keys"),
      (dict(plan_tables=[0]), "plan_tables without a plan"),
  )
  def test_wrong_at_construction(self, change, message):
    table = testing.Table("user", 2)
    args = dict(rule="SGD", keys=[[1]], grads=[[[1.0, 2.0]]], hyper=[0.1],
                step=0, slot_names=[[]], slot_inits=[[]])
    args.update(change)
    with self.assertRaisesRegex(ValueError, message):
      apply_ops.apply(resources=[table.handle], **args)

  @parameterized.parameters(
      (dict(rule="Nonsense"), "Nonsense"),
      (dict(hyper=[]), "SGD"),
      (dict(hyper=[0.1, 0.2, 0.3]), "SGD takes 1 hyperparameters and perhaps a factor, got 3"),
      (dict(slot_names=[["a"]], slot_inits=[[0.0]]), "SGD"),
  )
  def test_wrong_rule_or_hyper_changes_nothing(self, change, message):
    table = testing.Table("user", 2)
    args = dict(rule="SGD", keys=[[1]], grads=[[[1.0, 2.0]]], hyper=[0.1],
                step=0, slot_names=[[]], slot_inits=[[]])
    args.update(change)
    update = apply_ops.apply(resources=[table.handle], **args)
    keys = handle_ops.shape(table.handle)
    with testing.session() as sess:
      sess.run(table.init)
      with self.assertRaisesRegex(tf.errors.InvalidArgumentError, message):
        sess.run(update)
      self.assertAllEqual([0, 2], sess.run(keys))

  @parameterized.parameters(
      (dict(keys=[1, 2]), "'user'.*gradient"),
      (dict(keys=[[1]]), "'user'.*keys: expected a vector"),
      (dict(grads=[[1.0, 2.0, 3.0]]), "'user'.*gradient"),
      (dict(rate=[0.1]), "SGD.*hyperparameter 0: expected a scalar"),
      (dict(step=[0]), "SGD.*step: expected a scalar"),
  )
  def test_wrong_when_run(self, change, message):
    table = testing.Table("user", 2)
    right = dict(keys=[1], grads=[[1.0, 2.0]], rate=1.0, step=0)
    types = dict(keys=tf.int64, grads=tf.float32, rate=tf.float32,
                 step=tf.int64)
    fed = {k: tf.compat.v1.placeholder(types[k]) for k in right}
    update = _sgd(table, fed["keys"], fed["grads"], fed["rate"], fed["step"])
    keys = handle_ops.shape(table.handle)
    with testing.session() as sess:
      sess.run(table.init)
      wrong = dict(right, **change)
      with self.assertRaisesRegex(tf.errors.InvalidArgumentError, message):
        sess.run(update, {fed[k]: wrong[k] for k in fed})
      self.assertAllEqual([0, 2], sess.run(keys))
      sess.run(update, {fed[k]: right[k] for k in fed})
      self.assertAllEqual([1, 2], sess.run(keys))

  def test_one_table_twice(self):
    table = testing.Table("user", 2)
    update = apply_ops.apply("SGD", [table.handle] * 2, [[1], [2]],
                             [np.ones([1, 2], np.float32)] * 2, [0.1], 0,
                             [[], []], [[], []])
    with testing.session() as sess:
      sess.run(table.init)
      with self.assertRaisesRegex(tf.errors.InvalidArgumentError,
                                  "'user'.*updated twice"):
        sess.run(update)

  def test_before_initialisation(self):
    tables = [testing.Table("ready", 2), testing.Table("late", 2)]
    update = apply_ops.apply("SGD", [t.handle for t in tables], [[1], [1]],
                             [np.ones([1, 2], np.float32)] * 2, [0.1], 0,
                             [[], []], [[], []])
    keys = handle_ops.shape(tables[0].handle)
    with testing.session() as sess:
      sess.run(tables[0].init)
      with self.assertRaisesRegex(tf.errors.FailedPreconditionError,
                                  "'late' is not initialized"):
        sess.run(update)
      self.assertAllEqual([0, 2], sess.run(keys))

  def test_slot_created_after_rows_exist_fills_them(self):
    table = testing.Table("user", 2)
    first = _sgd(table, [1], np.ones([1, 2], np.float32))
    second = apply_ops.apply("Adagrad", [table.handle], [[1, 2]],
                             [np.zeros([2, 2], np.float32)], [0.1], 0,
                             [["Adagrad"]], [[0.5]])
    exported = checkpoint_ops.export_table(table.handle, ["Adagrad"])
    with testing.session() as sess:
      sess.run(table.init)
      sess.run(first)
      sess.run(second)
      got = sess.run(exported)
      self.assertAllEqual([1, 2], got.keys)
      self.assertAllEqual(np.full([2, 2], 0.5), got.slots[0])
      want = testing.rows_of([1, 2], table.defaults)
      want[0] -= 1
      self.assertAllClose(want, got.values)


if __name__ == "__main__":
  absltest.main()
