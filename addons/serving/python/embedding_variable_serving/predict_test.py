# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Predict over gRPC and REST, by the clients of TensorFlow Serving."""

from absl.testing import absltest
import grpc
import numpy as np
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2
from tensorflow_serving.apis import prediction_service_pb2_grpc

from embedding_variable_serving import testing


class PredictTest(absltest.TestCase):

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls.folder = testing.folder()
    testing.write_model(cls.folder, 1)
    cls.server = testing.start(cls.folder)
    assert cls.server.manager.wait(["default"], 60)
    cls.channel = grpc.insecure_channel("127.0.0.1:%d" % cls.server.grpc_port)
    cls.stub = prediction_service_pb2_grpc.PredictionServiceStub(cls.channel)

  @classmethod
  def tearDownClass(cls):
    cls.channel.close()
    cls.server.stop(5)
    super().tearDownClass()

  def grpc_predict(self, ids, **kwargs):
    request = predict_pb2.PredictRequest()
    request.model_spec.name = kwargs.get("model", "default")
    request.inputs["ids"].CopyFrom(tf.compat.v1.make_tensor_proto(ids))
    return self.stub.Predict(request, timeout=30)

  def test_grpc(self):
    response = self.grpc_predict(np.array([1, 77, -3], np.int64))
    self.assertEqual(tf.make_ndarray(response.outputs["score"]).tolist(), [8, 0, -8])
    self.assertEqual(response.model_spec.version.value, 1)
    self.assertEqual(response.model_spec.signature_name, "serving_default")

  def test_rest(self):
    for body, answer in (
        ({"instances": [1, 77, -3]}, {"predictions": [8.0, 0.0, -8.0]}),
        ({"instances": [{"ids": 2}]}, {"predictions": [12.0]}),
        ({"inputs": [1, 77]}, {"outputs": [8.0, 0.0]}),
        ({"inputs": {"ids": [1]}}, {"outputs": [8.0]})):
      self.assertEqual(testing.http(self.server, "/v1/models/default:predict", body),
                       (200, answer))

  def test_wrong_requests(self):
    for ids, code, text in (
        (np.array([1], np.int32), "INVALID_ARGUMENT", "input 'ids' .*int64, got int32"),
        (np.array([[1]], np.int64), "INVALID_ARGUMENT", r"shape \[-1\], got \[1, 1\]")):
      with self.assertRaises(grpc.RpcError) as caught:
        self.grpc_predict(ids)
      self.assertEqual(caught.exception.code().name, code)
      self.assertRegex(caught.exception.details(), text)
    self.test_grpc()


if __name__ == "__main__":
  absltest.main()
