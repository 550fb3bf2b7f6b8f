# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Variables placed on TensorFlow's GPU, for which a test device stands in.

Each model also runs in a session without that device and must give the same bits.
"""

import os
import tempfile

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf
from tensorflow.python.framework import kernels

_HERE = os.path.dirname(os.path.abspath(__file__))
_load_op_library = tf.load_op_library


def _load_with_gpu(path):
  return _load_op_library(os.path.join(_HERE, os.path.basename(path)))


# Replaced before the package loads its library.
tf.load_op_library = _load_with_gpu

import embedding_variable as ev  # pylint: disable=wrong-import-position
from embedding_variable import _lib  # pylint: disable=wrong-import-position
from embedding_variable.variables import config_pb2  # pylint: disable=wrong-import-position
from embedding_variable.variables import options  # pylint: disable=wrong-import-position

_test = _lib.load()

_DIM = 4
_SAMPLES = 30
_IDS = 240
_HBM = config_pb2.StorageType.HBM
_HBM_DRAM = config_pb2.StorageType.HBM_DRAM
_DRAM = config_pb2.StorageType.DRAM
_HBM_DRAM_SSD = config_pb2.StorageType.HBM_DRAM_SSDHASH


def _variable(name, storage, value_dtype=None):
  size = [64 * _DIM * 4, 1 << 20] if storage in (_HBM_DRAM, _HBM_DRAM_SSD) else None
  path = tempfile.mkdtemp() if storage == _HBM_DRAM_SSD else None
  rows = np.random.RandomState(len(name)).randn(7, _DIM).astype(np.float32)
  option = ev.EmbeddingVariableOption(
      storage_option=ev.StorageOption(
          storage_type=storage, storage_size=size, storage_path=path),
      init_option=ev.InitializerOption(
          initializer=lambda shape, **_: tf.constant(rows, shape=shape),
          default_value_dim=len(rows)), value_dtype=value_dtype)
  return tf.get_embedding_variable(name, _DIM, ev_option=option)


class _Model(object):
  """A graph whose variables and dense layers are on `device`."""

  def __init__(self, device, storages, optimizer=None, weighted=False, change=None,
               rows=False, combiners=("mean", "sum", "sqrtn"), ids=None,
               output_dtype=None, value_dtype=None):
    with tf.Graph().as_default() as graph:
      step = tf.train.get_or_create_global_step()
      names = ["a", "bb", "ccc"][:len(storages)]
      self.ids = [tf.sparse_placeholder(tf.int64) for _ in names]
      self.weights = tf.sparse_placeholder(tf.float32)
      with tf.device(device):
        features = [ids(x) if ids else x for x in self.ids]
        self.variables = [_variable(n, s, value_dtype) for n, s in zip(names, storages)]
        if rows:
          self.outputs = [tf.nn.embedding_lookup(v, x.values)
                          for v, x in zip(self.variables, self.ids)]
        elif weighted:
          self.outputs = [
              tf.nn.embedding_lookup_sparse(v, x, self.weights, combiner="mean")
              for v, x in zip(self.variables, self.ids)]
        elif output_dtype is not None:
          self.outputs = ev.lookup_sparse(
              self.variables, features, combiners=list(combiners[:len(names)]),
              output_dtype=output_dtype)
        else:
          self.outputs = tf.nn.group_embedding_lookup_sparse(
              self.variables, features, list(combiners[:len(names)]))
        grads = [tf.cast(_test.test_dense(x=tf.cast(x, tf.float32)), x.dtype)
                 for x in self.outputs]
      optimizer = (optimizer or (lambda: tf.train.AdagradOptimizer(.1)))()
      grads = tf.gradients(self.outputs, [v.handle for v in self.variables], grads)
      if change is not None:
        grads = [change(g) for g in grads]
      self.train = optimizer.apply_gradients(zip(grads, self.variables),
                                             global_step=step)
      self.exports = [v.export() for v in self.variables]
      self.saver = tf.train.Saver()
      self.init = tf.global_variables_initializer()
      self.copied = _test.test_floats_copied()
      self.integers_copied = _test.test_integers_copied()
      self.types = {op.type for op in graph.get_operations()}
    # Soft placement, because this TensorFlow has no GPU kernels of stock ops.
    self.session = tf.Session(graph=graph, config=tf.ConfigProto(
        device_count={"GPU": 1 if device else 0}, allow_soft_placement=True,
        intra_op_parallelism_threads=2, inter_op_parallelism_threads=2))

  def feed(self, seed):
    random = np.random.RandomState(seed)
    feed = {}
    samples = np.sort(random.randint(0, _SAMPLES, size=_IDS))
    indices = np.stack([samples, np.arange(_IDS)], axis=1)
    for x in self.ids:
      feed[x] = (indices, random.randint(-60, 60, size=_IDS), [_SAMPLES, _IDS])
    feed[self.weights] = (indices, random.rand(_IDS), [_SAMPLES, _IDS])
    return feed

  def run(self, steps, seed):
    """Trains; returns the lookups' results."""
    return [self.session.run([self.outputs, self.train], self.feed(seed + i))[0]
            for i in range(steps)]

  def tables(self):
    return self.session.run(self.exports)

  def devices(self, fetches, feed):
    """Runs `fetches`; returns the device types on which each op type ran."""
    metadata = tf.RunMetadata()
    self.session.run(fetches, feed, run_metadata=metadata,
                     options=tf.RunOptions(output_partition_graphs=True))
    devices = {}
    for graph in metadata.partition_graphs:
      for node in graph.node:
        device = tf.DeviceSpec.from_string(node.device).device_type
        devices.setdefault(node.op, set()).add(device)
    return devices


