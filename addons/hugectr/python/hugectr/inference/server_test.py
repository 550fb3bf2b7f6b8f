# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Models in the process's parameter server: names, settings, the end, and HPS."""

import json
import sys
from unittest import mock

from absl.testing import absltest
import numpy as np
import tensorflow as tf

import hierarchical_parameter_server as hps
import hugectr
from hugectr.api import printing
from hugectr.api import small_scripts
from hugectr.inference import InferenceModel
from hugectr.inference import InferenceParams
from hugectr.inference import VolatileDatabaseParams


class ServerTest(absltest.TestCase):

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls.folder = absltest.get_default_test_tmpdir() + "/server_test"
    small_scripts.write_norm(cls.folder)
    model = small_scripts.dcn(cls.folder)
    model.graph_to_json(cls.folder + "/graph.json")
    model.compile()
    model.fit(max_iter=8, display=0, eval_interval=0, snapshot=8,
              snapshot_prefix=cls.folder + "/m")
    model.close()
    cls.rows = cls.folder + "/m0_sparse_8.model"

  def setUp(self):
    super().setUp()
    self.enter_context(mock.patch.object(printing, "_reported", set()))

  def params(self, name="ctr", **arguments):
    return InferenceParams(name, 40, 1.0, self.folder + "/m_dense_8.model", [self.rows],
                           **arguments)

  def model(self, *args, **arguments):
    found = InferenceModel(self.folder + "/graph.json", self.params(*args, **arguments))
    self.addCleanup(found.close)
    return found

  def names(self):
    return [m["model"] for m in hps.metrics()["models"]]

  def assert_stopped(self):
    with self.assertRaises(tf.errors.FailedPreconditionError):
      hps.metrics()

  def predict(self, model):
    return model.predict(1, self.folder + "/val/_file_list.txt",
                         hugectr.DataReaderType_t.Norm, hugectr.Check_t.Sum)

  def test_models_come_and_go(self):
    first = self.model()
    second = self.model()
    third = self.model("other")
    self.assertCountEqual(self.names(), ["ctr", "ctr_2", "other"])
    expected = self.predict(first)
    np.testing.assert_array_equal(self.predict(second), expected)
    tables = {m["model"]: m["tables"] for m in hps.metrics()["models"]}
    self.assertGreater(tables["ctr"][0]["keys"], 10)
    self.assertEqual(tables["ctr"][0]["defaults"], 0)
    first.close()
    first.close()
    self.assertCountEqual(self.names(), ["ctr_2", "other"])
    np.testing.assert_array_equal(self.predict(second), expected)
    second.close()
    third.close()
    self.assert_stopped()

  def test_a_forgotten_model_is_removed(self):
    model = InferenceModel(self.folder + "/graph.json", self.params())
    self.predict(model)
    del model
    self.assert_stopped()

  def test_a_server_of_the_script_stays(self):
    path = self.create_tempdir().full_path + "/ps.json"
    with open(path, "w") as f:
      json.dump({"models": [{
          "model": "own", "sparse_files": [self.rows], "embedding_vecsize_per_table": [4],
          "maxnum_catfeature_query_per_table_per_sample": [4],
          "default_value_for_each_table": [0.0], "deployed_device_list": [0]}],
                 "supportlonglong": True}, f)
    hps.start(path)
    self.addCleanup(hps.stop)
    with mock.patch.object(printing, "line") as line:
      model = self.model(volatile_db=VolatileDatabaseParams(num_partitions=4))
    self.assertIn("its databases are used, and volatile_db is not", line.call_args[0][0])
    self.assertCountEqual(self.names(), ["own", "ctr"])
    self.predict(model)
    model.close()
    self.assertEqual(self.names(), ["own"])

  def test_the_default_value_is_read_without_a_row(self):
    session = hugectr.inference.CreateInferenceSession(
        self.folder + "/graph.json", self.params(default_value_for_each_table=[2.5]))
    self.addCleanup(session.close)
    session.predict([0.] * 3, [10 ** 6] * 4, [0, 1, 2, 3, 4])
    np.testing.assert_array_equal(session.check_out_tensor("rows"), np.full([1, 4, 4], 2.5))

  def test_settings_reach_the_server(self):
    section = VolatileDatabaseParams(
        type=hugectr.DatabaseType_t.HashMap, max_batch_size=100,
        overflow_policy=hugectr.DatabaseOverflowPolicy_t.EvictOldest)
    params = self.params(volatile_db=section, number_of_worker_buffers_in_pool=3,
                         refresh_interval=2.0, cache_size_percentage=.5)
    self.assertEqual(params.databases, {"volatile_db": {
        "type": "hash_map", "max_batch_size": 100, "overflow_policy": "evict_oldest"}})
    clause = params.clause("ctr", ["f"], ["t"], [4], [2])
    self.assertEqual([clause[k] for k in ("num_of_worker_buffer_in_pool", "refresh_interval",
                                          "gpucacheper", "max_batch_size")], [3, 2.0, .5, 40])
    self.assertNotIn("gpucacheper", self.params(use_gpu_embedding_cache=False).clause(
        "ctr", ["f"], ["t"], [4], [2]))
    model = self.model(volatile_db=section)
    self.predict(model)

  def test_what_has_no_effect_is_reported_once(self):
    with mock.patch.object(printing, "line") as line:
      for _ in "ab":
        self.params(use_cuda_graph=False, slot_num=26, label_dim=1, deployed_devices=[0])
    self.assertEqual([call[0][0] for call in line.call_args_list],
                     ["hugectr.inference.InferenceParams: slot_num has no effect",
                      "hugectr.inference.InferenceParams: use_cuda_graph has no effect"])

  def test_hps_looks_rows_up(self):
    keys = np.fromfile(self.rows + "/key", np.int64)
    rows = np.fromfile(self.rows + "/emb_vector", np.float32).reshape([-1, 4])
    config = hugectr.inference.ParameterServerConfig(
        {"ctr": ["rows"]}, {"ctr": [4]}, {"ctr": [4]}, [self.params()])
    path = self.create_tempdir().full_path + "/ps.json"
    with open(path, "w") as f:
      json.dump(config.configuration(), f)
    for given in (config, path):
      server = hugectr.inference.HPS(given)
      found = server.lookup(keys[:7].tolist() + [10 ** 6], "ctr", 0)
      np.testing.assert_array_equal(found[:7], rows[:7])
      np.testing.assert_array_equal(found[7], np.zeros([4]))
      self.assertEqual(server.lookup([], "ctr", 0, 0).shape, (0, 4))
      with self.assertRaisesRegex(ValueError, "no table 1 of model 'ctr'.*{\"ctr\": 1}"):
        server.lookup([1], "ctr", 1)
      with self.assertRaisesRegex(ValueError, r"vector of integers, got float64"):
        server.lookup([1.5], "ctr", 0)
      server.close()
      self.assert_stopped()

  def test_without_the_wheel(self):
    with mock.patch.dict(sys.modules, {"hierarchical_parameter_server": None}):
      for call in (lambda: InferenceModel(self.folder + "/graph.json", self.params()),
                   lambda: hugectr.inference.HPS("ps.json")):
        with self.assertRaisesRegex(ImportError, "pip install sok-stock-tf-hps"):
          call()


if __name__ == "__main__":
  absltest.main()
