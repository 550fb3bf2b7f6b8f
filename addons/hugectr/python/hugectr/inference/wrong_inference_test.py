# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Wrong use of hugectr.inference: errors say what was expected, and change nothing."""

import json
import os
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

import hierarchical_parameter_server as hps
import hugectr
from hugectr import inference
from hugectr.api import small_scripts
from hugectr.inference import updates


class WrongInferenceTest(parameterized.TestCase):

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls.folder = absltest.get_default_test_tmpdir() + "/wrong_inference_test"
    small_scripts.write_norm(cls.folder)
    model = small_scripts.dcn(cls.folder)
    cls.graph = cls.folder + "/graph.json"
    model.graph_to_json(cls.graph)
    model.compile()
    model.fit(max_iter=4, display=0, eval_interval=0, snapshot=4,
              snapshot_prefix=cls.folder + "/m")
    model.close()

  def params(self, **arguments):
    values = dict(model_name="ctr", max_batchsize=40,
                  dense_model_file=self.folder + "/m_dense_4.model",
                  sparse_model_files=[self.folder + "/m0_sparse_4.model"])
    values.update(arguments)
    return inference.InferenceParams(**values)

  @parameterized.parameters(
      ({"model_name": "a b"}, ValueError, "model_name: expected 1 to 120 letters"),
      ({"max_batchsize": 0}, ValueError, "max_batchsize: expected an integer of at least 1"),
      ({"hit_rate_threshold": 2}, ValueError, r"hit_rate_threshold: expected .* \[0, 1\]"),
      ({"sparse_model_files": [3]}, TypeError, "sparse_model_files: expected a path or a list"),
      ({"max_batch_size": 3}, TypeError, "unknown arguments max_batch_size"),
      ({"volatile_db": {}}, TypeError, "volatile_db: expected a .*VolatileDatabaseParams"))
  def test_params(self, arguments, kind, text):
    with self.assertRaisesRegex(kind, "InferenceParams: " + text):
      self.params(**arguments)

  def test_two_embeddings_with_one_name_in_the_server(self):
    rows = np.array([2, 7]), np.zeros([2, 4], np.float32)
    tables = [("a b",) + rows, ("a_b",) + rows]
    with mock.patch.object(hps, "Producer") as producer:
      with self.assertRaisesRegex(ValueError, "f: the embeddings 'a b' and 'a_b' would"):
        updates.send("f", "host:9092", "ctr", tables)
      producer.assert_not_called()
      updates.send("f", "host:9092", "ctr", tables[:1])
      sent = producer.return_value.__enter__.return_value.send.call_args[0]
    self.assertEqual(("ctr", "a_b"), sent[:2])

  def test_databases(self):
    with self.assertRaisesRegex(TypeError, "unknown arguments adress; it takes type, address"):
      inference.VolatileDatabaseParams(adress="localhost:1")
    with self.assertRaisesRegex(TypeError, "expected one of Disabled, RocksDB, got .*HashMap"):
      inference.PersistentDatabaseParams(hugectr.DatabaseType_t.HashMap)
    with self.assertRaisesRegex(TypeError, "type: expected a member of .*UpdateSourceType_t"):
      inference.UpdateSourceParams("kafka")
    with self.assertRaisesRegex(ValueError, "emb_table_name: expected 1 values for model 'ctr'"):
      inference.ParameterServerConfig({}, {"ctr": [4]}, {"ctr": [4]}, [self.params()])
    with self.assertRaisesRegex(TypeError, "path of a JSON or a ParameterServerConfig, got 3"):
      inference.HPS(3)

  @parameterized.parameters(
      ({"sparse_model_files": []}, ValueError, r"expected 1 files, one per embedding \(rows\)"),
      ({"dense_model_file": "%s/m0_sparse_4.model/key"}, ValueError,
       "bytes, but the model's dense parameters have"),
      ({"dense_model_file": "%s/none"}, OSError, "none"),
      ({"sparse_model_files": ["%s/none"]}, OSError, "none"),
      ({"sparse_model_files": ["%s/wide"]}, ValueError,
       "embedding 'rows' has rows of 4 floats, expected 32 bytes in emb_vector"),
      ({"sparse_model_files": ["%s/empty"]}, ValueError, "'rows' has no rows: train first"),
      ({"default_value_for_each_table": [1., 2.]}, ValueError,
       r"default_value_for_each_table: expected 1 values, one per table \(rows\), got 2"),
      ({"embedding_vecsize_per_table": [8]}, ValueError,
       "table 'rows' has rows of 4 in the JSON, got 8"),
      ({"embedding_cache_type": "big"}, tf.errors.InvalidArgumentError,
       "embedding_cache_type"))
  def test_files(self, arguments, kind, text):
    for name, keys, floats in (("wide", 2, 16), ("empty", 0, 0)):
      os.makedirs("%s/%s" % (self.folder, name), exist_ok=True)
      np.arange(keys).tofile("%s/%s/key" % (self.folder, name))
      np.zeros(floats, np.float32).tofile("%s/%s/emb_vector" % (self.folder, name))

    def filled(value):
      if isinstance(value, list):
        return [filled(v) for v in value]
      return value % self.folder if isinstance(value, str) and "%" in value else value

    with self.assertRaisesRegex(kind, text):
      inference.InferenceModel(self.graph, self.params(
          **{k: filled(v) for k, v in arguments.items()}))
    # Nothing is served.
    with self.assertRaises(tf.errors.FailedPreconditionError):
      hps.metrics()

  def test_the_json(self):
    path = self.folder + "/other.json"
    for content, text in (([], r"expected {\"layers\": \[...\]} whose first layer is of type"),
                          ({"layers": [{"type": "ReLU"}]}, "whose first layer is of type Data"),
                          ({"layers": [{"type": "Data"}]}, "expected a list of at least 2")):
      with open(path, "w") as f:
        json.dump(content, f)
      with self.assertRaisesRegex(hugectr.ConfigError, text):
        inference.InferenceModel(path, self.params())
    with self.assertRaisesRegex(TypeError, "inference_params: expected an InferenceParams"):
      inference.InferenceModel(self.graph, {})

  def test_predictions(self):
    model = inference.CreateInferenceSession(self.graph, self.params())
    self.addCleanup(model.close)
    with self.assertRaisesRegex(RuntimeError, "nothing has been predicted"):
      model.check_out_tensor("rows")
    norm, check = hugectr.DataReaderType_t.Norm, hugectr.Check_t.Sum
    data = self.folder + "/val/_file_list.txt"
    for arguments, kind, text in (
        ((0, data, norm, check), ValueError, "num_batches: expected an integer of at least 1"),
        ((1, "", norm, check), ValueError, "source: expected a path, got ''"),
        ((1, data, "Norm", check), TypeError, "data_reader_type: expected a member"),
        ((1, data, norm, None), TypeError, "check_type: expected a member"),
        ((1, self.folder + "/none", norm, check), hugectr.DataError, "none"),
        ((1, data, norm, hugectr.Check_t.Non), hugectr.DataError, "check")):
      with self.assertRaisesRegex(kind, text):
        model.predict(*arguments)
    dense, keys, ends = [0.] * 3, [1, 2, 3, 4], [0, 1, 2, 3, 4]
    for arguments, text in (
        ((dense[1:], keys, ends), r"dense: expected 3 numbers for 1 samples \(dense_dim 3, "
         r"4 slots of 'rows'\), got 2"),
        ((dense, keys, ends[1:]), "for 0 samples"),
        ((dense, keys, ends + [4]), "row_ptrs: expected 5 numbers for 1 samples"),
        ((dense, keys[1:], ends), "row_ptrs of 'rows' must rise from 0 to at most 3 keys"),
        ((dense, keys, [0, 2, 1, 3, 4]), "must rise from 0"),
        ((dense, keys, [1, 1, 2, 3, 4]), "must rise from 0 to at most 4 keys, got 1 to 4"),
        ((dense, keys + [5], ends), "keys: expected 4, the number of row_ptrs, got 5"),
        ((dense, [.5] * 4, ends), "keys: expected integers, got float64"),
        ((dense * 41, keys * 41, list(range(4 * 41 + 1))), "at most max_batchsize, 40 "
         "samples, got 41")):
      with self.assertRaisesRegex(ValueError, text):
        model.predict(*arguments)
    self.assertLen(model.predict(dense, keys, ends), 1)
    with self.assertRaisesRegex(ValueError, "there is no tensor 'x'; tensors are both"):
      model.check_out_tensor("x")
    with self.assertRaisesRegex(ValueError, "tensor_type: expected Tensor_t.Evaluate"):
      model.check_out_tensor("rows", hugectr.Tensor_t.Train)


if __name__ == "__main__":
  absltest.main()
