# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""SavedModels with embedding variables, loaded by processes with only the op library."""

import json
import os
import shutil
import subprocess
import sys

from absl.testing import absltest
import numpy as np
import tensorflow as tf

import embedding_variable as ev

# Program of a serving process. Its arguments are the library's path (or none), the
# SavedModel and lists of feeds. It writes its results as JSON.
_SERVER = """
import json, os, sys
import tensorflow as tf
library, directory, feeds = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
if library == "import":
  import embedding_variable
  ops = embedding_variable._lib.load()
elif library:
  ops = tf.load_op_library(library)
seen = {"installed": "embedding_variable" in sys.modules, "outputs": []}
with tf.Session(graph=tf.Graph()) as session:
  model = tf.saved_model.load(session, ["serve"], directory)
  signature = model.signature_def["serving_default"]
  outputs = {k: v.name for k, v in signature.outputs.items()}
  handles = sorted((op for op in session.graph.get_operations()
                    if op.type == "EvHandle"), key=lambda op: op.name)
  with tf.device("/cpu:0"):
    shapes = [ops.ev_shape(h.outputs[0]) for h in handles]
    metas = [ops.ev_get_meta(h.outputs[0], tf.constant([1, 2, 77], tf.int64))
             for h in handles]
  seen["handles"] = [h.name for h in handles]
  seen["before"] = [s.tolist() for s in session.run(shapes)]
  seen["counted"] = [[x.tolist() for x in m] for m in session.run(metas)]
  for feed in feeds:
    names = {signature.inputs[k].name: v for k, v in feed.items()}
    found = session.run(outputs, names)
    seen["outputs"].append({k: v.tolist() for k, v in found.items()})
  seen["after"] = [s.tolist() for s in session.run(shapes)]
  seen["still"] = [[x.tolist() for x in m] for m in session.run(metas)]
print("SEEN " + json.dumps(seen))
"""


def serve(library, directory, feeds, check=True):
  """Runs `_SERVER`; returns its results, or all its output if not `check`."""
  env = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="2")
  if library == "import":
    env["PYTHONPATH"] = os.pathsep.join(sys.path)
  else:
    env.pop("PYTHONPATH", None)
  done = subprocess.run(
      [sys.executable, "-W", "ignore", "-c", _SERVER, library, directory,
       json.dumps(feeds)], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
      universal_newlines=True, timeout=120)
  if not check:
    return done.stdout
  lines = [l for l in done.stdout.splitlines() if l.startswith("SEEN ")]
  if done.returncode or not lines:
    raise AssertionError(done.stdout)
  return json.loads(lines[0][len("SEEN "):])


