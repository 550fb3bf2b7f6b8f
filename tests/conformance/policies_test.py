# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Filters, eviction and capacity of embedding variables, as scripts use them."""

import os

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

import embedding_variable as ev

_DIM = 2
_NO_PERMISSION = -7.0


def _counter(freq):
  return ev.CounterFilter(filter_freq=freq)


def _bloom(freq):
  return ev.CBFFilter(filter_freq=freq, max_element_size=10000,
                      false_positive_probability=1e-5, counter_type=tf.uint16)


def _filtered(strategy, **kwargs):
  return ev.EmbeddingVariableOption(
      filter_option=strategy,
      init_option=ev.InitializerOption(
          default_value_no_permission=_NO_PERMISSION), **kwargs)


class _OwnOptimizer(tf.train.GradientDescentOptimizer):
  """An optimizer without a fused update; it takes the generic path."""


class _Model(object):
  """One variable of ones, trained by SGD with rate 1 and gradient 1 per occurrence."""

  def __init__(self, option, optimizer=tf.train.GradientDescentOptimizer,
               fused=False, parts=None, saver=True, has_step=True):
    self.graph = tf.Graph()
    with self.graph.as_default():
      self.step = tf.train.get_or_create_global_step() if has_step else None
      self.variable = tf.get_embedding_variable(
          "v", _DIM, initializer=tf.ones_initializer(), ev_option=option,
          partitioner=None if parts is None else tf.fixed_size_partitioner(parts))
      self.ids = tf.placeholder(tf.int64, [None])
      if fused:
        indices = tf.stack([tf.range(tf.size(self.ids, out_type=tf.int64)),
                            tf.zeros_like(self.ids)], axis=1)
        sparse = tf.SparseTensor(
            indices, self.ids, [tf.size(self.ids, out_type=tf.int64), 1])
        self.rows = tf.nn.embedding_lookup_sparse(
            self.variable, sparse, None, combiner="sum")
      else:
        self.rows = tf.nn.embedding_lookup(self.variable, self.ids)
      self.train = optimizer(1.0).minimize(
          tf.reduce_sum(self.rows), global_step=self.step)
      parts = self.parts()
      self.frequency = [p.get_frequency(self.ids) for p in parts]
      self.version = [p.get_version(self.ids) for p in parts]
      self.counts = [p.policy_stats() for p in parts]
      self.count = [p.total_count()[0] for p in parts]
      self.shape = parts[0].get_dynamic_shape()
      self.evicted = [p.evicted_count() for p in parts]
      self.saver = tf.train.Saver() if saver else None
      self.init = tf.global_variables_initializer()
    self.session = tf.Session(graph=self.graph)

  def parts(self):
    if ev.is_embedding_variable(self.variable):
      return [self.variable]
    return list(self.variable)

  def start(self):
    self.session.run(self.init)
    return self

  def step_on(self, ids):
    self.session.run(self.train, {self.ids: ids})

  def look(self, ids):
    """Returns the first elements of the rows."""
    return self.session.run(self.rows, {self.ids: ids})[:, 0].tolist()

  def sum_of(self, tensors, ids=()):
    """Returns the sum over all parts."""
    return np.sum(self.session.run(tensors, {self.ids: ids}), axis=0).tolist()

  def save(self, path):
    return self.saver.save(self.session, path)


