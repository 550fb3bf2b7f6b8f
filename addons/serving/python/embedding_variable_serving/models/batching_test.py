# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Batches of a model without TensorFlow."""

import collections
from concurrent import futures
import queue
import threading
import time

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np

from embedding_variable_serving import errors
from embedding_variable_serving import messages
from embedding_variable_serving import testing
from embedding_variable_serving.models import batching

_Signature = collections.namedtuple("Signature", ["name", "inputs", "outputs"])
_S = _Signature("s", {"x": None}, {"y": None})


class _Model(object):
  """y = 2 x; records the sizes of its runs."""

  session = None

  def __init__(self):
    self.signatures, self.sizes, self.gate = {"s": _S}, [], threading.Event()
    self.gate.set()

  def run(self, unused_signature, feeds, unused_outputs, unused_timeout_ms=None):
    self.gate.wait(20)
    self.sizes.append(len(feeds["x"]))
    if (feeds["x"] == 99).any():
      return [np.zeros(())]
    return [feeds["x"] * 2]

  def close(self):
    pass


def _parameters(text):
  return batching.parameters(testing.parse(text, messages.serving("BatchingParameters")))


class BatchingTest(parameterized.TestCase):

  def make(self, text):
    self.model = _Model()
    pool = batching.Pool(_parameters(text))
    self.addCleanup(pool.close)
    batched = batching.Batched(self.model, pool)
    self.addCleanup(batched.close)
    self.threads = futures.ThreadPoolExecutor(8)
    self.addCleanup(self.threads.shutdown)
    return batched

  def run_one(self, batched, x, timeout_ms=None):
    return batched.run(_S, {"x": np.array(x)}, ["y"], timeout_ms)[0].tolist()

  def test_requests_that_wait_run_together(self):
    batched = self.make("batch_timeout_micros { value: 300000 } max_batch_size { value: 4 } "
                        "allowed_batch_sizes: 3 allowed_batch_sizes: 4")
    found = [self.threads.submit(self.run_one, batched, x) for x in ([1], [2, 3], [4])]
    self.assertEqual([f.result() for f in found], [[2], [4, 6], [8]])
    self.assertEqual(self.model.sizes, [4])
    self.assertEqual(self.run_one(batched, [5]), [10])
    self.assertEqual(self.model.sizes, [4, 3])  # Filled to an allowed size.

  def test_large_requests_are_split_or_refused(self):
    batched = self.make("max_batch_size { value: 5 } max_execution_batch_size { value: 2 } "
                        "enable_large_batch_splitting { value: true }")
    self.assertEqual(self.run_one(batched, [1, 2, 3, 4, 5]), [2, 4, 6, 8, 10])
    self.assertCountEqual(self.model.sizes, [2, 2, 1])
    with self.assertRaisesRegex(errors.ServingError, "6 rows, more than max_batch_size 5"):
      self.run_one(batched, [1] * 6)

  def test_a_full_queue_refuses_at_once(self):
    batched = self.make("max_batch_size { value: 1 } max_enqueued_batches { value: 1 } "
                        "num_batch_threads { value: 1 }")
    self.model.gate.clear()
    first = self.threads.submit(self.run_one, batched, [1])
    queue, = batched._queues.values()
    time.sleep(0.2)
    second = self.threads.submit(self.run_one, batched, [2])
    while not queue.batches:
      time.sleep(0.01)
    with self.assertRaisesRegex(errors.ServingError, "queue is full") as caught:
      self.run_one(batched, [3])
    self.assertEqual(caught.exception.code, "UNAVAILABLE")
    with self.assertRaises(errors.ServingError) as caught:
      first_deadline = self.threads.submit(self.run_one, batched, [1], 1)
      first_deadline.result()
    self.model.gate.set()
    self.assertEqual((first.result(), second.result()), ([2], [4]))

  def test_shapes_that_differ(self):
    rows = ([[1, 2]], [[3]])
    for text, expected in (("", None), ("pad_variable_length_inputs: true",
                                        [[[2, 4]], [[6, 0]]])):
      batched = self.make(text + " batch_timeout_micros { value: 300000 } "
                          "max_batch_size { value: 2 }")
      found = [self.threads.submit(self.run_one, batched, x) for x in rows]
      if expected is None:
        for one in found:
          with self.assertRaisesRegex(errors.ServingError, "pad_variable_length_inputs"):
            one.result()
      else:
        self.assertEqual([f.result() for f in found], expected)

  def test_outputs_without_a_batch(self):
    batched = self.make("")
    with self.assertRaisesRegex(errors.ServingError, "output 'y' has shape") as caught:
      self.run_one(batched, [99])
    self.assertEqual(caught.exception.code, "FAILED_PRECONDITION")
    self.assertEqual(self.run_one(batched, [1]), [2])

  @parameterized.parameters(
      "max_batch_size { value: 0 }", "allowed_batch_sizes: 5",
      "max_batch_size { value: 4 } allowed_batch_sizes: 4 allowed_batch_sizes: 2",
      "max_execution_batch_size { value: 2 }")
  def test_wrong_parameters(self, text):
    with self.assertRaises(errors.ServingError):
      _parameters(text)

  def test_begin_calls_later(self):
    batched = self.make("max_batch_size { value: 4 } enable_large_batch_splitting { value: true } "
                        "max_execution_batch_size { value: 2 }")
    results = queue.Queue()

    def begin(x, outputs=("y",)):
      return batched.begin(_S, {"x": np.array(x)}, list(outputs), None,
                           lambda *result: results.put(result))

    self.assertTrue(begin([1, 2]))
    arrays, error = results.get(timeout=30)
    self.assertEqual(([a.tolist() for a in arrays], error), ([[2, 4]], None))
    self.assertTrue(begin([99]))
    arrays, error = results.get(timeout=30)
    self.assertIsNone(arrays)
    self.assertEqual(error.code, "FAILED_PRECONDITION")
    # More than a batch, and not all outputs, are run by `run`.
    self.assertFalse(begin([1, 2, 3]))
    self.assertFalse(begin([1], ()))
    with self.assertRaisesRegex(errors.ServingError, "5 rows, more than max_batch_size 4"):
      begin([1] * 5)
    self.assertTrue(begin([3]))
    self.assertEqual(results.get(timeout=30)[0][0].tolist(), [6])
    self.assertTrue(results.empty())


if __name__ == "__main__":
  absltest.main()
