# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Models, versions, labels, status, metadata, Classify and Regress, over both interfaces."""

import os
import time
from unittest import mock

from absl.testing import absltest
import grpc
import tensorflow as tf
from tensorflow_serving.apis import classification_pb2
from tensorflow_serving.apis import get_model_metadata_pb2
from tensorflow_serving.apis import get_model_status_pb2
from tensorflow_serving.apis import inference_pb2
from tensorflow_serving.apis import model_management_pb2
from tensorflow_serving.apis import model_service_pb2_grpc
from tensorflow_serving.apis import prediction_service_pb2_grpc
from tensorflow_serving.apis import regression_pb2

from embedding_variable_serving import messages
from embedding_variable_serving import testing
from embedding_variable_serving.fronts import health

_CONFIG = """
model_config_list {
  config { name: "m" base_path: "%s" model_platform: "tensorflow"
           model_version_policy { all {} } }
  config { name: "examples" base_path: "%s" }
}
"""
_PATH = "/v1/models/m"


class ModelsTest(absltest.TestCase):

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls.folder, examples = testing.folder(), testing.folder()
    testing.write_model(cls.folder, 1)
    testing.write_model(cls.folder, 2, scale=10.0)
    testing.write_examples_model(examples, 1)
    cls.config = _CONFIG % (cls.folder, examples)
    path = os.path.join(testing.folder(), "models.config")
    with open(path, "w") as f:
      f.write(cls.config)
    cls.server = testing.start("--model_config_file=" + path)
    assert cls.server.manager.wait(["m", "examples"], 60)
    cls.channel = grpc.insecure_channel("127.0.0.1:%d" % cls.server.grpc_port)
    cls.models = model_service_pb2_grpc.ModelServiceStub(cls.channel)
    cls.stub = prediction_service_pb2_grpc.PredictionServiceStub(cls.channel)

  @classmethod
  def tearDownClass(cls):
    cls.channel.close()
    cls.server.stop(5)
    super().tearDownClass()

  def http(self, path, body=None):
    return testing.http(self.server, path, body)

  def reload(self, text):
    request = model_management_pb2.ReloadConfigRequest()
    request.config.MergeFromString(
        testing.parse(text, messages.serving("ModelServerConfig")).SerializeToString())
    return self.models.HandleReloadConfigRequest(request, timeout=60)

  def assert_fails(self, code, text, function, request):
    with self.assertRaises(grpc.RpcError) as caught:
      function(request, timeout=30)
    self.assertEqual(caught.exception.code().name, code)
    self.assertRegex(caught.exception.details(), text)

  def test_versions(self):
    body = {"instances": [1]}
    for path, answer in (("", [80.0]), ("/versions/1", [8.0]), ("/versions/2", [80.0])):
      self.assertEqual(self.http(_PATH + path + ":predict", body),
                       (200, {"predictions": answer}))
    self.assertEqual(self.http(_PATH + "/versions/7:predict", body), (
        404, {"error": "Servable not found for request: Specific(m, 7)"}))
    self.assertEqual(self.http("/v1/models/x:predict", body), (
        404, {"error": "Servable not found for request: Latest(x)"}))

  def test_status(self):
    status, answer = self.http(_PATH)
    self.assertEqual(status, 200)
    self.assertEqual(answer["model_version_status"][0], {
        "version": "2", "state": "AVAILABLE",
        "status": {"error_code": "OK", "error_message": ""}})
    request = get_model_status_pb2.GetModelStatusRequest()
    request.model_spec.name = "m"
    response = self.models.GetModelStatus(request, timeout=30)
    self.assertEqual([(v.version, v.state) for v in response.model_version_status],
                     [(2, 30), (1, 30)])
    request.model_spec.name = "x"
    self.assert_fails("NOT_FOUND", "versions of model x", self.models.GetModelStatus, request)
    request.model_spec.name = ""
    self.assert_fails("INVALID_ARGUMENT", "ModelSpec", self.models.GetModelStatus, request)

  def test_labels_and_roll_back(self):
    label = self.config.replace("all {} }", "all {} } version_labels { key: 'live' value: %d }")
    for version, answer in ((2, 80.0), (1, 8.0)):
      self.assertEqual(self.reload(label % version).status.error_code, 0)
      self.assertEqual(self.http(_PATH + "/labels/live:predict", {"instances": [1]}),
                       (200, {"predictions": [answer]}))
    with self.assertRaises(grpc.RpcError) as caught:
      self.reload(label % 9)
    self.assertEqual(caught.exception.code().name, "FAILED_PRECONDITION")
    with self.assertRaises(grpc.RpcError) as caught:
      self.reload(self.config.replace(self.folder, "relative"))
    self.assertRegex(caught.exception.details(), "'relative' is not an absolute path")
    self.assertEqual(self.http(_PATH + "/labels/x:predict", {"instances": [1]})[0], 400)
    self.reload(label % 2)
    self.assertEqual(self.http(_PATH + "/labels/live:predict", {"instances": [1]})[0], 200)

  def test_metadata(self):
    status, answer = self.http(_PATH + "/versions/1/metadata")
    self.assertEqual(status, 200)
    self.assertEqual(answer["model_spec"],
                     {"name": "m", "signature_name": "", "version": "1"})
    signature = answer["metadata"]["signature_def"]["signature_def"]["serving_default"]
    self.assertEqual(signature["inputs"]["ids"]["dtype"], "DT_INT64")
    self.assertEqual(signature["inputs"]["ids"]["tensor_shape"]["dim"],
                     [{"size": "-1", "name": ""}])
    request = get_model_metadata_pb2.GetModelMetadataRequest(metadata_field=["signature_def"])
    request.model_spec.name = "m"
    response = self.stub.GetModelMetadata(request, timeout=30)
    found = get_model_metadata_pb2.SignatureDefMap()
    self.assertTrue(response.metadata["signature_def"].Unpack(found))
    self.assertEqual(found.signature_def["serving_default"].inputs["ids"].dtype, 9)
    request.metadata_field[:] = ["other"]
    self.assert_fails("INVALID_ARGUMENT", "other is not supported",
                      self.stub.GetModelMetadata, request)

  def example(self, value):
    return tf.train.Example(features=tf.train.Features(feature={
        "id": tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))}))

  def test_classify_and_regress(self):
    classify = classification_pb2.ClassificationRequest()
    classify.model_spec.name, classify.model_spec.signature_name = "examples", "classify"
    self.assert_fails("INVALID_ARGUMENT", "Input is empty", self.stub.Classify, classify)
    classify.input.example_list.examples.extend([self.example(1), self.example(5)])
    response = self.stub.Classify(classify, timeout=30)
    self.assertEqual([[(c.label, c.score) for c in row.classes]
                      for row in response.result.classifications],
                     [[("sum", 8), ("one", 1)], [("sum", 0), ("one", 1)]])
    regress = regression_pb2.RegressionRequest()
    regress.model_spec.name, regress.model_spec.signature_name = "examples", "regress"
    # Features of the context are those that the examples lack.
    regress.input.example_list_with_context.context.CopyFrom(self.example(2))
    regress.input.example_list_with_context.examples.add()
    response = self.stub.Regress(regress, timeout=30)
    self.assertEqual([r.value for r in response.result.regressions], [12])
    many = inference_pb2.MultiInferenceRequest(input=classify.input)
    for name in ("classify", "regress"):
      task = many.tasks.add(method_name="tensorflow/serving/" + name)
      task.model_spec.name, task.model_spec.signature_name = "examples", name
    response = self.stub.MultiInference(many, timeout=30)
    self.assertEqual(response.results[0].classification_result.classifications[0]
                     .classes[0].score, 8)
    self.assertEqual(response.results[1].regression_result.regressions[0].value, 8)
    many.tasks[1].method_name = "other"
    self.assert_fails("UNIMPLEMENTED", "other", self.stub.MultiInference, many)

  def test_classify_and_regress_over_rest(self):
    path = "/v1/models/examples"
    body = {"signature_name": "classify", "examples": [{"id": 1}, {"id": [5]}]}
    self.assertEqual(self.http(path + ":classify", body), (
        200, {"results": [[["sum", 8.0], ["one", 1.0]], [["sum", 0.0], ["one", 1.0]]]}))
    body = {"signature_name": "regress", "context": {"id": 2}, "examples": [{}]}
    self.assertEqual(self.http(path + ":regress", body), (200, {"results": [12.0]}))
    body["examples"] = [{"id": [1, "a"]}]
    status, answer = self.http(path + ":regress", body)
    self.assertEqual(status, 400)
    self.assertIn("values of one kind", answer["error"])

  def test_wrong_paths(self):
    for path, body, status in (("/v1/models/m:other", {}, 400), ("/v1/models/m:predict", None, 400),
                               ("/v1/models/..%2f..%2fetc:predict", {"instances": [1]}, 404),
                               ("/other", None, 404)):
      self.assertEqual(self.http(path, body)[0], status, path)
    self.assertEqual(self.http(_PATH)[0], 200)

  def test_health(self):
    call = self.channel.unary_unary(
        "/grpc.health.v1.Health/Check", lambda m: m.SerializeToString(),
        messages.message_class("grpc.health.v1.HealthCheckResponse").FromString)
    request = messages.message_class("grpc.health.v1.HealthCheckRequest")()
    self.assertEqual(call(request, timeout=30).status, 1)
    request.service = "x"
    self.assert_fails("NOT_FOUND", "unknown service 'x'", call, request)

  def test_watched_health(self):
    folder = testing.folder()
    server = testing.start(folder)
    self.addCleanup(server.stop, 0)
    request = messages.message_class("grpc.health.v1.HealthCheckRequest")
    with grpc.insecure_channel("127.0.0.1:%d" % server.grpc_port) as channel:
      watch = channel.unary_stream(
          "/grpc.health.v1.Health/Watch", lambda m: m.SerializeToString(),
          messages.message_class("grpc.health.v1.HealthCheckResponse").FromString)
      unknown = watch(request(service="x"), timeout=60)
      # More clients than the server has threads.
      streams = [watch(request(), timeout=60) for _ in range(8)]
      self.assertEqual({next(stream).status for stream in streams}, {2})
      testing.write_model(folder, 1)
      self.assertEqual({next(stream).status for stream in streams}, {1})
      streams.pop().cancel()
      server.stop(10)
      self.assertEqual([[r.status for r in stream] for stream in streams], [[2]] * 7)
      self.assertEqual([r.status for r in unknown], [3])

  def test_a_watcher_that_fails_ends_no_other(self):
    ready, sent = mock.Mock(is_ready=lambda: False), []
    service = health.Health(ready, lambda: False)
    request = messages.message_class("grpc.health.v1.HealthCheckRequest")()
    when_ended = mock.Mock()
    service.watch(request, when_ended, mock.Mock(side_effect=ValueError("the call has ended")))
    service.watch(request, when_ended, lambda response: sent.append(response.status))
    self.addCleanup(lambda: when_ended.call_args[0][0]())
    ready.is_ready = lambda: len(sent) == 1
    end = time.time() + 30
    while len(sent) < 2 and time.time() < end:
      time.sleep(.05)
    self.assertEqual(sent, [2, 1])


if __name__ == "__main__":
  absltest.main()
