# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests Session: training against NumPy, files, readers, errors."""

import collections
import json
import os
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

import hugectr
from hugectr import data
from hugectr import small_model as model
from hugectr import testing
from hugectr.training import metrics
from hugectr.training import ranks
from hugectr.training import tables


class SessionTest(model.TestCase):

  def can_use_a_gpu(self):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      table = tf.get_embedding_variable(
          "probe", embedding_dim=1, ev_option=tf.EmbeddingVariableOption(
              storage_option=tf.StorageOption(
                  storage_type=tables.config_pb2.StorageType.HBM)))
      try:
        session.run(table.initializer)
        return True
      except tf.errors.OpError:
        return False

  def samples(self, which):
    return model.samples(os.path.join(self.folder, which))

  def read_dense(self, path):
    return np.fromfile(path, np.float32)

  @parameterized.parameters(
      ("Adam", "Local", False), ("Adam", "Global", True), ("Adam", "Global", False),
      ("MomentumSGD", "Local", True), ("MomentumSGD", "Global", False),
      ("Nesterov", "Global", False), ("SGD", "Global", False),
      ("Adam", "LazyGlobal", False), ("MomentumSGD", "LazyGlobal", True),
      ("Nesterov", "LazyGlobal", False),
      ("AdaGrad", "LazyGlobal", False), ("Ftrl", "Local", False), ("Ftrl", "Global", True))
  def test_trains_as_numpy_does(self, kind, update_type, localized):
    prefix = self.create_tempdir().full_path + "/x"
    start = model.write_start(localized, prefix)
    session = self.session(
        model.configuration(self.folder, kind, update_type, localized), repeat_dataset=False,
        model_file=prefix + "dense", embedding_files=[prefix + "rows"], batchsize=30)
    oracle = model.Oracle(kind, update_type, *start)
    labels, dense, keys = self.samples("train")
    session.start_data_reading()
    # Four batches, the last of 10 samples; the rate changes.
    for step, rate in enumerate([0.05, 0.2, 0.1, 0.02]):
      session.set_learning_rate(rate)
      self.assertTrue(session.train())
      at = slice(30 * step, 30 * step + 30)
      loss = oracle.train(labels[at], dense[at], keys[at], rate, 30)
      self.assertAlmostEqual(session.get_current_loss(), loss, places=5)
    self.assertFalse(session.train())
    session.download_params_to_files(prefix, 4)
    found = np.fromfile(prefix + "0_sparse_4.model", np.dtype(
        [("key", "<u4")] + ([("slot", "<i8")] if localized else []) +
        [("row", "<f4", (model.FLOATS,))]))
    self.assertEqual(found["key"].tolist(), list(range(model.SLOTS * model.SIZE)))
    if localized:
      self.assertEqual(found["slot"].tolist(), [k // model.SIZE for k in found["key"]])
    np.testing.assert_allclose(found["row"], oracle.values["rows"], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(
        self.read_dense(prefix + "_dense_4.model"),
        np.concatenate([oracle.values["W"].ravel(), oracle.values["b"]]),
        rtol=1e-4, atol=1e-5)
    count = {"Adam": 2, "Ftrl": 2, "SGD": 0}.get(kind, 1)
    is_lazy = update_type == "LazyGlobal" and kind != "AdaGrad"
    self.assertEqual(os.path.exists(prefix + "_opt_dense_4.model"), count > 0)
    if count:
      sign = -1 if kind in ("MomentumSGD", "Nesterov") else 1
      expected = [np.concatenate([oracle.states["W"][k].ravel(), oracle.states["b"][k]])
                  for k in range(count)]
      np.testing.assert_allclose(self.read_dense(prefix + "_opt_dense_4.model") * sign,
                                 np.concatenate(expected), rtol=1e-3, atol=1e-6)
      states = np.fromfile(prefix + "0_opt_sparse_4.model", np.dtype(
          [("key", "<u4")] + ([("slot", "<i8")] if localized else []) +
          [("state", "<f4", (count + is_lazy, model.FLOATS))]))
      np.testing.assert_allclose(
          states["state"][:, :count] * sign, np.stack(oracle.states["rows"][:count], axis=1),
          rtol=1e-3, atol=1e-6)
      if is_lazy:
        np.testing.assert_array_equal(
            states["state"][:, -1], np.repeat(oracle.last, model.FLOATS, axis=1))

  @parameterized.parameters(("flat", False, "Global"), ("directory", True, "Global"),
                            ("directory", False, "LazyGlobal"))
  def test_goes_on_from_files_bit_by_bit(self, form, localized, update_type):
    more = [{"name": "norm", "type": "BatchNorm", "bottom": "both", "top": "norm",
             "bn_param": {"factor": 0.3, "eps": 1e-3}}]
    configuration = model.configuration(self.folder, "Adam", update_type, localized,
                                        more=more)
    prefix = self.create_tempdir().full_path + "/p/x"
    session = self.session(configuration)
    session.start_data_reading()
    for _ in range(5):  # one pass over the data
      session.train()
    session.download_params_to_files(prefix, 1, sparse_format=form)
    self.assertEqual(os.path.isdir(prefix + "0_sparse_1.model"), form == "directory")
    again = self.session(
        configuration, model_file=prefix + "_dense_1.model",
        embedding_files=[prefix + "0_sparse_1.model"],
        dense_opt_states_file=prefix + "_opt_dense_1.model",
        sparse_opt_states_file=[prefix + "0_opt_sparse_1.model"], seed=9)
    again.start_data_reading()
    for one in (session, again):
      for _ in range(5):
        one.train()
    session.download_params_to_files(prefix, 2)
    again.download_params_to_files(prefix + "again", 2)
    for end in ("_dense_2.model", "_dense_2.model.ntp.json", "0_sparse_2.model",
                "_opt_dense_2.model", "_opt_dense_2.model.ntp.json",
                "0_opt_sparse_2.model"):
      with open(prefix + end, "rb") as f, open(prefix + "again" + end, "rb") as g:
        self.assertEqual(f.read(), g.read(), end)
    with open(prefix + "_dense_2.model.ntp.json") as f:
      layer, = json.load(f)["layers"]
    self.assertEqual((layer["type"], len(layer["mean"]), len(layer["var"])),
                     ("BatchNorm", 8, 8))

  def test_same_seed_gives_the_same_bits(self):
    losses = []
    for seed in (1, 1, 2):
      session = self.session(seed=seed)
      session.start_data_reading()
      losses.append([session.train() and session.get_current_loss() for _ in range(5)])
    self.assertEqual(losses[0], losses[1])
    self.assertNotEqual(losses[0], losses[2])

  def test_evaluates_batch_by_batch_and_as_a_whole(self):
    session = self.session(repeat_dataset=False)
    folder = self.create_tempdir().full_path
    session.start_data_reading()
    while session.train():
      pass
    self.assertEqual(session.get_eval_metrics(), [])
    found, predictions, labels = [], folder + "/predictions", folder + "/labels"
    # 20 samples, then 10, then the first 20 again.
    for _ in range(3):
      found.append(session.evaluation(predictions, labels))
    self.assertEqual(found[0], found[2])
    labels, predictions = np.loadtxt(labels), np.loadtxt(predictions)
    self.assertEqual(len(predictions), 50)
    expected = self.samples("val")[0]
    np.testing.assert_array_equal(labels, np.concatenate([expected, expected[:20]]))
    for first, end, (metric,) in zip((0, 20, 30), (20, 30, 50), found):
      self.assertEqual(metric[0], "AUC")
      self.assertAlmostEqual(
          metric[1], metrics.auc(labels[first:end], predictions[first:end]))
    session.get_data_reader_eval().set_source()
    self.assertTrue(session.eval() and session.eval())
    self.assertFalse(session.eval())
    (_, whole), = session.get_eval_metrics()
    self.assertAlmostEqual(whole, metrics.auc(labels[:30], predictions[:30]))
    with self.assertRaisesRegex(ValueError, "give both"):
      session.evaluation("a")

  def test_evaluation_inserts_no_row(self):
    session = self.session()
    before = session.get_params_num()
    session.start_data_reading()
    session.evaluation()
    self.assertEqual(session.get_params_num(), before)
    self.assertEqual(before, model.SLOTS * model.FLOATS + model.DENSE + 1)
    session.train()
    self.assertGreater(session.get_params_num(), before)
    session.check_overflow()

  def test_epochs_by_the_reader(self):
    session = self.session(repeat_dataset=False, batchsize=40)
    with self.assertRaisesRegex(RuntimeError, "no data is being read: call"):
      session.train()
    reader = session.get_data_reader_train()
    for _ in range(2):
      reader.set_file_list_source()
      self.assertEqual([session.train() for _ in range(4)], [True, True, True, False])
    with self.assertRaisesRegex(hugectr.DataError, "no/list: cannot be read"):
      reader.set_source("no/list")
    reader.set_source(self.folder + "/val/_file_list.txt")
    self.assertEqual([session.train(), session.train()], [True, False])

  def test_own_optimizer_of_an_embedding(self):
    configuration = model.configuration(self.folder, "Adam")
    configuration["layers"][1]["optimizer"] = model.optimizer("SGD")
    prefix = self.create_tempdir().full_path + "/x"
    start = model.write_start(False, prefix)
    session = self.session(configuration, model_file=prefix + "dense",
                           embedding_files=[prefix + "rows"])
    oracles = [model.Oracle(kind, "Local", *start) for kind in ("SGD", "Adam")]
    labels, dense, keys = self.samples("train")
    session.start_data_reading()
    session.train()
    for oracle in oracles:
      oracle.train(labels[:20], dense[:20], keys[:20], 0.05, 20)
    session.download_params_to_files(prefix, 1)
    found = np.fromfile(prefix + "0_sparse_1.model",
                        np.dtype([("key", "<u4"), ("row", "<f4", (model.FLOATS,))]))
    np.testing.assert_allclose(found["row"], oracles[0].values["rows"], rtol=1e-5)
    np.testing.assert_allclose(
        self.read_dense(prefix + "_dense_1.model")[:-1],
        oracles[1].values["W"].ravel(), rtol=1e-5)
    self.assertFalse(os.path.exists(prefix + "0_opt_sparse_1.model"))

  def test_two_embeddings_of_both_kinds_share_the_slots(self):
    configuration = model.configuration(self.folder)
    layers = configuration["layers"]
    layers[0]["sparse"] = [
        {"top": "one", "type": "DistributedSlot", "slot_num": 1,
         "max_feature_num_per_sample": 1},
        {"top": "two", "type": "LocalizedSlot", "slot_num": 2,
         "max_feature_num_per_sample": 2}]
    hparam = layers[1]["sparse_embedding_hparam"]
    layers[1:3] = [
        {"name": "a", "type": "DistributedSlotSparseEmbeddingHash", "bottom": "one",
         "top": "a", "sparse_embedding_hparam": hparam},
        {"name": "b", "type": "LocalizedSlotSparseEmbeddingOneHot", "bottom": "two",
         "top": "b", "sparse_embedding_hparam": hparam},
        {"name": "rows", "type": "Concat", "bottom": ["a", "b"], "top": "rows"},
        {"name": "flat", "type": "Reshape", "bottom": "rows", "top": "flat",
         "leading_dim": model.SLOTS * model.FLOATS}]
    session = self.session(configuration)
    session.start_data_reading()
    session.train()
    prefix = self.create_tempdir().full_path + "/x"
    session.download_params_to_files(prefix, 1)
    keys = self.samples("train")[2][:20]
    first = np.fromfile(prefix + "0_sparse_1.model",
                        np.dtype([("key", "<u4"), ("row", "<f4", (model.FLOATS,))]))
    second = np.fromfile(prefix + "1_sparse_1.model", np.dtype(
        [("key", "<u4"), ("slot", "<i8"), ("row", "<f4", (model.FLOATS,))]))
    self.assertEqual(first["key"].tolist(), np.unique(keys[:, 0]).tolist())
    self.assertEqual(second["key"].tolist(), np.unique(keys[:, 1:]).tolist())
    self.assertEqual(second["slot"].tolist(),
                     [k // model.SIZE - 1 for k in second["key"]])

  def test_files_of_another_model_change_nothing(self):
    session = self.session()
    folder = self.create_tempdir().full_path
    session.start_data_reading()
    session.train()
    session.download_params_to_files(folder + "/a", 1)
    wrong = folder + "/wrong"
    with open(wrong, "wb") as f:
      f.write(b"x" * 10)
    with self.assertRaisesRegex(ValueError, "10 bytes, but the model's dense"):
      session.init_params(wrong)
    for name in ("model_file", "dense_opt_states_file", "embedding_files",
                 "sparse_opt_states_file"):
      value = [wrong] if name.endswith("files") or name.startswith("sparse") else wrong
      with self.assertRaisesRegex(ValueError, "10 bytes"):
        self.session(**{name: value})
    with self.assertRaisesRegex(ValueError, "expected 1 files of rows, one per embedding"):
      self.session(embedding_files=[wrong, wrong])
    with self.assertRaises(OSError):
      session.init_params(folder + "/no")
    session.download_params_to_files(folder + "/b", 1)
    for end in ("_dense_1.model", "0_sparse_1.model"):
      with open(folder + "/a" + end, "rb") as f, open(folder + "/b" + end, "rb") as g:
        self.assertEqual(f.read(), g.read())

  def test_a_restored_rate_can_be_set_again(self):
    session = self.session()
    rate = session._graph.optimizers[0].lr

    def current():
      return session._session.run(rate)

    path = session.save_checkpoint(self.create_tempdir().full_path + "/model", 0)
    start = current()
    for value in (.5, .25, .25, .125):
      session.set_learning_rate(value)
      self.assertEqual(current(), value)
    session.restore_checkpoint(path)
    self.assertEqual(current(), start)
    session.set_learning_rate(.125)
    self.assertEqual(current(), .125)

  @parameterized.parameters(False, True)
  def test_checkpoints_and_saved_models(self, localized):
    configuration = model.configuration(self.folder, "Adam", "Global", localized)
    folder = self.create_tempdir().full_path
    session = self.session(configuration)
    session.start_data_reading()
    for _ in range(5):
      session.train()
    path = session.save_checkpoint(folder + "/ckpt/model", 5)
    self.assertEqual(path, folder + "/ckpt/model-5")
    again = self.session(configuration, seed=9)
    again.restore_checkpoint(path)
    again.start_data_reading()
    predictions = folder + "/predictions"
    for one in (session, again):
      for _ in range(3):
        one.train()
      one.evaluation(predictions, folder + "/labels")
    found = np.loadtxt(predictions)
    np.testing.assert_array_equal(found[:20], found[20:])
    session.export_saved_model(folder + "/saved")
    labels, dense, keys = (a[:20] for a in self.samples("val"))
    splits = np.arange(20 * model.SLOTS + 1)
    if localized:
      keys, splits = keys.T, np.tile(np.arange(21), [model.SLOTS, 1])
    with tf.Graph().as_default(), tf.compat.v1.Session() as serving:
      signature = tf.compat.v1.saved_model.load(
          serving, ["serve"], folder + "/saved").signature_def["serving_default"]
      feed = {signature.inputs[name].name: value for name, value in (
          ("dense", dense), ("keys_keys", keys.ravel()), ("keys_splits", splits))}
      served = serving.run(signature.outputs["predictions"].name, feed)
    np.testing.assert_allclose(served[:, 0], found[:20], rtol=1e-6)
    self.assertLen(labels, 20)
    with self.assertRaisesRegex(ValueError, "not a valid checkpoint"):
      session.restore_checkpoint(folder + "/no")

  @parameterized.parameters((False, False), (True, False), (True, True))
  def test_tables_for_inference(self, localized, by_slot):
    session = self.session(model.configuration(self.folder, "Adam", "Local", localized))
    folder = self.create_tempdir().full_path
    with self.assertRaisesRegex(ValueError, "table 'rows.*' has no rows.*train first"):
      session.export_inference_tables(folder + "/early", by_slot=by_slot)
    self.assertFalse(os.path.exists(folder + "/early"))
    session.start_data_reading()
    for _ in range(4):
      session.train()
    for _ in range(2):  # the second call replaces the files
      path = session.export_inference_tables(folder + "/x", "ctr", by_slot, 500)
    self.assertEqual(path, folder + "/x/ctr.json")
    session.download_params_to_files(folder + "/m", 1)
    rows = model.read_rows(folder + "/m0_sparse_1.model", localized)
    with open(path) as f:
      found = json.load(f)
    self.assertTrue(found["supportlonglong"])
    server, = found["models"]
    names = ["rows_slot_%d" % s for s in range(model.SLOTS)] if by_slot else ["rows"]
    self.assertEqual(server["embedding_table_names"], names)
    self.assertEqual(server["sparse_files"], [folder + "/x/" + n for n in names])
    self.assertEqual(server["embedding_vecsize_per_table"], [model.FLOATS] * len(names))
    self.assertEqual(server["default_value_for_each_table"], [0.0] * len(names))
    self.assertEqual(server["maxnum_catfeature_query_per_table_per_sample"],
                     [model.SLOTS] * len(names))
    self.assertEqual((server["model"], server["max_batch_size"]), ("ctr", 500))
    keys = [np.fromfile(p + "/key", "<i8") for p in server["sparse_files"]]
    vectors = [np.fromfile(p + "/emb_vector", "<f4") for p in server["sparse_files"]]
    self.assertEqual(sorted(os.listdir(server["sparse_files"][0])),
                     ["emb_vector", "hps_sums", "key"])
    np.testing.assert_array_equal(np.concatenate(keys), rows["key"])
    np.testing.assert_array_equal(np.concatenate(vectors), rows["row"].ravel())
    if by_slot:
      for slot, mine in enumerate(keys):
        self.assertEqual(set(mine // model.SIZE), {slot})
    for name in ("", "a b", "x" * 121, 3):
      with self.assertRaisesRegex(ValueError, "model: expected 1 to 120 letters"):
        session.export_inference_tables(folder, name)
    with self.assertRaisesRegex(ValueError, "max_batch_size: expected an integer of at"):
      session.export_inference_tables(folder, max_batch_size=0)

  def test_keys_in_several_slots_need_a_table_per_slot_for_inference(self):
    configuration = model.configuration(self.folder, "SGD", "Local", True)
    # Without sizes, the keys of every slot start at 0.
    del configuration["layers"][0]["slot_size_array"]
    session = self.session(configuration)
    session.start_data_reading()
    session.train()
    folder = self.create_tempdir().full_path
    with self.assertRaisesRegex(ValueError, "key 0 of embedding 'rows' is in several slots: "
                                "give by_slot=True"):
      session.export_inference_tables(folder + "/x")
    self.assertFalse(os.path.exists(folder + "/x"))
    self.assertTrue(os.path.exists(session.export_inference_tables(folder, by_slot=True)))

  def test_datasets_of_all_formats(self):
    folder = self.create_tempdir().full_path
    lists = {}
    for kind, clause in (("Norm", {"check": "Sum"}), ("Raw", {"float_label_dense": True}),
                         ("Parquet", {})):
      lists[kind] = testing.write_data(
          "%s/%s/data" % (folder, kind), model.PLANTED, 1, 25, 3, kind, "I64", **clause)
    shape = (1, model.DENSE, model.SLOTS, 10)
    sizes = [model.SIZE] * model.SLOTS
    found = []
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      for dataset in (
          data.norm_dataset(lists["Norm"], *shape, check="Sum"),
          data.raw_dataset(lists["Raw"], 25, *shape, float_label_dense=True,
                           slot_size_array=sizes),
          data.parquet_dataset(lists["Parquet"], *shape, slot_size_array=sizes)):
        batch = tf.compat.v1.data.make_one_shot_iterator(dataset).get_next()
        parts = []
        for _ in range(3):
          parts.append(session.run([batch["label"], batch["dense"],
                                    batch["keys"].to_tensor()]))
        with self.assertRaises(tf.errors.OutOfRangeError):
          session.run(batch["label"])
        self.assertEqual([len(p[0]) for p in parts], [10, 10, 5])
        found.append([np.concatenate(p) for p in zip(*parts)])
    for other in found[1:]:
      for one, two in zip(found[0], other):
        np.testing.assert_array_equal(one, two)
    labels, dense, keys = model.PLANTED.samples(25, 3000)
    np.testing.assert_array_equal(found[0][0][:, 0], labels)
    np.testing.assert_array_equal(found[0][1], dense)
    np.testing.assert_array_equal(found[0][2].reshape([25, -1]),
                                  keys + model.SIZE * np.arange(model.SLOTS))
    with self.assertRaisesRegex(AttributeError, "no attribute 'orc_dataset'"):
      data.orc_dataset  # pylint: disable=pointless-statement

  @parameterized.parameters(False, True)
  def test_rows_beyond_memory_train_to_the_same_bits(self, localized):
    configuration = model.configuration(self.folder, "Adam", "Global", localized)
    # A sixth of the rows.
    configuration["layers"][1]["sparse_embedding_hparam"]["max_vocabulary_size_per_gpu"] = 3
    folder = self.create_tempdir().full_path
    keyset = folder + "/keys"
    np.arange(model.SLOTS * model.SIZE + 5, dtype=np.uint32).tofile(keyset)
    metrics_found = []
    for name, solver in (("memory", {}), ("ssd", dict(use_model_oversubscriber=True,
                                                      temp_embedding_dir=folder))):
      session = self.session(configuration, **solver)
      session.start_data_reading()
      for step in range(8):
        if solver and step in (0, 4):
          session.get_model_oversubscriber().update([keyset, keyset] if step else keyset)
        session.train()
      metrics_found.append(session.evaluation())
      session.download_params_to_files("%s/%s" % (folder, name), 1)
    self.assertEqual(metrics_found[0], metrics_found[1])
    for end in ("_dense_1.model", "0_sparse_1.model", "0_opt_sparse_1.model"):
      with open(folder + "/memory" + end, "rb") as f, open(folder + "/ssd" + end, "rb") as g:
        self.assertEqual(f.read(), g.read(), end)
    in_memory, in_files = session.get_model_oversubscriber().rows()
    self.assertLessEqual(in_memory, 6)
    self.assertGreater(in_files, 10)
    with open(keyset, "ab") as f:
      f.write(b"x")
    with self.assertRaisesRegex(ValueError, "93 bytes are not a whole number of keys of 4"):
      session.get_model_oversubscriber().update(keyset)
    with self.assertRaises(OSError):
      session.get_model_oversubscriber().update(folder + "/no")

  def test_a_table_five_times_its_memory_trains_to_the_same_auc(self):
    folder = self.create_tempdir().full_path
    planted = testing.Planted([400] * model.SLOTS, model.DENSE)
    configuration = model.configuration(folder, "AdaGrad",
                                        slot_size_array=[400] * model.SLOTS)
    testing.write_parquet(folder + "/train", planted, 2, 3000, seed=1)
    testing.write_parquet(folder + "/val", planted, 1, 2000, seed=2)
    found = []
    for rows, solver in ((1200, {}), (240, dict(use_model_oversubscriber=True,
                                                temp_embedding_dir=folder))):
      hparam = configuration["layers"][1]["sparse_embedding_hparam"]
      hparam["max_vocabulary_size_per_gpu"] = rows
      session = self.session(configuration, batchsize=100, batchsize_eval=2000, **solver)
      session.start_data_reading()
      session.set_learning_rate(1.)
      for _ in range(120):
        session.train()
      found.append(session.evaluation())
    in_memory, in_files = session.get_model_oversubscriber().rows()
    self.assertLessEqual(in_memory, 300)
    self.assertGreater(in_files, 800)
    self.assertEqual(found[0], found[1])
    self.assertGreater(found[0][0][1], .75)

  def test_gpu_memory_above_cpu_memory_needs_a_gpu(self):
    if self.can_use_a_gpu():
      self.skipTest("there is one")
    with self.assertRaisesRegex(tf.errors.OpError, "rows.*(GPU|CUDA|driver)"):
      self.session(use_model_oversubscriber=True, oversubscription_storage="HBM_DRAM")

  @parameterized.parameters(False, True)
  def test_gpu_memory_above_cpu_memory_trains_to_the_same_bits(self, localized):
    if not self.can_use_a_gpu():
      self.skipTest("there is none; //tests/on_gpu runs this on the engine's test device")
    folder = self.create_tempdir().full_path
    planted = testing.Planted([200] * model.SLOTS, model.DENSE)
    configuration = model.configuration(
        folder, "Adam", "Global", localized, slot_size_array=[200] * model.SLOTS)
    hparam = configuration["layers"][1]["sparse_embedding_hparam"]
    hparam["max_vocabulary_size_per_gpu"] = 120
    for part in ("train", "val"):
      testing.write_parquet("%s/%s" % (folder, part), planted, 1, 2000, seed=1)
    found = []
    for name, solver in (("one", {}), ("two", dict(use_model_oversubscriber=True,
                                                   oversubscription_storage="HBM_DRAM"))):
      session = self.session(configuration, batchsize=50, **solver)
      session.start_data_reading()
      for _ in range(20):
        session.train()
      session.download_params_to_files(folder + "/" + name, 1)
      files = []
      for end in ("_dense_1.model", "0_sparse_1.model", "0_opt_sparse_1.model"):
        with open(folder + "/" + name + end, "rb") as f:
          files.append(f.read())
      found.append(files)
    self.assertEqual(found[0], found[1])
    on_gpu, below = session.get_model_oversubscriber().rows()
    # At least 64 rows of each table.
    self.assertBetween(on_gpu, 60, 192)
    self.assertGreater(below, 300)

  def test_damaged_data_leaves_the_model_as_it_is(self):
    folder = self.create_tempdir().full_path
    testing.write_parquet(folder + "/train", model.PLANTED, files=2, rows=20, seed=1)
    session = self.session(model.configuration(
        folder, eval_source=self.folder + "/val/_file_list.txt"))
    session.start_data_reading()
    session.train()
    before = session.evaluation()
    with open(folder + "/train/1.parquet", "r+b") as f:
      f.seek(4)
      f.write(b"\xff" * 400)
    with self.assertRaisesRegex(hugectr.DataError, "1.parquet: row group"):
      for _ in range(20):
        session.train()
        session.get_data_reader_train().restart()
        session.train()
        session.train()
    session.get_data_reader_eval().restart()
    self.assertIsNotNone(before)
    self.assertNotEmpty(session.evaluation())

  def test_wrong_evaluation_data_leaves_what_is_read_as_it_is(self):
    folder = self.create_tempdir().full_path
    testing.write_parquet(folder + "/val", model.PLANTED, files=1, rows=20, seed=2)
    session = self.session(model.configuration(
        self.folder, eval_source=folder + "/val/_file_list.txt"))
    with open(folder + "/val/_file_list.txt") as f:
      good = f.read()
    with open(folder + "/val/_file_list.txt", "w") as f:
      f.write("2\n0.parquet\n")
    with self.assertRaisesRegex(hugectr.DataError, "line 1 gives 2 files"):
      session.start_data_reading()
    with self.assertRaisesRegex(RuntimeError, "no data is being read"):
      session.train()
    with open(folder + "/val/_file_list.txt", "w") as f:
      f.write(good)
    session.start_data_reading()
    session.train()
    os.remove(folder + "/val/0.parquet")
    reader = session.get_data_reader_train()
    before = reader._reader  # pylint: disable=protected-access
    with self.assertRaisesRegex(hugectr.DataError, "there is no file"):
      session.start_data_reading()
    # Training continues where it was.
    self.assertIs(reader._reader, before)  # pylint: disable=protected-access
    self.assertTrue(session.train())

  def test_refuses_devices_without_processes(self):
    for vvgpu, command in (([[0, 1, 2, 3]], "-np 4 python"),
                           ([[0, 1], [5, 6]], "-np 4 -H HOST1:2,HOST2:2 python")):
      with self.assertRaisesRegex(
          RuntimeError, "vvgpu names 4 devices, but 1 process is running.*horovodrun " +
          command):
        self.session(vvgpu=vvgpu)

  @parameterized.parameters(
      (None, [[2]], "2"), ("4,5,6", [[2]], "6"), ("4, 5", [[0]], "4"), ("3", [[2]], "3"),
      ("", [[0]], ""), ("4,5", [[2]], "4,5"))
  def test_a_process_sees_the_device_that_it_trains_on(self, seen, vvgpu, expected):
    with mock.patch.dict(os.environ):
      os.environ.pop("CUDA_VISIBLE_DEVICES", None)
      if seen is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = seen
      self.session(vvgpu=vvgpu)
      self.assertEqual(os.environ["CUDA_VISIBLE_DEVICES"], expected)

  def test_trains_in_float16_on_a_gpu(self):
    losses = []
    for solver in ({}, {"use_mixed_precision": True, "scaler": 128}):
      # TensorFlow's CPU kernels support float16 too.
      with mock.patch.object(ranks, "has_gpu", return_value=bool(solver)):
        session = self.session(model.configuration(self.folder, "Adam"), **solver)
      session.start_data_reading()
      losses.append([session.train() and session.get_current_loss() for _ in range(20)])
    self.assertNotEqual(losses[0], losses[1])
    np.testing.assert_allclose(losses[0], losses[1], rtol=5e-3)
    prefix = self.create_tempdir().full_path + "/x"
    session.download_params_to_files(prefix, 1)
    self.assertEqual(os.path.getsize(prefix + "_dense_1.model"),
                     4 * (model.SLOTS * model.FLOATS + model.DENSE + 1))

  def test_float16_updates_tables_by_the_same_ops(self):
    """Checks for the ops that take pooled gradients, which need unmodified gradients."""
    found = []
    for mixed in (False, True):
      auto = tf.EmbeddingVariableOption(
          storage_option=tf.StorageOption(storage_type="auto"))
      with mock.patch.object(ranks, "has_gpu", return_value=True), mock.patch.object(
          tables, "_in_gpu_memory_if_any", return_value=auto):
        session = self.session(model.configuration(self.folder, "SGD"),
                               use_mixed_precision=mixed, scaler=1024)
      operations = session._session.graph.get_operations()
      found.append(collections.Counter(o.type for o in operations if o.type[:2] == "Ev"))
    self.assertEqual(found[0], found[1])
    self.assertEqual([t for t in found[0] if "Apply" in t], ["EvApplyPooled"])

  def test_float16_without_a_gpu_is_float32_and_said_once(self):
    with mock.patch.object(ranks, "_warned", set()), mock.patch.object(
        ranks, "has_gpu", return_value=False), mock.patch.object(
            ranks.tf.logging, "warning") as warning:
      losses = []
      for mixed in (True, True, False):
        session = self.session(use_mixed_precision=mixed, scaler=128)
        session.start_data_reading()
        losses.append([session.train() and session.get_current_loss() for _ in range(3)])
    self.assertEqual(losses[0], losses[2])
    said = [call[0][0] for call in warning.call_args_list]
    self.assertLen([s for s in said if "layers run in float32" in s], 1)

  def test_a_scaler_keeps_small_gradients_of_float16(self):
    prefix = self.create_tempdir().full_path + "/x"
    rows, weight, bias = model.write_start(False, prefix)
    # A row's gradient is its sample's times the weight: too small for float16.
    weight = weight * np.float32(2e-6)
    with open(prefix + "dense", "wb") as f:
      f.write(weight.tobytes() + bias.tobytes())
    labels, dense, keys = self.samples("train")
    oracle = model.Oracle("SGD", "Local", rows, weight, bias)
    oracle.train(labels[:20], dense[:20], keys[:20], 1e6, 20)
    right = oracle.values["rows"] - rows
    errors = []
    for scaler in (1, 1024):
      with mock.patch.object(ranks, "has_gpu", return_value=True):
        session = self.session(
            model.configuration(self.folder, "SGD"), use_mixed_precision=True,
            scaler=scaler, model_file=prefix + "dense", embedding_files=[prefix + "rows"])
      session.start_data_reading()
      session.set_learning_rate(1e6)
      session.train()
      session.download_params_to_files(prefix, 1)
      moved = model.read_rows(prefix + "0_sparse_1.model", False)["row"] - rows
      errors.append(np.abs(moved - right).max() / np.abs(right).max())
    self.assertGreater(errors[0], .1)
    self.assertLess(errors[1], .01)

  def test_refuses_an_oversubscriber_that_was_not_asked_for(self):
    with self.assertRaisesRegex(RuntimeError, "made with use_model_oversubscriber=False"):
      self.session().get_model_oversubscriber()

  def test_refuses_wrong_arguments(self):
    session = self.session(use_mixed_precision=True, scaler=128)
    for rate in (-1, "a", float("nan"), True):
      with self.assertRaisesRegex(ValueError, "set_learning_rate: expected a number"):
        session.set_learning_rate(rate)
    for number in (0, -1, 1.5, True):
      with self.assertRaisesRegex(ValueError, "iter: expected an integer of at least 1"):
        session.download_params_to_files("x", number)
    with self.assertRaisesRegex(ValueError, "sparse_format: expected"):
      session.download_params_to_files("x", 1, sparse_format="tar")
    self.assertTrue(np.isnan(session.get_current_loss()))
    with self.assertRaisesRegex(TypeError, "solver_config: expected what"):
      hugectr.Session({}, "x")

  def test_without_evaluation_data(self):
    configuration = model.configuration(self.folder)
    del configuration["layers"][0]["eval_source"]
    session = self.session(configuration)
    session.start_data_reading()
    self.assertTrue(session.eval())
    self.assertEqual(session.evaluation(), [])
    with self.assertRaisesRegex(ValueError, "names no file list for evaluation"):
      session.get_data_reader_eval().set_source()


if __name__ == "__main__":
  absltest.main()
