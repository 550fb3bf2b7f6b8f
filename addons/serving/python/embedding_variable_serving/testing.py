# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Models and a server for tests."""

import json
import os
import shutil
import tempfile
import urllib.error
import urllib.request

from absl.testing import absltest
from google.protobuf import text_format
import tensorflow as tf

import embedding_variable as ev
from embedding_variable_serving import flags
from embedding_variable_serving import main

DIM = 4


def folder():
  """Returns a new folder for models."""
  return tempfile.mkdtemp(dir=absltest.get_default_test_tmpdir())


def write_model(base_path, number, scale=1.0, keys=(1, 2, -3)):
  """Writes a version whose output "score" is scale * the sum of a row of "ids".

  The rows of keys have the elements key + 1. Other rows have zeros.

  Returns:
    The path of the version.
  """
  path = os.path.join(base_path, str(number))
  part = os.path.join(base_path, "part-%d" % number)
  shutil.rmtree(part, ignore_errors=True)
  v1 = tf.compat.v1
  graph = tf.Graph()
  with graph.as_default(), v1.Session(graph=graph) as session:
    table = ev.get_embedding_variable("users", DIM, initializer=v1.zeros_initializer())
    ids = v1.placeholder(tf.int64, [None], name="ids")
    rows = tf.nn.embedding_lookup(table, ids)
    score = tf.multiply(tf.reduce_sum(rows, axis=1), scale, name="score")
    loss = tf.reduce_sum(rows * v1.placeholder(tf.float32, [None, 1], name="by"))
    train = v1.train.GradientDescentOptimizer(1.0).minimize(loss)
    session.run(v1.global_variables_initializer())
    session.run(train, {"ids:0": list(keys), "by:0": [[-key - 1.0] for key in keys]})
    v1.saved_model.simple_save(session, part, {"ids": ids}, {"score": score})
  shutil.move(part, path)
  return path


def write_examples_model(base_path, number):
  """Writes a version with the signatures "classify" and "regress".

  Each Example has a feature "id", an integer. Rows are those of write_model.
  """
  v1 = tf.compat.v1
  graph = tf.Graph()
  with graph.as_default(), v1.Session(graph=graph) as session:
    table = ev.get_embedding_variable("users", DIM, initializer=v1.zeros_initializer())
    texts = v1.placeholder(tf.string, [None], name="texts")
    ids = v1.parse_example(texts, {"id": v1.FixedLenFeature([], tf.int64)})["id"]
    rows = tf.nn.embedding_lookup(table, ids)
    total = tf.reduce_sum(rows, axis=1)
    scores = tf.stack([total, tf.ones_like(total)], axis=1)
    classes = tf.tile([["sum", "one"]], [tf.shape(total)[0], 1])
    keys = v1.placeholder(tf.int64, [None])
    by = v1.placeholder(tf.float32, [None, 1])
    loss = tf.reduce_sum(tf.nn.embedding_lookup(table, keys) * by)
    train = v1.train.GradientDescentOptimizer(1.0).minimize(loss)
    session.run(v1.global_variables_initializer())
    session.run(train, {keys: [1, 2], by: [[-2.0], [-3.0]]})
    info = v1.saved_model.build_tensor_info
    make = v1.saved_model.build_signature_def
    signatures = {
        "classify": make({"inputs": info(texts)},
                         {"classes": info(classes), "scores": info(scores)},
                         "tensorflow/serving/classify"),
        "regress": make({"inputs": info(texts)}, {"outputs": info(total)},
                        "tensorflow/serving/regress")}
    builder = v1.saved_model.Builder(os.path.join(base_path, str(number)))
    builder.add_meta_graph_and_variables(session, ["serve"], signatures)
    builder.save()


def parse(text, cls):
  """Returns the message of a class that a text stands for."""
  return text_format.Parse(text, cls())


def start(*argv):
  """Returns a ModelServer on free ports that polls often."""
  return main.ModelServer(flags.parse(
      ["--port=0", "--rest_api_port=0", "--file_system_poll_wait_seconds=0.05",
       "--load_retry_interval_micros=100000", "--grpc_max_threads=4",
       "--rest_api_num_threads=4"] + list(argv)))


def http(server, path, body=None, headers=()):
  """Returns (status, JSON value or text) of a GET, or of a POST of a body."""
  if body is not None and not isinstance(body, bytes):
    body = json.dumps(body).encode()
  request = urllib.request.Request("http://127.0.0.1:%d%s" % (server.rest_port, path), body,
                                   dict(headers))
  try:
    with urllib.request.urlopen(request, timeout=30) as answer:
      status, text = answer.status, answer.read()
  except urllib.error.HTTPError as e:
    status, text = e.code, e.read()
  try:
    return status, json.loads(text.decode())
  except ValueError:
    return status, text.decode()
