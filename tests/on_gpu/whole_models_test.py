# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Trains the example's models entirely on TensorFlow's GPU, and compares with the CPU.

Both start with the same rows and weights and use the same batches. Dense layers sum
products in different orders, so results agree within bounds: losses to 1e-4 relative,
rows to 1e-4 absolute and 1e-3 relative. A step moves a row by about 1e-2.
"""

import os
import sys
import zlib

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

import embedding_variable as ev
from embedding_variable.variables import config_pb2

sys.path.append(os.path.join(
    os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))),
    "examples"))

import models  # pylint: disable=wrong-import-position

if not tf.__version__.startswith("1."):
  # By default TensorFlow 2.x rounds factors to TF32.
  tf.config.experimental.enable_tensor_float_32_execution(False)

_DIM = 8
_FEATURES = 6
_NUMBERS = 5
_SAMPLES = 128
_STEPS = 8
_TYPES = config_pb2.StorageType

_GPU = os.environ.get("EV_TEST_DEVICE", "/gpu:0")
_CPU = "/cpu:0"


def _values(name, shape):
  """Returns small float32 values of `shape` that depend only on the name."""
  random = np.random.RandomState(zlib.crc32(name.encode("utf-8")) & 0x7fffffff)
  return (.2 * random.randn(*shape)).astype(np.float32)


class _Model(object):
  """A model's tables, layers and optimizer on one device, and a session."""

  def __init__(self, name, device, storage):
    module = models.MODELS[name]
    with tf.Graph().as_default() as graph:
      with tf.device(_CPU):
        self._ids = [tf.placeholder(tf.int64, [_SAMPLES]) for _ in range(_FEATURES)]
        indices = tf.stack([tf.range(_SAMPLES, dtype=tf.int64),
                            tf.zeros([_SAMPLES], tf.int64)], axis=1)
        features = [tf.SparseTensor(indices, x, [_SAMPLES, 1]) for x in self._ids]
        self._numbers = tf.placeholder(tf.float32, [_SAMPLES, _NUMBERS])
        self._labels = tf.placeholder(tf.float32, [_SAMPLES])
      with tf.device(device):
        groups, self._tables = {}, []
        for group, dim in sorted(module.tables(_DIM).items()):
          tables = [self._table("%s_%d" % (group, i), dim, storage)
                    for i in range(_FEATURES)]
          groups[group] = tf.nn.group_embedding_lookup_sparse(
              tables, features, ["sum"] * _FEATURES)
          for output in groups[group]:
            output.set_shape([_SAMPLES, dim])
          self._tables += tables
        logits = module.logits(self._numbers, groups)
        self._loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(
            labels=self._labels, logits=logits))
        self._train = tf.train.AdagradOptimizer(
            .05, initial_accumulator_value=1e-5).minimize(self._loss)
      self._exports = [t.export() for t in self._tables]
      dense = [v for v in tf.global_variables() if v not in self._tables]
      init = tf.global_variables_initializer()
      self.products = [op for op in graph.get_operations() if op.type == "MatMul"]
    self.session = tf.Session(graph=graph)
    self.session.run(init)
    for variable in dense:
      if "Adagrad" not in variable.op.name:
        variable.load(_values(variable.op.name, variable.shape.as_list()), self.session)

  def _table(self, name, dim, storage):
    option = ev.EmbeddingVariableOption(
        storage_option=ev.StorageOption(storage_type=storage))
    return tf.get_embedding_variable(name, dim, initializer=_values(name, [dim]),
                                     ev_option=option)

  def train(self, steps):
    """Trains; returns the losses."""
    random = np.random.RandomState(2)
    losses = []
    for _ in range(steps):
      feed = {x: random.randint(0, 50, size=_SAMPLES) for x in self._ids}
      feed[self._numbers] = random.rand(_SAMPLES, _NUMBERS)
      # The label depends on the first feature.
      feed[self._labels] = feed[self._ids[0]] % 2
      losses.append(self.session.run([self._loss, self._train], feed)[0])
    return losses

  def rows(self):
    """Returns a list of (keys, rows), sorted by key."""
    return [(e[0][np.argsort(e[0])], e[1][np.argsort(e[0])])
            for e in self.session.run(self._exports)]


class WholeModelsTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    if tf.DeviceSpec.from_string(_GPU).device_type != "GPU":
      self.skipTest("%s is no GPU" % _GPU)

  @parameterized.parameters(*sorted(models.MODELS))
  def test_trains_as_on_the_cpu(self, name):
    cpu = _Model(name, _CPU, _TYPES.DRAM)
    gpu = _Model(name, _GPU, _TYPES.HBM)
    self.assertTrue(gpu.products)
    for op in gpu.products:
      self.assertEqual(tf.DeviceSpec.from_string(op.device).device_type, "GPU", op.name)
    before = gpu.train(1)
    np.testing.assert_allclose(before, cpu.train(1), rtol=1e-5)
    start = cpu.rows()
    wanted = cpu.train(_STEPS)
    np.testing.assert_allclose(gpu.train(_STEPS), wanted, rtol=1e-4)
    self.assertLess(wanted[-1], wanted[0])
    moved = 0.
    for (keys, rows), (same, near), (old, first) in zip(cpu.rows(), gpu.rows(), start):
      np.testing.assert_array_equal(keys, same)
      np.testing.assert_allclose(rows, near, rtol=1e-3, atol=1e-4)
      moved = max(moved, np.abs(rows[np.isin(keys, old)] - first).max())
    # Training moves rows by more than the bound.
    self.assertGreater(moved, 1e-2)


if __name__ == "__main__":
  absltest.main()
