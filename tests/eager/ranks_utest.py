# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Ranks train eager tables like one process; every rank runs this program.

With a GPU for each rank, tables in GPU memory and NCCL:

  TF_FORCE_GPU_ALLOW_GROWTH=true SOK_EXCHANGE=nccl horovodrun -np 2 \\
      python tests/eager/ranks_utest.py --storage=hbm --device=/gpu:0
"""

import os

# One GPU per process, set before TensorFlow looks for GPUs.
if "HOROVOD_LOCAL_RANK" in os.environ:
  os.environ.setdefault("CUDA_VISIBLE_DEVICES", os.environ["HOROVOD_LOCAL_RANK"])

# pylint: disable=g-import-not-at-top
from absl.testing import absltest
from absl.testing import parameterized
import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

import ranks_models as models
import sparse_operation_kit as sok
from sparse_operation_kit import settings
# pylint: enable=g-import-not-at-top

_STEPS = 3
_MODES = ("eager", "function")


def _legacy(name, *args, **kwargs):
  return getattr(tf.keras.optimizers.legacy, name)(*args, **kwargs)


_OPTIMIZERS = {
    "sgd": lambda: tf.keras.optimizers.SGD(.1),
    # With the usual epsilon a gradient near zero, of which only rounding errors differ
    # between one rank and several, would move a row as much as any other.
    "adam": lambda: tf.keras.optimizers.Adam(.1, epsilon=.01),
    "adagrad of tf.train": lambda: tf.compat.v1.train.AdagradOptimizer(.1),
    "legacy momentum": lambda: _legacy("SGD", .1, momentum=.9),
    "wrapped": lambda: sok.OptimizerWrapper(tf.keras.optimizers.Adagrad(.1)),
}


class TrainingTest(parameterized.TestCase):

  def check(self, step_of, whole_step_of, mode, placements=(-1, -1, -1), steps=_STEPS,
            weighted=True):
    """Trains both models and compares losses, rows and slots.

    Args:
      step_of: function of a model that returns a function of a batch's tensors, which
        trains and returns this rank's part of the loss.
      whole_step_of: the same for the reference, whose loss is that of all ranks.
    """
    model = models.Model(sok.lookup_sparse, placements, weighted)
    whole = models.Model(models.local, weighted=weighted)
    step, whole_step = step_of(model), whole_step_of(whole)
    if mode == "function":
      # One trace for all sizes of batches.
      step = tf.function(step, reduce_retracing=True)
    losses, expected = [], []
    for mine, merged in models.batches(steps):
      losses.append(float(models.sum_over_ranks(step(*mine.tensors))))
      expected.append(float(whole_step(*merged.tensors)))
    np.testing.assert_allclose(losses, expected, rtol=models.RTOL)
    for table, other in zip(model.tables, whole.tables):
      models.compare(table, other)
    np.testing.assert_allclose(model.weight.numpy(), whole.weight.numpy(),
                               rtol=models.RTOL, atol=models.ATOL)
    return model

  @parameterized.parameters([(n, m) for n in sorted(_OPTIMIZERS) for m in _MODES])
  def test_gradients_are_sums_over_ranks(self, name, mode):
    # Keras 3 has the names of legacy optimizers.
    if name.startswith("legacy") and hasattr(tf.keras, "Variable"):
      self.skipTest("this Keras has no legacy optimizers")

    def step_of(model, reduce=models.sum_over_ranks):
      sparse, dense = sok.filter_variables(model.all_variables())
      of_tables, of_dense = _OPTIMIZERS[name](), tf.keras.optimizers.SGD(.1)

      def step(*batch):
        with tf.GradientTape() as tape:
          loss = tf.reduce_sum(model.losses(*batch))
        grads = tape.gradient(loss, sparse + dense)
        of_tables.apply_gradients(zip(grads[:len(sparse)], sparse))
        of_dense.apply_gradients([(reduce(grads[-1]), dense[0])])
        return loss

      return step

    self.check(step_of, lambda model: step_of(model, tf.identity), mode,
               [-1, hvd.size() - 1, [hvd.size() - 1, 0, 0]])

  @parameterized.parameters([(op, m) for op in ("Average", "Sum") for m in _MODES])
  def test_horovods_tape(self, op, mode):
    op = getattr(hvd, op)

    def step_of(model):
      optimizer = tf.keras.optimizers.Adagrad(.1)

      def step(*batch):
        with tf.GradientTape() as tape:
          loss = tf.reduce_sum(model.losses(*batch))
        tape = hvd.DistributedGradientTape(tape, op=op)
        variables = model.all_variables()
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

      return step

    def whole_step_of(model):
      optimizer = tf.keras.optimizers.Adagrad(.1)
      divisor = hvd.size() if op == hvd.Average else 1

      def step(*batch):
        with tf.GradientTape() as tape:
          loss = tf.reduce_sum(model.losses(*batch))
          scaled = loss / divisor
        variables = model.all_variables()
        optimizer.apply_gradients(zip(tape.gradient(scaled, variables), variables))
        return loss

      return step

    self.check(step_of, whole_step_of, mode)

  @parameterized.parameters(*_MODES)
  def test_lookups_without_weights(self, mode):

    def step_of(model, reduce=models.sum_over_ranks):
      optimizer = tf.compat.v1.train.AdagradOptimizer(.1)

      def step(*batch):
        with tf.GradientTape() as tape:
          loss = tf.reduce_sum(model.losses(*batch))
        variables = model.all_variables()
        grads = tape.gradient(loss, variables)
        grads[-1] = reduce(grads[-1])
        optimizer.apply_gradients(zip(grads, variables))
        return loss

      return step

    self.check(step_of, lambda model: step_of(model, tf.identity), mode,
               [-1, hvd.size() - 1, [hvd.size() - 1, 0, 0]], weighted=False)

  def test_horovods_optimizer_of_tf_train(self):

    def step_of(model, wrap=hvd.DistributedOptimizer, divisor=1):
      optimizer = wrap(tf.compat.v1.train.AdagradOptimizer(.1))

      def step(*batch):
        losses = []

        def loss():
          losses.append(tf.reduce_sum(model.losses(*batch)))
          return losses[-1] / divisor

        optimizer.minimize(loss, var_list=model.all_variables())
        return losses[-1]

      return step

    self.check(step_of, lambda model: step_of(model, lambda x: x, hvd.size()), "eager")

  @parameterized.parameters(*_MODES)
  def test_clipping_by_the_norm_over_ranks(self, mode):

    def step_of(model, reduce=models.sum_over_ranks):
      optimizer = tf.keras.optimizers.SGD(.5)

      def step(*batch):
        with tf.GradientTape() as tape:
          loss = tf.reduce_sum(model.losses(*batch))
        variables = model.all_variables()
        grads = tape.gradient(loss, variables)
        grads[-1] = reduce(grads[-1])
        clipped, _ = tf.clip_by_global_norm(grads, .3)
        optimizer.apply_gradients(zip(clipped, variables))
        return loss

      return step

    self.check(step_of, lambda model: step_of(model, tf.identity), mode)

  @parameterized.parameters(*_MODES)
  def test_a_table_that_is_looked_up_twice_and_clipped(self, mode):

    def step_of(model):
      table, optimizer = model.tables[0], tf.keras.optimizers.SGD(.5)

      def step(ids, weights, labels):
        del weights
        with tf.GradientTape() as tape:
          first, = model._lookup([table], [ids], [None], ["sum"])  # pylint: disable=protected-access
          second, = model._lookup([table], [ids * 3], [None], ["sum"])  # pylint: disable=protected-access
          loss = tf.reduce_sum(tf.square(tf.reduce_sum(first * second, 1) - labels))
        grad = tape.gradient(loss, table)
        optimizer.apply_gradients([(tf.clip_by_norm(grad, .5), table)])
        return loss

      return step

    model, whole = models.Model(sok.lookup_sparse), models.Model(models.local)
    step, whole_step = step_of(model), step_of(whole)
    if mode == "function":
      step = tf.function(step, reduce_retracing=True)
    for mine, merged in models.batches(_STEPS):
      np.testing.assert_allclose(float(models.sum_over_ranks(step(*mine.tensors))),
                                 float(whole_step(*merged.tensors)), rtol=models.RTOL)
    if mode == "function" or hvd.size() == 1:
      models.compare(model.tables[0], whole.tables[0])

  def test_a_tape_around_a_function(self):

    def step_of(model, reduce=models.sum_over_ranks, function=tf.function):
      optimizer = tf.keras.optimizers.SGD(.5)
      losses = function(model.losses)

      def step(*batch):
        with tf.GradientTape() as tape:
          loss = tf.reduce_sum(losses(*batch))
        variables = model.all_variables()
        grads = tape.gradient(loss, variables)
        grads[-1] = reduce(grads[-1])
        clipped, _ = tf.clip_by_global_norm(grads, .3)
        optimizer.apply_gradients(zip(clipped, variables))
        return loss

      return step

    self.check(step_of, lambda model: step_of(model, tf.identity, lambda f: f), "eager")

  @parameterized.parameters(*_MODES)
  def test_gradients_of_gradients(self, mode):

    def step_of(model):
      optimizer = tf.keras.optimizers.SGD(.1)

      def step(ids, weights, labels):
        tables = model.tables[:2]
        with tf.GradientTape() as outer:
          with tf.GradientTape() as tape:
            outputs = model._lookup(tables, [ids, ids], [None, None], ["sum", "mean"])  # pylint: disable=protected-access
            loss = tf.reduce_sum(tf.square(tf.reduce_sum(tf.concat(outputs, 1) ** 2, 1) -
                                           labels))
          grads = tape.gradient(loss, tables)
          penalty = tf.add_n([tf.reduce_sum(g.values ** 2) for g in grads])
        del weights
        optimizer.apply_gradients(zip(outer.gradient(penalty, tables), tables))
        return penalty

      return step

    model, whole = models.Model(sok.lookup_sparse), models.Model(models.local)
    step, whole_step = step_of(model), step_of(whole)
    if mode == "function":
      step = tf.function(step, reduce_retracing=True)
    if settings.exchange_carrier() == "nccl" and hvd.size() > 1:
      with self.assertRaisesRegex(NotImplementedError, "cannot be exchanged by NCCL"):
        step(*models.batches(1)[0][0].tensors)
      return
    for mine, merged in models.batches(1):
      np.testing.assert_allclose(float(models.sum_over_ranks(step(*mine.tensors))),
                                 float(whole_step(*merged.tensors)), rtol=models.RTOL)
    for table, other in list(zip(model.tables, whole.tables))[:2]:
      models.compare(table, other)


class LookupTest(parameterized.TestCase):

  @parameterized.parameters(*_MODES)
  def test_one_row_per_id(self, mode):
    table = sok.Variable(np.arange(30, dtype=np.float32).reshape(10, 3))
    ids = tf.constant([3, hvd.rank(), 3], tf.int64)

    optimizer = sok.SGD(lr=1.)

    def step():
      with tf.GradientTape() as tape:
        found = sok.all2all_dense_embedding(table, ids)
        loss = tf.reduce_sum(found)
      optimizer.apply_gradients([(tape.gradient(loss, table), table)])
      return found

    if mode == "function":
      step = tf.function(step)
    found = step()
    expected = np.arange(30).reshape(10, 3)[[3, hvd.rank(), 3]]
    np.testing.assert_array_equal(found.numpy(), expected)
    # Row 3 is looked up twice by each rank.
    again = sok.all2all_dense_embedding(table, tf.constant([3], tf.int64)).numpy()
    count = 2 * hvd.size() + (hvd.size() > 3)
    np.testing.assert_array_equal(again, np.arange(9, 12)[None, :] - float(count))

  @parameterized.parameters([(r, m) for r in (0., 1.) for m in _MODES])
  def test_the_filter_of_rare_keys(self, ratio, mode):
    table = sok.DynamicVariable(dimension=2, initializer="ones", var_type="hybrid",
                                filter_ratio=ratio)
    ids = tf.ragged.constant([[hvd.rank(), 7], [1]], dtype=tf.int64)

    def look_up():
      return sok.lookup_sparse(table, ids, combiners="sum", use_low_frequency_filter=True)

    found = (look_up if mode == "eager" else tf.function(look_up))()
    np.testing.assert_array_equal(found.numpy(), ratio * np.array([[2, 2], [1, 1]]))

  def test_functions_in_a_function(self):
    tables = [sok.DynamicVariable(dimension=2, initializer=str(i + 1.)) for i in range(4)]
    ids = tf.ragged.constant([[hvd.rank()], [7, 8]], dtype=tf.int64)

    def function_of(table):
      return tf.function(lambda x: sok.lookup_sparse(table, x, combiners="sum"))

    functions = [function_of(t) for t in tables]

    @tf.function
    def outer(x):
      return [f(x) for f in functions]

    for _ in range(5):
      for i, found in enumerate(outer(ids)):
        np.testing.assert_array_equal(found.numpy(), (i + 1.) * np.array([[1, 1], [2, 2]]))

  def test_a_rank_that_traces_again(self):
    table = sok.DynamicVariable(dimension=2, initializer="ones")

    @tf.function
    def look_up(x):
      return sok.lookup_sparse(table, x, combiners="sum")

    # Only the last rank gets another shape.
    count = 3 if hvd.rank() == hvd.size() - 1 else 2
    for n in (2, count, 2):
      ids = tf.RaggedTensor.from_row_splits(
          tf.range(n, dtype=tf.int64), tf.range(n + 1, dtype=tf.int64))
      np.testing.assert_array_equal(look_up(ids).numpy(), np.ones([n, 2]))

  def test_lookups_in_one_step(self):
    first = sok.DynamicVariable(dimension=2, initializer="ones")
    second = sok.DynamicVariable(dimension=3, initializer="ones")
    optimizer = sok.SGD(lr=.1)
    ids = tf.ragged.constant([[hvd.rank(), 1], [2]], dtype=tf.int64)

    @tf.function
    def step():
      with tf.GradientTape() as tape:
        a = sok.lookup_sparse(first, ids, combiners="sum")
        b = sok.lookup_sparse(second, ids, combiners="mean")
        c = sok.lookup_sparse(first, ids, combiners="mean")
        loss = tf.reduce_sum(a * c) + tf.reduce_sum(b)
      grads = tape.gradient(loss, [first, second])
      optimizer.apply_gradients(zip(grads, [first, second]))
      return loss

    losses = [float(step()) for _ in range(10)]
    self.assertLess(losses[-1], losses[0])

  def test_rows_of_other_ranks_are_dropped(self):
    table = tf.compat.v1.get_embedding_variable("t", 2, initializer=tf.ones_initializer())
    table.import_rows(np.arange(8), np.ones([8, 2]))
    sok.lookup_sparse(table, tf.ragged.constant([[1]], dtype=tf.int64))
    self.assertEqual([k for k in range(8) if k % hvd.size() == hvd.rank()],
                     sorted(table.export().keys.numpy().tolist()))

  def test_only_copies_are_broadcast(self):
    rank = float(hvd.rank())
    copy = tf.compat.v1.get_embedding_variable(
        "copy", 2, initializer=tf.constant_initializer(rank))
    spread = sok.DynamicVariable(dimension=2, initializer="ones")
    for table in (copy, spread):
      table.import_rows([hvd.rank()], [[rank, 5.]])
    hvd.broadcast_variables([copy, spread], root_rank=0)
    self.assertEqual([0], copy.export().keys.numpy().tolist())
    np.testing.assert_array_equal(
        tf.nn.embedding_lookup(copy, tf.constant([0, 9], tf.int64)).numpy(),
        [[0., 5.], [0., 0.]])
    self.assertEqual([hvd.rank()], spread.export().keys.numpy().tolist())

  def test_a_local_lookup_of_a_spread_table_cannot_train(self):
    if hvd.size() == 1:
      self.skipTest("one rank has all rows")
    table = sok.DynamicVariable(dimension=2, name="spread_table")
    sok.lookup_sparse(table, tf.ragged.constant([[1]], dtype=tf.int64))
    with tf.GradientTape() as tape:
      loss = tf.reduce_sum(tf.nn.embedding_lookup(table, tf.constant([1], tf.int64)))
    with self.assertRaisesRegex(ValueError, "'spread_table.*spread over ranks"):
      tape.gradient(loss, table)


if __name__ == "__main__":
  hvd.init()
  sok.init()
  absltest.main()