class FilterTest(parameterized.TestCase):

  @parameterized.product(strategy=(_counter, _bloom),
                         way=("fused", "gathered", "generic"))
  def test_admission_timing_equals_deeprecs(self, strategy, way):
    model = _Model(
        _filtered(strategy(3)), fused=way == "fused",
        optimizer=_OwnOptimizer if way == "generic" else
        tf.train.GradientDescentOptimizer).start()
    batch = [1, 2, 3, 4, 1, 2, 3, 1, 2, 1]  # 4, 3, 2 and 1 times
    keys = [1, 2, 3, 4]
    no = _NO_PERMISSION
    # Step 1 reads no row of these keys, but admits and trains keys 1 and 2.
    self.assertEqual(model.look(batch), [no] * len(batch))
    model.step_on(batch)
    # Keys 3 and 4 are counted, but have no row.
    self.assertEqual(model.session.run(model.shape).tolist(), [2, _DIM])
    self.assertEqual(model.look(keys), [1 - 4, 1 - 3, no, no])
    self.assertEqual(model.sum_of(model.frequency, keys), [4, 3, 2, 1])
    model.step_on(batch)
    self.assertEqual(model.look(keys), [1 - 8, 1 - 6, 1 - 2, no])
    model.step_on(batch)
    self.assertEqual(model.look(keys), [1 - 12, 1 - 9, 1 - 4, 1 - 1])
    self.assertEqual(model.sum_of(model.frequency, keys), [12, 9, 6, 3])
    self.assertEqual(model.sum_of(model.count), 4)

  @parameterized.parameters(_counter, _bloom)
  def test_lookups_insert_nothing_and_count_nothing(self, strategy):
    model = _Model(_filtered(strategy(2))).start()
    for _ in range(5):
      model.look([1, 1, 2])
    self.assertEqual(model.sum_of(model.frequency, [1, 2]), [0, 0])
    self.assertEqual(model.sum_of(model.count), 0)

  def test_two_lookups_of_one_variable_count_together(self):
    with tf.Graph().as_default(), tf.Session() as session:
      v = tf.get_embedding_variable(
          "v", _DIM, initializer=tf.ones_initializer(),
          ev_option=_filtered(_counter(5)))
      sparse = tf.SparseTensor([[0, 0], [0, 1], [0, 2]],
                               tf.constant([9, 9, 8], tf.int64), [1, 3])
      loss = tf.reduce_sum(tf.nn.embedding_lookup_sparse(
          v, sparse, None, combiner="sum"))
      loss += tf.reduce_sum(tf.nn.embedding_lookup_sparse(
          v, sparse, None, combiner="sum"))
      train = tf.train.GradientDescentOptimizer(1.0).minimize(loss)
      frequency = v.get_frequency([9, 8])
      session.run(tf.global_variables_initializer())
      session.run(train)
      self.assertEqual(session.run(frequency).tolist(), [4, 2])
      session.run(train)
      self.assertEqual(session.run(frequency).tolist(), [8, 4])
      self.assertEqual(session.run(v.total_count()).tolist(), [1, _DIM])

  def test_feature_column_with_a_filter(self):
    with tf.Graph().as_default(), tf.Session() as session:
      column = tf.feature_column.embedding_column(
          tf.feature_column.categorical_column_with_embedding(
              "ids", tf.int64, ev_option=_filtered(_counter(2))),
          _DIM, combiner="sum", initializer=tf.ones_initializer())
      net = tf.feature_column.input_layer(
          {"ids": tf.constant([[5], [6]], tf.int64)}, [column])
      train = tf.train.GradientDescentOptimizer(1.0).minimize(tf.reduce_sum(net))
      session.run(tf.global_variables_initializer())
      for expected in ([[_NO_PERMISSION] * 2] * 2,) * 2 + ([[0., 0.]] * 2,):
        self.assertEqual(session.run(net).tolist(), expected)
        session.run(train)

  def test_initial_values_of_its_own_exclude_a_filter(self):
    with tf.Graph().as_default():
      v = tf.get_embedding_variable("v", _DIM, ev_option=_filtered(_counter(2)))
      with self.assertRaisesRegex(ValueError, "'v': ev_init_value .*not admitted"):
        tf.nn.embedding_lookup(v, tf.constant([1], tf.int64),
                               ev_init_value=tf.zeros([1, _DIM]))


