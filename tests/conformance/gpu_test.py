# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Variables with `StorageOption(storage_type=HBM)` beside those in CPU memory."""

import os

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

import embedding_variable as ev
from embedding_variable.ops import handle_ops
from embedding_variable.variables import config_pb2

_DIM = 4
_HBM = config_pb2.StorageType.HBM
_DRAM = config_pb2.StorageType.DRAM


def _why_no_gpu():
  """Returns the error of a variable in GPU memory, or None if it works."""
  with tf.Graph().as_default(), tf.Session() as session:
    _variable("probe", _HBM)
    try:
      session.run(tf.global_variables_initializer())
    except tf.errors.FailedPreconditionError as e:
      return e.message
  return None


def _variable(name, storage, **kwargs):
  option = ev.EmbeddingVariableOption(
      storage_option=ev.StorageOption(storage_type=storage))
  return tf.get_embedding_variable(
      name, _DIM, initializer=tf.random_normal_initializer(seed=7),
      ev_option=option, **kwargs)


class _Model(object):
  """A graph that trains one embedding variable, and its session."""

  def __init__(self, storage, optimizer):
    for flag in ("TF_RECORD_FREQ", "TF_RECORD_VERSION"):
      os.environ[flag] = "1"
    with tf.Graph().as_default() as graph:
      tf.set_random_seed(3)
      step = tf.train.get_or_create_global_step()
      self.variable = _variable("v", storage)
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
      self.saver = tf.train.Saver()
      self.init = tf.global_variables_initializer()
    for flag in ("TF_RECORD_FREQ", "TF_RECORD_VERSION"):
      del os.environ[flag]
    # One thread: the two lookups' gradients are added in one order.
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
    # Runs through the generic path: rows are read, and written back.
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

  @parameterized.named_parameters(*_OPTIMIZERS)
  def test_trains_as_in_cpu_memory(self, optimizer):
    cpu = _Model(_DRAM, optimizer).start()
    gpu = _Model(_HBM, optimizer).start()
    np.testing.assert_array_equal(cpu.run(6, seed=1), gpu.run(6, seed=1))
    self._same(cpu, gpu)
    self.assertEqual(cpu.session.run(cpu.count).tolist(),
                     gpu.session.run(gpu.count).tolist())

  @parameterized.parameters((_HBM, _DRAM), (_DRAM, _HBM), (_HBM, _HBM))
  def test_a_checkpoint_moves_between_memories(self, saved, restored):
    optimizer = dict(_OPTIMIZERS)["adam"]
    one = _Model(saved, optimizer).start()
    one.run(5, seed=1)
    prefix = one.saver.save(one.session,
                            os.path.join(self.create_tempdir().full_path, "m"))
    other = _Model(restored, optimizer).start()
    other.run(2, seed=9)  # what is there goes
    other.saver.restore(other.session, prefix)
    self._same(one, other)
    # The slots came along.
    np.testing.assert_array_equal(one.run(3, seed=2), other.run(3, seed=2))
    self._same(one, other)

  def test_a_name_is_in_one_memory(self):
    with tf.Graph().as_default(), tf.Session() as session:
      handles = [handle_ops.handle("v", 2, storage=s) for s in ("dram", "hbm")]
      session.run(handles[0])
      with self.assertRaisesRegex(tf.errors.InvalidArgumentError,
                                  "storage dram and hbm"):
        session.run(handles[1])


class WithoutGpuTest(absltest.TestCase):

  def test_the_error_names_the_variable_and_what_is_missing(self):
    why = _why_no_gpu()
    if why is None:
      self.skipTest("this process has a GPU")
    self.assertRegex(why, "rows in GPU memory need .*table 'probe'")


if __name__ == "__main__":
  absltest.main()
