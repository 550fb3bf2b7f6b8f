# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Compares `StorageOption(storage_type=DRAM_SSDHASH)` with rows in memory.

The memory limit is so small (64 rows with a slot) that nearly all rows are in the file.
"""

import os
import subprocess
import sys

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

import embedding_variable as ev
from embedding_variable.lookup import embedding_lookup
from embedding_variable.variables import config_pb2

_DIM = 4
_ROW_BYTES = 2 * 4 * _DIM + 20  # bytes of a row with a slot in memory
_SSD = config_pb2.StorageType.DRAM_SSDHASH
_DRAM = config_pb2.StorageType.DRAM
_LRU = config_pb2.CacheStrategy.LRU
_FIFO = config_pb2.CacheStrategy.FIFO


def _variable(name, path, storage=None, partitioner=None, size=64 * _ROW_BYTES,
              **options):
  if path is not None:
    storage = dict(storage_type=_SSD, storage_path=path, storage_size=[size],
                   **(storage or {}))
  option = ev.EmbeddingVariableOption(
      storage_option=ev.StorageOption(**(storage or {})), **options)
  return tf.get_embedding_variable(
      name, _DIM, initializer=tf.random_normal_initializer(seed=7),
      ev_option=option, partitioner=partitioner)


class _Model(object):
  """A graph that trains one embedding variable, and its session."""

  def __init__(self, path, optimizer, **options):
    for flag in ("TF_RECORD_FREQ", "TF_RECORD_VERSION"):
      os.environ[flag] = "1"
    with tf.Graph().as_default() as graph:
      tf.set_random_seed(3)
      step = tf.train.get_or_create_global_step()
      self.variable = _variable("v", path, **options)
      self.ids = tf.placeholder(tf.int64, [None])
      rows = tf.nn.embedding_lookup(self.variable, self.ids)
      samples = tf.SparseTensor(
          tf.stack([tf.range(400, dtype=tf.int64) // 4,
                    tf.range(400, dtype=tf.int64)], 1), self.ids, [100, 400])
      pooled = tf.nn.embedding_lookup_sparse(self.variable, samples, None,
                                             combiner="mean")
      self.loss = (tf.reduce_sum(tf.square(rows - 1.0)) +
                   tf.reduce_sum(tf.square(pooled + 0.5)))
      self.train = optimizer().minimize(self.loss, global_step=step)
      if options.get("partitioner") is None:
        self.export = self.variable.export()
        self.erase = self.variable.erase(self.ids)
        self.evict = self.variable.evict(l2_weight_threshold=1.5)
        self.stats = self.variable.tier_stats()
        self.prefetch = self.variable.prefetch(self.ids)
      self.tier = embedding_lookup.lookup_tier(self.variable, self.ids)
      self.saver = tf.train.Saver()
      self.init = tf.global_variables_initializer()
    for flag in ("TF_RECORD_FREQ", "TF_RECORD_VERSION"):
      del os.environ[flag]
    self.session = tf.Session(graph=graph)

  def start(self):
    self.session.run(self.init)
    return self

  def run(self, steps, seed):
    """Trains; returns the losses."""
    random = np.random.RandomState(seed)
    return [
        self.session.run([self.loss, self.train],
                         {self.ids: random.randint(-1000, 1000, size=400)})[0]
        for _ in range(steps)
    ]


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
_ADAGRAD = dict(_OPTIMIZERS)["adagrad"]

_FULL = """
import resource, signal, sys
import numpy as np
import tensorflow as tf
import embedding_variable as ev
option = ev.EmbeddingVariableOption(storage_option=ev.StorageOption(
    storage_type=12, storage_path=sys.argv[1], storage_size=[64 * 148]))
v = tf.get_embedding_variable("clicks", 16, ev_option=option)
ids = tf.placeholder(tf.int64, [None])
train = tf.train.AdagradOptimizer(.1).minimize(
    tf.reduce_sum(tf.square(tf.nn.embedding_lookup(v, ids))))
export = v.export()
with tf.Session() as session:
  session.run(tf.global_variables_initializer())
  session.run(train, {ids: np.arange(500)})
  _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
  resource.setrlimit(resource.RLIMIT_FSIZE, (200000, hard))
  seen = 500
  try:
    for step in range(100):
      before = session.run(export)
      session.run(train, {ids: np.arange(seen, seen + 500)})
      seen += 500
  except tf.errors.ResourceExhaustedError as e:
    print("FULL", e.message)
  after = session.run(export)
  known = np.isin(after[0], before[0])
  print("SAME", np.array_equal(after[1][known], before[1]))
  resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
  session.run(train, {ids: np.arange(seen, seen + 500)})
  print("WENT ON")
