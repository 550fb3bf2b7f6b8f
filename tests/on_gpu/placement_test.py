# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests where `place` puts ops, and how it configures sessions. Needs no GPU."""

from absl.testing import absltest
import tensorflow as tf

import embedding_variable as ev
import placement
from embedding_variable.variables import config_pb2

# Changes this process permanently.
placement.place("/gpu:0", "hbm_dram", soft=True)

_GPU = "/device:GPU:0"
_CPU = "/device:CPU:0"


def _table(name, storage_type=None):
  option = ev.EmbeddingVariableOption(
      storage_option=ev.StorageOption(storage_type=storage_type))
  return tf.get_embedding_variable(name, 4, ev_option=option)


class PlacementTest(absltest.TestCase):

  def setUp(self):
    super().setUp()
    graph = tf.Graph().as_default()
    graph.__enter__()
    self.addCleanup(graph.__exit__, None, None, None)

  def test_a_table_is_on_the_device_in_the_requested_storage(self):
    before = placement.placed
    handle = _table("v").handle.op
    self.assertEqual(placement.placed, before + 1)
    self.assertEqual(handle.device, _GPU)
    self.assertEqual(handle.get_attr("storage"), b"hbm_dram")
    self.assertEqual(handle.get_attr("memory_bytes"), placement.ROWS_ON_GPU * 4 * 4)

  def test_a_storage_that_the_program_names_is_kept(self):
    handle = _table("v", config_pb2.StorageType.HBM).handle.op
    self.assertEqual(handle.get_attr("storage"), b"hbm")

  def test_a_device_that_the_program_names_is_kept(self):
    before = placement.placed
    with tf.device("/cpu:0"):
      handle = _table("v").handle.op
    self.assertEqual(handle.device, _CPU)
    self.assertEqual(placement.placed, before)

  def test_all_else_is_on_the_cpu(self):
    table = _table("v")
    dense = tf.get_variable("w", [4], use_resource=True)
    loss = tf.reduce_sum(tf.nn.embedding_lookup(table, [1, 2]) * dense)
    tf.train.AdamOptimizer().minimize(loss)
    stock = [op for op in tf.get_default_graph().get_operations()
             # Stock code groups updates on the device of the updated variable.
             if not op.type.startswith("Ev") and op.type != "NoOp" and not any(
                 t.op.type == "EvHandle" for t in op.inputs)]
    self.assertGreater(len(stock), 30)
    for op in stock:
      self.assertEqual(op.device, _CPU, op.name)
    initial = table.initializer.inputs[1].op
    self.assertEqual(initial.device, _CPU)
    self.assertEqual(initial.colocation_groups(),
                     [("loc:@" + initial.name).encode("utf-8")])

  def test_a_job_is_kept(self):
    with tf.device("/job:ps/task:1"):
      self.assertEqual(_table("v").handle.op.device, "/job:ps/task:1/device:GPU:0")
      self.assertEqual(tf.constant(1).device, "/job:ps/task:1/device:CPU:0")

  def test_sessions_leave_memory(self):
    with tf.Session(config=tf.ConfigProto(allow_soft_placement=False)) as session:
      self.assertTrue(session._config.gpu_options.allow_growth)
      self.assertTrue(session._config.allow_soft_placement)

  def test_an_unknown_storage(self):
    with self.assertRaisesRegex(
        ValueError, "expected one of hbm, hbm_dram, hbm_dram_ssd, per_table, own, got 'ssd'"):
      placement.place("/gpu:0", "ssd")


if __name__ == "__main__":
  absltest.main()
