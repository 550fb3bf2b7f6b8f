# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The Open Inference Protocol V2 over HTTP and gRPC."""

import json
import struct
import unittest
import urllib.request

from absl.testing import absltest
import grpc
import numpy as np

from embedding_variable_serving import messages
from embedding_variable_serving import testing

try:
  from tritonclient import grpc as tritonclient
except (ImportError, RuntimeError):  # Its generated code needs a newer protobuf or grpcio.
  tritonclient = None

_MODEL = "/v2/models/default"


def _infer(**tensor):
  return {"id": "a", "inputs": [dict({"name": "ids", "datatype": "INT64"}, **tensor)]}


class V2Test(absltest.TestCase):

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls.folder = testing.folder()
    testing.write_model(cls.folder, 5)
    cls.server = testing.start(cls.folder)
    assert cls.server.manager.wait(["default"], 60)
    cls.address = "127.0.0.1:%d" % cls.server.grpc_port
    cls.channel = grpc.insecure_channel(cls.address)

  @classmethod
  def tearDownClass(cls):
    cls.channel.close()
    cls.server.stop(5)
    super().tearDownClass()

  def http(self, path, body=None):
    return testing.http(self.server, path, body)

  def test_health_and_metadata(self):
    for path in ("/v2/health/live", "/v2/health/ready", _MODEL + "/ready",
                 _MODEL + "/versions/5/ready"):
      self.assertEqual(self.http(path), (200, True), path)
    self.assertEqual(self.http(_MODEL + "/versions/6/ready"), (400, False))
    self.assertEqual(self.http("/v2")[1]["extensions"], ["binary_tensor_data"])
    self.assertEqual(self.http(_MODEL), (200, {
        "name": "default", "versions": ["5"], "platform": "tensorflow_savedmodel",
        "inputs": [{"name": "ids", "datatype": "INT64", "shape": [-1]}],
        "outputs": [{"name": "score", "datatype": "FP32", "shape": [-1]}]}))

  def test_infer(self):
    self.assertEqual(self.http(_MODEL + "/infer", _infer(shape=[3], data=[1, 77, -3])), (200, {
        "model_name": "default", "model_version": "5", "id": "a",
        "outputs": [{"name": "score", "datatype": "FP32", "shape": [3],
                     "data": [8.0, 0.0, -8.0]}]}))

  def test_binary_tensors(self):
    body = _infer(shape=[2], parameters={"binary_data_size": 16})
    body["outputs"] = [{"name": "score", "parameters": {"binary_data": True}}]
    text = json.dumps(body).encode()
    request = urllib.request.Request(
        "http://127.0.0.1:%d%s/infer" % (self.server.rest_port, _MODEL),
        text + struct.pack("<qq", 1, 2),
        {"Inference-Header-Content-Length": str(len(text))})
    with urllib.request.urlopen(request, timeout=30) as answer:
      size = int(answer.headers["Inference-Header-Content-Length"])
      data = answer.read()
    self.assertEqual(json.loads(data[:size].decode())["outputs"][0]["parameters"],
                     {"binary_data_size": 8})
    self.assertEqual(struct.unpack("<ff", data[size:]), (8, 12))

  def test_wrong_requests(self):
    for body, status, text in (
        (_infer(shape=[2], data=[1]), 400, r"shape \[2\] has 2 elements, the data 1"),
        (_infer(shape=[-1], data=[1]), 400, "not valid"),
        (_infer(shape=[1], data=[1], datatype="INT9"), 400, "no datatype 'INT9'"),
        (_infer(shape=[1], data=[1], datatype="INT32"), 400, "expected type int64, got int32"),
        (_infer(shape=[1], parameters={"binary_data_size": 8}), 400, "more than the body has"),
        ({"inputs": 3}, 400, "not a list of objects")):
      found, answer = self.http(_MODEL + "/infer", body)
      self.assertEqual(found, status)
      self.assertRegex(answer["error"], text)
    self.assertEqual(self.http("/v2/models/x/infer", _infer(shape=[1], data=[1]))[0], 404)
    self.assertEqual(self.http("/v2/models/default/load", {})[0], 404)
    self.test_infer()

  def call(self, method, request, response):
    function = self.channel.unary_unary(
        "/inference.GRPCInferenceService/" + method, lambda m: m.SerializeToString(),
        messages.message_class("inference." + response).FromString)
    return function(request, timeout=30)

  def test_grpc(self):
    new = messages.message_class
    for method in ("ServerLive", "ServerReady"):
      self.assertTrue(self.call(method, new("inference.Empty")(), "BoolAnswer").answer)
    name = new("inference.ModelName")(name="default")
    self.assertTrue(self.call("ModelReady", name, "BoolAnswer").answer)
    self.assertEqual(self.call("ModelMetadata", name, "ModelMetadata").inputs[0].shape, [-1])
    request = new("inference.ModelInferRequest")(model_name="default", id="b")
    tensor = request.inputs.add(name="ids", datatype="INT64", shape=[2])
    request.raw_input_contents.append(struct.pack("<qq", 1, 2))
    response = self.call("ModelInfer", request, "ModelInferResponse")
    self.assertEqual((response.id, response.model_version), ("b", "5"))
    self.assertEqual(struct.unpack("<ff", response.raw_output_contents[0]), (8, 12))
    del request.raw_input_contents[:]
    tensor.contents.int64_contents.extend([1, 2])
    response = self.call("ModelInfer", request, "ModelInferResponse")
    self.assertEqual(list(response.outputs[0].contents.fp32_contents), [8, 12])
    tensor.contents.int64_contents.append(3)
    with self.assertRaises(grpc.RpcError) as caught:
      self.call("ModelInfer", request, "ModelInferResponse")
    self.assertEqual(caught.exception.code().name, "INVALID_ARGUMENT")

  @unittest.skipIf(tritonclient is None, "tritonclient does not work in this environment")
  def test_tritons_client(self):
    client = tritonclient.InferenceServerClient(self.address)
    self.addCleanup(client.close)
    self.assertTrue(client.is_server_ready())
    given = tritonclient.InferInput("ids", [2], "INT64")
    given.set_data_from_numpy(np.array([1, 2], np.int64))
    result = client.infer("default", [given])
    self.assertEqual(result.as_numpy("score").tolist(), [8, 12])


if __name__ == "__main__":
  absltest.main()
