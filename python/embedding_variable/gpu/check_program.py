# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs ops on /gpu:0 and compares with NumPy; run by embedding_variable.gpu.checking.

  python -m embedding_variable.gpu.check_program GROUP

Prints a line of JSON when a check starts, {"begins": name}, and one when it ends,
{"name": ..., "error": null or a string}. If a check crashes the process, its first line
has no second one.
"""

import json
import re
import sys

import numpy as np
import tensorflow as tf

import embedding_variable  # pylint: disable=unused-import
from tensorflow.core.framework.embedding import config_pb2

# Placement of ops and rows; the program's test replaces them.
DEVICE = "/gpu:0"
STORAGE = config_pb2.StorageType.HBM

_KEYS, _DIM, _RATE, _START = 1000, 16, 0.5, 0.1


def _session():
  """Returns a session without soft placement."""
  return tf.compat.v1.Session(config=tf.compat.v1.ConfigProto(
      gpu_options=tf.compat.v1.GPUOptions(allow_growth=True)))


def _close(got, expected, tolerance=1e-5):
  """Raises AssertionError unless arrays agree, relative to the largest number."""
  got, expected = np.asarray(got, np.float64), np.asarray(expected, np.float64)
  if got.shape != expected.shape:
    raise AssertionError("shape %s, expected %s" % (got.shape, expected.shape))
  off = np.max(np.abs(got - expected)) / max(1e-30, np.max(np.abs(expected)))
  if not off <= tolerance:
    raise AssertionError("off by %.2g of the largest number, at most %.2g" %
                         (off, tolerance))


def _numbers(*shape):
  return np.random.RandomState(1).uniform(-1, 1, shape).astype(np.float32)


def _run(function, *arrays):
  """Runs `function` on tensors on the GPU and returns its result."""
  with tf.Graph().as_default(), tf.device(DEVICE):
    fed = [tf.compat.v1.placeholder(a.dtype, a.shape) for a in arrays]
    result = function(*fed)
    with _session() as session:
      return session.run(result, dict(zip(fed, arrays)))


def _device():
  with tf.Graph().as_default(), _session() as session:
    names = [d.name for d in session.list_devices() if d.device_type == "GPU"]
  if not names:
    raise AssertionError("TensorFlow has created no GPU device; see its log")


def _elementwise():
  a, b = _numbers(512, 700), _numbers(512, 700)
  _close(_run(lambda x, y: tf.tanh(x) * y + tf.exp(y), a, b), np.tanh(a) * b + np.exp(b))


def _matmul():
  a, b = _numbers(300, 400), _numbers(400, 500)
  # TF32, if enabled, keeps only ten bits of each factor.
  _close(_run(tf.matmul, a, b), a.astype(np.float64) @ b, 2e-3)


def _matmul_half():
  a, b = _numbers(300, 400).astype(np.float16), _numbers(400, 500).astype(np.float16)
  _close(_run(tf.matmul, a, b), a.astype(np.float64) @ b.astype(np.float64), 1e-2)


def _matmul_double():
  a, b = _numbers(300, 400).astype(np.float64), _numbers(400, 500).astype(np.float64)
  _close(_run(tf.matmul, a, b), a @ b, 1e-12)


def _batch_matmul():
  a, b = _numbers(20, 30, 40), _numbers(20, 40, 50)
  _close(_run(tf.matmul, a, b), a.astype(np.float64) @ b, 2e-3)


def _batch_matmul_half():
  a, b = _numbers(20, 30, 40).astype(np.float16), _numbers(20, 40, 50).astype(np.float16)
  _close(_run(tf.matmul, a, b), a.astype(np.float64) @ b.astype(np.float64), 1e-2)


def _random():
  got = _run(lambda: tf.random.normal([1 << 20], seed=3))
  _close([np.mean(got) + 1, np.std(got)], [1, 1], 1e-2)
  got = _run(lambda: tf.random.uniform([1 << 20], seed=3))
  _close([np.mean(got), np.max(got), np.min(got) + 1], [0.5, 1, 1], 1e-2)


def _reduction():
  a = _numbers(1000, 333)
  _close(_run(lambda x: tf.reduce_sum(x, 0), a), np.sum(a.astype(np.float64), 0))
  _close(_run(lambda x: tf.reduce_max(x, 1), a), np.max(a, 1), 0)
  _close(_run(lambda x: tf.argmax(x, 1), a), np.argmax(a, 1), 0)


def _gather():
  a = _numbers(1000, 33)
  ids = np.random.RandomState(2).randint(0, 1000, 5000)
  _close(_run(tf.gather, a, ids), a[ids], 0)
  parts = np.zeros([1000, 33])
  np.add.at(parts, ids, _numbers(5000, 33).astype(np.float64))
  _close(_run(lambda x, i: tf.math.unsorted_segment_sum(x, i, 1000),
              _numbers(5000, 33), ids), parts)


def _transpose():
  a = _numbers(50, 60, 70)
  _close(_run(lambda x: tf.transpose(x, [2, 0, 1]), a), a.transpose(2, 0, 1), 0)
  _close(_run(lambda x: tf.concat([x, x], 1)[:, 10:90], a),
         np.concatenate([a, a], 1)[:, 10:90], 0)


def _softmax():
  a = _numbers(100, 10)
  labels = np.arange(100) % 10
  shifted = np.exp(a.astype(np.float64))
  expected = -np.log(shifted[np.arange(100), labels] / shifted.sum(1))
  _close(_run(lambda x, l: tf.nn.sparse_softmax_cross_entropy_with_logits(
      logits=x, labels=l), a, labels), expected)


def _dense_training():
  a = _numbers(64, 8)
  with tf.Graph().as_default(), tf.device(DEVICE):
    weights = tf.compat.v1.get_variable(
        "w", initializer=np.ones([8, 1], np.float32), use_resource=True)
    loss = tf.reduce_sum(tf.matmul(tf.constant(a), weights))
    train = tf.compat.v1.train.AdagradOptimizer(
        _RATE, initial_accumulator_value=_START).minimize(loss)
    with _session() as session:
      session.run(tf.compat.v1.global_variables_initializer())
      session.run(train)
      got = session.run(weights)
  gradient = a.astype(np.float64).sum(0)[:, None]
  _close(got, 1 - _RATE * gradient / np.sqrt(_START + gradient**2), 2e-3)


def _embedding_variable():
  option = embedding_variable.EmbeddingVariableOption(
      storage_option=embedding_variable.StorageOption(
          storage_type=STORAGE))
  keys = np.random.RandomState(3).randint(-2**62, 2**62, _KEYS)
  ids = keys[np.random.RandomState(4).randint(0, _KEYS, 4096)]
  samples = np.sort(np.random.RandomState(5).randint(0, 512, 4096))
  with tf.Graph().as_default(), tf.device(DEVICE):
    table = embedding_variable.get_embedding_variable(
        "t", embedding_dim=_DIM, initializer=tf.compat.v1.ones_initializer(),
        ev_option=option)
    sparse = tf.SparseTensor(
        np.stack([samples, np.arange(4096)], 1).astype(np.int64), ids, [512, 4096])
    pooled = embedding_variable.lookup_sparse([table], [sparse], combiners=["sum"])[0]
    train = tf.compat.v1.train.AdagradOptimizer(
        _RATE, initial_accumulator_value=_START).minimize(tf.reduce_sum(pooled))
    with _session() as session:
      session.run(tf.compat.v1.global_variables_initializer())
      counts = np.bincount(samples, minlength=512)[:, None]
      _close(session.run(pooled), np.repeat(counts, _DIM, 1), 0)
      session.run(train)
      got = session.run(pooled)
  _, inverse, uses = np.unique(ids, return_inverse=True, return_counts=True)
  rows = 1 - _RATE * uses / np.sqrt(_START + uses.astype(np.float64)**2)
  expected = np.zeros(512)
  np.add.at(expected, samples, rows[inverse])
  _close(got, np.repeat(expected[:, None], _DIM, 1))


def _fft():
  a = _numbers(16, 256).astype(np.complex64)
  got, expected = _run(tf.signal.fft, a), np.fft.fft(a)
  _close(np.stack([got.real, got.imag]), np.stack([expected.real, expected.imag]))


def _cholesky():
  a = _numbers(64, 64).astype(np.float64)
  a = a @ a.T + 64 * np.eye(64)
  _close(_run(tf.linalg.cholesky, a), np.linalg.cholesky(a), 1e-10)


def _conv2d():
  a, kernel = _numbers(2, 8, 8, 3), _numbers(3, 3, 3, 4)
  padded = np.pad(a, [(0, 0), (1, 1), (1, 1), (0, 0)], "constant")
  expected = np.zeros([2, 8, 8, 4])
  for i in range(3):
    for j in range(3):
      expected += padded[:, i:i + 8, j:j + 8] @ kernel[i, j].astype(np.float64)
  _close(_run(lambda x, k: tf.nn.conv2d(x, filters=k, strides=1, padding="SAME"),
              a, kernel), expected, 2e-3)


# Required by embedding models: set-up fails if one does not work.
_NEEDED = [
    ("a GPU device", _device),
    ("elementwise", _elementwise),
    ("matmul, float32", _matmul),
    ("matmul, float16", _matmul_half),
    ("matmul, float64", _matmul_double),
    ("batched matmul, float32", _batch_matmul),
    ("batched matmul, float16", _batch_matmul_half),
    ("random numbers", _random),
    ("reductions", _reduction),
    ("gather, segment sums", _gather),
    ("transpose, concat, slice", _transpose),
    ("softmax, cross entropy", _softmax),
    ("a trained dense variable", _dense_training),
    ("lookup and update of rows in GPU memory", _embedding_variable),
]

# Each group runs in its own process: a failing op may break the GPU's context.
GROUPS = {
    "needed": _NEEDED,
    "fft": [("Fourier transforms (cuFFT)", _fft)],
    "cholesky": [("linear algebra (cuSOLVER)", _cholesky)],
    "conv2d": [("convolutions (cuDNN)", _conv2d)],
}


def _first_line(error):
  """Returns the line of an exception's message that has the cause."""
  lines = str(getattr(error, "message", None) or error).strip().splitlines()
  # If an op has several errors, TensorFlow first prints their number.
  lines = [l for l in lines if not re.match(r"\d+ root error", l)]
  return lines[0].strip() if lines else type(error).__name__


def main():
  tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)
  for name, function in GROUPS[sys.argv[1]]:
    sys.stdout.write(json.dumps({"begins": name}) + "\n")
    sys.stdout.flush()
    error = None
    try:
      function()
    except Exception as e:  # pylint: disable=broad-except
      error = _first_line(e)
    sys.stdout.write(json.dumps({"name": name, "error": error}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
  main()