def _on_device(ids):
  """Returns a SparseTensor whose ids are computed on the graph's current device."""
  return tf.SparseTensor(_test.test_ids(x=ids.indices), _test.test_ids(x=ids.values),
                         ids.dense_shape)


def _narrow_on_device(ids):
  values = tf.cast(ids.values, tf.int32)
  return tf.SparseTensor(_test.test_ids(x=ids.indices), _test.test_ids(x=values),
                         ids.dense_shape)


def _ragged_on_device(ids):
  with tf.device("/cpu:0"):
    ragged = tf.RaggedTensor.from_value_rowids(
        ids.values, ids.indices[:, 0], nrows=ids.dense_shape[0])
  return tf.RaggedTensor.from_row_splits(
      _test.test_ids(x=ragged.values), _test.test_ids(x=ragged.row_splits),
      validate=False)


class GpuDeviceTest(parameterized.TestCase):

  def _check_same(self, one, other):
    self.assertEqual(len(one), len(other))
    for tensors, others in zip(one, other):
      for a, b in zip(tensors, others):
        np.testing.assert_array_equal(a, b)

  def _pair(self, *args, **kwargs):
    models = _Model("/gpu:0", *args, **kwargs), _Model("", *args, **kwargs)
    for model in models:
      model.session.run(model.init)
    return models

  def _check_training(self, *args, **kwargs):
    gpu, cpu = self._pair(*args, **kwargs)
    self._check_same(gpu.run(4, seed=1), cpu.run(4, seed=1))
    self._check_same(gpu.tables(), cpu.tables())
    return gpu, cpu

  def test_this_tensorflow_has_a_gpu(self):
    with tf.Graph().as_default(), tf.Session() as session:
      self.assertIn("GPU", [d.device_type for d in session.list_devices()])

  @parameterized.parameters(
      (tf.train.AdagradOptimizer, .1), (tf.train.AdamOptimizer, .1),
      (tf.train.GradientDescentOptimizer, .1))
  def test_training_gives_the_bits_of_the_cpu(self, optimizer, rate):
    gpu, _ = self._check_training([_HBM, _HBM, _HBM], lambda: optimizer(rate))
    self.assertIn("EvApplyPooled", gpu.types)

  @parameterized.product(
      output_dtype=(tf.float16, tf.bfloat16), ids=(None, _on_device),
      storages=([_HBM, _HBM, _HBM], [_HBM_DRAM, _HBM, _HBM_DRAM], [_DRAM, _HBM, _DRAM]),
      combiners=(("mean", "sum", "sqrtn"), ("sum", "max", "mean")))
  def test_narrow_outputs_have_the_bits_of_the_cpu(self, output_dtype, ids, storages,
                                                   combiners):
    gpu, cpu = self._check_training(storages, ids=ids, output_dtype=output_dtype,
                                    combiners=combiners)
    for model in (gpu, cpu):
      self.assertEqual([output_dtype] * 3, [x.dtype for x in model.outputs])

  @parameterized.product(
      value_dtype=(tf.float16, tf.bfloat16), ids=(None, _on_device), rows=(False, True),
      storages=([_HBM] * 3, [_HBM_DRAM, _HBM, _HBM_DRAM_SSD]))
  def test_narrow_values_have_the_bits_of_cpu_memory(self, value_dtype, ids, rows, storages):
    gpu = _Model("/gpu:0", storages, ids=ids, rows=rows, value_dtype=value_dtype)
    cpu = _Model("", [_DRAM] * 3, rows=rows, value_dtype=value_dtype)
    for model in (gpu, cpu):
      model.session.run(model.init)
    self._check_same(gpu.run(4, seed=1), cpu.run(4, seed=1))
    self._check_same(gpu.tables(), cpu.tables())

  def test_a_step_copies_no_floats(self):
    gpu, _ = self._pair([_HBM, _HBM, _HBM])
    devices = gpu.devices(gpu.train, gpu.feed(1))
    for op in ("EvHandle", "EvLookupSparse", "TestDense", "EvApplyPooled"):
      self.assertEqual(devices[op], {"GPU"}, op)
    gpu.session.run(gpu.copied)
    gpu.session.run(gpu.train, gpu.feed(2))
    self.assertEqual(gpu.session.run(gpu.copied).tolist(), [0, 0])
    gpu.session.run(gpu.outputs, gpu.feed(3))  # fetching copies the outputs
    self.assertEqual(gpu.session.run(gpu.copied).tolist(),
                     [0, 3 * _SAMPLES * _DIM])

  @parameterized.parameters(None, _on_device, _ragged_on_device)
  def test_scalars_for_the_host_are_computed_on_the_host(self, ids):
    # A constant on the GPU would be copied to the host in every step.
    with tf.Graph().as_default() as graph:
      step = tf.train.get_or_create_global_step()
      given = [tf.sparse_placeholder(tf.int64), tf.sparse_placeholder(tf.int64, [5, 9])]
      with tf.device("/gpu:0"):
        variables = [_variable("a", _HBM), _variable("bb", _HBM)]
        outputs = tf.nn.group_embedding_lookup_sparse(
            variables, [ids(x) if ids else x for x in given], ["sum"] * 2)
        tf.train.AdagradOptimizer(.1).minimize(tf.add_n([tf.reduce_sum(x) for x in outputs]),
                                               global_step=step, var_list=variables)
      seen = set()
      for op in graph.get_operations():
        if op.type not in ("EvLookupSparse", "EvApplyPooled"):
          continue
        seen.add(op.type)
        scalars = [x for x in op.inputs if x.shape.ndims == 0 and
                   x.dtype in (tf.int64, tf.float32) and x.op.type != "Identity"]
        self.assertLen(scalars, 2 if op.type == "EvLookupSparse" else 1)
        for x in scalars:
          self.assertEqual(tf.DeviceSpec.from_string(x.device).device_type, "CPU", x)
    self.assertLen(seen, 2)

  @parameterized.parameters(([_DRAM, _DRAM],), ([_HBM, _DRAM, _HBM],),
                            ([_HBM_DRAM, _HBM],), (["auto"],))
  def test_rows_in_other_memories(self, storages):
    storages = [options.AUTO if s == "auto" else s for s in storages]
    gpu, _ = self._check_training(storages)
    self.assertEqual(gpu.devices(gpu.train, gpu.feed(1))["EvLookupSparse"], {"GPU"})

  def test_moved_rows_and_bytes_over_the_link(self):
    config = tf.ConfigProto(device_count={"GPU": 0})
    with tf.Graph().as_default(), tf.Session(config=config) as session:
      v = _variable("v", _HBM_DRAM)  # 64 rows in GPU memory
      ids = tf.placeholder(tf.int64, [None])
      count = tf.size(ids, out_type=tf.int64)
      indices = tf.stack([tf.range(count), tf.zeros_like(ids)], axis=1)
      rows = tf.nn.embedding_lookup_sparse(
          v, tf.SparseTensor(indices, ids, tf.stack([count, 1])), None, combiner="sum")
      train = tf.train.GradientDescentOptimizer(.1).minimize(tf.reduce_sum(rows))
      moves = v.move_stats()
      self.assertEqual(moves.shape.as_list(), [3])
      ev.summaries([v])
      merged = tf.summary.merge_all()
      dram = _variable("dram", _DRAM)
      none = dram.move_stats()
      session.run(tf.global_variables_initializer())
      row_bytes = _DIM * 4
      # Reads and writes the 36 rows in CPU memory.
      session.run(train, {ids: np.arange(100)})
      self.assertEqual(session.run(moves).tolist(), [0, 0, 36 * 2 * row_bytes])
      session.run(merged)
      # Reads two rows there; then the test device swaps them with two rows.
      session.run(rows, {ids: [99, 98, 99]})
      self.assertEqual(session.run(moves).tolist(),
                       [2, 2, (36 * 2 + 2 + 2 * 2) * row_bytes])
      charts = tf.Summary.FromString(session.run(merged)).value
      charts = {chart.tag: chart.simple_value for chart in charts}
      self.assertEqual([charts["v/" + name] for name in
                        ("rows_moved_up", "rows_moved_down", "link_bytes")],
                       [2, 2, (2 + 2 * 2) * row_bytes])
      self.assertEqual(session.run(none).tolist(), [0, 0, 0])

  @parameterized.parameters((_HBM_DRAM_SSD, _SAMPLES * _DIM), (_HBM_DRAM, 0))
  def test_rows_that_the_gpu_does_not_reach_are_copied_once(self, storage, pooled):
    gpu, _ = self._pair([storage, _HBM])
    self.assertIn("EvApplyPooled", gpu.types)
    gpu.session.run(gpu.copied)
    gpu.session.run(gpu.train, gpu.feed(1))
    self.assertEqual(gpu.session.run(gpu.copied).tolist(), [pooled, pooled])

  @parameterized.parameters(_on_device, _narrow_on_device,
                            _ragged_on_device)
  def test_ids_on_the_gpu_are_not_copied_to_the_host(self, ids):
    gpu, cpu = self._check_training([_HBM, _HBM, _HBM], ids=ids)
    gpu.session.run(gpu.integers_copied)
    self._check_same(gpu.run(1, seed=9), cpu.run(1, seed=9))
    _, down = gpu.session.run(gpu.integers_copied)
    self.assertEqual(down, 0)

  def test_ids_of_rows_in_two_memories_are_not_copied_to_the_host(self):
    gpu, _ = self._check_training([_HBM_DRAM, _HBM, _HBM_DRAM], ids=_on_device)
    gpu.session.run(gpu.integers_copied)
    gpu.run(1, seed=9)
    _, down = gpu.session.run(gpu.integers_copied)
    self.assertEqual(down, 0)

  @parameterized.parameters(([_DRAM, _DRAM],), ([_HBM, _DRAM, _HBM],),
                            ([_HBM_DRAM_SSD, _HBM],))
  def test_ids_on_the_gpu_with_rows_in_other_memories(self, storages):
    gpu, _ = self._check_training(storages, ids=_on_device)
    gpu.session.run(gpu.integers_copied)
    gpu.run(1, seed=9)
    _, down = gpu.session.run(gpu.integers_copied)
    self.assertEqual(down, 3 * _IDS * len(storages))

  def test_weighted_ids_on_the_gpu(self):
    self._check_training([_HBM, _HBM], weighted=True, ids=_on_device)

  def test_ids_on_the_gpu_with_changed_gradients(self):
    def half(g):
      return tf.IndexedSlices(g.values * .5, g.indices, g.dense_shape)

    self._check_training([_HBM, _HBM], change=half, ids=_on_device)

  def test_errors_of_ids_on_the_gpu_name_the_variable(self):
    gpu = _Model("/gpu:0", [_HBM, _HBM], ids=_on_device)
    gpu.session.run(gpu.init)
    for wrong, message in ((_SAMPLES, "below the batch size.*'bb'"),
                           (-_SAMPLES, "expected samples of at least 0.*'bb'")):
      feed = gpu.feed(1)
      indices = feed[gpu.ids[1]][0] + [wrong, 0]
      feed[gpu.ids[1]] = (indices,) + feed[gpu.ids[1]][1:]
      with self.assertRaisesRegex(tf.errors.InvalidArgumentError, message):
        gpu.session.run(gpu.train, feed)
    self.assertEmpty(gpu.tables()[0][0])
    gpu.run(1, seed=1)

  @parameterized.parameters(_HBM, _DRAM)
  def test_weights(self, storage):
    self._check_training([storage, storage], weighted=True)

  def test_a_combiner_that_selects(self):
    # Rows are pooled and their gradients summed in CPU memory.
    gpu, _ = self._check_training([_HBM, _HBM_DRAM, _HBM],
                                  combiners=("max", "max", "sum"))
    self.assertIn("EvApplyPooled", gpu.types)

  @parameterized.parameters(_HBM, _DRAM, _HBM_DRAM, _HBM_DRAM_SSD)
  def test_rows_that_are_not_pooled(self, storage):
    gpu, _ = self._check_training([storage], rows=True)
    self.assertEqual(gpu.devices(gpu.train, gpu.feed(1))["EvGather"], {"GPU"})
    gpu.session.run(gpu.copied)
    gpu.session.run(gpu.train, gpu.feed(2))
    up, down = gpu.session.run(gpu.copied)
    self.assertEqual(up, 0 if storage in (_HBM, _HBM_DRAM) else _IDS * _DIM)
    self.assertEqual(down, _IDS * _DIM)

  def test_changed_gradients(self):
    def half(g):
      return tf.IndexedSlices(g.values * .5, g.indices, g.dense_shape)

    gpu, _ = self._check_training([_HBM, _HBM], change=half)
    self.assertNotIn("EvApplyPooled", gpu.types)

  @parameterized.parameters(tf.float32, tf.float16)
  def test_the_update_multiplies_by_a_common_factor(self, output_dtype):
    def scaled(g):
      factor = tf.get_collection_ref("factor")
      if not factor:
        with tf.device("/cpu:0"):
          factor.append(tf.constant(.3))
      return tf.IndexedSlices(g.values * factor[0], g.indices, g.dense_shape)

    gpu, _ = self._check_training([_HBM, _HBM], change=scaled, output_dtype=output_dtype)
    self.assertIn("EvApplyPooled", gpu.types)
    self.assertNotIn("EvApply", gpu.types)

  def test_optimizer_without_fused_update(self):
    self._check_training([_HBM], lambda: tf.train.ProximalAdagradOptimizer(.1))

  def test_checkpoints_move_between_devices(self):
    gpu, cpu = self._pair([_HBM, _DRAM], lambda: tf.train.AdamOptimizer(.1))
    gpu.run(3, seed=1)
    prefix = gpu.saver.save(gpu.session,
                            os.path.join(self.create_tempdir().full_path, "m"))
    gpu.run(2, seed=9)
    for model in (gpu, cpu):
      model.saver.restore(model.session, prefix)
    self._check_same(gpu.tables(), cpu.tables())
    self._check_same(gpu.run(2, seed=4), cpu.run(2, seed=4))
    self._check_same(gpu.tables(), cpu.tables())

  def test_timestamps_as_versions(self):
    # TensorFlow has a Timestamp kernel for CPUs only.
    import sparse_operation_kit as sok  # pylint: disable=g-import-not-at-top
    with tf.Graph().as_default() as graph:
      with tf.device("/gpu:0"):
        table = sok.DynamicVariable(_DIM, initializer="ones", var_type="hybrid")
        sok.assign(table, [5], [[1.] * _DIM])
      clocks = [op.device for op in graph.get_operations() if op.type == "Timestamp"]
    self.assertEqual(clocks, ["/device:CPU:0"])

  def test_ids_of_a_variable_of_fixed_size_are_checked_on_the_cpu(self):
    # TensorFlow has no GPU kernels of these reductions for int64.
    import sparse_operation_kit as sok  # pylint: disable=g-import-not-at-top
    with tf.Graph().as_default() as graph:
      with tf.device("/gpu:0"):
        table = sok.Variable(np.ones([3, _DIM], np.float32), name="fixed")
        table.sparse_read(tf.constant([1], tf.int64))
      checks = {op.type: op.device for op in graph.get_operations()
                if op.type in ("Min", "Max", "Assert")}
    self.assertEqual(checks, dict.fromkeys(["Min", "Max", "Assert"], "/device:CPU:0"))

  @parameterized.parameters((_SAMPLES, 5, 3), (40, 27, 16), (0, 3, 4),
                            (40, 27, 16, tf.float16), (40, 5, 3, tf.bfloat16))
  def test_an_interaction_gives_the_bits_of_the_cpu(self, samples, count, dim,
                                                    dtype=tf.float32):
    random = np.random.RandomState(1)
    values = [random.randn(samples, dim).astype(np.float32) for _ in range(count)]
    factors = random.randn(samples, count * (count - 1) // 2).astype(np.float32)
    results = []
    for device in "/gpu:0", "":
      with tf.Graph().as_default():
        fed = [tf.placeholder(tf.float32, v.shape) for v in values + [factors]]
        with tf.device(device):
          # Computed on the device, whose stream runs late.
          on_device = [tf.cast(_test.test_dense(x=x), dtype) for x in fed]
          dots = ev.dot_interaction(on_device[:-1])
          grads = tf.gradients(dots, on_device[:-1], on_device[-1])
        metadata = tf.RunMetadata()
        # The stand-in has no casts.
        results_of = [tf.cast(x, tf.float32) for x in [dots] + grads]
        with tf.Session(config=tf.ConfigProto(
            device_count={"GPU": 1 if device else 0},
            allow_soft_placement=True)) as session:
          results.append(session.run(
              results_of, dict(zip(fed, values + [factors])), run_metadata=metadata,
              options=tf.RunOptions(output_partition_graphs=True)))
        ran = {node.op: tf.DeviceSpec.from_string(node.device).device_type
               for graph in metadata.partition_graphs for node in graph.node}
        for op in "EvDotInteraction", "EvDotInteractionGrad":
          self.assertEqual(ran[op], "GPU" if device else "CPU")
    self._check_same([results[0]], [results[1]])

  def test_interaction_errors_on_the_gpu(self):
    with tf.Graph().as_default(), tf.Session() as session, tf.device("/gpu:0"):
      fed = [tf.placeholder(tf.float32) for _ in range(2)]
      dots = ev.dot_interaction([_test.test_dense(x=x) for x in fed])
      with self.assertRaisesRegex(tf.errors.InvalidArgumentError,
                                  r"vector 1: expected.*\[3,2\], got \[3,4\]"):
        session.run(dots, dict(zip(fed, [np.ones([3, 2]), np.ones([3, 4])])))

  def test_keras_hyperparameters_are_computed_on_the_host(self):
    with tf.Graph().as_default() as graph, tf.device("/gpu:0"):
      var = _variable("a", _HBM)
      outputs, = tf.nn.group_embedding_lookup_sparse(
          [var], [tf.sparse_placeholder(tf.int64)], ["sum"])
      grads = tf.gradients(tf.reduce_sum(outputs), [var.handle])
      tf.keras.optimizers.Adam(.1, epsilon=1e-3).apply_gradients([(grads[0], var)])
      constants = [x for op in graph.get_operations() if op.type == "EvApplyPooled"
                   for x in op.inputs if x.op.type == "Const" and x.dtype == tf.float32]
    self.assertLen(constants, 1)
    self.assertEqual(tf.DeviceSpec.from_string(constants[0].device).device_type, "CPU")

  def test_constants_can_be_replaced_by_feeds(self):
    # Constants of the script itself are not replaced by copies on the CPU.
    tables = []
    for device in "/gpu:0", "":
      with tf.Graph().as_default(), tf.device(device):
        var = _variable("a", _HBM)
        rate = tf.constant(.1)
        with tf.device("/cpu:0"):
          given = [tf.constant([[3, -4, 3]] * 2, tf.int64), tf.constant([0, 1, 3], tf.int64)]
          values, splits = [given[0][i] for i in range(2)], given[1]
        outputs = tf.nn.group_embedding_lookup_sparse(
            [var] * 2, [tf.RaggedTensor.from_row_splits(v, splits, validate=False)
                        for v in values], ["sum"] * 2)
        train = tf.train.AdagradOptimizer(rate).minimize(
            tf.add_n([tf.reduce_sum(x) for x in outputs]), var_list=[var])
        export = var.export()
        init = tf.global_variables_initializer()
        with tf.Session(config=tf.ConfigProto(
            device_count={"GPU": 1 if device else 0},
            allow_soft_placement=True)) as session:
          session.run(init)
          for feed in ({}, {rate: .7}, {given[0]: [[5, -4, -4], [5, 7, 7]]},
                       {given[1]: [0, 0, 3]}):
            session.run(train, feed)
            tables.append(session.run(export))
    self._check_same(tables[:4], tables[4:])
    rows = [dict(zip(keys.tolist(), values)) for keys, values in [t[:2] for t in tables[:4]]]
    # Adagrad's accumulator starts at 0.1 and grows by 2 * 2 per step, because the key
    # occurs twice.
    np.testing.assert_allclose(rows[1][-4] - rows[0][-4],
                               np.full(_DIM, -.7 * 2 / np.sqrt(8.1)), rtol=1e-4)
    self.assertNotIn(7, rows[1])
    self.assertIn(7, rows[2])

  def test_errors_name_the_variable(self):
    gpu = _Model("/gpu:0", [_HBM])
    with self.assertRaisesRegex(tf.errors.FailedPreconditionError, "'a'.*initial"):
      gpu.session.run(gpu.outputs, gpu.feed(1))
    gpu.session.run(gpu.init)
    feed = gpu.feed(1)
    feed[gpu.ids[0]][0][:, 0] += _SAMPLES
    with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "'a'"):
      gpu.session.run(gpu.train, feed)
    self.assertEmpty(gpu.tables()[0][0])
    gpu.run(1, seed=1)

  def test_variable_without_a_device_is_on_the_cpu(self):
    cpu = _Model("", [_HBM, _DRAM])
    session = tf.Session(graph=cpu.variables[0].graph)
    self.assertIn("GPU", [d.device_type for d in session.list_devices()])
    cpu.session = session
    session.run(cpu.init)
    devices = cpu.devices([cpu.train, cpu.exports], cpu.feed(1))
    ours = {op: where for op, where in devices.items() if op.startswith("Ev")}
    self.assertIn("EvLookupSparse", ours)
    self.assertEqual(set.union(*ours.values()), {"CPU"}, ours)


