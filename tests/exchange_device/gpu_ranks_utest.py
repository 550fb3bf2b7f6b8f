# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Ranks with models on TensorFlow's GPUs train like ranks with models in CPU memory.

Every rank runs the same cases in the same order, with any number of ranks. With
SOK_UTEST_ON_GPU=1 the ranks use real GPUs, one each, which have no counters to check. On
a machine with one GPU, ranks share it with CUDA_VISIBLE_DEVICES=0 and
SOK_NCCL_LIBRARY=bazel-bin/tests/exchange_device/libnccl_one_gpu.so, which replaces NCCL.
"""

import os

from absl.testing import absltest
from absl.testing import parameterized
import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

# These small models have few ids, but most lookups have at least four.
os.environ.setdefault("TF_EV_GPU_DEDUP_MIN_IDS", "4")
_ON_GPU = bool(os.environ.get("SOK_UTEST_ON_GPU"))
if _ON_GPU:
  # One GPU per process, set before TensorFlow looks for GPUs.
  os.environ.setdefault("CUDA_VISIBLE_DEVICES", os.environ.get("HOROVOD_LOCAL_RANK", "0"))
else:
  import test_gpu  # pylint: disable=unused-import,g-import-not-at-top

from embedding_variable import _lib
from embedding_variable.variables import config_pb2
from sparse_operation_kit import experiment as sok
from sparse_operation_kit import settings
from sparse_operation_kit.exchange import dense_gradients

import distributed_model as model

_train = tf.compat.v1.train

_GPU = "/gpu:0"

_DRAM = config_pb2.StorageType.DRAM
_HBM = config_pb2.StorageType.HBM


def _session(graph=None):
  # Soft placement, because stock ops have no kernels for the stand-in.
  return tf.compat.v1.Session(graph=graph, config=tf.compat.v1.ConfigProto(
      allow_soft_placement=True,
      gpu_options=tf.compat.v1.GPUOptions(allow_growth=True)))


def _counts():
  """Returns the stand-in's counters (see TestExchangeCounts); zeros with GPUs."""
  if _ON_GPU:
    return np.zeros(14, np.int64)
  with tf.Graph().as_default(), _session() as session:
    with tf.device("/cpu:0"):
      return session.run(_lib.load().test_exchange_counts())


def _sums():
  """Returns the number of calls that summed gradients in device memory and in CPU
  memory."""
  return _counts()[7:9]


def _expect_sums(test, before, on_gpu, on_cpu):
  if not _ON_GPU:
    test.assertEqual((_sums() - before).tolist(), [on_gpu, on_cpu])


class DenseGradientsTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    self.assertEqual(settings.exchange_carrier(), "nccl")

  def _variables(self, prefix, device, dtype=tf.float32, use_resource=True):
    rng = np.random.RandomState(5)
    with tf.device(device):
      return [
          tf.compat.v1.get_variable(
              "%s_%d" % (prefix, i),
              initializer=tf.constant(rng.normal(0, 1, shape), dtype),
              use_resource=use_resource)
          for i, shape in enumerate([[7, 3], [3], [3, 5], [1]])]

  def _loss(self, x, variables):
    kernel, bias, top, scale = variables
    hidden = tf.tanh(tf.matmul(tf.cast(x, kernel.dtype), kernel) + bias)
    return tf.reduce_mean(tf.square(tf.matmul(hidden, top) * scale - 1))

  @parameterized.parameters("adagrad", "sum", "keras", "float64", "float16", "references")
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
      for name, device in (("on_gpu", _GPU), ("on_cpu", "/cpu:0")):
        variables = self._variables(name, device, dtype, kind != "references")
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
      on_gpu, on_cpu = session.run(models)
    for a, b in zip(on_gpu, on_cpu):
      if hvd.size() == 2 and not _ON_GPU and kind != "float16":
        # Addition is commutative, so two ranks get the same bits by any method.
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

  def test_gradients_of_a_late_device(self):
    # The gradients are computed on the device, which is not finished when the op runs.
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
    # TensorFlow may run the op on the CPU on some ranks and on the GPU on others.
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

  def test_path_of_each_gradient(self):
    with tf.Graph().as_default() as graph:
      on_gpu = self._variables("on_gpu", _GPU)
      on_cpu = self._variables("on_cpu", "/cpu:0")
      rows = tf.compat.v1.get_variable("rows", [9, 2], use_resource=True)
      x = tf.ones([2, 7])
      loss = (self._loss(x, on_gpu) + self._loss(x, on_cpu) +
              tf.reduce_sum(tf.nn.embedding_lookup(rows, [1, 2])))
      sok.DistributedOptimizer(_train.GradientDescentOptimizer(.1)).minimize(loss)
      sums = [op for op in graph.get_operations() if op.type == "SokAllReduce"]
      self.assertLen(sums, 1)
      self.assertEqual([n.decode() for n in sums[0].get_attr("names")],
                       [v.op.name for v in on_gpu])
      self.assertEqual(sums[0].get_attr("exchange_name"), b"sok_gradients")
      names = " ".join(op.name for op in graph.get_operations()
                       if op.type.startswith("Horovod"))
    self.assertRegex(names, "HorovodAllreduce")
    self.assertRegex(names, "HorovodAllgather")

  def test_long_lists_are_split(self):
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
  def test_options_of_horovod_use_horovod(self, argument):
    value = {"compression": hvd.Compression.fp16, "groups": 1,
             "process_set": hvd.global_process_set}[argument]
    with tf.Graph().as_default() as graph:
      variables = self._variables("v", _GPU)
      sok.DistributedOptimizer(
          _train.GradientDescentOptimizer(.1), **{argument: value}).minimize(
              self._loss(tf.ones([2, 7]), variables), var_list=variables)
      types = {op.type for op in graph.get_operations()}
    self.assertNotIn("SokAllReduce", types)

  def test_exchange_through_horovod_sums_by_horovod(self):
    settings.set_exchange_carrier("horovod")
    self.addCleanup(settings.set_exchange_carrier, "nccl")
    with tf.Graph().as_default() as graph:
      variables = self._variables("v", _GPU)
      sok.DistributedOptimizer(_train.GradientDescentOptimizer(.1)).minimize(
          self._loss(tf.ones([2, 7]), variables), var_list=variables)
      types = {op.type for op in graph.get_operations()}
    self.assertNotIn("SokAllReduce", types)


_OPTIMIZERS = {
    "adagrad": lambda: _train.AdagradOptimizer(.1),
    "adam": lambda: _train.AdamOptimizer(.01),
    # Has its own code, which needs the sums as tensors.
    "proximal_adagrad": lambda: _train.ProximalAdagradOptimizer(.1),
}


def _tables(num=1):
  """Returns tables of mixed dims, combiners, input types and placements; one has no
  ids."""
  last = hvd.size() - 1
  return [
      model.Table(4, "sum", model.SPARSE, False, -1, 4),
      model.Table(16, "mean", model.RAGGED, False, last, 3),
      model.Table(3, "mean", model.SPARSE, False, [last, 0, 0], 5),
      model.Table(4, "sum", model.RAGGED, False, -1, 0),
      model.Table(8, "mean", model.RAGGED, False, -1, 6),
  ] * num


def _on_gpu(x):
  """Returns x as the output of an op on the GPU."""
  with tf.device(_GPU):
    return tf.identity(x) if _ON_GPU else _lib.load().test_ids(x=x)


def _lookup_of_ids_on_gpu(params, ids, weights, combiners):
  """Calls `sok.lookup_sparse` with ids and samples that are computed on the GPU."""
  made = []
  for x in ids:
    if isinstance(x, tf.SparseTensor):
      made.append(tf.SparseTensor(_on_gpu(x.indices), _on_gpu(x.values),
                                  x.dense_shape))
    else:
      made.append(tf.RaggedTensor.from_row_splits(
          _on_gpu(x.values), _on_gpu(x.row_splits), validate=False))
  return sok.lookup_sparse(params, made, weights, combiners)


