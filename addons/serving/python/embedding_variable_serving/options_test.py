# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""A server with batching, TLS, metrics and recorded warm-up requests."""

from concurrent import futures
import os
import shutil
import subprocess
import time
import unittest
from unittest import mock

from absl.testing import absltest
import grpc
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2
from tensorflow_serving.apis import prediction_log_pb2
from tensorflow_serving.apis import prediction_service_pb2_grpc

from embedding_variable_serving import config_files
from embedding_variable_serving import errors
from embedding_variable_serving import flags
from embedding_variable_serving import main
from embedding_variable_serving import testing
from embedding_variable_serving.inference import recording
from embedding_variable_serving.models import manager


def _request(ids):
  request = predict_pb2.PredictRequest()
  request.model_spec.name = "default"
  request.inputs["ids"].CopyFrom(tf.compat.v1.make_tensor_proto(ids, tf.int64))
  return request


def _write(name, text):
  path = os.path.join(testing.folder(), name)
  with open(path, "w") as f:
    f.write(text)
  return path


def _record_warmup(version, *requests):
  folder = os.path.join(version, "assets.extra")
  os.mkdir(folder)
  path = os.path.join(folder, "tf_serving_warmup_requests")
  with tf.io.TFRecordWriter(path) as writer:
    for request in requests:
      log = prediction_log_pb2.PredictionLog()
      log.predict_log.request.CopyFrom(request)
      writer.write(log.SerializeToString())


def _certificate():
  """Returns (key, certificate) of localhost as PEM texts."""
  folder = testing.folder()
  key, certificate = os.path.join(folder, "key"), os.path.join(folder, "certificate")
  subprocess.check_output(
      ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
       "/CN=localhost", "-keyout", key, "-out", certificate], stderr=subprocess.STDOUT)
  with open(key) as f, open(certificate) as g:
    return f.read(), g.read()