class SimpleSaveTest(absltest.TestCase):
  """A whole training graph, exported by `simple_save`."""

  @classmethod
  def setUpClass(cls):
    super(SimpleSaveTest, cls).setUpClass()
    tf.reset_default_graph()
    cls.directory = os.path.join(absltest.get_default_test_tmpdir(), "simple")
    shutil.rmtree(cls.directory, ignore_errors=True)
    with absltest.mock.patch.dict(os.environ, {"TF_RECORD_FREQ": "1",
                                               "TF_RECORD_VERSION": "1"}):
      whole = tf.get_embedding_variable("whole", 3)
      parts = tf.get_embedding_variable("parts", 2, key_dtype=tf.int32,
                                        partitioner=tf.fixed_size_partitioner(2))
    ids = tf.placeholder(tf.int64, [None])
    splits = tf.range(tf.size(ids, out_type=tf.int64) + 1)
    pooled = ev.lookup_sparse([whole], [tf.RaggedTensor.from_row_splits(ids, splits)],
                              combiners=["mean"])[0]
    rows = tf.nn.embedding_lookup(parts, tf.cast(ids, tf.int32))
    weights = tf.get_variable("weights", [5, 1])
    score = tf.matmul(tf.concat([pooled, rows], 1), weights)
    step = tf.train.get_or_create_global_step()
    train = tf.train.AdamOptimizer(.1).minimize(tf.reduce_mean((score - 1.)**2),
                                                global_step=step)
    cls.feeds = [{"ids": [1, 2, -3]}, {"ids": [77, 78]}, {"ids": [1, 2, -3]}]
    with tf.Session() as session:
      session.run(tf.global_variables_initializer())
      for _ in range(4):
        session.run(train, {ids: [1, 2, -3, 2]})
      cls.expected = [session.run(score, {ids: f["ids"]}).tolist() for f in cls.feeds]
      tf.saved_model.simple_save(session, cls.directory, {"ids": ids},
                                 {"score": score, "rows": rows})
    # A moved SavedModel still works.
    cls.moved = cls.directory + "_moved"
    shutil.rmtree(cls.moved, ignore_errors=True)
    shutil.move(cls.directory, cls.moved)

  def check(self, seen):
    self.assertEqual(seen["handles"], ["parts/part_0", "parts/part_1", "whole"])
    self.assertEqual([o["score"] for o in seen["outputs"]], self.expected)
    self.assertEqual(sum(n for n, _ in seen["before"][:2]), 3)
    self.assertEqual(seen["before"][2], [3, 3])
    # Reading neither inserts nor counts keys, whether they exist or not.
    self.assertEqual(seen["after"], seen["before"])
    self.assertEqual(seen["still"], seen["counted"])
    self.assertEqual(seen["counted"][2], [[4, 8, 0], [3, 3, -1]])

  def test_keys_travel_in_the_variables_bundle(self):
    bundle = os.path.join(self.moved, "variables", "variables")
    names = {name for name, _ in tf.train.list_variables(bundle)}
    self.assertContainsSubset(
        {"whole-keys", "whole-values", "whole/Adam-values", "whole-default_rows",
         "parts/part_0-keys", "parts/part_1-keys"}, names)
    np.testing.assert_array_equal(
        sorted(tf.train.load_variable(bundle, "whole-keys")), [-3, 1, 2])
    self.assertEqual(sorted(os.listdir(self.moved)), ["saved_model.pb", "variables"])

  def test_a_process_with_only_the_op_library(self):
    seen = serve(ev.library_path(), self.moved, self.feeds)
    self.assertFalse(seen["installed"])
    self.check(seen)

  def test_a_process_that_imports_the_package(self):
    seen = serve("import", self.moved, self.feeds)
    self.assertTrue(seen["installed"])
    self.check(seen)

  def test_error_without_the_library(self):
    self.assertIn("Op type not registered 'Ev",
                  serve("", self.moved, self.feeds, check=False))


class EstimatorTest(absltest.TestCase):
  """A model with a feature column, exported by `Estimator.export_saved_model`."""

  def test_export_and_serve(self):
    column = tf.feature_column.embedding_column(
        tf.feature_column.categorical_column_with_embedding("word"), dimension=4)

    def model_fn(features, labels, mode):
      net = tf.feature_column.input_layer(features, [column])
      score = tf.layers.dense(net, 1, name="dense")
      predictions = {"score": score}
      if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(
            mode, predictions, export_outputs={
                "serving_default": tf.estimator.export.PredictOutput(predictions)})
      loss = tf.reduce_mean((score - labels)**2)
      train = tf.train.AdagradOptimizer(.5).minimize(
          loss, tf.train.get_global_step())
      return tf.estimator.EstimatorSpec(mode, predictions, loss, train)

    def data():
      words = [["red"], ["green"], ["blue"], ["red"]]
      return tf.data.Dataset.from_tensors(
          ({"word": words}, [[1.], [-1.], [0.], [1.]])).repeat(5)

    def words(*given):
      return lambda: tf.data.Dataset.from_tensors({"word": [[w] for w in given]})

    directory = self.create_tempdir().full_path
    estimator = tf.estimator.Estimator(model_fn, os.path.join(directory, "model"))
    estimator.train(data)
    expected = [[p["score"].tolist() for p in estimator.predict(words(*some))]
                for some in (("red", "green"), ("unseen", "blue"))]
    receiver = tf.estimator.export.build_raw_serving_input_receiver_fn(
        {"word": tf.placeholder(tf.string, [None, 1], name="word")})
    exported = estimator.export_saved_model(
        os.path.join(directory, "export"), receiver, save_incr_model=True).decode()
    bundle = os.path.join(exported, "variables", "variables")
    names = [n for n, _ in tf.train.list_variables(bundle)]
    self.assertLen([n for n in names if n.endswith("-keys")], 1)  # no slots
    seen = serve(ev.library_path(), exported,
                 [{"word": [["red"], ["green"]]}, {"word": [["unseen"], ["blue"]]}])
    self.assertEqual([o["score"] for o in seen["outputs"]], expected)
    self.assertEqual(seen["before"], [[3, 4]])
    self.assertEqual(seen["after"], seen["before"])


if __name__ == "__main__":
  absltest.main()