class FilterCheckpointTest(parameterized.TestCase):

  def _path(self):
    return os.path.join(self.create_tempdir().full_path, "m")

  @parameterized.parameters((None, None), (None, 2), (2, None), (2, 3))
  def test_resumed_training_equals_uninterrupted_training(self, parts, other_parts):
    option = lambda: _filtered(_counter(3))
    model = _Model(option(), parts=parts).start()
    random = np.random.RandomState(0)
    keys = list(range(-40, 40))
    batches = [random.choice(keys, size=30) for _ in range(6)]
    for batch in batches[:3]:
      model.step_on(batch)
    path = model.save(self._path())
    other = _Model(option(), parts=other_parts)
    other.saver.restore(other.session, path)
    self.assertEqual(other.look(keys), model.look(keys))
    self.assertGreater(model.sum_of(model.counts)[0], 0)
    for batch in batches[3:]:
      model.step_on(batch)
      other.step_on(batch)
    self.assertEqual(other.look(keys), model.look(keys))
    self.assertEqual(other.sum_of(other.frequency, keys),
                     model.sum_of(model.frequency, keys))
    self.assertEqual(other.sum_of(other.counts)[0], model.sum_of(model.counts)[0])

  def test_tensors_equal_deeprecs(self):
    os.environ["TF_RECORD_VERSION"] = "1"
    try:
      model = _Model(_filtered(_counter(3))).start()
    finally:
      del os.environ["TF_RECORD_VERSION"]
    model.step_on([1, 1, 1, -2])
    model.step_on([3, 3])
    path = model.save(self._path())
    load = lambda name: tf.train.load_variable(path, "v-" + name).tolist()
    self.assertEqual(load("keys"), [1])
    self.assertEqual(load("freqs"), [3])
    self.assertEqual(load("keys_filtered"), [3, -2])  # sorted by floormod(key, 1000)
    self.assertEqual(load("freqs_filtered"), [2, 1])
    self.assertEqual(load("versions_filtered"), [1, 0])
    offsets = load("partition_filter_offset")
    self.assertLen(offsets, 1001)
    self.assertEqual([offsets[3], offsets[4], offsets[998], offsets[999]],
                     [0, 1, 1, 2])

  def test_filtered_keys_can_be_left_out(self):
    os.environ["TF_EV_SAVE_FILTERED_FEATURES"] = "False"
    try:
      model = _Model(_filtered(_counter(3))).start()
    finally:
      del os.environ["TF_EV_SAVE_FILTERED_FEATURES"]
    model.step_on([1, 1, 1, 2, 2])
    path = model.save(self._path())
    self.assertEqual(
        tf.train.load_variable(path, "v-keys_filtered").tolist(), [])
    other = _Model(_filtered(_counter(3)))
    other.saver.restore(other.session, path)
    other.step_on([2])
    self.assertEqual(other.look([1, 2]), [1 - 3, _NO_PERMISSION])

  def test_another_threshold(self):
    model = _Model(_filtered(_counter(3))).start()
    model.step_on([1, 1, 1, 2, 2, 3])
    path = model.save(self._path())
    # Rows stay admitted under any threshold; counts are compared with the new one.
    for freq, expected in ((2, [1 - 3, 1.0, _NO_PERMISSION]),
                           (9, [1 - 3, _NO_PERMISSION, _NO_PERMISSION])):
      other = _Model(_filtered(_counter(freq)))
      other.saver.restore(other.session, path)
      self.assertEqual(other.look([1, 2, 3]), expected)
      self.assertEqual(other.sum_of(other.frequency, [1])[0], max(3, freq))
    without = _Model(None)
    without.saver.restore(without.session, path)
    self.assertEqual(without.look([1, 2, 3]), [1 - 3, 1.0, 1.0])
    self.assertEqual(without.sum_of(without.count), 1)

  def test_bloom_rows_survive(self):
    model = _Model(_filtered(_bloom(3))).start()
    model.step_on([1, 1, 1, 2, 2])
    path = model.save(self._path())
    other = _Model(_filtered(_bloom(3)))
    other.saver.restore(other.session, path)
    self.assertEqual(other.look([1, 2]), [1 - 3, _NO_PERMISSION])
    other.step_on([1])
    self.assertEqual(other.look([1]), [1 - 4])

  def test_imported_meta_graph_filters_too(self):
    model = _Model(_filtered(_counter(2))).start()
    model.step_on([1, 1, 2])
    path = model.save(self._path())
    with tf.Graph().as_default() as graph, tf.Session() as session:
      tf.train.import_meta_graph(path + ".meta").restore(session, path)
      variable, = graph.get_collection(tf.GraphKeys.EMBEDDING_VARIABLES)
      self.assertEqual(variable.policy.filter_freq, 2)
      rows = tf.nn.embedding_lookup(variable, tf.constant([1, 2], tf.int64))
      self.assertEqual(session.run(rows)[:, 0].tolist(), [1 - 2, _NO_PERMISSION])


