# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Ranks whose models are on GPUs of TensorFlow's train as those through CPU memory do.

Every rank runs the same cases in the same order; any number of ranks will do. With
SOK_UTEST_ON_GPU=1 TensorFlow's own GPUs are used; what is done there is then not counted.
"""

import os

from absl.testing import absltest
from absl.testing import parameterized
import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

_ON_GPU = bool(os.environ.get("SOK_UTEST_ON_GPU"))
if not _ON_GPU:
  import test_gpu  # pylint: disable=unused-import,g-import-not-at-top

from embedding_variable import _lib
from sparse_operation_kit import dense_gradients
from sparse_operation_kit import experiment as sok
from sparse_operation_kit import settings

_train = tf.compat.v1.train

_GPU = "/gpu:0"


def _session(graph=None):
  # Soft: stock ops have no kernels for the stand-in.
  return tf.compat.v1.Session(graph=graph, config=tf.compat.v1.ConfigProto(
      allow_soft_placement=True,
      gpu_options=tf.compat.v1.GPUOptions(allow_growth=True)))


def _sums():
  """Calls that summed gradients so far in the device's memory, and in the CPU's."""
  if _ON_GPU:
    return np.zeros(2, np.int64)
  with tf.Graph().as_default(), _session() as session:
    with tf.device("/cpu:0"):
      return session.run(_lib.load().test_exchange_counts())[7:9]


def _expect_sums(test, before, there, here):
  if not _ON_GPU:
    test.assertEqual((_sums() - before).tolist(), [there, here])


class DenseGradientsTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    self.assertEqual(settings.exchange_carrier(), "nccl")

  def _variables(self, prefix, device, dtype=tf.float32):
    rng = np.random.RandomState(5)
    with tf.device(device):
      return [
          tf.compat.v1.get_variable(
              "%s_%d" % (prefix, i),
              initializer=tf.constant(rng.normal(0, 1, shape), dtype),
              use_resource=True)
          for i, shape in enumerate([[7, 3], [3], [3, 5], [1]])]

  def _loss(self, x, variables):
    kernel, bias, top, scale = variables
    hidden = tf.tanh(tf.matmul(tf.cast(x, kernel.dtype), kernel) + bias)
    return tf.reduce_mean(tf.square(tf.matmul(hidden, top) * scale - 1))

  @parameterized.parameters("adagrad", "sum", "keras", "float64", "float16")
  def test_trains_as_horovod_does(self, kind):
    dtype = {"float64": tf.float64, "float16": tf.float16}.get(kind, tf.float32)
    options = {"op": hvd.Sum} if kind == "sum" else {}
    rng = np.random.RandomState(17 + hvd.rank())
    before = _sums()
    steps = 3
    with tf.Graph().as_default(), _session() as session:
      tf.keras.backend.set_session(session)
      x = tf.compat.v1.placeholder(tf.float32, [None, 7])
      trains, models = [], []
      for name, device in (("there", _GPU), ("here", "/cpu:0")):
        variables = self._variables(name, device, dtype)
        if kind == "keras":
          optimizer = sok.DistributedOptimizer(tf.keras.optimizers.SGD(.1), **options)
          trains.append(tf.group(*optimizer.get_updates(self._loss(x, variables),
                                                        variables)))
        else:
          optimizer = sok.DistributedOptimizer(
              _train.GradientDescentOptimizer(.1), **options)
          trains.append(optimizer.minimize(self._loss(x, variables),
                                           var_list=variables))
        models.append(variables)
      sums = [op for op in tf.compat.v1.get_default_graph().get_operations()
              if op.type == "SokAllReduce"]
      self.assertLen(sums, 1)
      self.assertLen(sums[0].inputs, 4)
      session.run(tf.compat.v1.global_variables_initializer())
      for _ in range(steps):
        session.run(trains, {x: rng.normal(0, 1, [6 + hvd.rank(), 7])})
      there, here = session.run(models)
    for a, b in zip(there, here):
      if hvd.size() == 2 and not _ON_GPU and kind != "float16":
        # a + b = b + a: the same bits, however they are summed.
        self.assertEqual(a.tobytes(), b.tobytes())
      rtol = 1e-2 if kind == "float16" else 1e-5
      np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol / 10)
    _expect_sums(self, before, steps, 0)

  def test_all_ranks_have_the_same_bits(self):
    with tf.Graph().as_default(), _session() as session:
      variables = self._variables("v", _GPU)
      x = tf.constant(np.random.RandomState(hvd.rank()).normal(0, 1, [4, 7]), tf.float32)
      train = sok.DistributedOptimizer(_train.AdamOptimizer(.1)).minimize(
          self._loss(x, variables), var_list=variables)
      session.run(tf.compat.v1.global_variables_initializer())
      for _ in range(3):
        session.run(train)
      flat = np.concatenate([v.ravel() for v in session.run(variables)])
      value = tf.compat.v1.placeholder(tf.float32, [1, None])
      everything = session.run(hvd.allgather(value), {value: flat[None]})
    for other in everything:
      self.assertEqual(flat.tobytes(), other.tobytes())

  def test_gradients_that_the_device_is_late_with(self):
    # What makes them is on the device, which has not done it when the op is run.
    if _ON_GPU:
      self.skipTest("needs the op of the stand-in")
    with tf.Graph().as_default(), _session() as session:
      values = [np.full([5, 2], float(hvd.rank())), np.full([3], 2. * hvd.rank())]
      with tf.device(_GPU):
        made = [_lib.load().test_dense(x=tf.constant(v, tf.float32)) for v in values]
      variables = []
      with tf.device(_GPU):
        for i, v in enumerate(values):
          variables.append(tf.compat.v1.get_variable(
              "v%d" % i, v.shape, use_resource=True))
      summed = dense_gradients._allreduce(made, variables, average=False)  # pylint: disable=protected-access
      with tf.device(_GPU):
        again = [_lib.load().test_dense(x=s) for s in summed]
      for _ in range(4):
        got = session.run(again)
        for g, v in zip(got, values):
          total = sum(2. * (r * (1. if v.ndim == 2 else 2.) - 1.)
                      for r in range(hvd.size()))
          np.testing.assert_array_equal(g, np.full(v.shape, 2. * (total - 1.)))

  def test_gradients_in_cpu_memory(self):
    # TensorFlow may run the op on the CPU, on one rank and not on another.
    before = _sums()
    with tf.Graph().as_default(), _session() as session:
      x = tf.compat.v1.placeholder(tf.float32, [3])
      gen = _lib.load()
      with tf.device("/cpu:0" if hvd.rank() else _GPU):
        total = gen.sok_all_reduce([x, x[:0], 2. * x], names=["a", "b", "c"],
                                   divisor=hvd.size(), exchange_name="by_hand")
      got = session.run(total, {x: np.arange(3.) * (1 + hvd.rank())})
    mean = np.float32((1 + hvd.size()) / 2.)
    np.testing.assert_allclose(got[0], np.arange(3.) * mean, rtol=1e-6)
    np.testing.assert_allclose(got[2], np.arange(3.) * 2. * mean, rtol=1e-6)
    self.assertLen(got[1], 0)
    _expect_sums(self, before, int(hvd.rank() == 0), int(hvd.rank() != 0))

  def test_what_goes_which_way(self):
    with tf.Graph().as_default() as graph:
      there = self._variables("there", _GPU)
      here = self._variables("here", "/cpu:0")
      rows = tf.compat.v1.get_variable("rows", [9, 2], use_resource=True)
      x = tf.ones([2, 7])
      loss = (self._loss(x, there) + self._loss(x, here) +
              tf.reduce_sum(tf.nn.embedding_lookup(rows, [1, 2])))
      sok.DistributedOptimizer(_train.GradientDescentOptimizer(.1)).minimize(loss)
      sums = [op for op in graph.get_operations() if op.type == "SokAllReduce"]
      self.assertLen(sums, 1)
      self.assertEqual([n.decode() for n in sums[0].get_attr("names")],
                       [v.op.name for v in there])
      self.assertEqual(sums[0].get_attr("exchange_name"), b"sok_gradients")
      names = " ".join(op.name for op in graph.get_operations()
                       if op.type.startswith("Horovod"))
    self.assertRegex(names, "HorovodAllreduce")
    self.assertRegex(names, "HorovodAllgather")

  def test_long_lists_are_cut(self):
    self.addCleanup(setattr, dense_gradients, "_BYTES_PER_CALL",
                    dense_gradients._BYTES_PER_CALL)  # pylint: disable=protected-access
    dense_gradients._BYTES_PER_CALL = 4 * (21 + 3)
    with tf.Graph().as_default() as graph:
      variables = self._variables("v", _GPU)
      sok.DistributedOptimizer(_train.GradientDescentOptimizer(.1)).minimize(
          self._loss(tf.ones([2, 7]), variables), var_list=variables)
      sums = [op for op in graph.get_operations() if op.type == "SokAllReduce"]
    self.assertEqual([len(op.inputs) for op in sums], [2, 2])

  @parameterized.parameters("compression", "process_set", "groups")
  def test_what_only_horovod_does_is_left_to_it(self, argument):
    value = {"compression": hvd.Compression.fp16, "groups": 1,
             "process_set": hvd.global_process_set}[argument]
    with tf.Graph().as_default() as graph:
      variables = self._variables("v", _GPU)
      sok.DistributedOptimizer(
          _train.GradientDescentOptimizer(.1), **{argument: value}).minimize(
              self._loss(tf.ones([2, 7]), variables), var_list=variables)
      types = {op.type for op in graph.get_operations()}
    self.assertNotIn("SokAllReduce", types)

  def test_another_exchange_leaves_all_to_horovod(self):
    settings.set_exchange_carrier("horovod")
    self.addCleanup(settings.set_exchange_carrier, "nccl")
    with tf.Graph().as_default() as graph:
      variables = self._variables("v", _GPU)
      sok.DistributedOptimizer(_train.GradientDescentOptimizer(.1)).minimize(
          self._loss(tf.ones([2, 7]), variables), var_list=variables)
      types = {op.type for op in graph.get_operations()}
    self.assertNotIn("SokAllReduce", types)


if __name__ == "__main__":
  hvd.init()
  sok.init()
  # A rank that went on after a failure would wait for the others.
  absltest.main(failfast=True)
