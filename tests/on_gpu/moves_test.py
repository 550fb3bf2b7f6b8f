# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints that move between TensorFlow's GPU and the CPU train on identically.

run.py runs it on the device in EV_TEST_DEVICE. Every variable in this test has an
explicit device and storage.
"""

import os
import tempfile

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

import embedding_variable as ev
from embedding_variable.variables import config_pb2

_DIM = 8
_SAMPLES = 40
_IDS = 200
_TYPES = config_pb2.StorageType

_GPU = os.environ.get("EV_TEST_DEVICE", "/gpu:0")
_CPU = "/cpu:0"

# (device, storage) of a model.
_ON_GPU = (_GPU, _TYPES.HBM)
_ON_BOTH = (_GPU, _TYPES.HBM_DRAM)
_ON_ALL = (_GPU, _TYPES.HBM_DRAM_SSDHASH)
_PLACED_DRAM = (_GPU, _TYPES.DRAM)
_ON_CPU = (_CPU, _TYPES.DRAM)

_OPTIMIZERS = {
    "adagrad": lambda: tf.train.AdagradOptimizer(.1),
    "adam": lambda: tf.train.AdamOptimizer(.05),
    "ftrl": lambda: tf.train.FtrlOptimizer(.1, l1_regularization_strength=.01),
    # Updates rows by stock ops that read and write them.
    "proximal": lambda: tf.train.ProximalAdagradOptimizer(.1),
}


def _variable(name, storage):
  size = path = None
  if storage == _TYPES.HBM_DRAM:
    size = [64 * _DIM * 4]
  elif storage == _TYPES.HBM_DRAM_SSDHASH:
    size = [64 * _DIM * 4, 30 * (_DIM * 4 + 20)]
    path = tempfile.mkdtemp(prefix="rows-", dir=os.environ.get("TEST_TMPDIR"))
  option = ev.EmbeddingVariableOption(
      storage_option=ev.StorageOption(storage_type=storage, storage_size=size,
                                      storage_path=path),
      filter_option=ev.CounterFilter(filter_freq=2),
      evict_option=ev.GlobalStepEvict(steps_to_live=6))
  rows = np.random.RandomState(len(name)).randn(5, _DIM).astype(np.float32)
  return tf.get_embedding_variable(
      name, _DIM, initializer=rows[0], ev_option=option)


class _Model(object):
  """Two tables, a lookup of both, a dense weight, and a session."""

  def __init__(self, where, optimizer="adam"):
    device, storage = where
    with tf.Graph().as_default() as graph:
      with tf.device(_CPU):
        step = tf.train.get_or_create_global_step()
        self.ids = [tf.sparse_placeholder(tf.int64) for _ in range(2)]
      with tf.device(device):
        self.variables = [_variable(name, storage) for name in ("a", "bb")]
      self.outputs = tf.nn.group_embedding_lookup_sparse(
          self.variables, self.ids, ["mean", "sum"])
      with tf.device(_CPU):
        dense = tf.get_variable("w", [_DIM], initializer=tf.ones_initializer())
        loss = tf.add_n([tf.reduce_sum(tf.square(x * dense - 1.)) for x in self.outputs])
        self.train = _OPTIMIZERS[optimizer]().minimize(loss, global_step=step)
      self.state = [dense] + [v.export() for v in self.variables]
      self.saver = tf.train.Saver(incremental_save_restore=True)
      self.init = tf.global_variables_initializer()
    self.handles = [v.handle.op.device for v in self.variables]
    # One thread, so that stock code adds in a fixed order.
    self.session = tf.Session(graph=graph, config=tf.ConfigProto(
        intra_op_parallelism_threads=1, inter_op_parallelism_threads=1))
    self.session.run(self.init)

  def run(self, steps, seed):
    """Trains; returns the lookups' results."""
    random = np.random.RandomState(seed)
    seen = []
    for _ in range(steps):
      feed = {}
      for x in self.ids:
        samples = np.sort(random.randint(0, _SAMPLES, size=_IDS))
        feed[x] = (np.stack([samples, np.arange(_IDS)], 1),
                   random.randint(-150, 150, size=_IDS), [_SAMPLES, _IDS])
      seen.append(self.session.run([self.outputs, self.train], feed)[0])
    return seen

  def values(self):
    """Returns all saved values in one list, with rows sorted by key."""
    values = []
    for value in self.session.run(self.state):
      if isinstance(value, np.ndarray):
        values.append(value)
      else:
        order = np.argsort(value[0])
        values.extend(x[order] for x in value)
    return values


class MovesTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    if tf.DeviceSpec.from_string(_GPU).device_type != "GPU":
      self.skipTest("%s is no GPU" % _GPU)

  def _same(self, one, other):
    for a, b in zip(one.values(), other.values()):
      np.testing.assert_array_equal(a, b)

  def _check_goes_on(self, one, other):
    """Checks that both models train on to the same bits."""
    np.testing.assert_array_equal(one.run(3, seed=5), other.run(3, seed=5))
    self._same(one, other)

  def test_where_the_tables_are(self):
    wanted = tf.DeviceSpec.from_string(_GPU).device_type
    for where, device_type in ((_ON_GPU, wanted), (_ON_BOTH, wanted), (_ON_ALL, wanted),
                               (_ON_CPU, "CPU")):
      for handle in _Model(where).handles:
        self.assertEqual(tf.DeviceSpec.from_string(handle).device_type, device_type)

  @parameterized.parameters(*sorted(_OPTIMIZERS))
  def test_trains_as_on_the_cpu(self, optimizer):
    models = [_Model(w, optimizer)
              for w in (_ON_CPU, _ON_GPU, _ON_BOTH, _ON_ALL, _PLACED_DRAM)]
    seen = [m.run(6, seed=1) for m in models]
    for model, outputs in zip(models[1:], seen[1:]):
      np.testing.assert_array_equal(seen[0], outputs)
      self._same(models[0], model)

  @parameterized.parameters(
      (_ON_GPU, _ON_CPU), (_ON_CPU, _ON_GPU), (_ON_BOTH, _ON_CPU), (_ON_CPU, _ON_BOTH),
      (_ON_GPU, _ON_BOTH), (_ON_BOTH, _ON_GPU), (_ON_GPU, _ON_GPU),
      (_PLACED_DRAM, _ON_GPU), (_ON_ALL, _ON_CPU), (_ON_CPU, _ON_ALL),
      (_ON_ALL, _ON_ALL))
  def test_a_checkpoint_moves(self, saved, restored):
    one, other = _Model(saved), _Model(restored)
    one.run(6, seed=1)
    prefix = one.saver.save(one.session,
                            os.path.join(self.create_tempdir().full_path, "m"))
    other.run(2, seed=9)  # the restore removes these rows
    other.saver.restore(other.session, prefix)
    self._same(one, other)
    self._check_goes_on(one, other)

  def test_moves_to_the_gpu_and_back(self):
    gpu, cpu, again = _Model(_ON_GPU), _Model(_ON_CPU), _Model(_ON_GPU)
    gpu.run(4, seed=1)
    folder = self.create_tempdir().full_path
    prefix = gpu.saver.save(gpu.session, os.path.join(folder, "there"))
    cpu.saver.restore(cpu.session, prefix)
    for model in (gpu, cpu):
      model.run(4, seed=2)
    prefix = cpu.saver.save(cpu.session, os.path.join(folder, "back"))
    again.saver.restore(again.session, prefix)
    # A save evicts, so this model must save too.
    gpu.saver.save(gpu.session, os.path.join(folder, "evicts"))
    self._same(gpu, cpu)
    self._same(gpu, again)
    self._check_goes_on(gpu, again)

  @parameterized.parameters((_ON_GPU, _ON_CPU), (_ON_CPU, _ON_GPU), (_ON_BOTH, _ON_CPU),
                            (_ON_ALL, _ON_CPU), (_ON_CPU, _ON_ALL))
  def test_increments_move(self, saved, restored):
    one, other = _Model(saved), _Model(restored)
    folder = self.create_tempdir().full_path
    one.run(3, seed=1)
    prefix = one.saver.save(one.session, os.path.join(folder, "m"), global_step=3)
    for step in (5, 7):
      one.run(2, seed=step)
      ev.save_incremental(one.saver, one.session, folder, step)
    other.saver.restore(other.session, prefix)
    self._same(one, other)
    self._check_goes_on(one, other)


if __name__ == "__main__":
  absltest.main()
