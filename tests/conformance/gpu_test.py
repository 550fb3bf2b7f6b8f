# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Compares `StorageOption(storage_type=HBM)`, HBM_DRAM and HBM_DRAM_SSDHASH with rows in
CPU memory.

HBM_DRAM tables have at most 64 rows on the GPU, HBM_DRAM_SSDHASH tables also about 20
rows in CPU memory.
"""

import collections
import os
import tempfile

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

import embedding_variable as ev
from embedding_variable.lookup import op_parts
from embedding_variable.lookup import embedding_lookup
from embedding_variable.ops import handle_ops
from embedding_variable.variables import config_pb2

_DIM = 4
_HBM = config_pb2.StorageType.HBM
_HBM_DRAM = config_pb2.StorageType.HBM_DRAM
_HBM_DRAM_SSD = config_pb2.StorageType.HBM_DRAM_SSDHASH
_DRAM = config_pb2.StorageType.DRAM
_LRU = config_pb2.CacheStrategy.LRU


def _why_no_gpu(storage=_HBM):
  """Returns the error of creating a variable in GPU memory, or None."""
  with tf.Graph().as_default(), tf.Session() as session:
    _variable("probe", storage)
    try:
      session.run(tf.global_variables_initializer())
    except tf.errors.FailedPreconditionError as e:
      return e.message
  return None


def _variable(name, storage, capacity=None, **options):
  # Room for 64 rows without slots, and for 20 rows with one.
  size = {_HBM_DRAM: [64 * _DIM * 4],
          _HBM_DRAM_SSD: [64 * _DIM * 4, 20 * (2 * _DIM * 4 + 20)]}.get(storage)
  path = None
  if storage == _HBM_DRAM_SSD:
    path = tempfile.mkdtemp(prefix="rows-", dir=os.environ.get("TEST_TMPDIR"))
  option = ev.EmbeddingVariableOption(
      storage_option=ev.StorageOption(storage_type=storage, storage_size=size,
                                      storage_path=path, **(capacity or {})), **options)
  return tf.get_embedding_variable(
      name, _DIM, initializer=tf.random_normal_initializer(seed=7),
      ev_option=option)


class _Model(object):
  """A graph that trains one embedding variable, and its session."""

  def __init__(self, storage, optimizer, **options):
    for flag in ("TF_RECORD_FREQ", "TF_RECORD_VERSION"):
      os.environ[flag] = "1"
    with tf.Graph().as_default() as graph:
      tf.set_random_seed(3)
      step = tf.train.get_or_create_global_step()
      self.variable = _variable("v", storage, **options)
      self.ids = tf.sparse_placeholder(tf.int64)
      self.weights = tf.sparse_placeholder(tf.float32)
      mean = tf.nn.embedding_lookup_sparse(self.variable, self.ids, None,
                                           combiner="mean")
      weighted = tf.nn.embedding_lookup_sparse(
          self.variable, self.ids, self.weights, combiner="sum")
      rows = tf.nn.embedding_lookup(self.variable, self.ids.values)
      self.loss = (tf.reduce_sum(tf.square(mean - 1.0)) +
                   tf.reduce_sum(tf.square(weighted)) +
                   tf.reduce_sum(tf.square(rows + 0.5)))
      self.train = optimizer().minimize(self.loss, global_step=step)
      self.count = self.variable.total_count()
      self.export = self.variable.export()
      self.evicted_count = self.variable.evicted_count()
      self.evict = self.variable.evict(steps_to_live=1, step=step)
      self.evict_weak = self.variable.evict(l2_weight_threshold=.5)
      self.stats = self.variable.tier_stats()
      self.moves = self.variable.move_stats()
      self.tier = embedding_lookup.lookup_tier(self.variable, self.ids.values)
      self.prefetch = self.variable.prefetch(self.ids.values)
      self.saver = tf.train.Saver()
      self.init = tf.global_variables_initializer()
    for flag in ("TF_RECORD_FREQ", "TF_RECORD_VERSION"):
      del os.environ[flag]
    # One thread, so that the gradients of the two lookups are added in a fixed order.
    self.session = tf.Session(graph=graph)

  def start(self):
    self.session.run(self.init)
    return self

  def run(self, steps, seed):
    """Trains; returns the losses."""
    random = np.random.RandomState(seed)
    losses = []
    for _ in range(steps):
      samples = np.sort(random.randint(0, 16, size=60))
      indices = np.stack([samples, np.arange(60)], axis=1)
      ids = random.randint(-200, 200, size=60)
      weights = random.rand(60)
      feed = {
          self.ids: (indices, ids, [16, 60]),
          self.weights: (indices, weights, [16, 60]),
      }
      losses.append(self.session.run([self.loss, self.train], feed)[0])
    return losses


_OPTIMIZERS = (
    ("sgd", lambda: tf.train.GradientDescentOptimizer(0.01)),
    ("momentum", lambda: tf.train.MomentumOptimizer(0.01, 0.9)),
    ("adagrad", lambda: tf.train.AdagradOptimizer(0.05)),
    ("adam", lambda: tf.train.AdamOptimizer(0.05)),
    ("ftrl", lambda: tf.train.FtrlOptimizer(0.05, l1_regularization_strength=.01)),
    ("rmsprop", lambda: tf.train.RMSPropOptimizer(0.01)),
    # Takes the generic path: rows are read, updated by stock ops, and written.
    ("proximal", lambda: tf.train.ProximalAdagradOptimizer(0.05)),
)


class GpuStorageTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    why = _why_no_gpu()
    if why is not None:
      self.skipTest(why)

  def _same(self, one, other):
    for a, b in zip(one.session.run(one.export), other.session.run(other.export)):
      np.testing.assert_array_equal(a, b)

  @parameterized.named_parameters(
      (name + where, optimizer, storage) for name, optimizer in _OPTIMIZERS
      for where, storage in (("", _HBM), ("_two_memories", _HBM_DRAM),
                             ("_three_memories", _HBM_DRAM_SSD)))
  def test_trains_as_in_cpu_memory(self, optimizer, storage):
    cpu = _Model(_DRAM, optimizer).start()
    gpu = _Model(storage, optimizer).start()
    np.testing.assert_array_equal(cpu.run(6, seed=1), gpu.run(6, seed=1))
    self._same(cpu, gpu)
    self.assertEqual(cpu.session.run(cpu.count).tolist(),
                     gpu.session.run(gpu.count).tolist())

  @parameterized.named_parameters(
      (name + where, options, storage) for name, options in (
          ("counter", dict(filter_option=ev.CounterFilter(filter_freq=3))),
          ("bloom", dict(filter_option=ev.CBFFilter(
              filter_freq=3, max_element_size=1000,
              false_positive_probability=.01))),
          ("lru", dict(capacity=dict(max_capacity=90, cache_strategy=_LRU))),
          ("lfu", dict(capacity=dict(max_capacity=90))),
          ("bytes", dict(capacity=dict(max_capacity_bytes=9000))),
      ) for where, storage in (("", _HBM), ("_two_memories", _HBM_DRAM),
                               ("_three_memories", _HBM_DRAM_SSD)))
  def test_policies_equal_those_in_cpu_memory(self, options, storage):
    optimizer = dict(_OPTIMIZERS)["adagrad"]
    cpu = _Model(_DRAM, optimizer, **options).start()
    gpu = _Model(storage, optimizer, **options).start()
    np.testing.assert_array_equal(cpu.run(6, seed=1), gpu.run(6, seed=1))
    self._same(cpu, gpu)
    for evict in ("evict", "evict_weak"):
      cpu.session.run(getattr(cpu, evict))
      gpu.session.run(getattr(gpu, evict))
      self._same(cpu, gpu)
    self.assertGreater(cpu.session.run(cpu.evicted_count), 0)
    self.assertEqual(cpu.session.run(cpu.evicted_count),
                     gpu.session.run(gpu.evicted_count))
    # A checkpoint includes the state of the policies.
    prefix = gpu.saver.save(gpu.session,
                            os.path.join(self.create_tempdir().full_path, "m"))
    for model in (cpu, gpu):
      model.saver.restore(model.session, prefix)
    np.testing.assert_array_equal(cpu.run(3, seed=2), gpu.run(3, seed=2))
    self._same(cpu, gpu)

  @parameterized.parameters((_HBM, _DRAM), (_DRAM, _HBM), (_HBM, _HBM),
                            (_HBM_DRAM, _DRAM), (_DRAM, _HBM_DRAM),
                            (_HBM_DRAM, _HBM), (_HBM, _HBM_DRAM),
                            (_HBM_DRAM_SSD, _DRAM), (_DRAM, _HBM_DRAM_SSD),
                            (_HBM_DRAM_SSD, _HBM_DRAM_SSD))
  def test_a_checkpoint_moves_between_memories(self, saved, restored):
    optimizer = dict(_OPTIMIZERS)["adam"]
    one = _Model(saved, optimizer).start()
    one.run(5, seed=1)
    prefix = one.saver.save(one.session,
                            os.path.join(self.create_tempdir().full_path, "m"))
    other = _Model(restored, optimizer).start()
    other.run(2, seed=9)  # the restore removes these rows
    other.saver.restore(other.session, prefix)
    self._same(one, other)
    # Slots are restored too.
    np.testing.assert_array_equal(one.run(3, seed=2), other.run(3, seed=2))
    self._same(one, other)

  def test_memory_of_rows(self):
    model = _Model(_HBM_DRAM, dict(_OPTIMIZERS)["adagrad"]).start()
    model.run(12, seed=1)
    ids = np.arange(-250, 250)
    feed = {model.ids: (np.stack([ids * 0, ids + 250], 1), ids, [1, 500])}
    tiers = model.session.run(model.tier, feed)
    self.assertEqual(set(tiers), {-1, 0, 1})
    self.assertTrue(np.all(tiers[np.abs(ids) > 200] == -1))
    fast, slow, slow_bytes, hits, misses, written = model.session.run(model.stats)
    self.assertEqual(fast, np.sum(tiers == 0))
    self.assertGreaterEqual(fast + slow, np.sum(tiers >= 0))
    self.assertLessEqual(fast, 64)
    for more in (slow_bytes, hits, misses, written):
      self.assertGreater(more, 0)
    up, down, link_bytes = model.session.run(model.moves)
    row_bytes = slow_bytes // slow
    self.assertEqual((up * row_bytes, down * row_bytes), (written, written))
    # Swaps read and write a row; lookups and updates come on top.
    self.assertGreater(link_bytes, 2 * written)
    cold = ids[tiers == 1][:20]
    feed = {model.ids: (np.stack([cold * 0, np.arange(20)], 1), cold, [1, 20])}
    model.session.run(model.prefetch, feed)
    np.testing.assert_array_equal(model.session.run(model.tier, feed), np.zeros(20))

  def test_three_memories_of_rows(self):
    model = _Model(_HBM_DRAM_SSD, dict(_OPTIMIZERS)["adagrad"]).start()
    model.run(12, seed=1)
    ids = np.arange(-250, 250)
    feed = {model.ids: (np.stack([ids * 0, ids + 250], 1), ids, [1, 500])}
    for _ in range(100):
      tiers, stats = model.session.run(model.tier, feed), model.session.run(model.stats)
      # A thread may have freed places between the two calls.
      if stats[0] == np.sum(tiers == 0):
        break
    self.assertEqual(set(tiers), {-1, 0, 1, 2})
    self.assertTrue(np.all(tiers[np.abs(ids) > 200] == -1))
    self.assertEqual(stats[0], np.sum(tiers == 0))
    self.assertLessEqual(stats[0], 64)
    self.assertEqual(stats[1], stats[6])  # rows in CPU memory
    self.assertLessEqual(stats[6], 20)
    self.assertGreaterEqual(stats[0] + stats[6] + stats[7], np.sum(tiers >= 0))
    for more in stats[2:6].tolist() + stats[8:].tolist():
      self.assertGreater(more, 0)
    cold = ids[tiers == 2][:20]
    feed = {model.ids: (np.stack([cold * 0, np.arange(20)], 1), cold, [1, 20])}
    model.session.run(model.prefetch, feed)
    np.testing.assert_array_equal(model.session.run(model.tier, feed), np.zeros(20))

  def test_lookup_statistics(self):
    model = _Model(_HBM, dict(_OPTIMIZERS)["adagrad"]).start()
    model.run(3, seed=1)
    rows, _, _, by_gpu, by_cpu, _ = stats = model.session.run(model.stats)
    self.assertEqual(rows, model.session.run(model.count)[0])
    self.assertEqual([0, 0, 0], [stats[1], stats[2], stats[5]])
    # A step has three lookups of 60 ids. The GPU finds the rows of the first and, on
    # TensorFlow's GPU, those of the gather; the CPU finds those of the weighted lookup
    # and of the updates.
    self.assertIn(by_gpu, (3 * 60, 6 * 60))
    self.assertGreaterEqual(by_cpu, 3 * 60)

  def test_too_small_budget(self):
    with tf.Graph().as_default(), tf.Session() as session:
      option = ev.EmbeddingVariableOption(storage_option=ev.StorageOption(
          storage_type=_HBM_DRAM, storage_size=[100]))
      v = tf.get_embedding_variable("clicks", _DIM, ev_option=option)
      with self.assertRaisesRegex(
          tf.errors.InvalidArgumentError,
          "at least 1024 bytes in GPU memory, 64 rows of dim 4, got 100.*'clicks'"):
        session.run(v.initializer)

  def test_a_name_is_in_one_memory(self):
    with tf.Graph().as_default(), tf.Session() as session:
      handles = [handle_ops.handle("v", 2, storage=s) for s in ("dram", "hbm")]
      session.run(handles[0])
      with self.assertRaisesRegex(tf.errors.InvalidArgumentError,
                                  "storage dram and hbm"):
        session.run(handles[1])


class UpdateBySamplesTest(parameterized.TestCase):
  """Updates take the gradients of lookup outputs if rows may be on a GPU.

  Runs on every machine: without a GPU "auto" is CPU memory.
  """

  def _train(self, storage, combiner, change):
    """Returns the table after some steps, and the types of the graph's ops."""
    random = np.random.RandomState(3)
    with tf.Graph().as_default() as graph, tf.Session() as session:
      step = tf.train.get_or_create_global_step()
      variables = [_variable("a", storage), _variable("b", storage)]
      ids = [tf.sparse_placeholder(tf.int64) for _ in variables]
      outputs = tf.nn.group_embedding_lookup_sparse(variables, ids,
                                                    [combiner] * 2)
      loss = tf.add_n([tf.reduce_sum(tf.square(o - 1.0)) for o in outputs])
      optimizer = tf.train.AdagradOptimizer(0.1)
      pairs = [(change(g), v) for g, v in optimizer.compute_gradients(loss)]
      train = optimizer.apply_gradients(pairs, global_step=step)
      exports = [v.export() for v in variables]
      session.run(tf.global_variables_initializer())
      for _ in range(4):
        feed = {}
        for x in ids:
          samples = np.sort(random.randint(0, 30, size=80))
          feed[x] = (np.stack([samples, np.arange(80)], 1),
                     random.randint(-40, 40, size=80), [30, 80])
        session.run(train, feed)
      return session.run(exports), {op.type for op in graph.get_operations()}

  @parameterized.parameters("sum", "mean", "sqrtn", "max")
  def test_same_bits_as_updates_by_sums(self, combiner):
    self._check_bits("auto", combiner)

  @parameterized.parameters("sum", "mean", "sqrtn", "max")
  def test_same_bits_with_rows_in_several_memories(self, combiner):
    if _why_no_gpu() is not None:
      self.skipTest(_why_no_gpu())
    self._check_bits(_HBM_DRAM, combiner)
    self._check_bits(_HBM_DRAM_SSD, combiner)

  def _check_bits(self, storage, combiner):
    by_sums, types = self._train(_DRAM, combiner, lambda g: g)
    self.assertIn("EvApply", types)
    self.assertNotIn("EvApplyPooled", types)
    by_samples, types = self._train(storage, combiner, lambda g: g)
    self.assertIn("EvApplyPooled", types)
    self.assertNotIn("EvApply", types)
    for one, other in zip(by_sums, by_samples):
      for a, b in zip(one, other):
        np.testing.assert_array_equal(a, b)

  def test_gradients_with_control_dependencies_keep_them(self):
    def check(g):
      with tf.control_dependencies([tf.check_numerics(g.values, "no number")]):
        return tf.IndexedSlices(tf.identity(g.values), g.indices, g.dense_shape)

    self.assertNotIn("EvApplyPooled", self._train("auto", "sum", check)[1])

  def test_the_update_multiplies_by_a_common_factor(self):
    def scaled(g):
      # One tensor for all gradients, as of a loss scaler.
      factor = tf.get_collection_ref("factor")
      if not factor:
        factor.append(tf.constant(.3))
      return tf.IndexedSlices(g.values * factor[0], g.indices, g.dense_shape)

    by_sums, types = self._train(_DRAM, "mean", scaled)
    self.assertNotIn("EvApplyPooled", types)
    by_samples, types = self._train("auto", "mean", scaled)
    self.assertIn("EvApplyPooled", types)
    self.assertNotIn("EvApply", types)
    for one, other in zip(by_sums, by_samples):
      for a, b in zip(one, other):
        np.testing.assert_array_equal(a, b)

  def test_changed_gradients_are_applied(self):
    def half(g):
      return tf.IndexedSlices(g.values * .5, g.indices, g.dense_shape)

    by_sums, _ = self._train(_DRAM, "sum", half)
    changed, types = self._train("auto", "sum", half)
    self.assertNotIn("EvApplyPooled", types)
    for one, other in zip(by_sums, changed):
      for a, b in zip(one, other):
        np.testing.assert_array_equal(a, b)


