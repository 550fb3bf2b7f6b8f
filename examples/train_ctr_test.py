# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Trains every model for a few steps on data that is quick to learn."""

import io
import json
import os
import subprocess
import sys
import tempfile
import warnings
from unittest import mock

from absl import app
from absl.testing import absltest
from absl.testing import flagsaver
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

import embedding_variable
import criteo
import ctr_data
import deprecations
import embeddings
import models
import train_ctr

deprecations.silence()

# A program that serves a SavedModel without this project's Python code.
_SERVE = """
import json, sys
import tensorflow as tf
tf.load_op_library(sys.argv[1])
numbers, categories = json.load(sys.stdin)
with tf.compat.v1.Session(graph=tf.Graph()) as session:
  model = tf.compat.v1.saved_model.load(session, ["serve"], sys.argv[2])
  signature = model.signature_def["serving_default"]
  print(session.run(signature.outputs["probability"].name, {
      signature.inputs["numbers"].name: numbers,
      signature.inputs["categories"].name: categories}).tolist())
"""

_STEPS = 60
_BATCH = 256
_EVAL = 3000
_CARDINALITIES = (20,) * criteo.NUM_CATEGORICAL


class TrainCtrTest(parameterized.TestCase):

  @classmethod
  def setUpClass(cls):
    super(TrainCtrTest, cls).setUpClass()
    cls.folder = tempfile.mkdtemp()
    with mock.patch.object(
        criteo.PlantedModel, "__init__", autospec=True,
        side_effect=lambda self, seed, init=criteo.PlantedModel.__init__: init(
            self, seed, _CARDINALITIES)):
      cls.data = ctr_data.generate(
          cls.folder, _STEPS * _BATCH, _EVAL, seed=3)

  def _run(self, **flags):
    flags.setdefault("steps", _STEPS)
    flags.setdefault("dim", 4)
    with flagsaver.flagsaver(batch_size=_BATCH, **flags):
      return train_ctr.run(self.data, tempfile.mkdtemp())

  def _check(self, result):
    self.assertLess(result.last_loss, result.first_loss)
    self.assertGreater(result.auc, 0.6)
    self.assertLess(result.auc, result.best_auc)
    self.assertTrue(result.same_bits)
    self.assertEqual(result.auc, result.restored_auc)

  @parameterized.parameters(*sorted(models.MODELS))
  def test_model_learns_and_restores_to_the_bit(self, model):
    self._check(self._run(model=model))

  @parameterized.parameters(embeddings.TF, embeddings.DENSE)
  def test_other_lookups(self, lookup):
    self._check(self._run(lookup=lookup, dense_rows=1000))

  def test_auto_storage(self):
    self._check(self._run(storage="auto"))

  def test_device_cpu(self):
    self._check(self._run(device="cpu"))

  @parameterized.parameters(*sorted(models.MODELS))
  def test_ops_placed_on_the_gpu(self, model):
    with tf.Graph().as_default() as graph:
      with flagsaver.flagsaver(model=model, device="gpu", dim=4):
        train_ctr.build(self.data)
      on_gpu, tables, products = set(), [], []
      for op in graph.get_operations():
        if tf.DeviceSpec.from_string(op.device).device_type == "GPU":
          on_gpu.add(op.type)
        if op.type == "EvHandle":
          tables.append(op)
        if op.type == "MatMul":
          products.append(op)
    self.assertTrue(tables)
    for op in tables + products:
      self.assertEqual(op.device, "/device:GPU:0", op.name)
    for op in tables:
      self.assertEqual(op.get_attr("storage"), b"hbm")
    # Ops of the optimizer are on the GPU, those of input and saver are not.
    self.assertIn("ApplyAdam", on_gpu)
    for op_type in ("OneShotIterator", "IteratorV2", "IteratorGetNext", "SaveV2",
                    "RestoreV2", "SparseSegmentSum"):
      self.assertNotIn(op_type, on_gpu)

  def test_a_tensorflow_without_a_gpu_is_an_error(self):
    if tf.test.is_gpu_available():
      self.skipTest("this TensorFlow has a GPU")
    with flagsaver.flagsaver(demo=True, device="gpu", steps=3):
      with mock.patch("sys.stderr", new_callable=io.StringIO) as err:
        self.assertEqual(train_ctr.main(["train_ctr"]), 1)
    self.assertRegex(err.getvalue(),
                     "no GPU device, only .*CPU:0.*embedding_variable.gpu setup")

  def test_storage_follows_the_device(self):
    for device, storage, expected in (
        (None, None, "dram"), ("cpu", None, "dram"), ("gpu", None, "hbm"),
        ("gpu", "dram", "dram"), (None, "hbm", "hbm")):
      with flagsaver.flagsaver(device=device, storage=storage):
        self.assertEqual(train_ctr.storage(), expected)

  def test_square_cross_layers(self):
    self._check(self._run(model="dcnv2", cross_rank=0, cross_layers=1))

  @parameterized.parameters(("adagrad", 0.03), ("ftrl", 0.05), ("sgd", 0.1))
  def test_other_optimizers(self, optimizer, learning_rate):
    # FTRL soon forgets the initial values, so the first loss must be above log(2).
    result = self._run(optimizer=optimizer, learning_rate=learning_rate, seed=2)
    self.assertLess(result.last_loss, result.first_loss)
    self.assertTrue(result.same_bits)

  def test_once_through_a_file_with_held_out_lines(self):
    path = os.path.join(self.folder, "eval.txt")
    data = ctr_data.of_files(path, "", 1000)
    self.assertEqual(data.train, {"path": path, "skip": 1000})
    with flagsaver.flagsaver(batch_size=_BATCH, steps=0, dim=4):
      result = train_ctr.run(data, tempfile.mkdtemp())
    # About 2000 lines to train on: eight batches.
    self.assertEndsWith(result.checkpoint, "model.ckpt-8")
    self.assertTrue(result.same_bits)
    self.assertIsNone(result.best_auc)

  def test_report(self):
    good = train_ctr.Result(0.7, 0.5, 1000.0, 0.75, 0.75, True, 0.8, "x")
    with mock.patch("builtins.print") as out:
      self.assertEqual(train_ctr.report(good), 0)
      text = "\n".join(str(call[0][0]) for call in out.call_args_list)
      self.assertIn("0.750000 of 0.800000, the best possible", text)
      self.assertIn("the same to the bit", text)
      self.assertIn("What to try next", text)
      self.assertEqual(train_ctr.report(good._replace(same_bits=False)), 1)
      self.assertEqual(train_ctr.report(good._replace(restored_auc=0.7)), 1)

  def test_estimate_lines(self):
    path = os.path.join(self.folder, "eval.txt")
    self.assertAlmostEqual(ctr_data.estimate_lines(path), _EVAL, delta=10)

  def test_too_few_lines_to_hold_out(self):
    with self.assertRaisesRegex(criteo.DataError, "nothing is left to train on"):
      ctr_data.of_files(os.path.join(self.folder, "eval.txt"), "", 10 * _EVAL)

  def test_neither_or_both_sources(self):
    for flags in ({}, {"demo": True, "data": "train.txt"}):
      with flagsaver.flagsaver(**flags):
        with self.assertRaisesRegex(app.UsageError, "--data=PATH.*--demo"):
          train_ctr.main(["train_ctr"])

  def errors(self, **flags):
    """Returns the standard error of a run that must end with status 2."""
    with flagsaver.flagsaver(steps=3, batch_size=64, **flags), warnings.catch_warnings():
      warnings.simplefilter("ignore")  # from TensorFlow modules that are imported late
      with mock.patch("sys.stderr", new_callable=io.StringIO) as err:
        self.assertEqual(train_ctr.main(["train_ctr"]), 2)
    self.assertLen(err.getvalue().splitlines(), 1)
    return err.getvalue()

  def test_data_that_cannot_be_read_is_an_error_of_one_line(self):
    self.assertEqual(self.errors(data="/no/such/train.txt"),
                     "error: /no/such/train.txt: No such file or directory\n")
    # Beyond the lines that are checked before training.
    path = os.path.join(tempfile.mkdtemp(), "train.txt")
    with open(os.path.join(self.folder, "eval.txt")) as f:
      lines = f.readlines()
    lines[1500] = "1\t2\n"
    with open(path, "w") as f:
      f.writelines(lines)
    self.assertStartsWith(self.errors(data=path, eval_samples=1450),
                          "error: %s: line 1501: expected 40 fields" % path)

  def test_an_export_into_an_existing_folder_is_refused(self):
    with flagsaver.flagsaver(demo=True, export=self.folder):
      with self.assertRaisesRegex(app.UsageError, "--export=%s: it exists" % self.folder):
        train_ctr.main(["train_ctr"])

  def test_summaries_and_a_saved_model(self):
    folder = tempfile.mkdtemp()
    logs, export = os.path.join(folder, "logs"), os.path.join(folder, "export")
    result = self._run(summaries=logs, summary_steps=20, export=export, model="wdl")
    events, = tf.io.gfile.glob(os.path.join(logs, "events*"))
    steps = {}
    for event in tf.compat.v1.train.summary_iterator(events):
      for value in event.summary.value:
        steps.setdefault(value.tag, []).append(event.step)
    self.assertEqual(steps["loss"], [1, 21, 41])
    self.assertEqual(steps["samples_per_second"], [21, 41])
    self.assertEqual(steps["evaluation/auc"], [_STEPS])
    self.assertTrue([tag for tag in steps if tag.endswith("rows")])
    # A process with only the op library serves the same probabilities.
    batch = 50
    with open(os.path.join(self.folder, "eval.txt")) as f:
      fields = [f.readline().rstrip("\n").split("\t") for _ in range(batch)]
    done = subprocess.run(
        [sys.executable, "-c", _SERVE, embedding_variable.library_path(), export],
        input=json.dumps([[[float(x or 0) for x in line[1:14]] for line in fields],
                          [line[14:] for line in fields]]),
        stdout=subprocess.PIPE, universal_newlines=True, check=True)
    with tf.Graph().as_default():
      with flagsaver.flagsaver(model="wdl", dim=4):
        graph = train_ctr.build(self.data)
      with train_ctr.make_session() as session:
        graph.saver.restore(session, result.checkpoint)
        _, trained = train_ctr.evaluate(session, graph)
    np.testing.assert_allclose(json.loads(done.stdout), trained[:batch], rtol=1e-5)

  def test_demo_is_one_command(self):
    with flagsaver.flagsaver(demo=True, steps=3, batch_size=64, eval_samples=500,
                             work_dir=tempfile.mkdtemp()):
      self.assertEqual(train_ctr.main(["train_ctr"]), 0)
      self.assertNotEmpty(tf.io.gfile.glob(
          os.path.join(train_ctr.FLAGS.work_dir, "model.ckpt-3*")))


if __name__ == "__main__":
  absltest.main()
