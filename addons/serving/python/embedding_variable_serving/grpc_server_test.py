# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Clients that go before a gRPC server has answered."""

import logging
import threading
import time
from unittest import mock

from absl.testing import absltest
import grpc

from embedding_variable_serving import messages
from embedding_variable_serving.fronts import grpc_server

_MESSAGE = messages.message_class("grpc.health.v1.HealthCheckRequest")


class GrpcServerTest(absltest.TestCase):

  def start(self, method):
    """Returns a function that calls a method of a server with one thread and no queue."""
    server = grpc_server.Server(1, 0, 1 << 20)
    server.add_service("s", {"M": (method, _MESSAGE)})
    port = server.listen("127.0.0.1:0")
    server.start()
    self.addCleanup(server.stop, 1)
    channel = grpc.insecure_channel("127.0.0.1:%d" % port)
    self.addCleanup(channel.close)
    return channel.unary_unary("/s/M", lambda m: m.SerializeToString(), _MESSAGE.FromString)

  def assert_fails(self, code, call, **kwargs):
    with self.assertRaises(grpc.RpcError) as caught:
      call(_MESSAGE(service="a"), **kwargs)
    self.assertEqual(caught.exception.code().name, code)

  def answer_in_time(self, call):
    """Returns the answer of the first call that is not refused, for at most 30 s."""
    end = time.time() + 30
    while True:
      try:
        return call(_MESSAGE(service="b"), timeout=30).service
      except grpc.RpcError as e:
        if e.code().name != "UNAVAILABLE" or time.time() > end:
          raise

  def test_a_request_is_counted_until_it_ends(self):
    may_end, entered = threading.Event(), threading.Semaphore(0)
    self.addCleanup(may_end.set)

    def method(request, unused_timeout_ms):
      entered.release()
      may_end.wait(60)
      return request

    call = self.start(method)
    with mock.patch.object(logging, "error") as logged:
      self.assert_fails("DEADLINE_EXCEEDED", call, timeout=0.5)
      self.assertTrue(entered.acquire(timeout=30))
      # The thread still runs the first request, whose client has gone.
      for _ in range(3):
        self.assert_fails("UNAVAILABLE", call, timeout=30)
      may_end.set()
      self.assertEqual(self.answer_in_time(call), "b")
    logged.assert_not_called()

  def test_an_unexpected_error_is_logged(self):
    def method(request, unused_timeout_ms):
      if request.service == "a":
        raise KeyError("x")
      return request

    call = self.start(method)
    with mock.patch.object(logging, "error") as logged:
      self.assert_fails("INTERNAL", call, timeout=30)
    logged.assert_called_once()
    self.assertEqual(call(_MESSAGE(service="b"), timeout=30).service, "b")


if __name__ == "__main__":
  absltest.main()