class PartsTest(parameterized.TestCase):
  """A lookup of many tables whose rows may be on a GPU takes a few ops.

  Runs on every machine: without a GPU "auto" is CPU memory.
  """

  def setUp(self):
    super().setUp()
    self._floats = op_parts._FLOATS_PER_PART
    self.addCleanup(setattr, op_parts, "_FLOATS_PER_PART", self._floats)

  def _build(self, storage, num_tables=12, batch=60, num_ids=120, again=(),
             weighted=False):
    """Builds training in the default graph: (placeholders, loss, train op, exports)."""
    variables = [_variable("t%d" % t, storage) for t in range(num_tables)]
    looked_up = variables + [variables[t] for t in again]
    shape = tf.constant([batch, 90], tf.int64) if batch else tf.placeholder(
        tf.int64, [2])
    ids = [tf.SparseTensor(tf.placeholder(tf.int64, [None, 2]),
                           tf.placeholder(tf.int64, [num_ids]), shape)
           for _ in looked_up]
    weights = None
    if weighted:
      weights = [tf.SparseTensor(x.indices, tf.cast(x.values, tf.float32),
                                 x.dense_shape) for x in ids]
    outputs = ev.lookup_sparse(looked_up, ids, weights, ["mean"] * len(ids))
    loss = tf.add_n([tf.reduce_sum(tf.square(o - 1.0)) for o in outputs])
    train = tf.train.AdagradOptimizer(0.1).minimize(loss)
    return ids, loss, train, [v.export() for v in variables]

  def _count(self, **kwargs):
    """Counts the ops by type in the training graph of tables that may be on a GPU."""
    with tf.Graph().as_default() as graph:
      self._build("auto", **kwargs)
      return collections.Counter(op.type for op in graph.get_operations())

  def _train(self, storage, **kwargs):
    """Returns the losses of some steps and the tables' contents after them."""
    random = np.random.RandomState(3)
    with tf.Graph().as_default(), tf.Session() as session:
      ids, loss, train, exports = self._build(storage, **kwargs)
      session.run(tf.global_variables_initializer())
      losses = []
      for _ in range(3):
        feed = {}
        for x in ids:
          samples = np.sort(random.randint(0, 60, size=120))
          feed[x.indices] = np.stack([samples, np.arange(120) % 90], 1)
          feed[x.values] = random.randint(-40, 40, size=120)
        losses.append(session.run([loss, train], feed)[0])
      return losses, session.run(exports)

  def test_parts_give_the_bits_of_one_op(self):
    op_parts._FLOATS_PER_PART = 4 * 60 * _DIM
    types = self._count()
    for op in ("EvLookupSparse", "EvLookupSparseGrad", "EvApplyPooled"):
      self.assertEqual(types[op], 3)
    losses, tables = self._train("auto")
    expected, expected_tables = self._train(_DRAM)
    np.testing.assert_array_equal(expected, losses)
    for one, other in zip(expected_tables, tables):
      for a, b in zip(one, other):
        np.testing.assert_array_equal(a, b)

  @parameterized.named_parameters(
      ("large", 3, 1, dict()),
      ("four_at_most", 4, 1, dict(num_tables=20)),
      ("small", 1, 1 << 22, dict()),
      ("few_tables", 1, 1, dict(num_tables=7)),
      ("any_batch", 1, 1, dict(batch=None)),
      ("any_number_of_ids", 1, 1, dict(num_ids=None)),
      ("many_ids", 1, 1, dict(num_ids=121)),
      ("a_table_twice", 1, 1, dict(again=[0])),
      ("weights", 1, 1, dict(weighted=True)))
  def test_number_of_parts(self, num_parts, floats_per_part, kwargs):
    op_parts._FLOATS_PER_PART = floats_per_part
    self.assertEqual(self._count(**kwargs)["EvLookupSparse"], num_parts)


class WithoutGpuTest(parameterized.TestCase):

  @parameterized.parameters(_HBM, _HBM_DRAM, _HBM_DRAM_SSD)
  def test_the_error_names_the_variable_and_what_is_missing(self, storage):
    why = _why_no_gpu(storage)
    if why is None:
      self.skipTest("this process has a GPU")
    self.assertRegex(why, "rows in GPU memory need .*table 'probe'")


if __name__ == "__main__":
  absltest.main()
