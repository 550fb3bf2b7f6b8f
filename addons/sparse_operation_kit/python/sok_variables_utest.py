# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that sok.Variable and sok.DynamicVariable over ranks train like dense variables.

  horovodrun -np 2 -H localhost:2 python sok_variables_utest.py
"""

from absl.testing import absltest
from absl.testing import parameterized
import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

from sparse_operation_kit import experiment as sok

_train = tf.compat.v1.train
_keras = tf.keras.optimizers

_ROWS = [17, 8, 5]
_DIMS = [4, 3, 10]
_COMBINERS = ["sum", "mean", "sum"]
_STEPS = 3

# Without optimizers whose momentum decays for rows without a gradient, because every
# step uses every row of every table.
_OPTIMIZERS = {
    "sok_sgd": lambda: sok.SGD(.5),
    "adam": lambda: sok.OptimizerWrapper(_train.AdamOptimizer(.1)),
    "keras_adamax": lambda: sok.OptimizerWrapper(_keras.Adamax(.01)),
}


def _initial():
  rng = np.random.RandomState(5)
  return [rng.normal(size=[r, d]).astype(np.float32) for r, d in zip(_ROWS, _DIMS)]


def _dynamic(initial):
  """Tables that start empty; each rank assigns its own rows by sok.assign."""
  modes = [None, "localized:%d" % (hvd.size() - 1), "distributed"]
  variables, ops = [], []
  for i, (value, mode) in enumerate(zip(initial, modes)):
    variables.append(sok.DynamicVariable(
        value.shape[1], "0", name="dynamic_%d" % i, mode=mode,
        var_type="auto" if i == 2 else "hybrid"))
    if variables[-1].target_gpu == -1:
      keys = np.arange(hvd.rank(), len(value), hvd.size())
    else:
      keys = np.arange(len(value) if variables[-1].target_gpu == hvd.rank() else 0)
    ops.append(sok.assign(variables[-1], keys, value[keys]))
  return variables, ops


def _static(initial):
  modes = ["distributed", "localized:0", None]
  return [sok.Variable(value, name="static_%d" % i, mode=mode)
          for i, (value, mode) in enumerate(zip(initial, modes))], []


def _ids(step, rank, table):
  """Ids of one rank's batch: random rows of a table, and each row once."""
  rng = np.random.RandomState(1000 * step + 10 * rank + table)
  size = 3 + 2 * rank
  sample = [list(rng.randint(0, _ROWS[table], rng.randint(0, 4))) for _ in range(size)]
  sample[0] += list(range(rank, _ROWS[table], hvd.size()))
  return sample


def _sparse_value(samples):
  indices = [[b, i] for b, ids in enumerate(samples) for i in range(len(ids))]
  return tf.compat.v1.SparseTensorValue(
      np.array(indices, np.int64), np.array([k for ids in samples for k in ids], np.int64),
      [len(samples), 1 + max(len(ids) for ids in samples)])


def _loss(outputs):
  return tf.add_n([tf.reduce_sum(tf.tanh(o) + .1 * o ** 2) for o in outputs])


