# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Predictions of InferenceModel against those of the trained model's evaluation."""

import os

from absl.testing import absltest
import numpy as np

import hugectr
from hugectr import small_model
from hugectr import testing
from hugectr.api import small_scripts
from hugectr.config import model as models
from hugectr.data import batches
from hugectr.data import sources
from hugectr.data import synthetic
from hugectr.data import writing
from hugectr.inference import tables

_EMBEDDING = hugectr.Embedding_t
_LAYER = hugectr.Layer_t
_DENSE = small_scripts.DENSE


def _merged(chunk, counts):
  """Returns a chunk whose k-th slot has up to counts[k] keys, and sometimes none."""
  slots, at = [], 0
  for count in counts:
    columns = np.stack([s.keys for s in chunk.slots[at:at + count]], axis=1)
    kept = columns[:, :1] % (count + 1) > np.arange(count)
    offsets = np.zeros([len(columns) + 1], np.int64)
    np.cumsum(kept.sum(axis=1), out=offsets[1:])
    slots.append(batches.Slot((columns + 10 * at)[kept], offsets))
    at += count
  return chunk._replace(slots=slots)


def write_multi_hot(folder, counts, rows=400):
  """Writes data whose k-th slot has from no key to counts[k] keys, 10 per slot and place."""
  planted = testing.Planted([10] * sum(counts), _DENSE)
  data = models.Data(
      "data", "Norm", "", None, "label", 1, "dense", _DENSE,
      [models.SparseInput("keys", False, 0, len(counts), None, None)], None, 2,
      {"check": "Sum"})
  for name, seed in (("train", 1), ("val", 2)):
    chunks = (_merged(c, counts) for c in synthetic.chunks(planted, rows, seed, rows // 2))
    writing.write(os.path.join(folder, name, "_file_list.txt"), data, "I32", chunks,
                  rows // 2, group=rows // 2)


class ModelTest(absltest.TestCase):

  def trained(self, model, steps=8):
    """Trains a model and writes its files.

    Returns:
      (function that makes an InferenceParams, path of the graph, exported predictions
      of 10 evaluation batches).
    """
    self.addCleanup(model.close)
    folder = self.create_tempdir().full_path
    model.graph_to_json(folder + "/graph.json")
    model.compile()
    model.fit(max_iter=steps, display=0, eval_interval=0, snapshot=steps,
              snapshot_prefix=folder + "/m")
    for _ in range(10):
      model.eval()
      model.export_predictions(folder + "/predictions", folder + "/labels")
    found = [np.loadtxt(folder + "/" + name) for name in ("predictions", "labels")]
    self.assertGreater(np.std(found[0]), .01)

    def params(**arguments):
      count = len([n for n in os.listdir(folder) if "_sparse_" in n and "opt" not in n])
      values = dict(
          model_name="ctr", max_batchsize=40, hit_rate_threshold=1.0,
          dense_model_file="%s/m_dense_%d.model" % (folder, steps),
          sparse_model_files=["%s/m%d_sparse_%d.model" % (folder, k, steps)
                              for k in range(count)])
      values.update(arguments)
      return hugectr.inference.InferenceParams(**values)

    return params, folder + "/graph.json", found[0], found[1]

  def infer(self, graph, params, **arguments):
    model = hugectr.inference.InferenceModel(graph, params(**arguments))
    self.addCleanup(model.close)
    return model

  def assert_predicts(self, found, expected):
    self.assertEqual(found.dtype, np.float32)
    np.testing.assert_allclose(found.ravel(), expected, rtol=1e-5, atol=1e-6)

  def test_one_hot_norm(self):
    folder = self.create_tempdir().full_path
    small_scripts.write_norm(folder)
    params, graph, expected, labels = self.trained(small_scripts.dcn(folder))
    model = self.infer(graph, params)
    data = (folder + "/val/_file_list.txt", hugectr.DataReaderType_t.Norm,
            hugectr.Check_t.Sum)
    found = model.predict(10, *data)
    self.assertEqual(found.shape, (400, 1))
    self.assert_predicts(found, expected)
    # The data starts again at its end, and another batch size gives the same numbers.
    self.assert_predicts(model.predict(11, *data)[400:], expected[:40])
    self.assert_predicts(self.infer(graph, params, max_batchsize=200).predict(2, *data),
                         expected)
    # The exact AUC: pairs of a positive and a negative sample.
    positive, negative = expected[labels > .5], expected[labels < .5]
    pairs = np.sign(positive[:, None] - negative[None, :])
    self.assertAlmostEqual(model.evaluate(10, *data), (pairs.mean() + 1) / 2, places=4)
    np.testing.assert_allclose(model.check_out_tensor("logit"), found[360:], rtol=1e-6)
    self.assertEqual(model.check_out_tensor("rows", hugectr.Tensor_t.Evaluate).shape,
                     (40, 4, 4))

  def test_two_multi_hot_tables_and_dense_layers(self):
    folder, counts = self.create_tempdir().full_path, [3, 1, 2]
    write_multi_hot(folder, counts)
    model = hugectr.Model(
        small_scripts.solver(), small_scripts.reader(folder),
        hugectr.CreateOptimizer(hugectr.Optimizer_t.AdaGrad, hugectr.Update_t.Local))
    model.add(hugectr.Input(1, "label", _DENSE, "dense", [
        hugectr.DataReaderSparseParam("a", [3, 1], False, 2),
        hugectr.DataReaderSparseParam("b", [2], False, 1)]))
    for name, width, combiner in (("a", 4, "mean"), ("b", 2, "sum")):
      model.add(hugectr.SparseEmbedding(_EMBEDDING.DistributedSlotSparseEmbeddingHash, 1,
                                        width, combiner, name + "_rows", name))
    for layer, bottoms, top, arguments in (
        (_LAYER.Reshape, ["a_rows"], "a_flat", {"leading_dim": 8}),
        (_LAYER.Reshape, ["b_rows"], "b_flat", {"leading_dim": 2}),
        (_LAYER.Concat, ["a_flat", "b_flat"], "both", {}),
        (_LAYER.InnerProduct, ["both"], "deep", {"num_output": 4}),
        # Layers of the dense features alone.
        (_LAYER.InnerProduct, ["dense"], "fc", {"num_output": 4}),
        (_LAYER.BatchNorm, ["fc"], "normal", {"factor": .5, "eps": 1e-5}),
        (_LAYER.ReLU, ["normal"], "relu", {}),
        (_LAYER.Dropout, ["relu"], "dropped", {"dropout_rate": .5}),
        (_LAYER.Add, ["deep", "dropped"], "sum", {}),
        (_LAYER.InnerProduct, ["sum"], "logit", {"num_output": 1}),
        (_LAYER.BinaryCrossEntropyLoss, ["logit", "label"], "loss", {})):
      model.add(hugectr.DenseLayer(layer, bottoms, [top], **arguments))
    params, graph, expected, _ = self.trained(model)
    data = (folder + "/val/_file_list.txt", hugectr.DataReaderType_t.Norm,
            hugectr.Check_t.Sum)
    session = hugectr.inference.CreateInferenceSession(graph, params())
    self.addCleanup(session.close)
    self.assert_predicts(session.predict(10, *data), expected)
    self.check_arrays(session, data[0], expected)
    # BatchNorm's running values come from a file that may be named.
    os.rename(params().dense_model_file + ".ntp.json", folder + "/running.json")
    other = self.infer(graph, params)
    self.assertGreater(np.abs(other.predict(10, *data).ravel() - expected).max(), 1e-3)
    self.assert_predicts(self.infer(
        graph, params, non_trainable_params_file=folder + "/running.json").predict(
            10, *data), expected)

  def check_arrays(self, session, path, expected):
    """Compares predictions of arrays with those of the first batch of a file."""
    data = models.Data(
        "data", "Norm", "", None, "label", 1, "dense", _DENSE,
        [models.SparseInput("keys", False, 0, 3, None, None)], None, 2, {"check": "Sum"})
    reader = sources.opener(data, "I32", 40, False, [
        batches.InputLayout(0, 2, False), batches.InputLayout(2, 1, False)], 0, 1)(path)
    self.addCleanup(reader.close)
    batch = reader.next()
    keys = np.concatenate([k for k, _ in batch.inputs])
    splits = np.concatenate([s for _, s in batch.inputs])
    found = session.predict(batch.dense.ravel().tolist(), keys.tolist(), splits.tolist())
    self.assertIsInstance(found, list)
    self.assert_predicts(np.float32(found), expected[:40])
    # A smaller batch; its second sample has no keys.
    first = [int(batch.inputs[0].splits[2]), int(batch.inputs[1].splits[1])]
    part = [batch.inputs[k].keys[:n].tolist() for k, n in enumerate(first)]
    ends = [batch.inputs[0].splits[:3].tolist(), batch.inputs[1].splits[:2].tolist()]
    found = session.predict(
        batch.dense[:2], part[0] + part[1],
        ends[0] + [ends[0][-1]] * 2 + ends[1] + [ends[1][-1]])
    self.assertLen(found, 2)
    self.assertAlmostEqual(found[0], expected[0], places=5)
    absent = session.predict(batch.dense[1:2], [10 ** 6], [0, 1, 1, 0, 0])
    self.assertAlmostEqual(absent[0], found[1], places=6)  # a key without a row reads 0

  def localized(self, folder, kind, sizes=(), **reader):
    """Returns a model with a table per slot; slots share keys unless sizes are given."""
    model = hugectr.Model(
        small_scripts.solver(i64_input_key=True),
        small_scripts.reader(folder, data_reader_type=getattr(hugectr.DataReaderType_t, kind),
                             slot_size_array=sizes, **reader),
        hugectr.CreateOptimizer(update_type=hugectr.Update_t.Local))
    small_scripts.add_inputs(model,
                             embedding_type=_EMBEDDING.LocalizedSlotSparseEmbeddingHash)
    model.add(hugectr.DenseLayer(_LAYER.InnerProduct, ["both"], ["logit"], num_output=1))
    model.add(hugectr.DenseLayer(_LAYER.BinaryCrossEntropyLoss, ["logit", "label"], ["loss"]))
    return model

  def write_slots(self, kind, path=None):
    """Writes data with keys from 0 in each slot."""
    folder = self.create_tempdir().full_path
    planted = testing.Planted([small_scripts.SIZE] * small_scripts.SLOTS, _DENSE)
    for name, seed in (("train", 1), ("val", 2)):
      file = path or "_file_list.txt"
      os.makedirs(os.path.join(folder, name))
      testing.write_data(os.path.join(folder, name, file), planted, 1, 400, seed, kind,
                         key_type="I64", float_label_dense=True)
    return folder

  def test_parquet_whose_slots_share_keys(self):
    folder = self.write_slots("Parquet")
    params, graph, expected, _ = self.trained(self.localized(folder, "Parquet"))
    # Each slot has a row of its own for a key.
    keys = np.fromfile(params().sparse_model_files[0] + "/key", np.int64)
    self.assertLen(keys, 40)
    self.assertLen(set(keys), 10)
    model = self.infer(graph, params, i64_input_key=True)
    self.assert_predicts(model.predict(
        10, folder + "/val/_file_list.txt", hugectr.DataReaderType_t.Parquet,
        hugectr.Check_t.Non), expected)

  def test_raw(self):
    folder = self.write_slots("Raw", "data.bin")
    sizes = [small_scripts.SIZE] * small_scripts.SLOTS
    source = {name: "%s/%s/data.bin" % (folder, part)
              for name, part in (("source", "train"), ("eval_source", "val"))}
    params, graph, expected, _ = self.trained(self.localized(
        folder, "Raw", sizes, num_samples=400, eval_num_samples=400, float_label_dense=True,
        **source))
    model = self.infer(graph, params)
    data = (source["eval_source"], hugectr.DataReaderType_t.Raw, hugectr.Check_t.Non)
    self.assert_predicts(model.predict(10, *data, sizes), expected)
    self.assert_predicts(model.predict(10, *data), expected)  # the JSON has the sizes
    with self.assertRaisesRegex(hugectr.ConfigError, "slot_size_array: expected 4 numbers"):
      model.predict(10, *data, slot_size_array=[10])

  def test_flat_files_of_a_session(self):
    folder = self.create_tempdir().full_path
    for name, seed in (("train", 1), ("val", 2)):
      testing.write_parquet(folder + "/" + name, small_model.PLANTED, 1, 60, seed)
    path = testing.write_json(folder + "/model.json", small_model.configuration(
        folder, "Adam", "Local", localized=True))
    solver = hugectr.solver_parser_helper(batchsize=20, batchsize_eval=20,
                                          repeat_dataset=True)
    with hugectr.Session(solver, path) as session:
      session.start_data_reading()
      for _ in range(9):
        session.train()
      session.download_params_to_files(folder + "/m", 1)
      for _ in range(3):
        session.eval()
      session.get_eval_metrics(folder + "/predictions", folder + "/labels")
    expected = np.loadtxt(folder + "/predictions")
    model = hugectr.inference.CreateInferenceSession(
        path, hugectr.inference.InferenceParams(
            model_name="flat", max_batchsize=20, dense_model_file=folder + "/m_dense_1.model",
            sparse_model_files=folder + "/m0_sparse_1.model"))
    self.addCleanup(model.close)
    self.assert_predicts(model.predict(
        3, folder + "/val/_file_list.txt", hugectr.DataReaderType_t.Parquet,
        hugectr.Check_t.Non), expected)

  def test_a_table_with_several_lookups(self):
    folder = self.create_tempdir().full_path
    small_scripts.write_norm(folder)
    model = hugectr.Model(small_scripts.solver(), small_scripts.reader(folder),
                          hugectr.CreateOptimizer(update_type=hugectr.Update_t.Local))
    model.add(hugectr.Input(1, "label", _DENSE, "dense", [
        hugectr.DataReaderSparseParam("k%d" % k, 1, True, 1)
        for k in range(small_scripts.SLOTS)]))
    tables = [hugectr.EmbeddingTableConfig(name, -1, 4) for name in "ab"]
    collection = hugectr.EmbeddingCollectionConfig()
    collection.embedding_lookup(
        [tables[k % 2] for k in range(small_scripts.SLOTS)],
        ["k%d" % k for k in range(small_scripts.SLOTS)], "rows",
        ["sum"] * small_scripts.SLOTS)
    model.add(collection)
    model.add(hugectr.DenseLayer(_LAYER.InnerProduct, ["rows"], ["logit"], num_output=1))
    model.add(hugectr.DenseLayer(_LAYER.BinaryCrossEntropyLoss, ["logit", "label"], ["loss"]))
    params, graph, expected, _ = self.trained(model)
    self.assertLen(params().sparse_model_files, 2)
    self.assert_predicts(self.infer(graph, params).predict(
        10, folder + "/val/_file_list.txt", hugectr.DataReaderType_t.Norm,
        hugectr.Check_t.Sum), expected)

  def test_concat(self):
    folder, counts = self.create_tempdir().full_path, [3, 1, 2]
    write_multi_hot(folder, counts)
    model = hugectr.Model(small_scripts.solver(), small_scripts.reader(folder),
                          hugectr.CreateOptimizer(update_type=hugectr.Update_t.Local))
    model.add(hugectr.Input(1, "label", _DENSE, "dense", [
        hugectr.DataReaderSparseParam("k%d" % k, n, False, 1) for k, n in enumerate(counts)]))
    tables = [hugectr.EmbeddingTableConfig(name, -1, 4) for name in "ab"]
    collection = hugectr.EmbeddingCollectionConfig()
    collection.embedding_lookup([tables[0], tables[1], tables[0]], ["k0", "k1", "k2"], "rows",
                                ["concat", "sum", "average"])
    model.add(collection)
    model.add(hugectr.DenseLayer(_LAYER.InnerProduct, ["rows"], ["logit"], num_output=1))
    model.add(hugectr.DenseLayer(_LAYER.BinaryCrossEntropyLoss, ["logit", "label"], ["loss"]))
    params, graph, expected, _ = self.trained(model)
    found = self.infer(graph, params)
    self.assert_predicts(found.predict(
        10, folder + "/val/_file_list.txt", hugectr.DataReaderType_t.Norm,
        hugectr.Check_t.Sum), expected)
    self.assertEqual(found.check_out_tensor("rows").shape, (40, 4 * (3 + 1 + 1)))
    session = hugectr.inference.CreateInferenceSession(graph, params())
    self.addCleanup(session.close)
    with self.assertRaisesRegex(hugectr.DataError, "'a' with the top 'rows/a': combiner concat: "
                                "expected at most 3 keys of a sample in 'k0'.*got 4"):
      session.predict([0.] * _DENSE, [1, 2, 3, 4, 11, 21], [0, 4, 0, 1, 0, 1])

  def test_several_labels(self):
    folder = self.create_tempdir().full_path
    small_scripts.write_norm(folder, label_dim=2)
    model = hugectr.Model(small_scripts.solver(), small_scripts.reader(folder),
                          hugectr.CreateOptimizer(update_type=hugectr.Update_t.Local))
    self.addCleanup(model.close)
    model.add(hugectr.Input(
        label_dims=[1, 1], label_names=["b", "a"], dense_dim=_DENSE, dense_name="dense",
        data_reader_sparse_param_array=[
            hugectr.DataReaderSparseParam("keys", 1, True, small_scripts.SLOTS)]))
    model.add(hugectr.SparseEmbedding(_EMBEDDING.DistributedSlotSparseEmbeddingHash, 1, 4,
                                      "sum", "rows", "keys"))
    model.add(hugectr.DenseLayer(_LAYER.Reshape, ["rows"], ["flat"], leading_dim=16))
    for name in "ba":
      model.add(hugectr.DenseLayer(_LAYER.InnerProduct, ["flat"], ["logit_" + name],
                                   num_output=1))
    for name in "ba":
      model.add(hugectr.DenseLayer(_LAYER.BinaryCrossEntropyLoss, ["logit_" + name, name],
                                   ["loss_" + name]))
    path = self.create_tempdir().full_path
    model.graph_to_json(path + "/graph.json")
    model.compile()
    model.fit(max_iter=8, display=0, eval_interval=0, snapshot=8, snapshot_prefix=path + "/m")
    model.eval()
    expected = np.concatenate([model.check_out_tensor("logit_" + n, hugectr.Tensor_t.Evaluate)
                               for n in "ba"], axis=1)
    auc = dict(model.get_eval_metrics())["AUC"]
    found = hugectr.inference.InferenceModel(
        path + "/graph.json", hugectr.inference.InferenceParams(
            "labels", 40, 1.0, path + "/m_dense_8.model", [path + "/m0_sparse_8.model"]))
    self.addCleanup(found.close)
    data = (folder + "/val/_file_list.txt", hugectr.DataReaderType_t.Norm,
            hugectr.Check_t.Sum)
    predicted = found.predict(1, *data)
    self.assertEqual(predicted.shape, (40, 2))
    np.testing.assert_allclose(predicted, expected, rtol=1e-5)
    self.assertAlmostEqual(found.evaluate(1, *data), auc, places=6)

  def test_numbered_keys_differ_between_slots(self):
    numbered = tables.Numbered(3)
    top = 2 ** 63 // 3 - 1
    self.assertTrue(numbered.holds(np.array([-top, top])))
    self.assertFalse(numbered.holds(np.array([2 ** 62])))
    keys = np.array([-top, -1, 0, 1, top])
    made = np.concatenate([numbered.of_rows(keys, s) for s in range(3)])
    self.assertLen(set(made.tolist()), 15)
    splits = np.array([0, 1, 3, 3, 4, 5, 6])  # two samples of three slots
    batch = np.array([top, 5, -5, 2 ** 63 - 1, 5, -2 ** 63])
    found = numbered.of_batch(batch, splits)
    self.assertEqual(found[[0, 1, 2, 4]].tolist(), [top * 3, 16, -14, 16])
    for key in found[[3, 5]]:
      self.assertNotIn(key, made.tolist())


if __name__ == "__main__":
  absltest.main()
