# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Predict over gRPC and REST, by the clients of TensorFlow Serving."""

from unittest import mock

from absl.testing import absltest
import grpc
import numpy as np
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2
from tensorflow_serving.apis import prediction_service_pb2_grpc

from embedding_variable_serving import testing
from embedding_variable_serving.fronts import json_tensors
from embedding_variable_serving.models import saved_model


def _blocking_model(folder):
  """Writes a version that waits forever if its input is True; returns its folder."""
  v1 = tf.compat.v1
  with tf.Graph().as_default(), v1.Session() as session:
    wait = v1.placeholder(tf.bool, [], name="wait")
    queue = tf.queue.FIFOQueue(1, tf.int32, shapes=[[]])
    y = tf.cond(wait, queue.dequeue, lambda: tf.constant(5))
    v1.get_variable("v", [])
    session.run(v1.global_variables_initializer())
    v1.saved_model.simple_save(session, folder, {"wait": wait}, {"y": y})
  return folder


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

  def test_runs_have_the_threads_and_the_time_limit_of_requests(self):
    servable = saved_model.SavedModel(self.folder + "/1", config=saved_model.session_config())
    self.addCleanup(servable.close)
    signature, feeds = servable.signatures["serving_default"], {"ids": np.array([1, 2])}
    with mock.patch.object(servable.session, "_make_callable_from_options",
                           wraps=servable.session._make_callable_from_options) as made:
      for is_serving in (False, True):
        if is_serving:
          servable.start_serving()
        for timeout_ms in (None, 600.5, 1000, None):
          self.assertEqual(servable.run(signature, feeds, ["score"], timeout_ms)[0].tolist(),
                           [8, 12])
      options = [call[0][0].run_options for call in made.call_args_list]
    # The thread pool of loads is 1. 600.5 and 1000 ms have one limit.
    self.assertEqual([(o.inter_op_thread_pool, o.timeout_in_ms) for o in options],
                     [(1, 0), (1, 1024), (0, 0), (0, 1024)])

  def test_a_new_version_is_prepared_for_the_runs_that_requests_use(self):
    kinds, feeds = saved_model.new_kinds(), {"ids": np.array([1, 2])}
    for number in range(2):
      servable = saved_model.SavedModel(self.folder + "/1", config=saved_model.session_config(),
                                        kinds=kinds)
      self.addCleanup(servable.close)
      signature = servable.signatures["serving_default"]
      servable.run(signature, feeds, ["score"], 5)  # A warm-up is no request.
      servable.start_serving()
      with mock.patch.object(servable.session, "_make_callable_from_options",
                             wraps=servable.session._make_callable_from_options) as made:
        for timeout_ms in (None, 1000):
          self.assertEqual(servable.run(signature, feeds, ["score"], timeout_ms)[0].tolist(),
                           [8, 12])
      # The first version prepared runs without a time limit alone.
      self.assertEqual(made.call_count, 1 - number)
    self.assertEqual(sorted(kind[-1] for kind in kinds), [0, 1024])

  def test_a_run_that_takes_too_long_is_cancelled(self):
    servable = saved_model.SavedModel(_blocking_model(testing.folder() + "/1"),
                                      config=saved_model.session_config())
    self.addCleanup(servable.close)
    servable.start_serving()
    signature = servable.signatures["serving_default"]
    with self.assertRaises(tf.errors.DeadlineExceededError):
      servable.run(signature, {"wait": np.array(True)}, ["y"], 100)
    self.assertEqual(servable.run(signature, {"wait": np.array(False)}, ["y"], 10000), [5])

  def test_json_of_outputs(self):
    for array, text in (
        (np.int64(7), b"7"), (np.float32(.1), b"0.1"), (np.float32("inf"), b"Infinity"),
        (np.array([7]), b"[7]"), (np.arange(6).reshape(2, 3).T, b"[[0,3],[1,4],[2,5]]")):
      self.assertEqual(json_tensors.dumps(json_tensors.from_array("x", array)), text)

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
