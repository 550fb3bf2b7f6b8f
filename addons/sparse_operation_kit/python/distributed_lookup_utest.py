# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that sok.lookup_sparse on W ranks trains like one process.

  horovodrun -np 2 -H localhost:2 python distributed_lookup_utest.py

Every rank runs the same cases in the same order, with any number of ranks.
"""

from absl.testing import absltest
from absl.testing import parameterized
import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

from sparse_operation_kit import experiment as sok
from sparse_operation_kit import settings
from sparse_operation_kit.exchange import spread_lookup

import distributed_model as model

_train = tf.compat.v1.train


def _adagrad():
  return _train.AdagradOptimizer(.1)


def _adam():
  return _train.AdamOptimizer(.01)


def _sgd():
  return _train.GradientDescentOptimizer(.5)


# name: (optimizer, whether TensorFlow's dense version updates every row at every step)
_AGAINST_DENSE = {
    "adagrad": (_adagrad, False),
    "adam": (_adam, True),
    "ftrl": (lambda: _train.FtrlOptimizer(
        .1, l1_regularization_strength=.001, l2_regularization_strength=.01), False),
}


class DistributedLookupTest(model.DistributedTestCase):

  @parameterized.parameters(*sorted(_AGAINST_DENSE))
  def test_against_dense_variables(self, name):
    optimizer, all_rows = _AGAINST_DENSE[name]
    self.train(model.mixed_tables(hvd.size()), optimizer, seed=2, all_rows=all_rows,
               reference="dense")

  @parameterized.product(weighted=(False, True), reference=("dense", "table"))
  def test_max(self, weighted, reference):
    # Mixed with tables of other combiners, with weights and without.
    last = hvd.size() - 1
    tables = [
        model.Table(5, "max", model.SPARSE, False, -1, 6),
        model.Table(16, "mean", model.RAGGED, weighted, last, 3),
        model.Table(9, "max", model.RAGGED, False, [last, 0, 0], 4),
    ]
    self.train(tables, _adagrad, seed=12, reference=reference)

  def test_max_takes_neither_weights_nor_the_filter_of_rare_keys(self):
    with tf.Graph().as_default():
      table = sok.DynamicVariable(dimension=3, var_type="hybrid", name="rare")
      ids = tf.SparseTensor([[0, 0]], tf.constant([1], tf.int64), [1, 1])
      weights = tf.SparseTensor([[0, 0]], [1.], [1, 1])
      with self.assertRaisesRegex(ValueError, "'rare'.*'max' takes no weights"):
        sok.lookup_sparse(table, ids, weights, "max")
      with self.assertRaisesRegex(ValueError, "filter.*'max', of 'rare'"):
        sok.lookup_sparse(table, ids, combiners="max", use_low_frequency_filter=True)

  @parameterized.parameters(2, 3)
  def test_a_penalty_on_gradients(self, order):
    if settings.exchange_on_device():
      self.skipTest("gradients of gradients are not exchanged by NCCL")

    def with_penalty(made):
      # Each rank has the rows that it owns.
      loss = made.loss
      for _ in range(order - 1):
        gradients = tf.gradients(loss, made.variables)
        loss += .01 * tf.add_n([tf.reduce_sum(g.values ** 2) for g in gradients])
      return loss

    last = hvd.size() - 1
    tables = [
        model.Table(3, "sum", model.SPARSE, False, -1, 4),
        model.Table(7, "mean", model.RAGGED, True, [last, 0, 0], 5),
        model.Table(5, "max", model.SPARSE, False, last, 4),
    ]
    self.train(tables, _sgd, seed=14, steps=4 - order, loss_of=with_penalty, rtol=2e-4,
               atol=2e-5)

  def test_a_penalty_trains_weights(self):
    if settings.exchange_on_device():
      self.skipTest("gradients of gradients are not exchanged by NCCL")
    table = model.Table(4, "mean", model.RAGGED, True, -1, 4)
    rng = np.random.RandomState(15)
    initial = model.initial_rows(rng, [table])
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      found = []
      made = [model.Model("s", [table], sok.lookup_sparse, initial),
              model.Model("w", [table], model.local_lookup, initial)]
      for m in made:
        g, = tf.gradients(m.loss, m.variables)
        found += tf.gradients(tf.reduce_sum(g.values ** 2), [m.weights[0].values])
      session.run(tf.compat.v1.global_variables_initializer())
      batches = model.draw(rng, [table], [4 + r for r in range(hvd.size())])
      merged = model.Batch.merge([b[0] for b in batches])
      mine, everything = session.run(found, model.merge(
          made[0].feed(batches[hvd.rank()]), made[1].feed([merged])))
    begin = sum(len(b[0].weights) for b in batches[:hvd.rank()])
    np.testing.assert_allclose(mine, everything[begin:begin + len(mine)], rtol=1e-4,
                               atol=1e-6)

  def test_the_gradient_of_weights_has_none(self):
    with tf.Graph().as_default():
      made = model.Model("s", [model.Table(4, "mean", model.RAGGED, True, -1, 4)],
                         sok.lookup_sparse, [np.zeros([model.ROWS, 4], np.float32)])
      of_weights, = tf.gradients(made.loss, [made.weights[0].values])
      with self.assertRaisesRegex(NotImplementedError, "gradient of the weights"):
        tf.gradients(tf.reduce_sum(of_weights ** 2), made.variables)

  def test_weights_that_sum_to_zero_give_zeros_and_train_nothing(self):
    rank, last = hvd.rank(), hvd.size() - 1
    rows = np.arange(1, 1 + model.ROWS * 2, dtype=np.float32).reshape([model.ROWS, 2])
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      variables = []
      for i, target in enumerate((-1, last)):
        variables.append(tf.get_embedding_variable(
            "v%d" % i, embedding_dim=2, ev_option=tf.EmbeddingVariableOption(
                init_option=tf.InitializerOption(
                    initializer=lambda shape, dtype: tf.constant(rows),
                    default_value_dim=model.ROWS),
                storage_option=tf.StorageOption(storage_type=model.storage_of(i)))))
        variables[-1].target_gpu = target
      # Each rank has different keys; the first sample's weights sum to 0.
      keys = tf.constant([3, 4, 5, 6], tf.int64) + 4 * rank % model.ROWS
      ids = tf.RaggedTensor.from_row_splits(keys, [0, 3, 4])
      w = tf.constant([1., .25, -1.25, 4.])
      weights = tf.RaggedTensor.from_row_splits(w, [0, 3, 4])
      outputs = sok.lookup_sparse(variables, [ids] * 2, [weights] * 2, ["mean"] * 2)
      loss = tf.add_n([tf.reduce_sum(tf.square(o)) for o in outputs])
      gradients = tf.gradients(loss, [w] + variables)
      session.run(tf.compat.v1.global_variables_initializer())
      found, gradients = session.run([outputs, gradients])
      mine = (6 + 4 * rank) % model.ROWS
      for output in found:
        np.testing.assert_array_equal(output, [[0, 0], rows[mine]])
      np.testing.assert_allclose(gradients[0], np.zeros(4), atol=1e-5)
      for slices in gradients[1:]:
        for key, row in zip(slices.indices, slices.values):
          is_trained = key in [6 + 4 * r % model.ROWS for r in range(hvd.size())]
          self.assertEqual((row != 0).all(), is_trained, (key, row))

  def test_int32_keys(self):
    self.train(model.mixed_tables(hvd.size()), _adagrad, seed=3, key_dtype=tf.int32)

  def test_same_bits_again(self):
    tables = model.mixed_tables(hvd.size())
    runs = [self.train(tables, _adam, seed=4, steps=5) for _ in range(2)]
    for first, second in zip(*runs):
      np.testing.assert_array_equal(first[0], second[0])
      for a, b in zip(first[1], second[1]):
        self.assertEqual(a.tobytes(), b.tobytes())

  # Outputs are rounded as their addends are, and a sum of bfloat16 addends may be
  # several times smaller than they are.
  @parameterized.parameters(("float16", 2. ** -9, 2. ** -9),
                            ("bfloat16", 2. ** -6, 2. ** -5))
  def test_narrow_exchange(self, dtype, rtol, atol):
    sok.init(exchange_dtype=dtype)
    self.addCleanup(sok.init)
    self.train(model.mixed_tables(hvd.size()), _sgd, seed=5, rtol=rtol, atol=atol)

  @parameterized.parameters(("float16", 2. ** -11), ("bfloat16", 2. ** -8))
  def test_narrow_exchange_rounds_each_part_once(self, dtype, unit):
    # Every number that a rank sends is rounded once and summed in float32. So the error
    # of an element is at most the unit times the sum of its addends' magnitudes.
    sok.init(exchange_dtype=dtype)
    self.addCleanup(sok.init)
    tables = [t for t in model.mixed_tables(hvd.size()) if t.max_hotness]
    rng = np.random.RandomState(9)
    initial = model.initial_rows(rng, tables)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      made = model.Model("s", tables, sok.lookup_sparse, initial)
      session.run(tf.compat.v1.global_variables_initializer())
      worst = 0.
      for step in range(model.STEPS):
        batches = model.draw(rng, tables, model.sizes_of(step))[hvd.rank()]
        outputs = session.run(made.outputs, made.feed(batches))
        for table, rows, batch, output in zip(tables, initial, batches, outputs):
          for sample in range(batch.size):
            ids_of_sample = slice(batch.splits[sample], batch.splits[sample + 1])
            weights = batch.weights[ids_of_sample].astype(np.float64)
            if not table.weighted:
              weights = np.ones_like(weights)
            addends = rows[batch.rows[ids_of_sample]] * weights[:, None]
            divisor = weights.sum() if table.combiner == "mean" and len(weights) else 1.
            error = np.abs(output[sample] - addends.sum(0) / divisor)
            bound = np.abs(addends).sum(0) / divisor
            np.testing.assert_array_less(error, bound * unit * 1.01 + 1e-7)
            worst = max([worst] + list(error))
      if hvd.size() > 1:
        # Values were sent in the narrow type.
        self.assertGreater(worst, unit / 100)

  @parameterized.product(dtype=(tf.float16, tf.bfloat16), exchange=("float32", "float16"),
                         weighted=(False, True))
  def test_narrow_outputs_have_the_bits_of_casts(self, dtype, exchange, weighted):
    sok.init(exchange_dtype=exchange)
    self.addCleanup(sok.init)
    last = hvd.size() - 1
    tables = [
        model.Table(16, "sum", model.SPARSE, False, -1, 4),
        model.Table(5, "mean", model.RAGGED, weighted, [last, 0], 5),
        model.Table(8, "mean", model.RAGGED, False, last, 1),
    ] + [model.Table(6, "max", model.SPARSE, False, -1, 4)] * (not weighted)
    rng = np.random.RandomState(21)
    initial = model.initial_rows(rng, tables)

    def narrow(*args):
      outputs = sok.lookup_sparse(*args, output_dtype=dtype)
      self.assertEqual([dtype] * len(tables), [x.dtype for x in outputs])
      return [tf.cast(x, tf.float32) for x in outputs]

    def cast(*args):
      return [tf.cast(tf.cast(x, dtype), tf.float32) for x in sok.lookup_sparse(*args)]

    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      made = [model.Model("n", tables, narrow, initial),
              model.Model("c", tables, cast, initial)]
      train = [model.minimize(_adagrad(), m.loss, m.variables) for m in made]
      session.run(tf.compat.v1.global_variables_initializer())
      for step in range(3):
        batches = model.draw(rng, tables, model.sizes_of(step))[hvd.rank()]
        feed = model.merge(*[m.feed(batches) for m in made])
        found = session.run([m.outputs for m in made], feed)
        for a, b in zip(*found):
          np.testing.assert_array_equal(a, b)
        session.run(train, feed)
      for (keys, values), (other_keys, other_values) in zip(
          *session.run([m.contents() for m in made])):
        np.testing.assert_array_equal(keys, other_keys)
        for a, b in zip(values, other_values):
          np.testing.assert_array_equal(a, b)

  def test_one_variable_twice_and_in_several_calls(self):
    table = model.Table(6, "sum", model.SPARSE, False, -1, 3)
    rng = np.random.RandomState(7)
    initial = model.initial_rows(rng, [table])
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      built = []
      for name, lookup in (("s", sok.lookup_sparse), ("w", model.local_lookup)):
        made = model.Model(name, [table], lookup, initial)
        twice = lookup([made.variables[0]] * 2, [made.ids[0]] * 2,
                       combiners=["sum", "mean"])
        loss = made.loss + 2. * made.loss_of(twice[:1]) + made.loss_of(twice[1:])
        train = _train.AdagradOptimizer(.1).minimize(loss, var_list=made.variables)
        built.append((made, train))
      session.run(tf.compat.v1.global_variables_initializer())
      for step in range(model.STEPS):
        batches = model.draw(rng, [table], model.sizes_of(step))
        feed = built[0][0].feed(batches[hvd.rank()])
        feed.update(built[1][0].feed(
            [model.Batch.merge([b[0] for b in batches])]))
        session.run([train for _, train in built], feed)
      mine, everything = session.run([m.contents()[0] for m, _ in built])
      self.compare(table, mine, everything, model.RTOL, model.ATOL)
      self.assertEqual(sum(self.gather(len(mine[0]))), len(everything[0]))

  def test_many_calls_and_several_gradients(self):
    # Independent exchanges in one run, which Horovod may do in any order.
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      outputs, variables = [], []
      ids = tf.SparseTensor([[0, 0], [0, 1]], tf.constant([3, 4 + hvd.rank()],
                                                          tf.int64), [1, 2])
      for i in range(7):
        variables.append(tf.get_embedding_variable(
            "v%d" % i, embedding_dim=2, initializer=tf.ones_initializer()))
        outputs.append(sok.lookup_sparse(variables[-1], ids, combiners="sum"))
      losses = [tf.reduce_sum(o) for o in outputs]
      sgd = _train.GradientDescentOptimizer(1.)
      # Two gradients per lookup, as a second loss or a clipping rule needs.
      first = tf.gradients(losses, variables)
      second = tf.gradients([2. * l for l in losses], variables)
      train = sgd.apply_gradients(zip(first, variables))
      session.run(tf.compat.v1.global_variables_initializer())
      values = session.run([g.values for g in first + second] + outputs)
      for a, b in zip(values[:7], values[7:14]):
        np.testing.assert_array_equal(2 * a, b)
      session.run(train)
      for output in session.run(outputs):
        # Key 3 was in every rank's batch, the other key in this rank's only, except if
        # 4 + rank is another rank's key: still one sample each.
        np.testing.assert_allclose(output, [[1. - hvd.size() + 0.] * 2])
      names = [e.name for e in spread_lookup.exchanges()] if hvd.size() > 1 else []
      self.assertLen(set(names), len(names))

  def test_lookup_without_training_inserts_nothing(self):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      variable = tf.get_embedding_variable(
          "v", embedding_dim=4, initializer=tf.constant_initializer(.25))
      ids = tf.RaggedTensor.from_row_splits(
          tf.constant([7, 8, 8], tf.int64), [0, 1, 3, 3])
      output = sok.lookup_sparse(variable, ids, combiners="sum")
      session.run(tf.compat.v1.global_variables_initializer())
      np.testing.assert_array_equal(
          session.run(output), np.outer([.25, .5, 0], np.ones(4)))
      self.assertEqual(session.run(variable.total_count())[0], 0)

  def test_evaluation_graph_and_several_sessions(self):
    """Trains, evaluates with another lookup of the same variable, and trains again."""
    with tf.Graph().as_default():
      variable = tf.get_embedding_variable(
          "v", embedding_dim=1, initializer=tf.zeros_initializer())
      ids = tf.SparseTensor([[0, 0]], tf.constant([5], tf.int64), [1, 1])
      loss = tf.reduce_sum(sok.lookup_sparse(variable, ids, combiners="sum"))
      train = _train.GradientDescentOptimizer(1.).minimize(loss)
      evaluated = sok.lookup_sparse([variable], [ids], combiners=["mean"])[0]
      initialize = tf.compat.v1.global_variables_initializer()
      for _ in range(2):
        with tf.compat.v1.Session() as session:
          session.run(initialize)
          for step in range(1, 4):
            session.run(train)
            self.assertEqual(session.run(evaluated)[0, 0], -step * hvd.size())
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      # Lookups of another graph have the same names.
      variable = tf.get_embedding_variable(
          "v", embedding_dim=1, initializer=tf.ones_initializer())
      output = sok.lookup_sparse(variable, ids_of(5), combiners="sum")
      session.run(tf.compat.v1.global_variables_initializer())
      self.assertEqual(session.run(output)[0, 0], 1.)

  def test_frequency_and_version_count_all_ranks(self):
    import os  # pylint: disable=g-import-not-at-top
    os.environ["TF_RECORD_FREQ"] = os.environ["TF_RECORD_VERSION"] = "1"
    self.addCleanup(os.environ.pop, "TF_RECORD_FREQ")
    self.addCleanup(os.environ.pop, "TF_RECORD_VERSION")
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      step = tf.compat.v1.train.create_global_step()
      variable = tf.get_embedding_variable("v", embedding_dim=1)
      ids = tf.SparseTensor([[0, 0], [0, 1], [0, 2]],
                            tf.constant([8, 8, 9], tf.int64), [1, 3])
      loss = tf.reduce_sum(sok.lookup_sparse(variable, ids))
      train = _train.AdagradOptimizer(1.).minimize(loss, global_step=step)
      session.run(tf.compat.v1.global_variables_initializer())
      for _ in range(3):
        session.run(train)
      frequency, version = session.run(
          [variable.get_frequency([8, 9]), variable.get_version([8, 9])])
      for i, key in enumerate((8, 9)):
        mine = key % hvd.size() == hvd.rank()
        self.assertEqual(frequency[i], (2 - i) * 3 * hvd.size() if mine else 0)
        self.assertEqual(version[i], 2 if mine else -1)

  def test_gradients_of_weights(self):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      table = model.Table(5, "mean", model.SPARSE, True, -1, 4)
      rng = np.random.RandomState(8)
      initial = model.initial_rows(rng, [table])
      sharded = model.Model("s", [table], sok.lookup_sparse, initial)
      whole = model.Model("w", [table], model.local_lookup, initial)
      gradients = [tf.gradients(m.loss, m.weights[0].values)[0]
                   for m in (sharded, whole)]
      session.run(tf.compat.v1.global_variables_initializer())
      batches = model.draw(rng, [table], model.sizes_of(0))[hvd.rank()]
      got, expected = session.run(
          gradients, model.merge(sharded.feed(batches), whole.feed(batches)))
      np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-7)

  def test_bad_ids_are_an_error_that_names_the_variable(self):
    # An equal error on all ranks, before any exchange.
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      variable = tf.get_embedding_variable("clicks", embedding_dim=1)
      ids = tf.SparseTensor([[1, 0], [0, 0]], tf.constant([1, 2], tf.int64), [2, 1])
      output = sok.lookup_sparse(variable, ids)
      session.run(tf.compat.v1.global_variables_initializer())
      with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "clicks"):
        session.run(output)

  def test_placement_errors(self):
    with tf.Graph().as_default():
      variable = tf.get_embedding_variable("user", embedding_dim=1)
      for target in (hvd.size(), -2, [], [0, hvd.size()], "0", 1.5, True, None):
        variable.target_gpu = target
        with self.assertRaisesRegex(ValueError, "target_gpu of variable 'user"):
          sok.lookup_sparse(variable, ids_of(1))

  def test_partitioned_variable_is_refused(self):
    if hvd.size() == 1:
      self.skipTest("needs several ranks")
    with tf.Graph().as_default():
      variable = tf.get_embedding_variable(
          "parts", embedding_dim=1, partitioner=tf.fixed_size_partitioner(2))
      with self.assertRaisesRegex(ValueError, "parts.*without a partitioner"):
        sok.lookup_sparse(variable, ids_of(1))


def ids_of(key):
  return tf.SparseTensor([[0, 0]], tf.constant([key], tf.int64), [1, 1])


if __name__ == "__main__":
  hvd.init()
  sok.init()
  # After a failure, a rank that continued would wait for the others.
  absltest.main(failfast=True)