def _labels():
  """Returns the kernel labels of the graph's SokRoute ops; None stands for no label."""
  ops = tf.compat.v1.get_default_graph().get_operations()
  return {op.node_def.attr["_kernel"].s.decode() or None
          for op in ops if op.type == "SokRoute"}


class LookupsTest(model.DistributedTestCase):

  def setUp(self):
    super().setUp()
    self.assertEqual(settings.exchange_carrier(), "nccl")

  def _check_same(self, a, b):
    if _ON_GPU:
      # The first model computes the loss gradients on a GPU, the second on a CPU.
      np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5)
    else:
      self.assertEqual(a.tobytes(), b.tobytes())

  def _run_both(self, storages, make_optimizer, wrap=lambda o: o, clip=None, parts=1,
                steps=4, other_way=None, lookup=sok.lookup_sparse, key_dtype=tf.int64,
                options=None):
    """Trains a model on a GPU and one through Horovod on the CPU; expects the same bits.

    other_way: tables whose gradients need rows in CPU memory; None: all stay on the GPU.
    lookup: lookup of the model on the GPU.
    options: as of model.Model.

    Returns:
      The increase of the counters of `_counts`.
    """
    tables = other_way or _tables(parts)
    storages = (storages * len(tables))[:len(tables)]
    rng = np.random.RandomState(11)
    initial = model.initial_rows(rng, tables)
    before = _counts()
    with tf.Graph().as_default(), _session() as session:
      # Both models share the step, so it is incremented after both have finished.
      next_step = tf.compat.v1.assign_add(_train.create_global_step(), 1)
      models, trains = [], []
      for carrier, device in (("nccl", _GPU), ("horovod", "/cpu:0")):
        settings.set_exchange_carrier(carrier)
        with tf.device(device):
          made = model.Model(
              carrier, tables, lookup if carrier == "nccl" else sok.lookup_sparse,
              initial, key_dtype, storages=storages if carrier == "nccl" else
              [_DRAM] * len(tables), options=options)
        optimizer = wrap(make_optimizer())
        if clip is None:
          train = optimizer.minimize(made.loss, var_list=made.variables)
        else:
          gradients = tf.gradients(made.loss, made.variables)
          train = optimizer.apply_gradients([
              (tf.IndexedSlices(clip(g.values), g.indices), v)
              for g, v in zip(gradients, made.variables) if g is not None])
        models.append(made)
        trains.append(train)
      settings.set_exchange_carrier("nccl")
      for op in tf.compat.v1.get_default_graph().get_operations():
        if op.type in ("SokPool", "SokPoolGrad", "SokApplyServed", "SokServe"):
          names = [t.op.name for t in op.inputs if t.dtype == tf.resource]
          on_gpu = not any(n.startswith("horovod") for n in names)
          if names and not (other_way and on_gpu):
            self.assertEqual("GPU" in op.device, on_gpu, op.name)
      session.run(tf.compat.v1.global_variables_initializer())
      for step in range(steps):
        batches = model.draw(rng, tables, model.sizes_of(step))[hvd.rank()]
        feed = model.merge(*[m.feed(batches) for m in models])
        on_gpu, on_cpu, _ = session.run(
            [models[0].outputs, models[1].outputs, trains], feed)
        for a, b in zip(on_gpu, on_cpu):
          self._check_same(a, b)
        session.run(next_step)
      on_gpu, on_cpu = session.run([m.contents() for m in models])
      for (keys, columns), (other_keys, other_columns) in zip(on_gpu, on_cpu):
        order, other = np.argsort(keys), np.argsort(other_keys)
        np.testing.assert_array_equal(keys[order], other_keys[other])
        for a, b in zip(columns, other_columns):
          self._check_same(a[order], b[other])
      for on_gpu, on_cpu in zip(*session.run([m.numbers() for m in models])):
        for a, b in zip(on_gpu, on_cpu):
          np.testing.assert_array_equal(a, b)
    counts = _counts()
    self.assertEqual(counts[3], 0)  # all memory has been freed
    return counts - before

  def _expect(self, counts, pooled, summed, spread):
    if not _ON_GPU:
      self.assertEqual([counts[9], counts[10], counts[2]], [pooled, summed, spread])

  @parameterized.parameters(*sorted(_OPTIMIZERS))
  def test_same_bits(self, name):
    counts = self._run_both([_HBM], _OPTIMIZERS[name])
    # TensorFlow places the other optimizers' ops with the table, and the table's ops with
    # them. The stand-in has no kernels for them, so all these ops run on the CPU.
    self._expect(counts, 4 if name == "adagrad" else 0, 4,
                 0 if name == "proximal_adagrad" else 4)

  @parameterized.parameters(*sorted(_OPTIMIZERS))
  def test_ids_on_the_gpu(self, name):
    counts = self._run_both([_HBM], _OPTIMIZERS[name], lookup=_lookup_of_ids_on_gpu)
    self._expect(counts, 4 if name == "adagrad" else 0, 4,
                 0 if name == "proximal_adagrad" else 4)
    if not _ON_GPU and name == "adagrad":
      self.assertGreater(counts[11], 0)

  def test_ids_on_the_gpu_on_some_ranks(self):
    # Ranks with ids in GPU memory and ranks with ids in CPU memory work together.
    def lookup(params, ids, weights, combiners):
      if hvd.rank() % 2:
        return _lookup_of_ids_on_gpu(params, ids, weights, combiners)
      with tf.device("/cpu:0"):
        on_cpu = [tf.SparseTensor(x.indices, tf.identity(x.values), x.dense_shape)
                  if isinstance(x, tf.SparseTensor) else
                  x.with_values(tf.identity(x.values)) for x in ids]
      return sok.lookup_sparse(params, on_cpu, weights, combiners)

    counts = self._run_both([_HBM], _OPTIMIZERS["adagrad"], lookup=lookup)
    self._expect(counts, 4, 4, 4)
    if not _ON_GPU:
      self.assertEqual(counts[11] > 0, bool(hvd.rank() % 2))

  @parameterized.parameters("parts", "memories", "counts", "narrow")
  def test_ids_on_the_gpu_with_options(self, kind):
    storages, options = [_HBM], {}
    if kind == "parts":
      options["parts"] = 2
    elif kind == "memories":
      storages = [_HBM, _DRAM, _HBM, _HBM, _DRAM]
    elif kind == "narrow":
      options["key_dtype"] = tf.int32
    else:
      os.environ["TF_RECORD_FREQ"] = "1"
      self.addCleanup(os.environ.pop, "TF_RECORD_FREQ")
    counts = self._run_both(storages, _OPTIMIZERS["adagrad"],
                            lookup=_lookup_of_ids_on_gpu, **options)
    if not _ON_GPU:
      self.assertGreater(counts[11], 0)

  @parameterized.parameters("frequency", "counter", "bloom", "evict", "of_all_kinds")
  def test_tables_with_row_metadata_take_gpu_steps(self, kind):
    kinds = {
        "plain": {},
        "frequency": {},
        "counter": {"filter_option": tf.CounterFilter(filter_freq=4)},
        "bloom": {"filter_option": tf.CBFFilter(
            filter_freq=3, max_element_size=1000, false_positive_probability=.01)},
        "evict": {"evict_option": tf.GlobalStepEvict(steps_to_live=1000)},
    }
    # One table of each kind; the fourth table has no ids and is plain.
    options = [kinds[k] for k in (
        [kind] * 5 if kind in kinds else ["counter", "plain", "bloom", "plain", "evict"])]
    if kind == "frequency":
      os.environ["TF_RECORD_FREQ"] = "1"
      self.addCleanup(os.environ.pop, "TF_RECORD_FREQ")
    # Enough steps for keys to be new, to be counted, and to be admitted.
    counts = self._run_both([_HBM], _OPTIMIZERS["adagrad"], steps=7, options=options)
    self._expect(counts, 7, 7, 7)
    if not _ON_GPU:
      # Most calls have enough keys for a GPU step on some rank; a rank may own no key. No
      # keys were fetched.
      self.assertGreater(max(self.gather(counts[13])), 4)
      self.assertEqual(sum(self.gather(counts[5])), 0)

  def test_weighted_ids_on_the_gpu_are_copied_to_the_host(self):
    counts = self._run_both([_HBM], _OPTIMIZERS["adagrad"],
                            other_way=model.mixed_tables(hvd.size()),
                            lookup=_lookup_of_ids_on_gpu)
    self._expect(counts, 0, 0, 0)
    self.assertEqual(counts[11], 0)

  def test_routes_that_take_ids_on_the_gpu(self):
    tables = _tables()
    initial = model.initial_rows(np.random.RandomState(1), tables)

    def one_on_cpu(params, ids, weights, combiners):
      with tf.device("/cpu:0"):
        ids = [tf.SparseTensor(ids[0].indices, tf.identity(ids[0].values),
                               ids[0].dense_shape)] + ids[1:]
      return sok.lookup_sparse(params, ids, weights, combiners)

    for lookup, device, carrier, label in (
        (_lookup_of_ids_on_gpu, _GPU, "nccl", "ids_on_gpu"),
        (one_on_cpu, _GPU, "nccl", None),
        (_lookup_of_ids_on_gpu, "/cpu:0", "nccl", None),
        (_lookup_of_ids_on_gpu, _GPU, "horovod", None)):
      settings.set_exchange_carrier(carrier)
      self.addCleanup(settings.set_exchange_carrier, "nccl")
      with tf.Graph().as_default(), tf.device(device):
        model.Model("m", tables, lookup, initial, storages=[_HBM] * len(tables))
        self.assertEqual(_labels(), {label})

  def test_a_step_copies_no_ids_to_the_host(self):
    if _ON_GPU:
      self.skipTest("needs the ops of the stand-in")
    tables = [t._replace(max_hotness=2) for t in _tables()]
    gen = _lib.load()
    with tf.Graph().as_default(), _session() as session:
      with tf.device(_GPU):
        made = model.Model("on_gpu", tables, _lookup_of_ids_on_gpu,
                           model.initial_rows(np.random.RandomState(1), tables),
                           storages=[_HBM] * len(tables))
        grads = [gen.test_dense(x=x) for x in made.outputs]
      slices = tf.gradients(made.outputs, [v.handle for v in made.variables], grads)
      train = _train.AdagradOptimizer(.1).apply_gradients(zip(slices, made.variables))
      copied = gen.test_integers_copied()
      session.run(tf.compat.v1.global_variables_initializer())
      batches = model.draw(np.random.RandomState(2), tables, [16] * hvd.size(),
                           )[hvd.rank()]
      for batch in batches:
        # Enough ids for the device, and enough memory for them.
        batch.splits = np.arange(17, dtype=np.int64)
        batch.rows = np.arange(16) % 7
      session.run(train, made.feed(batches))
      session.run(copied)
      before = _counts()
      session.run(train, made.feed(batches))
      self.assertEqual(session.run(copied)[1], 0)
      self.assertEqual((_counts() - before)[11], len(tables))
      # Without memory for all tables, the ids of all tables are copied to the host, and
      # the device is tried again for them.
      batches[0].splits = np.minimum(np.arange(17, dtype=np.int64), 13)
      batches[0].rows = np.arange(13) % 7
      before = _counts()
      session.run(train, made.feed(batches))
      self.assertEqual(list((_counts() - before)[11:13]), [0, 2])
      self.assertGreater(session.run(copied)[1], 13)
      # A table with few ids is handled together with the others.
      batches[0].splits = np.minimum(np.arange(17, dtype=np.int64), 1)
      batches[0].rows = np.arange(1)
      session.run(copied)
      session.run(train, made.feed(batches))
      self.assertEqual(session.run(copied)[1], 0)
      # Only the table without ids is handled on the host.
      batches[0].splits = np.zeros(17, np.int64)
      batches[0].rows = np.arange(0)
      before = _counts()
      session.run(train, made.feed(batches))
      self.assertEqual((_counts() - before)[11], len(tables) - 1)

  def test_errors_of_ids_on_the_gpu_equal_those_on_the_cpu(self):
    tables = _tables()
    initial = model.initial_rows(np.random.RandomState(1), tables)
    with tf.Graph().as_default(), _session() as session:
      models = []
      for prefix, lookup in (("t", _lookup_of_ids_on_gpu), ("h", sok.lookup_sparse)):
        with tf.device(_GPU if prefix == "t" else "/cpu:0"):
          models.append(model.Model(prefix, tables, lookup, initial,
                                    storages=[_HBM] * len(tables)))
      session.run(tf.compat.v1.global_variables_initializer())
      good = model.draw(np.random.RandomState(2), tables, [9] * hvd.size())[hvd.rank()]
      for wrong, message in ((9, "below the batch size"), (-9, "expected samples of at least 0")):
        messages = []
        for made in models:
          feed = made.feed(good)
          value = feed[made.ids[2]]
          feed[made.ids[2]] = value._replace(indices=value.indices + [[wrong, 0]])
          # The error occurs on all ranks, so none waits for another.
          with self.assertRaisesRegex(tf.errors.InvalidArgumentError, message) as caught:
            session.run(made.outputs, feed)
          messages.append(caught.exception.message.partition(", table")[0].rpartition(
              "indices")[2])
        self.assertEqual(*messages)
        self.assertIn("'t_2'", str(caught.exception).replace("'h_2'", "'t_2'"))
      for made in models:
        session.run(made.outputs, made.feed(good))

  @parameterized.parameters("float16", "bfloat16")
  def test_same_bits_with_narrow_types(self, dtype):
    sok.init(exchange="nccl", exchange_dtype=dtype)
    self.addCleanup(sok.init, exchange="nccl")
    self._expect(self._run_both([_HBM], _OPTIMIZERS["adagrad"]), 4, 4, 4)

  def test_call_in_parts(self):
    self._expect(self._run_both([_HBM], _OPTIMIZERS["adagrad"], parts=2), 8, 8, 8)

  @parameterized.parameters("average", "sum")
  def test_distributed_optimizer(self, kind):
    options = {"op": hvd.Sum} if kind == "sum" else {}
    counts = self._run_both([_HBM], _OPTIMIZERS["adagrad"],
                            lambda o: sok.DistributedOptimizer(o, **options))
    is_exact = kind == "sum" or hvd.size() & (hvd.size() - 1) == 0
    self._expect(counts, 4, 4, 4 if is_exact else 0)

  def test_distributed_optimizer_of_another_kind(self):
    self._run_both([_HBM], _OPTIMIZERS["proximal_adagrad"], sok.DistributedOptimizer)

  def test_tables_in_several_memories(self):
    # Rows come from CPU memory and are still pooled on the device.
    counts = self._run_both([_HBM, _DRAM, _HBM, _HBM, _DRAM], _OPTIMIZERS["adagrad"],
                            sok.DistributedOptimizer)
    self._expect(counts, 4, 4, 0)

  def test_ranks_in_several_memories(self):
    counts = self._run_both([_HBM if hvd.rank() == 0 else _DRAM],
                            _OPTIMIZERS["adagrad"])
    self._expect(counts, 4, 4, 4 if hvd.rank() == 0 else 0)

  def test_changed_gradients(self):
    counts = self._run_both([_HBM], _OPTIMIZERS["adagrad"],
                            clip=lambda g: tf.clip_by_norm(g, .5, axes=[1]))
    self._expect(counts, 4, 4, 0)

  def test_gradients_with_a_common_factor(self):
    def scaled(values):
      factor = tf.compat.v1.get_collection_ref("factor")
      if not factor:
        with tf.device("/cpu:0"):
          factor.append(tf.constant(.3))
      return values * factor[0]

    counts = self._run_both([_HBM], _OPTIMIZERS["adagrad"], clip=scaled)
    self._expect(counts, 4, 4, 4)

  def test_weights_take_the_host_path(self):
    counts = self._run_both([_HBM], _OPTIMIZERS["adagrad"],
                            other_way=model.mixed_tables(hvd.size()))
    self._expect(counts, 0, 0, 0)

  def test_a_combiner_that_selects_takes_the_host_path(self):
    tables = _tables() + [model.Table(8, "max", model.RAGGED, False, -1, 5)]
    counts = self._run_both([_HBM], _OPTIMIZERS["adagrad"], other_way=tables)
    self._expect(counts, 0, 0, 0)

  @parameterized.parameters("adagrad", "adam")
  def test_ranks_train_as_one_process(self, name):
    """Tables and a dense layer on the GPU train as in one process on the merged batch."""
    tables = _tables()
    rng = np.random.RandomState(23)
    initial = model.initial_rows(rng, tables)
    width = sum(t.dim for t in tables if t.max_hotness)
    layer_of = rng.normal(0, .3, [width, 2]).astype(np.float32)
    with tf.Graph().as_default(), _session() as session:
      models, layers, trains = [], [], []
      for prefix, lookup in (("sharded", sok.lookup_sparse),
                             ("whole", model.local_lookup)):
        with tf.device(_GPU):
          made = model.Model(prefix, tables, lookup, initial,
                             storages=[_HBM] * len(tables))
          layer = tf.compat.v1.get_variable(
              prefix + "_layer", initializer=layer_of, use_resource=True)
          used = [o for o, t in zip(made.outputs, tables) if t.max_hotness]
          loss = tf.reduce_sum(tf.tanh(tf.matmul(tf.concat(used, axis=1), layer)))
        optimizer = _OPTIMIZERS[name]()
        if prefix == "sharded":
          optimizer = sok.DistributedOptimizer(optimizer, op=hvd.Sum)
        trains.append(optimizer.minimize(loss, var_list=made.variables + [layer]))
        models.append(made)
        layers.append(layer)
      session.run(tf.compat.v1.global_variables_initializer())
      for step in range(4):
        sizes = model.sizes_of(step)
        batches = model.draw(rng, tables, sizes)
        merged = [model.Batch.merge(of_table) for of_table in zip(*batches)]
        got, expected, _ = session.run(
            [models[0].outputs, models[1].outputs, trains],
            model.merge(models[0].feed(batches[hvd.rank()]), models[1].feed(merged)))
        begin = sum(sizes[:hvd.rank()])
        for output, everything in zip(got, expected):
          np.testing.assert_allclose(
              output, everything[begin:begin + sizes[hvd.rank()]], rtol=2e-4, atol=2e-5)
      one, other = session.run(layers)
      np.testing.assert_allclose(one, other, rtol=2e-4, atol=2e-5)
      contents, everything = session.run([m.contents() for m in models])
    for table, mine, whole in zip(tables, contents, everything):
      self.compare(table, mine, whole, 2e-4, 2e-5)

  def test_a_step_copies_no_floats(self):
    if _ON_GPU:
      self.skipTest("needs the ops of the stand-in")
    tables = _tables()
    gen = _lib.load()
    with tf.Graph().as_default(), _session() as session:
      with tf.device(_GPU):
        made = model.Model("on_gpu", tables, sok.lookup_sparse,
                           model.initial_rows(np.random.RandomState(1), tables),
                           storages=[_HBM] * len(tables))
        grads = [gen.test_dense(x=x) for x in made.outputs]
      optimizer = sok.DistributedOptimizer(_train.AdagradOptimizer(.1))
      slices = tf.gradients(made.outputs, [v.handle for v in made.variables], grads)
      train = optimizer.apply_gradients(zip(slices, made.variables))
      copied = gen.test_floats_copied()
      session.run(tf.compat.v1.global_variables_initializer())
      feed = made.feed(model.draw(np.random.RandomState(2), tables,
                                  [9] * hvd.size())[hvd.rank()])
      session.run(train, feed)
      session.run(copied)
      session.run(train, feed)
      self.assertEqual(session.run(copied).tolist(), [0, 0])


if __name__ == "__main__":
  hvd.init()
  sok.init()
  # A rank that continued after a failure would wait for the others.
  absltest.main(failfast=True)