class EvictionTest(parameterized.TestCase):

  def _path(self):
    return os.path.join(self.create_tempdir().full_path, "m")

  @parameterized.parameters(None, 2)
  def test_full_save_evicts_old_rows(self, parts):
    option = ev.EmbeddingVariableOption(evict_option=ev.GlobalStepEvict(2))
    model = _Model(option, parts=parts).start()
    model.step_on([1, 2])  # version 0
    model.step_on([2])     # version 1
    model.step_on([3])     # version 2
    self.assertEqual(model.sum_of(model.count), 3)
    path = model.save(self._path())  # at step 3, and 3 - 0 > 2
    self.assertEqual(model.sum_of(model.count), 2)
    self.assertEqual(model.sum_of(model.evicted), 1)
    name = "v-keys" if parts is None else "v/part_1-keys"
    self.assertNotIn(1, tf.train.load_variable(path, name))
    self.assertEqual(model.look([1, 2]), [1.0, 1 - 2])
    model.save(self._path())
    self.assertEqual(model.sum_of(model.evicted), 1)

  def test_l2_weight(self):
    option = ev.EmbeddingVariableOption(evict_option=ev.L2WeightEvict(1.5))
    model = _Model(option).start()
    model.step_on([1, 2, 2])  # rows 0 and -1, norms 0 and 1
    model.step_on([3, 3, 3])  # row -2, norm 4
    path = model.save(self._path())
    self.assertEqual(tf.train.load_variable(path, "v-keys").tolist(), [3])
    self.assertEqual(model.sum_of(model.evicted), 2)

  def test_l2_weight_and_a_filter(self):
    model = _Model(_filtered(
        _counter(2), evict_option=ev.L2WeightEvict(1.5))).start()
    model.step_on([1, 1, 2])
    model.save(self._path())
    # Key 1 is counted from zero again.
    self.assertEqual(model.look([1]), [_NO_PERMISSION])
    model.step_on([1, 2])
    self.assertEqual(model.look([1, 2]), [_NO_PERMISSION, 0.0])

  def test_on_demand(self):
    option = ev.EmbeddingVariableOption(evict_option=ev.GlobalStepEvict(2))
    model = _Model(option)
    with model.graph.as_default():
      evict = model.variable.evict()
      weak = model.variable.evict(l2_weight_threshold=0.5)
      sooner = model.variable.evict(steps_to_live=1)
    model.start()
    for ids in ([1, 2], [2, 2], [3]):
      model.step_on(ids)
    run = lambda op: int(model.session.run(op))
    self.assertEqual(run(evict), 1)
    self.assertEqual(run(evict), 0)
    self.assertEqual(run(sooner), 1)
    self.assertEqual(run(weak), 1)
    self.assertEqual(model.sum_of(model.count), 0)
    self.assertEqual(model.sum_of(model.evicted), 3)

  def test_invalid_evictions(self):
    with tf.Graph().as_default():
      v = tf.get_embedding_variable("v", _DIM)
      with self.assertRaisesRegex(ValueError, "'v': evict.. needs steps_to_live"):
        v.evict()
      with self.assertRaisesRegex(ValueError, "'v': .*needs recorded versions"):
        v.evict(steps_to_live=3)
      w = tf.get_embedding_variable("w", _DIM, steps_to_live=3)
      with self.assertRaisesRegex(ValueError, "'w': .*needs a global step"):
        w.evict()

  def test_the_optimizer_makes_a_global_step_where_eviction_needs_one(self):
    option = ev.EmbeddingVariableOption(evict_option=ev.GlobalStepEvict(2))
    with tf.Graph().as_default(), tf.variable_scope("scope"):
      v = tf.get_embedding_variable("v", _DIM, ev_option=option)
      rows = tf.nn.embedding_lookup(v, tf.constant([1], tf.int64))
      train = tf.train.AdagradOptimizer(1.0).minimize(tf.reduce_sum(rows))
      step = tf.train.get_global_step()
      self.assertEqual(step.op.name, "global_step")
      with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train)
        session.run(tf.assign(step, 100))
        saver = tf.train.Saver()
        saver.save(session, self._path())
        self.assertEqual(session.run(v.total_count())[0], 0)


