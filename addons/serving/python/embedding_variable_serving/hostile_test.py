# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Hostile clients: changed requests, clients that stop halfway, wrong sizes and names.

  hostile_test.py [--requests=10000] [--seed=N]

sends so many changed requests to each interface. After them the server answers as before.
"""

import json
import random
import socket

from absl import flags
from absl.testing import absltest
import grpc
import numpy as np
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2
from tensorflow_serving.apis import prediction_service_pb2_grpc

from embedding_variable_serving import testing

flags.DEFINE_integer("requests", 300, "Changed requests for each interface.")
flags.DEFINE_integer("seed", 0, "Of the changes.")

_PREDICT = b"/v1/models/m:predict"

# A changed request may be valid. Anything else is the client's error.
_STATUSES = frozenset({200, 400, 404, 405, 411, 413, 415, 431, 501, 505})
_CODES = frozenset({"OK", "INVALID_ARGUMENT", "NOT_FOUND", "FAILED_PRECONDITION",
                    "UNIMPLEMENTED", "RESOURCE_EXHAUSTED", "OUT_OF_RANGE"})

_PIECES = [b"[" * 300, b"{\"instances\":", b"1e999", b"NaN", b"-", b"\x00", b"\xff\xfe", b"{}",
           b"18446744073709551616", b"\"b64\":", b"null", b"%2e%2e%2f", b"\r\n", b" " * 99]


def _changed(data, numbers):
  """Returns a copy of bytes with a few changes."""
  data = bytearray(data)
  for _ in range(numbers.randint(1, 4)):
    at = numbers.randint(0, len(data))
    kind = numbers.randint(0, 4)
    if kind == 0 and at < len(data):
      data[at] ^= 1 << numbers.randint(0, 7)
    elif kind == 1:
      del data[at:]
    elif kind == 2:
      data[at:at] = numbers.choice(_PIECES)
    elif kind == 3:
      del data[at:at + numbers.randint(1, 8)]
    else:
      data[at:at] = data[:numbers.randint(0, len(data))]
  return bytes(data)


class HostileTest(absltest.TestCase):

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    folder = testing.folder()
    testing.write_model(folder, 1)
    cls.server = testing.start(folder, "--model_name=m", "--max_request_bytes=1000000",
                               "--enable_batching", "--rest_api_timeout_in_ms=20000")
    assert cls.server.manager.wait(["m"], 60)
    cls.channel = grpc.insecure_channel("127.0.0.1:%d" % cls.server.grpc_port)
    cls.stub = prediction_service_pb2_grpc.PredictionServiceStub(cls.channel)
    cls.request = predict_pb2.PredictRequest()
    cls.request.model_spec.name = "m"
    cls.request.inputs["ids"].CopyFrom(tf.compat.v1.make_tensor_proto([2, 7], tf.int64))

  @classmethod
  def tearDownClass(cls):
    cls.channel.close()
    cls.server.stop(5)
    super().tearDownClass()

  def tearDown(self):
    super().tearDown()
    answer = self.stub.Predict(self.request, timeout=60)
    self.assertEqual(tf.make_ndarray(answer.outputs["score"]).tolist(), [12, 0])
    self.assertEqual(testing.http(self.server, _PREDICT.decode(), {"instances": [2, 7]}),
                     (200, {"predictions": [12, 0]}))

  def sent(self, data, is_all=True):
    """Returns the first line that answers the bytes of an HTTP request; "": none.

    If the bytes may be only a part of a request, the client ends its side.
    """
    with socket.create_connection(("127.0.0.1", self.server.rest_port), 30) as client:
      try:
        client.sendall(data)
        if not is_all:
          client.shutdown(socket.SHUT_WR)
        return client.makefile("rb").readline().decode("latin-1")
      except (BrokenPipeError, ConnectionResetError):
        return ""  # refused before all of it had come

  def assert_refused_or_answered(self, line, data):
    if line:
      self.assertIn(int(line.split()[1]), _STATUSES, "%s: %r" % (line, data[:2000]))

  def test_changed_bodies(self):
    numbers = random.Random(flags.FLAGS.seed)
    bodies = [b'{"instances": [1, 2, -3]}', b'{"inputs": {"ids": [1, 2]}}',
              b'{"signature_name": "serving_default", "instances": [{"ids": 5}, {"ids": 6}]}']
    for _ in range(flags.FLAGS.requests):
      body = _changed(numbers.choice(bodies), numbers)
      data = (b"POST " + _PREDICT + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
              b"Content-Length: %d\r\n\r\n" % len(body) + body)
      self.assert_refused_or_answered(self.sent(data, is_all=False), data)

  def test_changed_http(self):
    numbers = random.Random(flags.FLAGS.seed + 1)
    body = b'{"inputs": [{"name": "ids", "shape": [2], "datatype": "INT64", "data": [1, 2]}]}'
    requests = [
        b"GET /v1/models/m/metadata HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        b"POST /v2/models/m/infer HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
        b"Content-Length: %d\r\n\r\n" % len(body) + body]
    for _ in range(flags.FLAGS.requests):
      data = _changed(numbers.choice(requests), numbers)
      self.assert_refused_or_answered(self.sent(data, is_all=False), data)

  def test_changed_messages(self):
    numbers = random.Random(flags.FLAGS.seed + 2)
    whole = self.request.SerializeToString()
    for _ in range(flags.FLAGS.requests):
      message = _changed(whole, numbers)
      for method in ("tensorflow.serving.PredictionService/Predict",
                     "inference.GRPCInferenceService/ModelInfer",
                     "tensorflow.serving.ModelService/GetModelStatus"):
        call = self.channel.unary_unary("/" + method, None, None)
        try:
          call(message, timeout=60)
          code, text = "OK", ""
        except grpc.RpcError as e:
          code, text = e.code().name, e.details()
        self.assertIn(code, _CODES, "%s: %r" % (text, message))

  def test_sizes(self):
    head = b"POST " + _PREDICT + b" HTTP/1.1\r\nHost: x\r\n"
    self.assertRegex(self.sent(head + b"Content-Length: 1000000000\r\n\r\n"), " 413 ")
    self.assertRegex(self.sent(head + b"Content-Length: -1\r\n\r\n"), " 400 ")
    for before in (b"", b'"]]]]\\"]]]]", '):
      deep = b'{"instances": [' + before + b"[" * 400000 + b"]" * 400001 + b"}"
      self.assertRegex(self.sent(head + b"Content-Length: %d\r\n\r\n" % len(deep) + deep),
                       " 400 ")
    many = b'{"instances": [' + b",".join([b'{"ids": 2}'] * 400) + b"]}"
    self.assertRegex(self.sent(head + b"Content-Length: %d\r\n\r\n" % len(many) + many), " 200 ")
    request = predict_pb2.PredictRequest()
    request.CopyFrom(self.request)
    request.inputs["ids"].CopyFrom(
        tf.compat.v1.make_tensor_proto(np.zeros(200000, np.int64)))
    with self.assertRaises(grpc.RpcError) as caught:
      self.stub.Predict(request, timeout=60)
    self.assertEqual(caught.exception.code(), grpc.StatusCode.RESOURCE_EXHAUSTED)

  def test_clients_that_stop_halfway(self):
    head = (b"POST " + _PREDICT + b" HTTP/1.1\r\nHost: x\r\nContent-Length: 25\r\n\r\n"
            b'{"instances": [1')
    clients = []
    for k in range(200):
      client = socket.create_connection(("127.0.0.1", self.server.rest_port), 30)
      self.addCleanup(client.close)
      client.sendall(head[:1 + k * len(head) // 200])
      clients.append(client)
    # Others are answered meanwhile.
    self.assertEqual(testing.http(self.server, _PREDICT.decode(), {"instances": [2]})[0], 200)
    for client in clients[::2]:
      client.close()

  def test_names_of_models(self):
    for name in ("..", "../m", "%2e%2e", "m/../m", "m%00", "/etc/passwd", "m" * 5000, "", "\u00e9"):
      status, text = testing.http(
          self.server, "/v1/models/%s:predict" % json.dumps(name)[1:-1].replace("\\", "%5c"),
          {"instances": [1]})
      self.assertIn(status, (400, 404), "%s: %s" % (name, text))
      request = predict_pb2.PredictRequest()
      request.CopyFrom(self.request)
      request.model_spec.name = name
      with self.assertRaises(grpc.RpcError) as caught:
        self.stub.Predict(request, timeout=60)
      self.assertIn(caught.exception.code().name, ("NOT_FOUND", "INVALID_ARGUMENT"))


if __name__ == "__main__":
  absltest.main()
