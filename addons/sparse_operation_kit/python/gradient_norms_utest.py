# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests norms of gradients of tables that are spread over ranks.

They are used by clipping, and by loss scaling, which skips a step if gradients are not
finite.

  horovodrun -np 2 -H localhost:2 python gradient_norms_utest.py

W ranks, each with its shard of a batch, must clip like one process on the whole batch.
The dense layer must have the same bits on all ranks.
"""

from absl.testing import absltest
from absl.testing import parameterized
import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

import embedding_variable
from sparse_operation_kit import experiment as sok

_BATCH = 4
_DIM = 3
_ROWS = 11
_STEPS = 4

# Below the norm of every step; and a value between the norms, for 2 and 3 ranks.
_CLIP = .2
_BETWEEN = {2: 1.9, 3: 1.25}

_train = tf.compat.v1.train


def _variable(name, seed):
  option = tf.EmbeddingVariableOption(init_option=tf.InitializerOption(
      initializer=lambda shape, dtype: tf.constant(
          np.random.RandomState(seed).normal(0, 1, [_ROWS, _DIM]), tf.float32),
      default_value_dim=_ROWS))
  return tf.get_embedding_variable(name, embedding_dim=_DIM, ev_option=option)


class _Net(object):
  """Two tables, one of them looked up twice, and one dense layer."""

  def __init__(self, name, lookup, target_gpu=-1):
    self.ids = tf.compat.v1.placeholder(tf.int64, [None, 2])
    self.labels = tf.compat.v1.placeholder(tf.float32, [None])
    self.tables = [_variable("%s_table_%d" % (name, i), seed=i) for i in range(2)]
    for table in self.tables:
      table.target_gpu = target_gpu
    batch = tf.shape(self.ids, out_type=tf.int64)[0]
    ids = tf.RaggedTensor.from_row_splits(
        tf.reshape(self.ids, [-1]), 2 * tf.range(batch + 1))
    pooled = sum(lookup(self.tables, [ids, ids], combiners=["sum", "mean"]))
    pooled += lookup([self.tables[0]], [ids + 1], combiners=["sum"])[0]
    self.dense = tf.compat.v1.get_variable(
        name + "_dense", use_resource=True, initializer=tf.constant(
            np.random.RandomState(2).normal(0, 1, [_DIM]), tf.float32))
    logits = tf.linalg.matvec(pooled, self.dense)
    self.loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(
        labels=self.labels, logits=logits))
    self.variables = self.tables + [self.dense]


def _local_lookup(*args, **kwargs):
  return embedding_variable.lookup_sparse(*args, **kwargs)


def _mapped(clip):
  """Clips a list of gradients between compute_gradients and apply_gradients."""

  def train(optimizer, net):
    gradients, variables = zip(*optimizer.compute_gradients(
        net.loss, var_list=net.variables))
    return optimizer.apply_gradients(zip(clip(list(gradients)), variables))

  return train


def _optimize_loss(optimizer, net):
  return tf.contrib.layers.optimize_loss(
      net.loss, global_step=None, learning_rate=.2, optimizer=lambda unused: optimizer,
      clip_gradients=_CLIP, variables=net.variables, increment_global_step=False)


def _create_train_op(optimizer, net):
  return tf.contrib.training.create_train_op(
      net.loss, optimizer, global_step=None, variables_to_train=net.variables,
      transform_grads_fn=tf.contrib.training.clip_gradient_norms_fn(_CLIP),
      summarize_gradients=True, check_numerics=False)


def _skip_if_large(optimizer, net):
  pairs = optimizer.compute_gradients(net.loss, var_list=net.variables)
  norm = tf.linalg.global_norm([g for g, _ in pairs])
  return tf.cond(norm < _BETWEEN[hvd.size()], lambda: optimizer.apply_gradients(pairs), tf.no_op)


def _skip_if_large_inside(optimizer, net):
  """Computes the norm inside a branch."""
  pairs = optimizer.compute_gradients(net.loss, var_list=net.variables)

  def apply():
    norm = tf.linalg.global_norm([g for g, _ in pairs])
    return tf.cond(norm < _BETWEEN[hvd.size()], lambda: optimizer.apply_gradients(pairs),
                   tf.no_op)

  return tf.cond(tf.shape(net.labels)[0] > 0, apply, tf.no_op)


def _scale_and_unscale(gradients):
  """Changes gradients by hand before the norm, without changing their values."""
  gradients = [
      tf.IndexedSlices(tf.debugging.check_numerics(tf.identity(g.values) * 8., "rows"),
                       tf.identity(g.indices), g.dense_shape)
      if isinstance(g, tf.IndexedSlices) else 8. * g for g in gradients]
  norm = tf.linalg.global_norm([
      g.values if isinstance(g, tf.IndexedSlices) else g for g in gradients])
  gradients = tf.clip_by_global_norm(gradients, 8. * _CLIP, use_norm=norm)[0]
  return [tf.IndexedSlices(g.values / 8., g.indices) if isinstance(g, tf.IndexedSlices)
          else g / 8. for g in gradients]


def _by_column(gradients):
  return [tf.clip_by_norm(g, _CLIP / 4, axes=[0]) for g in gradients]


def _by_average(gradients):
  return [tf.IndexedSlices(tf.clip_by_average_norm(g.values, _CLIP / 50), g.indices)
          if isinstance(g, tf.IndexedSlices) else tf.clip_by_average_norm(g, _CLIP / 50)
          for g in gradients]


_WAYS = {
    "clip_by_global_norm": _mapped(lambda gs: tf.clip_by_global_norm(gs, _CLIP)[0]),
    "optimize_loss": _optimize_loss,
    "create_train_op": _create_train_op,
    "skip_if_large": _skip_if_large,
    "skip_if_large_inside": _skip_if_large_inside,
    "scale_and_unscale": _mapped(_scale_and_unscale),
    "clip_by_norm": _mapped(lambda gs: [tf.clip_by_norm(g, _CLIP / 2) for g in gs]),
    "clip_by_norm_of_rows": _mapped(
        lambda gs: [tf.clip_by_norm(g, _CLIP / 4, axes=[-1]) for g in gs]),
    "clip_by_norm_of_columns": _mapped(_by_column),
    "clip_by_average_norm": _mapped(_by_average),
}


def _clipping(optimizer):
  return tf.contrib.estimator.clip_gradients_by_norm(optimizer, _CLIP)


def _rewrite(optimizer):
  return _train.experimental.enable_mixed_precision_graph_rewrite(optimizer)


def _contrib_loss_scale(optimizer):
  from tensorflow.contrib import mixed_precision  # pylint: disable=g-import-not-at-top
  return mixed_precision.LossScaleOptimizer(
      optimizer, mixed_precision.ExponentialUpdateLossScaleManager(8., 10))


def _minimize(optimizer, net):
  return optimizer.minimize(net.loss, var_list=net.variables)


# Ways that use modules of tf.contrib, which TensorFlow 2.x has not.
_OF_CONTRIB = ("create_train_op", "optimize_loss", _clipping, _contrib_loss_scale)


class GradientNormsUtest(parameterized.TestCase):

  def _skip_without(self, way):
    if way in _OF_CONTRIB and not hasattr(tf, "contrib"):
      self.skipTest("this TensorFlow has no contrib")

  def _compare(self, train, whole_train=None, wrap=sok.DistributedOptimizer,
               inner=lambda o: o, outer=lambda o: o, target_gpu=-1, step_of_nan=None):
    rng = np.random.RandomState(3)
    size, rank = hvd.size(), hvd.rank()
    make = lambda: _train.AdagradOptimizer(.2)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      sharded = _Net("sharded", sok.lookup_sparse, target_gpu)
      step = train(outer(wrap(inner(make()))), sharded)
      whole = _Net("whole", _local_lookup)
      step_whole = (whole_train or train)(outer(inner(make())), whole)
      dense_of_ranks = hvd.allgather(sharded.dense[None])
      session.run(tf.compat.v1.global_variables_initializer())
      start = session.run(whole.dense)
      for k in range(_STEPS):
        ids = rng.randint(-30, 30, [size * _BATCH, 2])
        labels = rng.randint(0, 2, size * _BATCH).astype(np.float32)
        if k == step_of_nan:
          labels[-1] = np.nan
        mine = slice(rank * _BATCH, (rank + 1) * _BATCH)
        session.run([step, step_whole], {
            sharded.ids: ids[mine], sharded.labels: labels[mine],
            whole.ids: ids, whole.labels: labels})
        of_ranks = session.run(dense_of_ranks)
        for other in of_ranks[1:]:
          np.testing.assert_array_equal(other, of_ranks[0])
      expected = session.run(whole.dense)
      self.assertGreater(np.abs(expected - start).max(), 0)
      np.testing.assert_allclose(of_ranks[0], expected, rtol=1e-5, atol=1e-6)
      for table, all_rows in zip(sharded.tables, whole.tables):
        (keys, rows, _, _), (all_keys, all_values, _, _) = session.run(
            [table.export(), all_rows.export()])
        wanted = np.isin(all_keys, keys)
        np.testing.assert_allclose(rows, all_values[wanted], rtol=1e-5, atol=1e-6)

  @parameterized.parameters(*sorted(_WAYS))
  def test_as_one_process(self, way):
    self._skip_without(way)
    self._compare(_WAYS[way])

  @parameterized.parameters("clip_by_global_norm", "optimize_loss", "skip_if_large",
                            "clip_by_norm")
  def test_horovods_optimizer(self, way):
    self._skip_without(way)
    self._compare(_WAYS[way], wrap=hvd.DistributedOptimizer)

  @parameterized.parameters(sok.DistributedOptimizer, hvd.DistributedOptimizer)
  def test_optimizer_that_clips(self, wrap):
    self._skip_without(_clipping)
    self._compare(_minimize, wrap=wrap, inner=_clipping)
    self._compare(_minimize, wrap=wrap, outer=_clipping)

  @parameterized.parameters("clip_by_global_norm", "clip_by_norm")
  def test_tables_on_one_rank(self, way):
    self._compare(_WAYS[way], target_gpu=hvd.size() - 1)

  @parameterized.parameters(_rewrite, _contrib_loss_scale)
  def test_dynamic_loss_scale(self, scaled):
    self._skip_without(scaled)
    self._compare(_minimize, outer=scaled)
    # The last rank has the NaN sample; no rank may apply this step.
    self._compare(_minimize, outer=scaled, step_of_nan=1)

  def test_own_allreduce(self):

    def train(optimizer, net):
      gradients = tf.gradients(net.loss, net.variables)
      mean = [tf.IndexedSlices(g.values / hvd.size(), g.indices)
              if isinstance(g, tf.IndexedSlices) else hvd.allreduce(g, op=hvd.Average)
              for g in gradients]
      clipped, _ = tf.clip_by_global_norm(mean, _CLIP)
      return optimizer.apply_gradients(zip(clipped, net.variables))

    self._compare(train, _WAYS["clip_by_global_norm"], wrap=lambda o: o)

  @parameterized.parameters((True, False), (False, False), (True, True), (False, True))
  def test_norm_that_one_rank_fetches(self, before, keras):
    """Only rank 0 writes summaries, so its norm must not wait for the other ranks."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      net = _Net("net", sok.lookup_sparse)
      gradients = tf.gradients(net.loss, net.tables)
      pairs = list(zip(gradients, net.tables))
      optimizer = (tf.keras.optimizers.SGD(.1) if keras else
                   _train.GradientDescentOptimizer(.1))
      if not before:
        train = optimizer.apply_gradients(pairs)
      norm = tf.linalg.global_norm(gradients)
      of_a_table = tf.linalg.global_norm([gradients[0].values])
      if before:
        train = optimizer.apply_gradients(pairs)
      # After the training op, as a script may order it.
      with tf.control_dependencies([train]):
        scaled = tf.linalg.global_norm([2. * gradients[0].values])
      session.run(tf.compat.v1.global_variables_initializer())
      feed = {net.ids: np.arange(8).reshape([4, 2]) + 8 * hvd.rank(),
              net.labels: np.ones(4)}
      fetches = [train] + ([norm, of_a_table] if hvd.rank() == 0 else [])
      for _ in range(2):
        session.run(fetches, feed)
      one, table, twice = session.run([norm, of_a_table, scaled], feed)
      self.assertGreater(one, table)
      np.testing.assert_allclose(twice, 2 * table, rtol=1e-6)

  def test_norm_of_nothing(self):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      net = _Net("net", sok.lookup_sparse)
      gradients = tf.gradients(net.loss, net.tables)
      clipped = [tf.clip_by_norm(g, 1.).values for g in gradients]
      norm = tf.linalg.global_norm(gradients)
      session.run(tf.compat.v1.global_variables_initializer())
      rows, value = session.run([clipped, norm], {net.ids: np.zeros([0, 2]),
                                                  net.labels: np.zeros([0])})
      self.assertEqual([len(r) for r in rows], [0, 0])
      self.assertEqual(value, 0.)

  def test_gradients_of_copies_stay_local(self):
    """A table of which each rank has a copy is treated like a dense variable."""
    with tf.Graph().as_default() as graph:
      copied = _variable("copied", seed=1)
      rows = tf.nn.embedding_lookup(copied, [hvd.rank(), 7])
      gradient, = tf.gradients(tf.reduce_sum(rows), [copied])
      tf.linalg.global_norm([gradient])
      tf.clip_by_norm(gradient, 1.)
      self.assertNotIn("SokSumParts", {op.type for op in graph.get_operations()})

  def test_other_ranks_measure_other_gradients(self):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      net = _Net("net", sok.lookup_sparse)
      gradient = tf.gradients(net.loss, net.tables)[1]
      if hvd.rank() == 0:
        norm = tf.linalg.global_norm([gradient])
      else:
        norm = tf.clip_by_norm(gradient, 1., axes=[0]).values
      session.run(tf.compat.v1.global_variables_initializer())
      with self.assertRaisesRegex(tf.errors.InvalidArgumentError,
                                  "rank %d sent the parts of another sum" %
                                  (1 if hvd.rank() == 0 else 0)):
        session.run(norm, {net.ids: [[1, 2]], net.labels: [1.]})


if __name__ == "__main__":
  hvd.init()
  sok.init()
  # After a failure, a rank that continued would wait for the others.
  absltest.main(failfast=True)