class KernelsTest(absltest.TestCase):

  def test_every_op_runs_on_gpus(self):
    on_gpus = {"EvLookupSparse": {"outputs"}, "EvApplyPooled": {"grads"},
               "EvGather": {"rows"}, "SokAllReduce": {"values", "sums"},
               "SokPool": {"outputs"}, "SokPoolGrad": {"grads"},
               "EvDotInteraction": {"vectors", "dots"},
               "EvDotInteractionGrad": {"vectors", "slopes", "grads"}}
    # Arguments in CPU memory of the kernels that take ids in GPU memory.
    ids_on_gpu = {
        "EvLookupSparse": {"resources", "batch_sizes", "weights", "plan"},
        "SokRoute": {"batch_sizes", "weights", "message", "splits", "plan"}}
    # TensorFlow prefers a GPU for ops without handles.
    no_handles = {"SokAllReduce", "EvDotInteraction", "EvDotInteractionGrad"}
    ours = [op for op in _test.OP_LIST.op if op.name.startswith(("Ev", "Sok"))]
    self.assertGreater(len(ours), 40)
    for op in ours:
      kernels_of_op = kernels.get_registered_kernels_for_op(op.name).kernel
      if op.name in ids_on_gpu:
        labelled = {k.device_type: k for k in kernels_of_op if k.label}
        self.assertEqual(set(labelled), {"CPU", "GPU"})
        self.assertEqual(set(labelled["GPU"].host_memory_arg), ids_on_gpu[op.name])
      found = {k.device_type: k for k in kernels_of_op if not k.label}
      self.assertEqual(set(found), {"CPU", "GPU"}, op.name)
      self.assertEqual(found["CPU"].priority - found["GPU"].priority,
                       0 if op.name in no_handles else 1, op.name)
      tensors = {a.name for a in list(op.input_arg) + list(op.output_arg)}
      self.assertEqual(set(found["GPU"].host_memory_arg),
                       tensors - on_gpus.get(op.name, set()), op.name)


if __name__ == "__main__":
  absltest.main()
