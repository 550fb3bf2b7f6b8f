# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of pack_ops."""

from absl.testing import absltest
import numpy as np
import tensorflow as tf

from embedding_variable import _lib
from embedding_variable.ops import pack_ops
from embedding_variable.ops import testing
from embedding_variable.tf_names import tensor_util

_gen = _lib.load()


class PackOpsTest(absltest.TestCase):

  def setUp(self):
    super(PackOpsTest, self).setUp()
    tf.compat.v1.reset_default_graph()

  def _ops(self, op_type):
    return [op for op in tf.compat.v1.get_default_graph().get_operations()
            if op.type == op_type]

  def test_the_cpu_of_a_gpu(self):
    self.assertEqual("/job:w/replica:0/task:1/device:CPU:0",
                     pack_ops.cpu_of("/job:w/replica:0/task:1/device:GPU:1"))
    for device in (None, "", "/job:w/task:1", "/device:CPU:0"):
      self.assertEqual(device, pack_ops.cpu_of(device))

  def test_unpacking_returns_the_packed_tensors(self):
    fed = [tf.compat.v1.placeholder(t, s) for t, s in
           [(tf.int64, [None]), (tf.int32, []), (tf.string, [2]), (tf.float32, [0, 3])]]
    out = _gen.ev_unpack(_gen.ev_pack(fed), T=[t.dtype for t in fed])
    values = [np.arange(5), np.int32(7), np.array([b"a", b"bc"], object), np.zeros([0, 3])]
    with testing.session() as session:
      for got, expected in zip(session.run(out, dict(zip(fed, values))), values):
        np.testing.assert_array_equal(got, expected)

  def test_a_graph_that_only_packs_constants(self):
    # TensorFlow would constant-fold stateless ops.
    out = _gen.ev_unpack(_gen.ev_pack([tf.constant([1, 2]), tf.constant(3.)]),
                         T=[tf.int32, tf.float32])
    with testing.session() as session:
      for _ in range(2):
        numbers, number = session.run(out)
        self.assertEqual(numbers.tolist(), [1, 2])
        self.assertEqual(number, 3.)

  def test_other_numbers_and_types_are_refused(self):
    packed = _gen.ev_pack([tf.constant([1, 2]), tf.constant(3.)])
    with testing.session() as session:
      for types, message in [
          ([tf.int32], "expected a pack of 1 tensors, got a pack of 2 tensors"),
          ([tf.int32, tf.int32], "expected tensor 1 of a pack as int32, got float")]:
        with self.assertRaisesRegex(tf.errors.InvalidArgumentError, message):
          session.run(_gen.ev_unpack(packed, T=types))

  def test_tensors_for_a_gpu_go_as_one(self):
    many = [tf.compat.v1.placeholder(tf.int64, [n + 1]) for n in range(9)]
    constant = tf.constant([4], tf.int64)
    given = many + [constant, many[0]]
    moved = pack_ops.to_device(given, "/gpu:0")
    self.assertLen(self._ops("EvPack"), 1)
    self.assertLen(self._ops("EvPack")[0].inputs, 9)
    self.assertEqual(self._ops("EvPack")[0].device, "/device:CPU:0")
    self.assertEqual(self._ops("EvUnpack")[0].device, "/device:GPU:0")
    self.assertIs(moved[9], constant)
    self.assertIs(moved[10], moved[0])
    for tensor, other in zip(moved, given):
      self.assertEqual(tensor.shape.as_list(), other.shape.as_list())
      self.assertEqual(tensor.dtype, other.dtype)

  def test_few_tensors_and_other_devices_are_left_alone(self):
    many = [tf.compat.v1.placeholder(tf.int64, [1]) for _ in range(20)]
    for tensors, device in [(many[:3], "/gpu:0"), (many, "/cpu:0"), (many, ""),
                            (many, "/job:ps/task:1"), ([many[0]] * 20, "/gpu:0")]:
      self.assertEqual(pack_ops.to_device(tensors, device), tensors)
    self.assertEmpty(self._ops("EvPack"))

  def test_constants_of_a_gpu_are_made_on_the_cpu(self):
    # TensorFlow would copy them to the host in every step.
    with tf.device("/gpu:0"):
      step, rate = tf.constant(3, tf.int64), tf.constant(.1, tf.float64)
    fed = tf.compat.v1.placeholder(tf.float32, [])
    ours = lambda tensor: True
    rates = pack_ops.scalars_to_device([rate, 2, .5, fed], tf.float32, "/gpu:0", ours)
    steps = pack_ops.scalars_to_device([step], tf.int64, "/gpu:0", ours)
    self.assertIs(rates[3], fed)
    for tensor, value, dtype in [(steps[0], 3, tf.int64),
                                 (rates[0], np.float32(.1), tf.float32),
                                 (rates[1], 2., tf.float32), (rates[2], .5, tf.float32)]:
      self.assertEqual(tensor.op.type, "Const")
      self.assertEqual(tensor.device, "/device:CPU:0")
      self.assertEqual(tensor.dtype, dtype)
      np.testing.assert_array_equal(tensor_util.constant_value(tensor), value)

  def test_constants_of_the_script_are_left_alone(self):
    # The script may feed them.
    with tf.device("/gpu:0"):
      theirs, ours = tf.constant(.1), tf.constant(.2)
      given = [tf.constant([0, 1, 2], tf.int64) for _ in range(20)]
    made = pack_ops.scalars_to_device([theirs, ours], tf.float32, "/gpu:0",
                                      lambda tensor: tensor is ours)
    self.assertIs(made[0], theirs)
    self.assertIsNot(made[1], ours)
    self.assertEqual(pack_ops.to_device(given, "/gpu:0"), given)

  def test_scalars_of_other_devices_are_left_alone(self):
    scalars = [tf.constant(1.), 2., tf.compat.v1.placeholder(tf.float32, [])]
    for device in "/cpu:0", "", "/job:ps/task:1":
      self.assertEqual(pack_ops.scalars_to_device(scalars, tf.float32, device,
                                                  lambda tensor: True), scalars)

  def test_the_cpu_beside_a_gpu(self):
    for device, expected in [("/gpu:1", "/device:CPU:0"), ("/cpu:0", "/cpu:0"), ("", ""),
                             ("/job:ps/task:2/device:GPU:3", "/job:ps/task:2/device:CPU:0"),
                             ("/job:ps/task:2", "/job:ps/task:2")]:
      self.assertEqual(pack_ops.cpu_of(device), expected)


if __name__ == "__main__":
  absltest.main()
