# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests embedding collections, GroupDenseLayer, reports of arguments, and `run`."""

import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np

import hugectr
from hugectr.api import printing
from hugectr.api import small_scripts
from hugectr.config import model as models
from hugectr.data import batches
from hugectr.data import writing

_SLOTS = small_scripts.SLOTS
_EMBEDDING = hugectr.Embedding_t.DistributedSlotSparseEmbeddingHash
_LAYER, _READER = hugectr.Layer_t, hugectr.DataReaderType_t


class PartsTest(parameterized.TestCase):

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls.folder = absltest.get_default_test_tmpdir() + "/parts_test"
    small_scripts.write_norm(cls.folder)

  def setUp(self):
    super().setUp()
    self.enter_context(mock.patch.object(printing, "_reported", set()))

  def printed(self, function, *args, **kwargs):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
      function(*args, **kwargs)
    return out.getvalue()

  def start(self, **solver):
    """Returns a model with an Input of a sparse input per slot, k0, k1, ..."""
    model = hugectr.Model(
        small_scripts.solver(use_embedding_collection=True, **solver),
        small_scripts.reader(self.folder),
        hugectr.CreateOptimizer(hugectr.Optimizer_t.SGD, hugectr.Update_t.Local))
    self.addCleanup(model.close)
    model.add(hugectr.Input(1, "label", small_scripts.DENSE, "dense", [
        hugectr.DataReaderSparseParam("k%d" % k, 1, True, 1) for k in range(_SLOTS)]))
    return model

  def add_end(self, model, bottom):
    model.add(hugectr.DenseLayer(hugectr.Layer_t.Concat, [bottom, "dense"], ["both"]))
    small_scripts.add_dcn(model)

  def tables(self):
    # Norm files' keys differ between slots: those of slot k begin at k * SIZE.
    return [hugectr.EmbeddingTableConfig("t%d" % k, small_scripts.SIZE * _SLOTS, 4)
            for k in range(_SLOTS)]

  def collection(self, **solver):
    model = self.start(**solver)
    collection = hugectr.EmbeddingCollectionConfig()
    collection.embedding_lookup(
        self.tables(), ["k%d" % k for k in range(_SLOTS)], "rows", ["sum"] * _SLOTS)
    collection.shard([["t%d" % k for k in range(_SLOTS)]],
                     [("mp", ["t%d" % k for k in range(_SLOTS)])])
    model.add(collection)
    self.add_end(model, "rows")
    return model

  def test_a_collection_trains_and_its_tables_are_dumped_and_loaded(self):
    model = self.collection()
    model.compile()
    folder = self.create_tempdir().full_path
    model.fit(max_iter=16, display=0, eval_interval=0, snapshot=0)
    model.embedding_dump(folder)
    self.assertCountEqual(
        os.listdir(folder + "/embedding_collection_0"),
        ["meta_data"] + ["%s%d" % (w, k) for w in ("key", "weight") for k in range(_SLOTS)])
    keys = np.fromfile(folder + "/embedding_collection_0/key2", np.int64)
    self.assertEqual(keys.tolist(), list(range(20, 30)))
    model.eval()
    rows = model.check_out_tensor("rows", hugectr.Tensor_t.Evaluate)
    self.assertEqual(rows.shape, (40, 4 * _SLOTS))
    again = self.collection()
    again.compile()
    again.embedding_load(folder)
    again.eval()
    np.testing.assert_array_equal(
        again.check_out_tensor("rows", hugectr.Tensor_t.Evaluate), rows)
    with self.assertRaisesRegex(ValueError, "no collection has a table 't9'"):
      again.embedding_load(folder, ["t9"])
    os.truncate(folder + "/embedding_collection_0/weight1", 12)
    with self.assertRaisesRegex(ValueError, "table 't1': 10 keys, but 3 numbers"):
      again.embedding_load(folder, ["t0", "t1"])
    for data in (b"\xff\0\1", b"{}"):
      with open(folder + "/embedding_collection_0/meta_data", "wb") as f:
        f.write(data)
      with self.assertRaisesRegex(ValueError, "meta_data: expected .*of this package writes"):
        again.embedding_load(folder)

  def test_lookups_one_by_one_give_the_bits_of_the_list(self):
    losses = []
    for is_list in (True, False):
      model = self.collection() if is_list else self.start()
      if not is_list:
        collection = hugectr.EmbeddingCollectionConfig()
        for k, table in enumerate(self.tables()):
          collection.embedding_lookup(table, "k%d" % k, "rows%d" % k, "sum")
        model.add(collection)
        model.add(hugectr.DenseLayer(hugectr.Layer_t.Concat,
                                     ["rows%d" % k for k in range(_SLOTS)], ["joined"]))
        model.add(hugectr.DenseLayer(hugectr.Layer_t.Reshape, ["joined"], ["rows"],
                                     leading_dim=4 * _SLOTS))
        self.add_end(model, "rows")
      model.compile()
      model.fit(max_iter=4, display=0, eval_interval=0, snapshot=0)
      losses.append(model.get_current_loss())
    self.assertEqual(losses[0], losses[1])

  def shared(self, is_shared, folder=None):
    """Returns a model in which k1 and k3 are looked up in one table, or in copies of it."""
    model = self.start()
    tables = self.tables()
    collection = hugectr.EmbeddingCollectionConfig()
    names = ["t0", "t1", "t2", "t1" if is_shared else "t3"]
    for k, table in enumerate(names[:2]):
      collection.embedding_lookup(tables[int(table[1])], "k%d" % k, "rows%d" % k, "sum")
    collection.embedding_lookup([tables[int(t[1])] for t in names[2:]], ["k2", "k3"],
                                "rows23", ["sum", "sum"])
    model.add(collection)
    model.add(hugectr.DenseLayer(hugectr.Layer_t.Reshape, ["rows0"], ["flat0"], leading_dim=4))
    model.add(hugectr.DenseLayer(hugectr.Layer_t.Reshape, ["rows1"], ["flat1"], leading_dim=4))
    model.add(hugectr.DenseLayer(hugectr.Layer_t.Concat, ["flat0", "flat1", "rows23"],
                                 ["rows"]))
    self.add_end(model, "rows")
    model.graph_to_json(folder + "/graph.json")
    model.compile()
    return model

  def test_a_table_with_several_lookups(self):
    # Keys of slots differ in these files, so that a shared table has the rows of two.
    folder = self.create_tempdir().full_path
    start = self.shared(True, folder)
    start.fit(max_iter=4, display=0, eval_interval=0, snapshot=0)
    start.save_params_to_files(folder + "/m")
    start.embedding_dump(folder)
    self.assertLen([n for n in os.listdir(folder) if "_sparse_0" in n and "opt" not in n], 3)
    described = folder + "/embedding_collection_0"
    self.assertEqual(np.fromfile(described + "/key1", np.int64).tolist(),
                     list(range(10, 20)) + list(range(30, 40)))
    # The same training with a table for each lookup.
    rows = np.fromfile(described + "/weight1", np.float32).reshape([-1, 4])
    other = self.create_tempdir().full_path
    apart = self.shared(False, other)
    shutil.copytree(described, other + "/embedding_collection_0")
    with open(other + "/embedding_collection_0/meta_data") as f:
      meta = json.load(f)
    meta["tables"].append({"name": "t3", "ev_size": 4})
    with open(other + "/embedding_collection_0/meta_data", "w") as f:
      json.dump(meta, f)
    for name in ("key", "weight"):
      shutil.copy("%s/%s1" % (described, name),
                  "%s/embedding_collection_0/%s3" % (other, name))
    apart.embedding_load(other)
    apart.load_dense_weights(folder + "/m_dense_0.model")
    again = self.shared(True, folder)
    again.embedding_load(folder)
    again.load_dense_weights(folder + "/m_dense_0.model")
    for model in (again, apart):
      model.fit(max_iter=4, display=0, eval_interval=0, snapshot=0)
    self.assertEqual(again.get_current_loss(), apart.get_current_loss())
    again.embedding_dump(folder)
    apart.embedding_dump(other)
    found = np.fromfile(described + "/weight1", np.float32).reshape([-1, 4])
    self.assertTrue((found != rows).any(axis=1).all())
    for k, part in ((1, slice(0, 10)), (3, slice(10, 20))):
      one = np.fromfile("%s/embedding_collection_0/weight%d" % (other, k), np.float32)
      np.testing.assert_array_equal(one.reshape([-1, 4])[part], found[part])
    again.freeze_embedding("t1")
    with self.assertRaisesRegex(ValueError, "there is no embedding 't1_1'"):
      again.freeze_embedding("t1_1")
    with hugectr.Session(hugectr.SolverParser(folder + "/graph.json"),
                         folder + "/graph.json") as session:
      session.start_data_reading()
      for _ in range(4):
        session.train()
      self.assertEqual(session.get_current_loss(), start.get_current_loss())

  def test_tables_are_on_the_ranks_of_the_matrix(self):
    collection = hugectr.EmbeddingCollectionConfig()
    for k, table in enumerate(self.tables()[:3]):
      collection.embedding_lookup(table, "k%d" % k, "rows%d" % k, "sum")
    collection.shard([["t0", "t2"], ["t1", "t2"]], [("mp", ["t0", "t1"]), ("dp", ["t2"])])
    params = hugectr.CreateOptimizer(hugectr.Optimizer_t.SGD)

    def targets(ranks):
      return [c["sparse_embedding_hparam"]["target_gpu"]
              for c in collection.clauses(params, small_scripts.solver(), ranks)]

    self.assertEqual(targets(2), [0, 1, -1])
    text = self.printed(lambda: [self.assertEqual(targets(1), [-1] * 3) for _ in "ab"])
    self.assertEqual(text.count("shard_matrix is for 2 ranks, and this job has 1"), 1)

  def test_a_table_may_have_a_number_in_place_of_a_name(self):
    table = hugectr.EmbeddingTableConfig(table_id=3, max_vocabulary_size=10, ev_size=4)
    self.assertEqual((table.name, table.size, table.vec_size), ("3", 10, 4))
    for arguments in ({}, {"name": "t", "table_id": 3}):
      with self.assertRaisesRegex(TypeError, "EmbeddingTableConfig: name .or table_id"):
        hugectr.EmbeddingTableConfig(max_vocabulary_size=10, ev_size=4, **arguments)
    with self.assertRaisesRegex(TypeError, "max_vocabulary_size and ev_size are required"):
      hugectr.EmbeddingTableConfig("t", 10)

  def test_wrong_collections(self):
    collection = hugectr.EmbeddingCollectionConfig()
    table = hugectr.EmbeddingTableConfig("t", -1, 4)
    with self.assertRaisesRegex(hugectr.ConfigError, "'x': combiner: expected one of"):
      collection.embedding_lookup(table, "k0", "x", "max")
    with self.assertRaisesRegex(hugectr.ConfigError, "got 2 tables, 1 bottom_names"):
      collection.embedding_lookup([table, table], ["k0"], "x", ["sum", "sum"])
    collection.embedding_lookup(table, "k0", "x", "average")
    with self.assertRaisesRegex(hugectr.ConfigError, "another lookup of the table 't' has the "
                                "combiner mean, expected the same, got sum"):
      collection.embedding_lookup(table, "k1", "y", "sum")
    with self.assertRaisesRegex(hugectr.ConfigError, "no rank .* has the table 'u'"):
      collection.shard([["t"]], [("mp", ["u"])])
    with self.assertRaisesRegex(hugectr.ConfigError, 'expected "mp" or "dp", got'):
      collection.shard([["t"]], [("xp", ["t"])])
    with self.assertRaisesRegex(ValueError, "'u': max_vocabulary_size: expected"):
      hugectr.EmbeddingTableConfig("u", 0, 4)

  def test_raw_files_with_several_keys_train_to_the_bits_of_norm(self):
    folder = self.create_tempdir().full_path
    random = np.random.RandomState(3)
    counts, samples = [3, 1, 2], 50
    slots = [batches.Slot(random.randint(0, 10, samples * n) + 10 * k,
                          np.arange(samples + 1) * n) for k, n in enumerate(counts)]
    chunk = batches.Chunk(random.randint(0, 2, [samples, 1]).astype(np.float32),
                          random.randn(samples, 3).astype(np.float32), slots)
    losses = []
    for kind in ("RawAsync", "Norm"):
      model = self.several_keys(folder, kind, counts, chunk)
      model.compile()
      model.fit(max_iter=3, display=0, eval_interval=0, snapshot=0)
      losses.append(model.get_current_loss())
    self.assertEqual(losses[0], losses[1])
    with self.assertRaisesRegex(ValueError, "'k0': multi_hot_reader needs is_fixed_length"):
      self.several_keys(folder, "RawAsync", counts, chunk, is_fixed=False)

  def several_keys(self, folder, kind, counts, chunk, is_fixed=True):
    """Returns a model with a table per slot over a written chunk."""
    path = os.path.join(folder, kind)
    sparse = [hugectr.DataReaderSparseParam("k%d" % k, n, is_fixed, 1)
              for k, n in enumerate(counts)]
    inputs = [models.SparseInput(p.top_name, False, k, 1, None, None)
              for k, p in enumerate(sparse)]
    data = models.Data("data", kind.replace("Async", ""), path, None, "label", 1, "dense", 3,
                       inputs, None, 1, {"float_label_dense": True, "check": "Sum",
                                         "sparse": [p.clause() for p in sparse]})
    if is_fixed:
      writing.write(path, data, "I32", [chunk], 50)
    model = hugectr.Model(
        small_scripts.solver(batchsize_eval=50), small_scripts.reader(
            folder, data_reader_type=getattr(hugectr.DataReaderType_t, kind), source=path,
            eval_source=path, num_samples=50, eval_num_samples=50,
            async_param=hugectr.AsyncParam(multi_hot_reader=True)),
        hugectr.CreateOptimizer(hugectr.Optimizer_t.SGD, hugectr.Update_t.Local))
    self.addCleanup(model.close)
    model.add(hugectr.Input(1, "label", 3, "dense", sparse))
    # With sizes, readers of Raw files would add them to keys.
    tables = [hugectr.EmbeddingTableConfig("t%d" % k, -1, 4) for k in range(3)]
    collection = hugectr.EmbeddingCollectionConfig()
    collection.embedding_lookup(tables, ["k0", "k1", "k2"], "rows", ["sum", "sum", "average"])
    model.add(collection)
    model.add(hugectr.DenseLayer(hugectr.Layer_t.InnerProduct, ["rows"], ["logit"],
                                 num_output=1))
    model.add(hugectr.DenseLayer(hugectr.Layer_t.BinaryCrossEntropyLoss,
                                 ["logit", "label"], ["loss"]))
    return model

  def test_group_dense_layer_is_its_layers(self):
    weights = []
    for grouped in (True, False):
      model = hugectr.Model(small_scripts.solver(), small_scripts.reader(self.folder),
                            hugectr.CreateOptimizer())
      self.addCleanup(model.close)
      small_scripts.add_inputs(model)
      if grouped:
        model.add(hugectr.GroupDenseLayer(
            hugectr.GroupLayer_t.GroupFusedInnerProduct, ["both"], ["a", "b", "logit"],
            [8, 4, 1], hugectr.Activation_t.Non))
      else:
        for bottom, top, width in (("both", "a", 8), ("a", "b", 4), ("b", "logit", 1)):
          kind = "InnerProduct" if top == "logit" else "FusedInnerProduct"
          model.add(hugectr.DenseLayer(getattr(hugectr.Layer_t, kind), [bottom], [top],
                                       num_output=width))
      model.add(hugectr.DenseLayer(hugectr.Layer_t.BinaryCrossEntropyLoss,
                                   ["logit", "label"], ["loss"]))
      weights.append(model._configuration())  # pylint: disable=protected-access
    self.assertEqual(weights[0], weights[1])
    with self.assertRaisesRegex(ValueError, "expected at least 2 num_outputs"):
      hugectr.GroupDenseLayer(bottom_name_list=["a"], top_name_list=["b"], num_outputs=[1])

  def test_arguments_without_effect_are_reported_once(self):
    text = self.printed(lambda: [hugectr.CreateSolver(
        use_holistic_cuda_graph=True, perf_logging=True, overlap_lr=True) for _ in "ab"])
    lines = text.splitlines()
    self.assertLen(lines, 3)
    self.assertRegex(lines[0], r"\[WARNING\]\[RK0\]\[main\]: hugectr.CreateSolver: overlap_lr "
                     "has no effect$")
    self.assertEmpty(self.printed(hugectr.CreateSolver, use_cuda_graph=True, seed=1))
    text = self.printed(hugectr.DenseLayer, hugectr.Layer_t.ReLU, ["a"], ["b"], num_output=3)
    self.assertIn("DenseLayer 'b' (ReLU): num_output has no effect", text)
    for call in (hugectr.CreateSolver, hugectr.CreateOptimizer, hugectr.AsyncParam,
                 hugectr.DataReaderParams, hugectr.Input, hugectr.SparseEmbedding):
      with self.assertRaisesRegex(TypeError, "no_such_argument"):
        call(no_such_argument=1)

  @parameterized.parameters(
      (hugectr.DenseLayer, (_LAYER.InnerProduct, ["a"], ["c"]), dict(
          pos_type=hugectr.FcPosition_t.Head)),
      (hugectr.DenseLayer, (_LAYER.BinaryCrossEntropyLoss, ["a", "b"], ["d"]), {
          "lambda": .1, "regularizer_type": hugectr.Regularizer_t.L2}),
      (hugectr.DataReaderParams, (_READER.Norm, "a", "", "b", hugectr.Check_t.Sum), dict(
          cache_eval_data=2, num_samples=5, eval_num_samples=5, slot_size_array=[2],
          float_label_dense=True, async_param=hugectr.AsyncParam())),
      (hugectr.DataReaderParams, (_READER.Parquet, "a", "", "b"), dict(
          check_type=hugectr.Check_t.Sum)),
      (hugectr.AsyncParam, (), dict(num_threads=1, shuffle=True, io_depth=2)),
      (hugectr.CreateOptimizer, (hugectr.Optimizer_t.SGD,), dict(
          beta1=.5, momentum_factor=.9, beta=1., atomic_update=False)),
      (hugectr.SparseEmbedding, (_EMBEDDING, 1, 4, "sum", "rows", "keys"), dict(
          hybrid_embedding_param=hugectr.HybridEmbeddingParam())),
      (hugectr.CreateSolver, (), dict(use_embedding_collection=True)))
  def test_each_argument_without_effect_is_named(self, call, required, arguments):
    self.assertEmpty(self.printed(call, *required))
    text = self.printed(lambda: [call(*required, **arguments) for _ in "ab"])
    for name in arguments:
      self.assertRegex(text, r": %s has no effect" % name)
    self.assertEqual(text.count("has no effect"), len(arguments), text)

  def test_arguments_with_an_effect_are_not_reported(self):
    loss = (_LAYER.BinaryCrossEntropyLoss, ["a", "b"], ["d"])
    raw = dict(cache_eval_data=2, num_samples=5, eval_num_samples=5, slot_size_array=[2])
    for call in (
        lambda: hugectr.CreateOptimizer(hugectr.Optimizer_t.Ftrl, beta=1., lambda1=.1),
        lambda: hugectr.CreateOptimizer(beta1=.5, beta2=.6, epsilon=1e-4),
        lambda: hugectr.DenseLayer(*loss, use_regularizer=True, regularizer_type=hugectr.L2,
                                   **{"lambda": .1}),
        lambda: hugectr.DataReaderParams(_READER.Raw, "a", "", "b", float_label_dense=True,
                                         **raw),
        lambda: hugectr.DataReaderParams(
            _READER.RawAsync, "a", "", "b", hugectr.Check_t.Non, async_param=hugectr.AsyncParam(
                is_dense_float=False, multi_hot_reader=True), **raw),
        lambda: hugectr.DataReaderParams(_READER.Parquet, "a", "", "b", hugectr.Check_t.Non,
                                         slot_size_array=[2])):
      self.assertEmpty(self.printed(call))

  def test_other_settings_without_effect_are_reported(self):
    spec = {hugectr.MetricsType.HitRate: .8, hugectr.MetricsType.AUC: 1.}
    text = self.printed(hugectr.CreateSolver, metrics_spec=spec)
    self.assertRegex(text, "the threshold of HitRate has no effect; only AUC's ends fit")
    self.assertNotIn("threshold of AUC", text)
    collection = hugectr.EmbeddingCollectionConfig()
    collection.embedding_lookup(self.tables()[0], "k0", "x", "sum")
    self.assertEmpty(self.printed(collection.shard, [["t0"]], [("mp", ["t0"]), ("dp", [])]))
    self.assertRegex(self.printed(collection.shard, [["t0"]], [("dp", ["t0"])]),
                     '"dp" has no effect')
    made = []
    text = self.printed(lambda: made.append(small_scripts.dcn(
        self.folder, reader_arguments={"keyset": ["a"]})))
    self.assertIn("keyset has no effect without an embedding training cache", text)
    model, = made
    self.addCleanup(model.close)
    model.compile()
    model.start_data_reading()
    self.assertEmpty(self.printed(lambda: (model.train(True), model.eval(True))))
    text = self.printed(lambda: (model.train(False), model.train(False), model.eval(False)))
    self.assertEqual(text.count("is_first_batch has no effect"), 2, text)

  def test_forms_of_all_versions(self):
    hybrid = hugectr.HybridEmbeddingParam(
        2, -1, 0.01, 1.3e11, 1.9e11, 1.0, hugectr.CommunicationType.NVLink_SingleNode,
        hugectr.HybridEmbeddingType.Distributed)
    model = hugectr.Model(
        small_scripts.solver(vvgpu=[[0, 1]]), small_scripts.reader(self.folder),
        hugectr.CreateOptimizer())
    old = hugectr.DataReaderSparseParam(hugectr.DataReaderSparse_t.Distributed, 4, 1, _SLOTS)
    model.add(hugectr.Input(1, "label", small_scripts.DENSE, "dense", [old],
                            sparse_names=["keys"]))
    model.add(hugectr.SparseEmbedding(
        embedding_type=hugectr.Embedding_t.HybridSparseEmbedding, embedding_vec_size=4,
        combiner=0, sparse_embedding_name="rows", bottom_name="keys",
        slot_size_array=[10] * _SLOTS, hybrid_embedding_param=hybrid))
    self.assertIn("(50,4,4)", self.printed(model.summary))

  def test_members_are_attributes_of_the_package(self):
    self.assertIs(hugectr.ReLU, hugectr.Layer_t.ReLU)
    self.assertIs(hugectr.Adam, hugectr.Optimizer_t.Adam)
    for name in ("Non", "Uniform", "ReLu"):  # several have it, or none
      with self.assertRaises(AttributeError):
        getattr(hugectr, name)
    self.assertIsInstance(hugectr.Model, type)
    with self.assertRaisesRegex(AttributeError, "'EmbeddingPlanner': use EmbeddingCollection"):
      getattr(hugectr, "EmbeddingPlanner")
    self.assertTrue(callable(hugectr.data.norm_dataset))
    with self.assertRaisesRegex(AttributeError, "'DataSource': this package does not read HDFS"):
      getattr(hugectr.data, "DataSource")

  def test_run(self):
    folder = self.create_tempdir().full_path
    with open(folder + "/script.py", "w") as f:
      f.write("import sys\nimport hugectr\nfrom mpi4py import MPI\n"
              "print(MPI.COMM_WORLD.Get_rank(), MPI.COMM_WORLD.size, sys.argv, __name__)\n"
              "solver = hugectr.CreateSolver(batchsize=8)\nprint(solver.batchsize)\n"
              "sys.exit(3)\n")
    found = subprocess.run(
        [sys.executable, "-m", "hugectr", "run", folder + "/script.py", "--a", "b"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)))
    self.assertEqual(found.stdout.decode(), "0 1 ['%s/script.py', '--a', 'b'] __main__\n8\n" %
                     folder, found.stderr)
    self.assertEqual(found.returncode, 3)
    found = subprocess.run(
        [sys.executable, "-m", "hugectr", "run", folder + "/none.py"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)))
    # TensorFlow 2.21 logs before it.
    self.assertEqual((found.returncode, found.stderr.decode().splitlines()[-1]),
                     (2, "error: there is no script %s/none.py" % folder))


if __name__ == "__main__":
  absltest.main()
