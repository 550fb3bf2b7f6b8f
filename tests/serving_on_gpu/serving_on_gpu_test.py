# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Layers placed on TensorFlow's GPU, for which a test device stands in.

Each lookup also runs on the CPU and must give the same bits. TensorFlow's CPU wheel has
no GPU kernels of stock ops, so stock ops between lookups use soft placement.
"""

import os
import sys

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf
from tensorflow.python.framework import kernels

_WITHOUT_CUDA = "--without_cuda" in sys.argv
if _WITHOUT_CUDA:
  sys.argv.remove("--without_cuda")
_HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                     "without_cuda" if _WITHOUT_CUDA else "")
_load_op_library = tf.load_op_library
_loaded = []


def _load_with_gpu(path):
  _loaded.append(_load_op_library(os.path.join(_HERE, os.path.basename(path))))
  return _loaded[0]


# Replaced before the package loads its library.
tf.load_op_library = _load_with_gpu

import hierarchical_parameter_server as hps  # pylint: disable=wrong-import-position
from hierarchical_parameter_server import testing  # pylint: disable=wrong-import-position

_ROWS, _DIM = 300, 12

# Stock ops with GPU kernels in TensorFlow 1.15, for the layers' types. The CPU wheel does
# not have these kernels, so this list cannot be checked with it; lookup_speed.py
# --device=gpu checks it.
_STOCK_ON_GPUS = frozenset([
    "Cast", "Const", "DivNoNan", "ExpandDims", "Fill", "GatherV2", "Greater", "Identity",
    "Maximum", "Mul", "Pad", "Pow", "RealDiv", "SegmentSum", "Select", "Shape", "Sqrt",
    "StridedSlice", "Sum"])


class ServingOnGpuTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    hps.stop()
    self.test = _loaded[0]
    self.folder = self.create_tempdir().full_path
    random = np.random.RandomState(3)
    self.rows = random.normal(size=[_ROWS, _DIM]).astype(np.float32)
    testing.write_table(os.path.join(self.folder, "t"), np.arange(_ROWS), self.rows)

  def tearDown(self):
    hps.stop()
    super().tearDown()

  def layer(self, kind=hps.LookupLayer, long_keys=True, **more):
    path = testing.write_config(
        os.path.join(self.folder, "ps.json"),
        [testing.model("m", ["t"], [_DIM], [.25], most=4, **more)],
        supportlonglong=long_keys)
    return kind(model_name="m", table_id=0, emb_vec_size=_DIM, emb_vec_dtype=tf.float32,
                ps_config_file=path, global_batch_size=8)

  def session(self, soft=False):
    return tf.compat.v1.Session(
        config=tf.compat.v1.ConfigProto(allow_soft_placement=soft))

  def devices(self, session, fetched, feed):
    """Returns {op type: "CPU" or "GPU"} of the ops that ran."""
    metadata = tf.compat.v1.RunMetadata()
    session.run(fetched, feed, tf.compat.v1.RunOptions(
        trace_level=tf.compat.v1.RunOptions.FULL_TRACE, output_partition_graphs=True),
                metadata)
    return {node.op: "GPU" if "GPU" in node.device else "CPU"
            for graph in metadata.partition_graphs for node in graph.node}

  @parameterized.product(
      dtype=[tf.int32, tf.int64], ids_on_gpu=[False, True],
      cache=[dict(gpucache=False), dict(gpucacheper=.1), dict(gpucacheper=1.)])
  def test_rows_are_those_of_the_cpu(self, dtype, ids_on_gpu, cache):
    layer = self.layer(long_keys=dtype == tf.int64, **cache)
    random = np.random.RandomState(5)
    with tf.Graph().as_default(), self.session() as session:
      fed = tf.compat.v1.placeholder(dtype, [None, None])
      on_cpu = layer(fed)
      with tf.device("/gpu:0"):
        ids = self.test.test_ids(x=fed) if ids_on_gpu else fed
        rows = layer(ids)
        result = self.test.test_dense(x=rows)
      expected = self.test.test_dense(x=on_cpu)
      for shape in ([3, 7], [1, 1], [0, 4], [40, 50], [3, 7]):
        asked = random.randint(-5, _ROWS + 5, shape)
        rows_on_gpu, rows_on_cpu, dense, dense_on_cpu = session.run(
            [rows, on_cpu, result, expected], {fed: asked})
        known = (asked >= 0) & (asked < _ROWS)
        np.testing.assert_array_equal(
            rows_on_gpu,
            np.where(known[..., None], self.rows[np.clip(asked, 0, _ROWS - 1)],
                     np.float32(.25)))
        np.testing.assert_array_equal(rows_on_gpu, rows_on_cpu)
        np.testing.assert_array_equal(dense, dense_on_cpu)
      devices = self.devices(session, result, {fed: asked})
      self.assertEqual((devices["HpsLookup"], devices["HpsInit"]), ("GPU", "CPU"))

  def test_copies_between_memories(self):
    layer = self.layer(gpucacheper=1.)
    with tf.Graph().as_default(), self.session() as session:
      fed = tf.compat.v1.placeholder(tf.int64, [None])
      with tf.device("/gpu:0"):
        ids = self.test.test_ids(x=fed)
        results = [self.test.test_dense(x=layer(ids)).op, self.test.test_dense(x=layer(fed)).op]
      with tf.device("/cpu:0"):
        copied = [self.test.test_floats_copied(), self.test.test_integers_copied()]
      session.run(results, {fed: [1, 2, 3]})
      for result, integers in zip(results, ([5, 0], [0, 0])):
        session.run(copied)
        session.run(result, {fed: [1, 2, 3, 4, 1000]})
        floats, integers_copied = session.run(copied)
        if _WITHOUT_CUDA:
          # The rows are in host memory, so the ids are copied to the host.
          self.assertEqual(floats.tolist(), [5 * _DIM, 0])
          self.assertEqual(integers_copied.tolist(), [integers[0], integers[0]])
        else:
          # The cache is in GPU memory and reads the ids from GPU memory.
          self.assertEqual(floats.tolist(), [0, 0])
          self.assertEqual(integers_copied.tolist(), integers)
    table = hps.metrics()["models"][0]["tables"][0]
    self.assertEqual(table["from_cache"] > 0, not _WITHOUT_CUDA)

  def test_layer_without_a_device_is_on_the_cpu(self):
    layer = self.layer()
    with tf.Graph().as_default(), self.session() as session:
      fed = tf.compat.v1.placeholder(tf.int64, [None])
      devices = self.devices(session, layer(fed), {fed: [1]})
      self.assertEqual(devices["HpsLookup"], "CPU")

  def sparse(self, lists):
    places = [[r, c] for r, row in enumerate(lists) for c in range(len(row))]
    ids = [i for row in lists for i in row]
    shape = [len(lists), max(len(row) for row in lists)]
    weights = np.random.RandomState(7).uniform(.1, 2, len(ids)).astype(np.float32)
    return (tf.compat.v1.SparseTensorValue(places, ids, shape),
            tf.compat.v1.SparseTensorValue(places, weights, shape))

  @parameterized.product(combiner=["sum", "mean", "sqrtn"], weighted=[False, True],
                         max_norm=[None, 1.5])
  def test_combined_rows_are_those_of_the_cpu(self, combiner, weighted, max_norm):
    layer = self.layer(hps.SparseLookupLayer)
    lists = [[], [3, 5, 3], [199], [], [0, 1, 2, 3, 4, 5, 6, 7], [7, 7, 400], [], []]
    ids, weights = self.sparse(lists)
    with tf.Graph().as_default() as graph, self.session(soft=True) as session:
      fed = tf.compat.v1.sparse_placeholder(tf.int64, [None, None])
      fed_weights = tf.compat.v1.sparse_placeholder(tf.float32, [None, None])
      given = fed_weights if weighted else None
      rows_on_cpu = layer(fed, given, combiner=combiner, max_norm=max_norm)
      before = set(graph.get_operations())
      with tf.device("/gpu:0"):
        rows_on_gpu = layer(fed, given, combiner=combiner, max_norm=max_norm)
      made = [op for op in graph.get_operations() if op not in before]
      feed = {fed: ids, fed_weights: weights}
      found, expected = session.run([rows_on_gpu, rows_on_cpu], feed)
      self.assertEqual(self.devices(session, rows_on_gpu, feed)["HpsLookup"], "GPU")
    self.assertEqual(found.shape, (len(lists), _DIM))
    if weighted and combiner == "sqrtn" or max_norm is not None:
      # TensorFlow's optimizer may turn a division by a root into a product.
      np.testing.assert_allclose(found, expected, rtol=3e-7, atol=1e-8)
    else:
      np.testing.assert_array_equal(found, expected)
    # Without soft placement all of these ops need GPU kernels.
    on_gpu = {op.type for op in made if "GPU" in op.device}
    self.assertContainsSubset({"HpsLookup", "SegmentSum", "GatherV2"}, on_gpu)
    self.assertEmpty(on_gpu - _STOCK_ON_GPUS - {"HpsLookup"})

  def test_ragged_ids(self):
    dense, sparse = self.layer(), self.layer(hps.SparseLookupLayer)
    lists = [[1, 2], [], [3, 3, 3]]
    with tf.Graph().as_default() as graph, self.session(soft=True) as session:
      ids = tf.ragged.constant(lists, tf.int64)
      weights = tf.ragged.constant([[1., 2.], [], [.5, .5, 1.]])
      before = set(graph.get_operations())
      with tf.device("/gpu:0"):
        rows = dense(ids)
        sums = [sparse(ids, given, combiner="sum") for given in (None, weights)]
      on_gpu = {op.type for op in graph.get_operations()
                if op not in before and "GPU" in op.device}
      rows, (plain, weighted) = session.run([rows.flat_values, sums])
    np.testing.assert_array_equal(rows, self.rows[[1, 2, 3, 3, 3]])
    np.testing.assert_allclose(
        plain, [self.rows[row].sum(axis=0) for row in lists], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(
        weighted, [self.rows[1] + 2 * self.rows[2], 0 * self.rows[0], 2 * self.rows[3]],
        rtol=1e-6, atol=1e-6)
    self.assertEmpty(on_gpu - _STOCK_ON_GPUS - {"HpsLookup"})

  def test_errors_are_those_of_the_cpu(self):
    layer = self.layer()
    with tf.Graph().as_default(), self.session() as session:
      fed = tf.compat.v1.placeholder(tf.int64, [None])
      with tf.device("/gpu:0"):
        rows = layer(self.test.test_ids(x=fed))
        wide = hps.LookupLayer("m", 0, _DIM + 1, tf.float32, layer.ps_config_file)(fed)
      with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "at most 4096 .* got 4097"):
        session.run(rows.op, {fed: np.zeros(4097)})
      with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "rows of 12 floats, got 13"):
        session.run(wide.op, {fed: [1]})
      np.testing.assert_array_equal(session.run(rows, {fed: [1]}), self.rows[[1]])

  def test_updates_and_reloads_are_seen(self):
    layer = self.layer(gpucacheper=1.)
    with tf.Graph().as_default(), self.session() as session:
      with tf.device("/gpu:0"):
        rows = layer(self.test.test_ids(x=tf.constant([1, 2, 5000], tf.int64)))
      default = np.full([_DIM], .25, np.float32)
      np.testing.assert_array_equal(session.run(rows), [self.rows[1], self.rows[2], default])
      hps.push_rows("m", "table0", [2, 5000], np.full([2, _DIM], 7))
      np.testing.assert_array_equal(session.run(rows), [self.rows[1]] + [[7] * _DIM] * 2)
      hps.reload_model("m")
      np.testing.assert_array_equal(session.run(rows), [self.rows[1], self.rows[2], default])

  def test_kernels(self):
    found = {(k.device_type, k.label): set(k.host_memory_arg)
             for k in kernels.get_registered_kernels_for_op("HpsLookup").kernel}
    self.assertEqual(found, {
        ("CPU", ""): set(), ("CPU", "ids_on_gpu"): set(),
        ("GPU", ""): {"ids", "init_status"}, ("GPU", "ids_on_gpu"): {"init_status"}})


if __name__ == "__main__":
  absltest.main()