class OptionsTest(absltest.TestCase):

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    if shutil.which("openssl") is None:
      raise unittest.SkipTest("openssl is not installed")
    cls.folder = testing.folder()
    _record_warmup(testing.write_model(cls.folder, 1), _request([1]), _request([1, 2]))
    cls.key, cls.certificate = _certificate()
    cls.server = testing.start(
        cls.folder, "--enable_batching", "--tensorflow_inter_op_parallelism=1",
        "--batching_parameters_file=" + _write("batching", """
            max_batch_size { value: 4 } batch_timeout_micros { value: 20000 }"""),
        "--monitoring_config_file=" + _write(
            "monitoring", 'prometheus_config { enable: true path: "/metrics" }'),
        "--ssl_config_file=" + _write("ssl", "server_key: %s server_cert: %s" % (
            cls.quoted(cls.key), cls.quoted(cls.certificate))),
        "--tensorflow_session_config_file=" + _write("session", "use_per_session_threads: true"))
    assert cls.server.manager.wait(["default"], 60)
    cls.channel = grpc.secure_channel(
        "localhost:%d" % cls.server.grpc_port,
        grpc.ssl_channel_credentials(cls.certificate.encode()))
    cls.stub = prediction_service_pb2_grpc.PredictionServiceStub(cls.channel)

  @classmethod
  def tearDownClass(cls):
    cls.channel.close()
    cls.server.stop(5)
    super().tearDownClass()

  @staticmethod
  def quoted(text):
    return '"%s"' % text.replace("\n", "\\n")

  def scores(self, ids):
    return tf.make_ndarray(self.stub.Predict(_request(ids), timeout=30).outputs["score"]).tolist()

  def test_batches_over_tls(self):
    with futures.ThreadPoolExecutor(4) as threads:
      found = [threads.submit(self.scores, [key, 77]) for key in (1, 2, -3, 5)]
      self.assertEqual([f.result() for f in found], [[8, 0], [12, 0], [-8, 0], [0, 0]])
    with self.assertRaises(grpc.RpcError) as caught:
      self.scores([1] * 5)
    self.assertRegex(caught.exception.details(), "5 rows, more than max_batch_size 4")
    self.assertEqual(self.scores([1]), [8])

  def test_a_version_has_parameters_of_its_own(self):
    folder = testing.folder()

    def publish(number, text):
      version = testing.write_model(testing.folder(), number)
      if text is not None:
        with open(os.path.join(version, "batching_params.pbtxt"), "w") as f:
          f.write(text)
      shutil.move(version, os.path.join(folder, str(number)))

    publish(1, "max_batch_size { value: 2 } num_batch_threads { value: 1 }")
    server = testing.start(folder, "--enable_batching", "--max_num_load_retries=0",
                           "--enable_per_model_batching_parameters")
    self.addCleanup(server.stop, 1)
    self.assertTrue(server.manager.wait(["default"], 60))
    path, three = "/v1/models/default:predict", {"instances": [1, 1, 1]}
    status, answer = testing.http(server, path, three)
    self.assertEqual(status, 400)
    self.assertRegex(answer["error"], "3 rows, more than max_batch_size 2")
    self.assertEqual(testing.http(server, path, {"instances": [1, 1]})[0], 200)
    publish(2, "max_batch_size { value: 0 }")
    publish(3, "not text")
    while len(server.manager.status("default")) < 3 or [
        state for number, state, _ in server.manager.status("default") if number > 1] != [
            manager.END] * 2:
      time.sleep(.05)
    self.assertEqual(testing.http(server, path, three)[0], 400)  # version 1 serves on
    publish(4, None)
    while testing.http(server, path, three)[0] != 200:
      time.sleep(.05)

  def test_recorded_requests_warm_up_a_version(self):
    folder, records = testing.folder(), os.path.join(testing.folder(), "records")
    testing.write_model(folder, 1)
    server = testing.start(folder, "--enable_batching", "--record_requests_folder=" + records,
                           "--record_requests=3")
    self.addCleanup(server.stop, 1)
    self.assertTrue(server.manager.wait(["default"], 60))
    path, file = "/v1/models/default:predict", os.path.join(
        records, "default", "tf_serving_warmup_requests")
    self.assertEqual(testing.http(server, path, {"instances": [7]})[0], 200)
    server.recorder.start()
    for ids in ([1], ["x"], [1, 2], [-3], [5]):
      testing.http(server, path, {"instances": ids})
    found = []
    for record in tf.compat.v1.io.tf_record_iterator(file):
      request = prediction_log_pb2.PredictionLog.FromString(record).predict_log.request
      found.append(tf.make_ndarray(request.inputs["ids"]).tolist())
    self.assertEqual(found, [[1], [1, 2], [-3]])  # a refused request is not recorded
    self.assertEqual(os.stat(file).st_mode & 0o777, 0o600)
    version = testing.write_model(testing.folder(), 2)
    os.mkdir(os.path.join(version, "assets.extra"))
    shutil.copy(file, os.path.join(version, "assets.extra"))
    shutil.move(version, os.path.join(folder, "2"))
    while server.manager.status("default")[0][:2] != (2, manager.AVAILABLE):
      time.sleep(.05)
    self.assertEqual(testing.http(server, path, {"instances": [1]}),
                     (200, {"predictions": [8]}))

  def test_records_of_each_name_have_a_folder_of_their_own(self):
    folder = testing.folder()
    recorder = recording.Recorder(folder, 1)
    recorder.start()
    signature = mock.Mock(outputs={}, inputs={})
    signature.name = "s"
    for name in ("a/b", "a_b", "..", "."):
      recorder.add(name, signature, {}, [])
    self.assertEqual(sorted(os.listdir(folder)), ["%2E", "%2E%2E", "a%2Fb", "a_b"])

  def test_a_client_without_tls_is_refused(self):
    with grpc.insecure_channel("localhost:%d" % self.server.grpc_port) as channel:
      stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
      with self.assertRaises(grpc.RpcError) as caught:
        stub.Predict(_request([1]), timeout=10)
    self.assertEqual(caught.exception.code().name, "UNAVAILABLE")
    self.assertEqual(self.scores([1]), [8])

  def test_metrics(self):
    self.scores([1])
    for _ in range(2):
      testing.http(self.server, "/v1/models/invented:predict", {"instances": [1]})
    status, text = testing.http(self.server, "/metrics")
    self.assertEqual(status, 200)
    self.assertRegex(text, r':tensorflow:serving:request_count{model_name="default",'
                     r'status="OK",version="1"} \d')
    self.assertRegex(text, r':tensorflow:serving:request_latency_bucket{model_name="default",'
                     r'API="Predict",entrypoint="GRPC",version="1",le="\+Inf"} \d')
    labels = 'model_name="default",version="1"'
    batching = ":tensorflow:serving:batching_session:"
    self.assertRegex(text, ':tensorflow:serving:runtime_latency_count{model_name="default",'
                     'runtime="TF1",version="1"} [1-9]')
    self.assertRegex(text, batching + 'wrapped_run_count{%s} [1-9]' % labels)
    for name in ("queuing_latency", "input_batch_size", "processed_batch_size",
                 "padding_size"):
      self.assertRegex(text, batching + name + '_count{%s} [1-9]' % labels)
    # All requests of this test have one row.
    self.assertRegex(text, batching + r'input_batch_size_bucket{%s,le="1"} [1-9]' % labels)
    self.assertIn(':tensorflow:cc:saved_model:load_attempt_count{model_path="%s/1",'
                  'status="success"} 1' % self.folder, text)
    self.assertIn('status="NOT_FOUND"', text)
    self.assertNotIn("invented", text)

  def test_a_failing_warmup_request_fails_the_load(self):
    folder = testing.folder()
    wrong = _request([1])
    wrong.inputs["other"].CopyFrom(wrong.inputs["ids"])
    _record_warmup(testing.write_model(folder, 1), wrong)
    server = testing.start(folder, "--max_num_load_retries=0")
    self.addCleanup(server.stop, 1)
    self.assertFalse(server.manager.wait(["default"], 60))
    self.assertFalse(server.manager.is_ready())
    status, answer = testing.http(server, "/v1/models/default")
    self.assertEqual((status, answer["model_version_status"][0]["state"]), (200, "END"))
    self.assertRegex(answer["model_version_status"][0]["status"]["error_message"],
                     "warm-up by .*not in the signature \\[other\\]")

  def test_wrong_files(self):
    for flag, text, message in (
        ("--ssl_config_file", "server_key: 'a'", "server_cert is missing"),
        ("--tensorflow_session_config_file", "no_such_field: 1", "no_such_field"),
        ("--model_config_file", "custom_model_config {}", "model_config_list")):
      argv = ["--port=0", "%s=%s" % (flag, _write("file", text))]
      if "model" not in flag:
        argv.append(self.folder)
      with self.assertRaisesRegex(errors.ServingError, message):
        main.ModelServer(flags.parse(argv))
    with self.assertRaisesRegex(errors.ServingError, "No such file"):
      config_files.read("missing", tf.compat.v1.ConfigProto)


if __name__ == "__main__":
  absltest.main()