"""


class SsdStorageTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    self.path = os.path.join(self.create_tempdir().full_path, "rows")

  def _same(self, one, other):
    for a, b in zip(one.session.run(one.export), other.session.run(other.export)):
      np.testing.assert_array_equal(a, b)

  @parameterized.named_parameters(*_OPTIMIZERS)
  def test_trains_as_in_memory(self, optimizer):
    memory = _Model(None, optimizer).start()
    ssd = _Model(self.path, optimizer).start()
    np.testing.assert_array_equal(memory.run(8, seed=1), ssd.run(8, seed=1))
    self._same(memory, ssd)
    stats = ssd.session.run(ssd.stats)
    # Rows in memory without slots, with one, and with two (48 bytes, padded to 64).
    slots = len(ssd.variable.slot_columns)
    self.assertEqual(stats[0], [92, 64, 39][slots])
    self.assertGreater(stats[1], 1000)
    self.assertGreater(stats[4], 1000)
    for model in (memory, ssd):
      model.session.run(model.erase, {model.ids: np.arange(-300, 300)})
    self._same(memory, ssd)
    np.testing.assert_array_equal(memory.run(4, seed=2), ssd.run(4, seed=2))
    self._same(memory, ssd)

  @parameterized.named_parameters(
      ("counter", dict(filter_option=ev.CounterFilter(filter_freq=3))),
      ("lru", dict(storage=dict(max_capacity=500, cache_strategy=_LRU))),
      ("lfu", dict(storage=dict(max_capacity=500))),
      ("fifo", dict(storage=dict(max_capacity=500, cache_strategy=_FIFO))),
  )
  def test_policies_equal_those_in_memory(self, options):
    memory = _Model(None, _ADAGRAD, **options).start()
    ssd = _Model(self.path, _ADAGRAD, **options).start()
    np.testing.assert_array_equal(memory.run(8, seed=1), ssd.run(8, seed=1))
    self._same(memory, ssd)
    self.assertGreater(memory.session.run(memory.evict), 0)
    ssd.session.run(ssd.evict)
    self._same(memory, ssd)
    np.testing.assert_array_equal(memory.run(3, seed=2), ssd.run(3, seed=2))

  @parameterized.parameters((True, False), (False, True), (True, True))
  def test_a_checkpoint_moves_between_storages(self, saved, restored):
    adam = dict(_OPTIMIZERS)["adam"]
    one = _Model(self.path if saved else None, adam).start()
    one.run(5, seed=1)
    prefix = one.saver.save(one.session,
                            os.path.join(self.create_tempdir().full_path, "m"))
    other = _Model(self.path + "2" if restored else None, adam).start()
    other.run(2, seed=9)  # the restore removes these rows
    other.saver.restore(other.session, prefix)
    self._same(one, other)
    # Slots are restored too.
    np.testing.assert_array_equal(one.run(3, seed=2), other.run(3, seed=2))
    self._same(one, other)

  def test_tiers_and_prefetch(self):
    model = _Model(self.path, _ADAGRAD, size=300 * 48).start()
    model.run(10, seed=1)
    ids = np.arange(-1100, 1100)
    tiers = model.session.run(model.tier, {model.ids: ids})
    self.assertEqual(set(tiers), {-1, 0, 1})
    self.assertTrue(np.all(tiers[np.abs(ids) > 1000] == -1))
    cold = ids[tiers == 1][:50]
    model.session.run(model.prefetch, {model.ids: cold})
    np.testing.assert_array_equal(
        model.session.run(model.tier, {model.ids: cold}), np.zeros(50))

  def test_parts_have_directories_of_their_own(self):
    model = _Model(self.path, _ADAGRAD,
                   partitioner=tf.fixed_size_partitioner(2)).start()
    model.run(3, seed=1)
    self.assertEqual(sorted(os.listdir(self.path)), ["part_0", "part_1"])
    tiers = model.session.run(model.tier, {model.ids: np.arange(-1000, 1000)})
    self.assertEqual(set(tiers), {-1, 0, 1})

  def test_two_variables_on_one_path(self):
    with tf.Graph().as_default(), tf.Session() as session:
      users = _variable("users", self.path)
      items = _variable("items", self.path)
      session.run(users.initializer)
      with self.assertRaisesRegex(
          tf.errors.FailedPreconditionError,
          "%s' is in use by 'users'.*'items'" % self.path):
        session.run(items.initializer)

  def test_two_sessions_of_one_variable(self):
    one = _Model(self.path, _ADAGRAD).start()
    other = _Model(self.path, _ADAGRAD).start()
    one.run(3, seed=1)
    other.run(5, seed=2)
    third = _Model(None, _ADAGRAD).start()
    third.run(3, seed=1)
    self._same(one, third)

  def test_initializing_again_empties_the_table(self):
    model = _Model(self.path, _ADAGRAD).start()
    model.run(3, seed=1)
    model.start()
    self.assertEmpty(model.session.run(model.export)[0])
    model.run(3, seed=1)
    self.assertLen([f for f in os.listdir(self.path) if f.endswith(".evrows")], 1)

  def test_files_of_a_dead_process_are_removed(self):
    os.makedirs(self.path)
    stale = os.path.join(self.path, "rows-1-0.evrows")
    with open(stale, "w") as f:
      f.write("rows")
    _Model(self.path, _ADAGRAD).start()
    self.assertFalse(os.path.exists(stale))

  def test_a_path_that_cannot_be_written(self):
    with tf.Graph().as_default(), tf.Session() as session:
      v = _variable("clicks", "/sys/kernel")
      with self.assertRaisesRegex(tf.errors.FailedPreconditionError,
                                  "'/sys/kernel' cannot be used.*'clicks'"):
        session.run(v.initializer)

  def test_a_full_disk_loses_nothing(self):
    env = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    out = subprocess.run([sys.executable, "-c", _FULL, self.path], env=env,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         universal_newlines=True)
    self.assertEqual(out.returncode, 0, out.stderr)
    self.assertRegex(
        # TensorFlow may report several errors, one per line.
        out.stdout, "(?s)FULL .*storage_path '%s' is full: .* bytes more, .* are free "
        ".*'clicks'" % self.path)
    self.assertIn("SAME True", out.stdout)
    self.assertIn("WENT ON", out.stdout)

  def test_a_damaged_file_is_an_error(self):
    model = _Model(self.path, _ADAGRAD).start()
    model.run(5, seed=1)
    name, = [f for f in os.listdir(self.path) if f.endswith(".evrows")]
    with open(os.path.join(self.path, name), "r+b") as f:
      f.write(b"x" * 3000)
    with self.assertRaisesRegex(tf.errors.DataLossError, "%s.*damaged" % name):
      model.session.run(model.export)


if __name__ == "__main__":
  absltest.main()