class SokVariablesTest(parameterized.TestCase):

  @parameterized.product(optimizer=sorted(_OPTIMIZERS), static=[False, True])
  def test_trained_rows_equal_those_of_dense_variables(self, optimizer, static):
    initial = _initial()
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      variables, fill = (_static if static else _dynamic)(initial)
      mine = [tf.compat.v1.sparse_placeholder(tf.int64) for _ in _ROWS]
      merged = [tf.compat.v1.sparse_placeholder(tf.int64) for _ in _ROWS]
      dense = [tf.compat.v1.get_variable("dense_%d" % i, initializer=value,
                                         use_resource=True)
               for i, value in enumerate(initial)]
      outputs = sok.lookup_sparse(variables, mine, combiners=_COMBINERS)
      expected = [tf.nn.safe_embedding_lookup_sparse(d, ids, combiner=c)
                  for d, ids, c in zip(dense, merged, _COMBINERS)]
      train = []
      for out, vars_ in ((outputs, variables), (expected, dense)):
        opt = _OPTIMIZERS[optimizer]()
        train.append(opt.apply_gradients(zip(tf.gradients(_loss(out), vars_), vars_)))
      session.run(tf.compat.v1.global_variables_initializer())
      session.run(fill)
      for step in range(_STEPS):
        feed = {}
        for t in range(len(_ROWS)):
          batches = [_ids(step, r, t) for r in range(hvd.size())]
          feed[mine[t]] = _sparse_value(batches[hvd.rank()])
          feed[merged[t]] = _sparse_value([s for b in batches for s in b])
        found, reference, _ = session.run([outputs, expected, train], feed)
        begin = sum(3 + 2 * r for r in range(hvd.rank()))
        for f, r in zip(found, reference):
          np.testing.assert_allclose(f, r[begin:begin + len(f)], rtol=2e-5, atol=2e-6)
      rows = session.run(dense)
      for (keys, values), var, row, value in zip(
          session.run([sok.export(v) for v in variables]), variables, rows, initial):
        target = var.target_gpu
        np.testing.assert_array_equal(
            keys, np.arange(hvd.rank(), len(row), hvd.size()) if target == -1 else
            np.arange(len(row) if target == hvd.rank() else 0))
        np.testing.assert_allclose(values, row[keys], rtol=2e-5, atol=2e-6)
        self.assertGreater(np.abs(row - value).min(), 0.)
        if static:
          np.testing.assert_array_equal(session.run(var), values)

  def test_static_faces(self):
    value = np.arange(14, dtype=np.float32).reshape(7, 2)
    last = hvd.size() - 1
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      spread = sok.Variable(value)
      local = sok.Variable(value, mode="localized:%d" % last)
      drawn = sok.Variable(shape=[7, 2], initializer=tf.random_normal_initializer(seed=4))
      whole = tf.random_normal_initializer(seed=4)([7, 2], tf.float32)
      session.run(tf.compat.v1.global_variables_initializer())
      mine = value[hvd.rank()::hvd.size()]
      np.testing.assert_array_equal(session.run(spread), mine)
      self.assertEqual(spread.shape.as_list(), list(mine.shape))
      self.assertEqual(spread.global_shape.as_list(), [7, 2])
      self.assertEqual([spread.num_gpus, spread.global_gpu_id], [hvd.size(), hvd.rank()])
      local_rows = session.run(local)
      np.testing.assert_array_equal(
          local_rows, value if hvd.rank() == last else value[:0])
      # The table of a single process.
      got, expected = session.run([drawn, whole])
      np.testing.assert_array_equal(got, expected[hvd.rank()::hvd.size()])
      # Rows of this rank by local row number.
      keys = np.arange(hvd.rank(), 7, hvd.size())
      numbers = session.run(spread.key_map(tf.constant(keys)))
      np.testing.assert_array_equal(numbers, np.arange(len(keys)))
      np.testing.assert_array_equal(
          session.run(tf.nn.embedding_lookup(spread, numbers[::-1])), value[keys[::-1]])
      np.testing.assert_array_equal(session.run(local.key_map(tf.constant(keys))), keys)
      session.run(spread.assign(-mine))
      rows = session.run(sok.all2all_dense_embedding(spread, np.arange(7)))
      # Reading does not wait for the assignment on other ranks.
      np.testing.assert_array_equal(rows[keys], -mine)
      np.testing.assert_array_equal(np.abs(rows), value)
      np.testing.assert_array_equal(session.run(spread.assign_add(3. * mine)), 2. * mine)
      session.run(local.assign_sub(tf.ones(local.shape)))
      np.testing.assert_array_equal(session.run([2. * spread, spread.read_value()]),
                                    [4. * mine, 2. * mine])

  def test_all2all_dense_embedding_trains(self):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      v = sok.DynamicVariable(2, "1")
      w = sok.Variable(np.ones([50, 2]))
      # The number of ids differs between ranks; the last rank has none.
      n = (hvd.size() - 1 - hvd.rank()) * 2
      ids = tf.constant(np.arange(n) // 2 * 3, tf.int64)
      losses = []
      for var in (v, w):
        rows = sok.all2all_dense_embedding(var, ids)
        self.assertEqual(rows.shape.as_list(), [n, 2])
        losses.append(tf.reduce_sum(rows))
      train = sok.SGD(.5).minimize(tf.add_n(losses))
      session.run(tf.compat.v1.global_variables_initializer())
      session.run(train)
      expected = np.ones([50, 2], np.float32)
      for rank in range(hvd.size()):
        for key in np.arange((hvd.size() - 1 - rank) * 2) // 2 * 3:
          expected[key] -= .5
      for var in (v, w):
        keys, values = session.run(sok.export(var))
        np.testing.assert_array_equal(values, expected[keys])

  def test_variables_beside_embedding_variables(self):
    # One exchange for all three kinds.
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      variables = [
          sok.DynamicVariable(2, "1"), sok.Variable(np.ones([9, 2])),
          tf.get_embedding_variable("e", embedding_dim=2,
                                    initializer=tf.ones_initializer())]
      ids = tf.SparseTensor([[0, 0], [0, 1]], tf.constant([3, 4], tf.int64), [1, 2])
      outputs = sok.lookup_sparse(variables, [ids] * 3, combiners=["sum"] * 3)
      # Versions are times, steps or none, so there are several update ops.
      train = _train.AdagradOptimizer(.1).minimize(tf.add_n(
          [tf.reduce_sum(o) for o in outputs]))
      session.run(tf.compat.v1.global_variables_initializer())
      session.run(train)
      rows = [session.run(sok.export(v)) for v in variables]
      for keys, values in rows:
        values = values[np.isin(keys, [3, 4])]
        np.testing.assert_allclose(
            values, np.full([sum(k % hvd.size() == hvd.rank() for k in (3, 4)), 2],
                            1. - .1 * hvd.size() / np.sqrt(.1 + hvd.size() ** 2)),
            rtol=1e-6)

  def test_an_id_that_is_no_row(self):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      v = sok.Variable(np.ones([9, 2]), name="user")
      rows = sok.all2all_dense_embedding(v, [9])
      session.run(tf.compat.v1.global_variables_initializer())
      with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "user"):
        session.run(rows)

  def test_a_rank_outside_the_job(self):
    with tf.Graph().as_default():
      mode = "localized:%d" % hvd.size()
      with self.assertRaisesRegex(RuntimeError, "names rank"):
        sok.Variable(np.ones([2, 2]), mode=mode)
      with self.assertRaisesRegex(RuntimeError, "names rank"):
        sok.DynamicVariable(2, mode=mode)


if __name__ == "__main__":
  hvd.init()
  sok.init()
  # After a failure, a rank that continued would wait for the others.
  absltest.main(failfast=True)