class CapacityTest(parameterized.TestCase):

  def _option(self, strategy, **kwargs):
    return ev.EmbeddingVariableOption(storage_option=ev.StorageOption(
        cache_strategy=strategy, **kwargs))

  def test_lru(self):
    model = _Model(self._option(0, max_capacity=3)).start()
    for ids in ([1, 2], [3], [1], [4]):
      model.step_on(ids)
    self.assertEqual(model.look([1, 2, 3, 4]), [-1.0, 1.0, 0.0, 0.0])
    self.assertEqual(model.sum_of(model.count), 3)
    self.assertEqual(model.sum_of(model.evicted), 1)

  def test_lfu(self):
    model = _Model(self._option(1, max_capacity=3)).start()
    for ids in ([1, 1, 1, 2, 2, 3], [4], [5, 5]):
      model.step_on(ids)
    self.assertEqual(model.look([1, 2, 3, 4, 5]), [-2.0, -1.0, 1.0, 1.0, -1.0])
    self.assertEqual(model.sum_of(model.evicted), 2)

  def test_fifo(self):
    model = _Model(self._option(2, max_capacity=3)).start()
    for ids in ([1], [2, 1], [3], [1], [4]):
      model.step_on(ids)
    self.assertEqual(model.look([1, 2, 3, 4]), [1.0, 0.0, 0.0, 0.0])
    self.assertEqual(model.sum_of(model.evicted), 1)

  @parameterized.parameters("generic", "fused")
  def test_memory_is_bounded(self, way):
    optimizer = _OwnOptimizer if way == "generic" else (
        lambda rate: tf.train.AdamOptimizer(rate))
    model = _Model(self._option(0, max_capacity_bytes=4 << 20),
                   optimizer=optimizer)
    with model.graph.as_default():
      stats = model.variable.stats()
    model.start()
    peak = 0
    for step in range(30):
      model.step_on(np.arange(step * 10000, (step + 1) * 10000))
      rows, index_bytes, row_bytes, inserted = model.session.run(stats)
      peak = max(peak, index_bytes + row_bytes)
    self.assertEqual(inserted, 300000)
    self.assertEqual(model.sum_of(model.evicted), 300000 - rows)
    # Rows are allocated in slabs of 2 MiB, and a batch is inserted before others are
    # evicted.
    self.assertLess(peak, (4 << 20) + (4 << 20))

  def test_the_same_steps_evict_the_same_keys(self):
    found = []
    for threads in (1, 4):
      model = _Model(self._option(1, max_capacity=5000))
      with model.graph.as_default():
        export = model.variable.export()
      model.session = tf.Session(
          graph=model.graph, config=tf.ConfigProto(
              intra_op_parallelism_threads=threads,
              inter_op_parallelism_threads=threads))
      model.start()
      random = np.random.RandomState(1)
      for _ in range(10):
        model.step_on(random.zipf(1.2, size=8000) % 30000)
      found.append([t.tolist() for t in model.session.run(export)])
    self.assertEqual(found[0], found[1])
    self.assertLen(found[0][0], 5000)

  def test_restore_beyond_the_capacity(self):
    model = _Model(ev.EmbeddingVariableOption(
        evict_option=ev.GlobalStepEvict(1000))).start()
    for key in range(20):
      model.step_on([key])
    path = model.save(os.path.join(self.create_tempdir().full_path, "m"))
    other = _Model(self._option(0, max_capacity=5))
    other.saver.restore(other.session, path)
    self.assertEqual(other.sum_of(other.count), 5)
    self.assertEqual(other.look([14, 15, 19]), [1.0, 0.0, 0.0])


if __name__ == "__main__":
  absltest.main()
