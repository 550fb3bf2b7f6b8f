# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Rows that training sends to Kafka are served; with librdkafka's mock brokers."""

import ctypes
import time
from unittest import mock

from absl.testing import absltest
import numpy as np
import tensorflow as tf

import hierarchical_parameter_server as hps
import hugectr
from hugectr.api import small_scripts
from hugectr.inference import HPS
from hugectr.inference import InferenceParams
from hugectr.inference import ParameterServerConfig
from hugectr.inference import UpdateSourceParams
from hugectr.inference import VolatileDatabaseParams
from hugectr.training import ranks as rank_jobs

_TOPIC = b"hps_et.ctr.rows"


class _Brokers(object):
  """A cluster of one mock broker in this process."""

  def __init__(self):
    try:
      self._library = ctypes.CDLL("librdkafka.so.1")
      new = self._library.rd_kafka_mock_cluster_new
    except (OSError, AttributeError) as e:
      raise absltest.SkipTest("librdkafka with mock brokers is not installed: %s" % e)
    for function in (self._library.rd_kafka_new, self._library.rd_kafka_conf_new, new):
      function.restype = ctypes.c_void_p
    self._library.rd_kafka_mock_cluster_bootstraps.restype = ctypes.c_char_p
    text = ctypes.create_string_buffer(512)
    conf = ctypes.c_void_p(self._library.rd_kafka_conf_new())
    self._client = ctypes.c_void_p(self._library.rd_kafka_new(0, conf, text, 512))
    self._cluster = ctypes.c_void_p(new(self._client, 1))
    self._library.rd_kafka_mock_topic_create(self._cluster, _TOPIC, 4, 1)
    self.names = self._library.rd_kafka_mock_cluster_bootstraps(self._cluster).decode()

  def close(self):
    self._library.rd_kafka_mock_cluster_destroy(self._cluster)
    self._library.rd_kafka_destroy(self._client)


class UpdatesTest(absltest.TestCase):

  def setUp(self):
    super().setUp()
    self.folder = self.create_tempdir().full_path
    small_scripts.write_norm(self.folder)
    source = self.folder + "/train/_file_list.txt"
    np.arange(small_scripts.SLOTS * small_scripts.SIZE, dtype=np.uint32).tofile(
        self.folder + "/keys")
    self.reader = dict(source=[source], keyset=[self.folder + "/keys"])

  def model(self, kind=hugectr.Embedding_t.DistributedSlotSparseEmbeddingHash, **solver):
    """Returns a compiled model with an embedding training cache."""
    etc = hugectr.CreateETC([hugectr.TrainPSType_t.Cached], [self.folder + "/rows"],
                            [self.folder + "/ssd"])
    model = hugectr.Model(
        small_scripts.solver(repeat_dataset=False, **solver),
        small_scripts.reader(self.folder, **self.reader),
        hugectr.CreateOptimizer(update_type=hugectr.Update_t.Local), etc)
    self.addCleanup(model.close)
    small_scripts.add_inputs(model, embedding_type=kind)
    small_scripts.add_dcn(model)
    model.compile()
    model.start_data_reading()
    return model

  def test_trained_rows_are_served(self):
    brokers = _Brokers()
    self.addCleanup(brokers.close)
    model = self.model(kafka_brockers=brokers.names, model_name="ctr")
    model.train()
    model.save_params_to_files(self.folder + "/m")
    params = InferenceParams("ctr", 40, 1.0, self.folder + "/m_dense_0.model",
                             [self.folder + "/rows"])
    server = HPS(ParameterServerConfig(
        {"ctr": ["rows"]}, {"ctr": [4]}, {"ctr": [small_scripts.SLOTS]}, [params],
        VolatileDatabaseParams(hugectr.DatabaseType_t.ParallelHashMap),
        update_source=UpdateSourceParams(hugectr.UpdateSourceType_t.KafkaMessageQueue,
                                         brokers=brokers.names, poll_timeout_ms=20)))
    self.addCleanup(server.close)
    for _ in range(2):
      model.train()
      with mock.patch.object(model._session, "forget_trained_rows"):  # pylint: disable=protected-access
        (keys, rows), = model.get_incremental_model()
      self.assertNotEmpty(keys)
      model.dump_incremental_model_2kafka()
      until = time.time() + 30
      while not np.array_equal(server.lookup(keys, "ctr", 0), rows):
        self.assertLess(time.time(), until, hps.metrics())
        time.sleep(.05)
      self.assertEmpty(model.get_incremental_model()[0][0])

  def test_after_an_error_rows_are_sent_again(self):
    model = self.model(kafka_brockers="host:9092", model_name="ctr")
    model.train()
    error = tf.errors.InternalError(None, None, "brokers host:9092: timed out")
    with mock.patch.object(hps, "Producer", side_effect=error):
      with self.assertRaisesRegex(tf.errors.InternalError, "timed out"):
        model.dump_incremental_model_2kafka()
    with mock.patch.object(rank_jobs, "of_rank_0", return_value=1):
      with mock.patch.object(hps, "Producer"):
        with self.assertRaisesRegex(RuntimeError, "rank 0 could not send the rows"):
          model.dump_incremental_model_2kafka()
    with mock.patch.object(hps, "Producer") as producer:
      model.dump_incremental_model_2kafka()
    producer.assert_called_once_with(brokers="host:9092")
    (name, table, keys, rows), = [
        c[0] for c in producer.return_value.__enter__.return_value.send.call_args_list]
    self.assertEqual((name, table, rows.shape), ("ctr", "rows", (len(keys), 4)))
    self.assertNotEmpty(keys)
    self.assertEmpty(model.get_incremental_model()[0][0])

  def test_wrong_use(self):
    where = "dump_incremental_model_2kafka: "
    with self.assertRaisesRegex(ValueError, where + "expected kafka_brockers in CreateSolver"):
      self.model().dump_incremental_model_2kafka()
    with self.assertRaisesRegex(ValueError, where + "expected model_name in CreateSolver"):
      self.model(kafka_brockers="host:9092").dump_incremental_model_2kafka()
    plain = small_scripts.dcn(self.folder, kafka_brockers="host:9092", model_name="ctr")
    self.addCleanup(plain.close)
    plain.compile()
    with self.assertRaisesRegex(RuntimeError, "made without etc_params"):
      plain.dump_incremental_model_2kafka()

  def test_a_key_of_several_slots_is_an_error(self):
    model = self.model(hugectr.Embedding_t.LocalizedSlotSparseEmbeddingHash,
                       kafka_brockers="host:9092", model_name="ctr")
    rows = np.zeros([3, 4], np.float32)
    with mock.patch.object(model._session, "trained_rows",  # pylint: disable=protected-access
                           return_value=[(np.array([2, 7, 2]), rows)]):
      with mock.patch.object(hps, "Producer") as producer:
        with self.assertRaisesRegex(ValueError, "embedding 'rows': key 2 has rows in several "
                                    "slots"):
          model.dump_incremental_model_2kafka()
    producer.assert_not_called()


if __name__ == "__main__":
  absltest.main()
