# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The command line, in a process of its own: flags, addresses, SIGTERM."""

import contextlib
import io
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from absl.testing import absltest
from absl.testing import parameterized
import grpc
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2
from tensorflow_serving.apis import prediction_service_pb2_grpc

from embedding_variable_serving import flags
from embedding_variable_serving import testing


def _start(*argv):
  return subprocess.Popen(
      [sys.executable, "-W", "ignore", "-m", "embedding_variable", "serve"] + list(argv),
      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True,
      env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)))


class MainTest(parameterized.TestCase):

  def test_serves_until_sigterm(self):
    folder = testing.folder()
    testing.write_model(folder, 3)
    # A name of a socket has at most 107 bytes, and Bazel's folders are longer.
    socket_folder = tempfile.mkdtemp(prefix="s", dir="/dev/shm")
    self.addCleanup(shutil.rmtree, socket_folder)
    socket_path = os.path.join(socket_folder, "socket")
    process = _start(folder, "--port=0", "--model_name=m", "--grpc_socket_path=" + socket_path)
    self.addCleanup(process.kill)
    seen = ""
    for line in process.stdout:
      seen += line
      # The two come in any order.
      if "version 3 serves" in seen and "gRPC on" in seen:
        break
    self.assertRegex(seen, r"gRPC on 127\.0\.0\.1:\d+, process %d" % process.pid)
    request = predict_pb2.PredictRequest()
    request.model_spec.name = "m"
    request.inputs["ids"].CopyFrom(tf.compat.v1.make_tensor_proto([2], tf.int64))
    for address in ("unix:" + socket_path,
                    re.search(r"127\.0\.0\.1:\d+", seen).group()):
      with grpc.insecure_channel(address) as channel:
        stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        response = stub.Predict(request, timeout=30)
        self.assertEqual(tf.make_ndarray(response.outputs["score"]).tolist(), [12])
    process.send_signal(signal.SIGTERM)
    output = process.communicate(timeout=60)[0]
    self.assertEqual(process.returncode, 0, output)

  def test_reports_also_if_a_module_has_logged(self):
    folder = testing.folder()
    testing.write_model(folder, 3)
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", "import logging, sys; logging.warning('early'); "
         "from embedding_variable_serving import main; main.main(sys.argv[1:])", folder,
         "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True,
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)))
    self.addCleanup(process.kill)
    for line in process.stdout:
      if "gRPC on" in line:
        process.send_signal(signal.SIGTERM)
    self.assertEqual(process.wait(60), 0)

  def test_a_load_that_does_not_end_delays_no_exit(self):
    folder = testing.folder()
    testing.write_model(folder, 3)
    os.makedirs(os.path.join(folder, "3", "assets.extra"))
    # A pipe without a writer has no end.
    os.mkfifo(os.path.join(folder, "3", "assets.extra", "tf_serving_warmup_requests"))
    process = _start(folder, "--port=0", "--drain_seconds=0")
    self.addCleanup(process.kill)
    for line in process.stdout:
      if "gRPC on" in line:
        break
    time.sleep(1)  # the load begins
    process.send_signal(signal.SIGTERM)
    output = process.communicate(timeout=60)[0]
    self.assertEqual(process.returncode, 0, output)
    self.assertIn("ended without waiting", output)

  @parameterized.parameters(
      (["--prot=1", "."], "unrecognized arguments: --prot=1"),
      (["--use_tflite_model=true", "."],
       "--use_tflite_model is a flag of TensorFlow Serving that this server does not have"),
      ([], "no model"),
      ([".", "--port=x"], "--port"),
      ([".", "--model_base_path=."], "both MODEL_FOLDER and --model_base_path"),
      ([".", "--grpc_socket_path=/" + 107 * "s"],
       "--grpc_socket_path has 108 bytes, expected at most 107"),
      ([".", "--grpc_max_threads=0"], "--grpc_max_threads is 0, expected at least 1"))
  def test_wrong_flags(self, argv, text):
    printed = io.StringIO()
    with contextlib.redirect_stderr(printed), self.assertRaises(SystemExit) as caught:
      flags.parse(argv)
    self.assertEqual(caught.exception.code, 2)
    self.assertIn(text, printed.getvalue())

  def test_flags_of_tensorflow_serving(self):
    args = flags.parse(["--model_base_path=a", "--enable_serialization_as_tensor_content",
                        "--grpc_channel_arguments=grpc.a=1,b=c"])
    self.assertTrue(args.enable_serialization_as_tensor_content)
    self.assertEqual(args.grpc_channel_arguments, [("grpc.a", 1), ("b", "c")])
    self.assertEqual((args.port, args.bind_address), (8500, "127.0.0.1"))

  def test_a_port_in_use_is_named(self):
    folder = testing.folder()
    server = testing.start(folder)
    self.addCleanup(server.stop, 1)
    for flag, port in (("--port", server.grpc_port), ("--rest_api_port", server.rest_port)):
      with self.assertRaisesRegex(OSError, "cannot listen on 127.0.0.1:%d" % port):
        testing.start(folder, "%s=%d" % (flag, port))


if __name__ == "__main__":
  absltest.main()
