# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's mixed-precision graph rewrite, for a GPU that is only described to it."""

import os

from absl.testing import absltest
import tensorflow as tf

import embedding_variable as ev
from tensorflow.core.protobuf import device_properties_pb2
from tensorflow.core.protobuf import rewriter_config_pb2
from tensorflow.python.grappler import cluster as grappler_cluster
from tensorflow.python.grappler import tf_optimizer

from embedding_variable.integration.training import graph_rewrite_patch

_HOST = "/job:localhost/replica:0/task:0/device:"
_LIST = "TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_WHITELIST_ADD"


def _cluster():
  devices = []
  for kind in "CPU", "GPU":
    device = device_properties_pb2.NamedDevice(name=_HOST + kind + ":0")
    device.properties.type = kind
    device.properties.frequency = 1000
    device.properties.num_cores = 100
    device.properties.memory_size = 1 << 30
    device.properties.environment["architecture"] = "9.0"
    devices.append(device)
  return grappler_cluster.Cluster(devices=devices)


def _rewritten(graph, fetches):
  """Returns the nodes of the rewritten graph by name."""
  for fetch in fetches:
    graph.add_to_collection(tf.GraphKeys.TRAIN_OP, fetch)
  config = tf.ConfigProto()
  options = config.graph_options.rewrite_options
  options.auto_mixed_precision = rewriter_config_pb2.RewriterConfig.ON
  options.optimizers.append("auto_mixed_precision")
  options.min_graph_nodes = -1
  found = tf_optimizer.OptimizeGraph(config, tf.train.export_meta_graph(graph=graph),
                                     cluster=_cluster())
  return {node.name: node for node in found.node}


class GraphRewriteTest(absltest.TestCase):

  def _model(self, output_dtype):
    """Returns the rewritten nodes of a small DLRM, and its ops of each type by name."""
    with tf.Graph().as_default() as graph, tf.device("/gpu:0"):
      table = tf.get_embedding_variable("a", embedding_dim=8)
      ids = tf.SparseTensor([[0, 0], [1, 0]], tf.constant([5, 7], tf.int64), [2, 1])
      pooled, = ev.lookup_sparse([table], [ids], combiners=["sum"],
                                 output_dtype=output_dtype)
      given = tf.placeholder(output_dtype, [2, 8])
      dots = ev.dot_interaction([given, pooled])
      weights = tf.placeholder(output_dtype, [1, 4])
      loss = tf.reduce_sum(tf.cast(tf.matmul(dots, weights), tf.float32))
      train = tf.train.GradientDescentOptimizer(.1).minimize(loss, var_list=[table])
      nodes = _rewritten(graph, [loss, train])
      return nodes, {op.type: op.name for op in graph.get_operations()}

  def test_dot_products_are_float16_and_lookups_float32(self):
    nodes, names = self._model(tf.float32)
    for op in "MatMul", "EvDotInteraction", "EvDotInteractionGrad":
      self.assertEqual(nodes[names[op]].attr["T"].type, tf.float16, op)
    # A cast is between a lookup and its consumer.
    self.assertEqual(nodes[names["EvLookupSparse"]].attr["Tout"].type, tf.float32)
    self.assertNotIn(names["EvLookupSparse"], nodes[names["EvDotInteraction"]].input)
    self.assertEqual(nodes[names["EvLookupSparseGrad"]].attr["Tgrads"].type, tf.float32)

  def test_a_float16_lookup_needs_no_cast(self):
    nodes, names = self._model(tf.float16)
    self.assertEqual(nodes[names["EvLookupSparse"]].attr["Tout"].type, tf.float16)
    self.assertIn(names["EvLookupSparse"], nodes[names["EvDotInteraction"]].input)
    self.assertEqual(nodes[names["EvLookupSparseGrad"]].attr["Tgrads"].type, tf.float16)

  def test_ops_that_the_user_names_are_kept(self):
    before = os.environ[_LIST]
    self.addCleanup(os.environ.__setitem__, _LIST, before)
    os.environ[_LIST] = "Mine,EvDotInteraction"
    for _ in range(2):
      graph_rewrite_patch.install()
      self.assertEqual(os.environ[_LIST], "Mine,EvDotInteraction,EvDotInteractionGrad")


if __name__ == "__main__":
  absltest.main()
